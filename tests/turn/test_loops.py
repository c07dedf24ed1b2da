"""Tests for a model that repeats its calls: it gets a note, then a request without calls, and never causes an error."""

import pytest

from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.repetition import REPETITION_NOTE
from custom_components.windowed_conversation.window import EstimatedCounter, Role, Window, WindowPolicy
from demo.model_server import ModelServer
from tests.providers.byte_server import ByteServer

from .answers import LOOK, TURN_ON, calls, said
from .conftest import Take
from .world import Home

TURN_OFF = "intent__HassTurnOff"


@pytest.fixture
def window() -> Window:
    """Return a window that keeps tool results as the model has read them."""
    return Window("conversation", WindowPolicy(tool_results="keep"), EstimatedCounter())


def results(window: Window) -> list[str]:
    """Return the tool results as the model reads them."""
    return [message.content for message in window.messages() if message.role is Role.TOOL]


def told(window: Window) -> list[bool]:
    """Return for each tool result whether it has the note that it is a repetition."""
    return [result.startswith(f"{REPETITION_NOTE}\n") for result in results(window)]


async def test_loop_is_told_and_ends_in_an_answer(
    take: Take, model_server: ModelServer, window: Window, home: Home
) -> None:
    model_server.fault("same_call")

    outcome = await take("my name is Ada")

    assert (outcome.error, outcome.sent_text) == (None, "Nice to meet you, Ada.")
    assert (home.ran, told(window)) == (["look"] * 4, [False, False, True, True])
    assert ["tools" in request.body for request in model_server.requests] == [True] * 4 + [False]


async def test_result_that_came_before_is_read_behind_the_line_that_says_so(
    take: Take, model_server: ModelServer, window: Window
) -> None:
    model_server.fault("same_call", 3)

    await take("my name is Ada")

    first, _, third = results(window)
    assert third == f"{REPETITION_NOTE}\n{first}"


async def test_line_survives_the_cut_of_a_long_result(
    take: Take, model_server: ModelServer, window: Window, home: Home
) -> None:
    window.set_policy(WindowPolicy(tool_results="keep", result_cap_tokens=100))
    home.things |= {f"lamp {number}": "on" for number in range(100)}
    model_server.fault("same_call", 3)

    await take("my name is Ada")

    assert told(window) == [False, False, True]


async def test_model_that_checks_its_work_is_left_to_it(
    take: Take, byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(calls({}, name=LOOK))
    byte_server.add_reply(calls({"name": "kitchen light"}))
    byte_server.add_reply(calls({}, name=LOOK))
    byte_server.add_reply(calls({"name": "bedroom light"}))
    byte_server.add_reply(calls({}, name=LOOK))
    byte_server.add_reply(said("Both are on."))

    outcome = await take("switch on both", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, "Both are on.")
    assert told(window) == [False] * 5
    assert home.things == {"kitchen light": "on", "bedroom light": "on"}


async def test_call_that_alternates_with_another_is_a_loop(
    take: Take, byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(calls({"name": "kitchen light"}))
    for name in (TURN_OFF, TURN_ON, TURN_OFF, TURN_ON, TURN_OFF):
        byte_server.add_reply(calls({"name": "kitchen light"}, name=name))
    byte_server.add_reply(said("It blinked."))

    outcome = await take("make it blink", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, "It blinked.")
    assert told(window) == [False, False, False, True, False, True]
    assert ["tools" in request for request in byte_server.requests] == [True] * 6 + [False]


@pytest.mark.parametrize("words", ["", "I am stuck."])
async def test_model_that_never_stops_calling_ends_in_an_answer(
    *, words: str, take: Take, byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(calls({}, name=LOOK))
    for _ in range(3):
        byte_server.add_reply(calls({}, name=LOOK))
    byte_server.add_reply(said(words) if words else calls({}, name=LOOK))

    outcome = await take("look", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, words or "Done.")
    assert home.ran == ["look"] * 4
    assert window.messages()[-1].tool_calls == ()
