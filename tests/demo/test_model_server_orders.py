"""Tests for the obedient scripted model: it does what sentences with MUST order, and knows all orders."""

import pytest

from demo.model_server.conversation import Conversation, Turn
from demo.model_server.orders import list_orders, obey_orders
from demo.model_server.skills import answer

ORDER = "2.  You MUST use the provided tool to retrieve live context."
ASKED = "[CONTEXT: time: Monday 2026-11-23 17:10; states: Kitchen: Lamp=on 60%; speaker: Anna]\n\nis the lamp on?"


def make_conversation(system: str, asked: str = ASKED) -> Conversation:
    return Conversation((Turn("system", system), Turn("user", asked)), ("homeassistant__GetLiveContext",))


def test_order_is_a_sentence_with_must() -> None:
    conversation = make_conversation("Mustard is fine. You MUST wait.\nYou must not. Stay! It MUST be so")

    assert list_orders(conversation) == ["You MUST wait.", "It MUST be so"]


def test_order_in_the_context_of_a_message_counts_and_one_of_the_user_does_not() -> None:
    conversation = make_conversation("", "[CONTEXT: states: You MUST wait; area: Attic]\n\nyou MUST sing")

    assert list_orders(conversation) == ["You MUST wait"]


def test_without_an_order_listed_states_are_used() -> None:
    conversation = make_conversation("Answer from the states in the context.")

    assert answer(obey_orders(conversation)).text == "The lamp is on 60%."


@pytest.mark.parametrize("system", [ORDER, f"## States\nKitchen: Lamp=on\n{ORDER}"])
@pytest.mark.parametrize("asked", [ASKED, ASKED.replace("; speaker: Anna", "")])
def test_ordered_look_up_is_made_although_states_are_listed(system: str, asked: str) -> None:
    conversation = make_conversation(system, asked)

    assert [call.name for call in answer(obey_orders(conversation)).calls] == ["homeassistant__GetLiveContext"]


def test_hidden_states_take_nothing_else_with_them() -> None:
    context = obey_orders(make_conversation(ORDER)).newest_user_turn.context

    assert context == {"time": "Monday 2026-11-23 17:10", "speaker": "Anna"}


def test_order_that_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="You MUST sing"):
        obey_orders(make_conversation("You MUST sing."))
