"""Tests that no request orders what its context makes needless, with a scripted model that obeys each order."""

from homeassistant.components.homeassistant import llm as home_llm
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge import tools
from custom_components.windowed_conversation.const import CONF_CONTEXT_PLACEMENT, CONF_STATES
from demo.model_server import ModelServer
from demo.model_server.conversation import Conversation, Turn
from demo.model_server.orders import list_orders

from .conftest import SayFn, SetUpFn, get_speech

QUESTION = "tell me whether the hall light is on"


def find_orders(model_server: ModelServer) -> list[str]:
    """Return the orders in the newest request."""
    body = model_server.requests[-1].body
    texts = [body["messages"][0]["content"], *(each["function"]["description"] for each in body["tools"])]
    return list_orders(Conversation(tuple(Turn("system", text) for text in texts)))


@pytest.mark.parametrize("placement", ["message", "system"])
async def test_request_with_states_orders_no_look_up(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, placement: str
) -> None:
    await set_up(**{CONF_STATES: True, CONF_CONTEXT_PLACEMENT: placement, "routing": "model_only"})

    await say(QUESTION)

    assert find_orders(model_server) == []


async def test_request_without_states_has_the_order_of_home_assistant(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_STATES: False, "routing": "model_only"})

    await say(QUESTION)

    assert [order.rpartition("  ")[2] for order in find_orders(model_server)] == [
        "You MUST use the provided tool to retrieve live context."
    ]


@pytest.mark.parametrize("placement", ["message", "system"])
async def test_obedient_model_answers_from_the_states_in_one_request(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, placement: str
) -> None:
    model_server.change(obedient=True)
    await set_up(**{CONF_STATES: True, CONF_CONTEXT_PLACEMENT: placement, "routing": "model_only"})

    assert get_speech(await say(QUESTION)) == "The hall light is off."
    assert len(model_server.requests) == 1


async def test_obedient_model_would_look_up_if_it_were_ordered_to(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "_STATES_TOOL_PROMPT", "")
    model_server.change(obedient=True)
    await set_up(**{CONF_STATES: True, "routing": "model_only"})

    assert get_speech(await say(QUESTION)) == "The hall light is off."
    assert len(model_server.requests) == 2


async def test_order_of_home_assistant_is_found_in_its_prompt(home: HomeAssistant) -> None:
    assert home_llm.DYNAMIC_CONTEXT_PROMPT.count("MUST") == 1
