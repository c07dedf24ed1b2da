"""Tests for one input from start to end: its route, its exchange in the window, and its outcome."""

import pytest

from custom_components.windowed_conversation.providers.errors import DeadlineExceeded, ProviderError
from custom_components.windowed_conversation.turn.errors import (
    EmptyInput,
    LocalAnswerFailed,
    PromptRenderingFailed,
    TurnError,
)
from custom_components.windowed_conversation.turn.model import BilledRequest, Question
from custom_components.windowed_conversation.turn.routing import (
    MAX_COMMAND_CHARS,
    Route,
    RouteDecision,
    RouteReason,
    RoutingMode,
    Situation,
)
from custom_components.windowed_conversation.window import Message, ToolCall, Window
from demo.model_server import FAULTS, ModelServer, call, thought, words

from .conftest import PREFIX, Take
from .world import Ear, Local, take_turn

LIGHT_IS_ON = (
    Message.assistant(tool_calls=(ToolCall("call_1", "HassTurnOn", {"name": "kitchen light"}),)),
    Message.tool("call_1", "HassTurnOn", "{}"),
    Message.assistant("Turned on the light"),
)
SHORT = 0.3
# Faults after the first words of an answer. These words stay in the window: see `test_incomplete.py`.
LATE_FAULTS = {name for name, fault in FAULTS.items() if fault.breaks and not fault.is_before_answer} - {
    "silence_after_headers"
} | {"length", "window_exceeded"}


async def test_answer_is_kept_with_its_question(take: Take, window: Window) -> None:
    outcome = await take("my name is Ada")

    assert outcome.error is None
    assert [(message.role, message.content) for message in window.messages()] == [
        ("system", "You are a voice assistant."),
        ("user", f"{PREFIX}my name is Ada"),
        ("assistant", "Nice to meet you, Ada."),
    ]
    assert not window.is_open


async def test_what_each_request_has_cost_is_told_before_its_answer_is_kept(
    window: Window, question: Question, reply: Ear, model_server: ModelServer
) -> None:
    told = []

    def on_billed(billed: BilledRequest) -> None:
        sent = billed.request.messages
        told.append((sent == window.messages(), len(sent), billed.usage.input > 0))

    await take_turn(window, "switch on the kitchen light", question, reply, on_billed=on_billed)

    assert told == [(True, 2, True), (True, 4, True)]


async def test_every_request_is_valid(take: Take, model_server: ModelServer) -> None:
    await take("turn on the kitchen light", routing=RoutingMode.LOCAL_FIRST, local=Local(LIGHT_IS_ON))
    await take("switch on the kitchen light and the bedroom light")
    model_server.script(words("One moment. ") + call("HassTurnOff", name="bedroom light"))
    await take("switch off the bedroom light")
    model_server.fault("cut_mid_stream", 1)
    await take("tell me a story about the sea")
    model_server.fault("same_call", 3)
    await take("hello")
    model_server.script(call("HassTurnOn", name="bedroom light"), words(""))
    await take("switch on the bedroom light")
    model_server.script(thought("I had better look.") + call("GetLiveContext", name="kitchen light"))
    await take("tell me whether the kitchen light is on")
    await take("what is my name?")

    assert [request.violations for request in model_server.requests] == [[]] * 14


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - LATE_FAULTS - {"same_call"}))
async def test_turn_that_fails_before_its_first_token_leaves_the_window_as_it_was(
    fault: str, take: Take, model_server: ModelServer, window: Window
) -> None:
    await take("my name is Ada")
    before = window.messages(), window.stats()
    model_server.fault(fault)

    outcome = await take("tell me a story about the sea", idle_timeout=SHORT, turn_timeout=3 * SHORT)

    assert isinstance(outcome.error, ProviderError | TurnError)
    assert (window.messages(), window.stats()) == before


@pytest.mark.parametrize("fault", sorted(LATE_FAULTS))
async def test_turn_that_fails_after_its_first_token_stays_in_the_window(
    fault: str, take: Take, model_server: ModelServer, window: Window
) -> None:
    model_server.fault(fault)

    outcome = await take("tell me a story about the sea", idle_timeout=SHORT, turn_timeout=3 * SHORT)

    assert isinstance(outcome.error, ProviderError | TurnError)
    assert outcome.sent_text.strip() in [each.content.strip() for each in window.messages()]
    assert "incomplete" in window.exchanges()[-1].tags


async def test_turn_that_takes_too_long_times_out(take: Take, model_server: ModelServer, window: Window) -> None:
    model_server.change(delay=0.02)

    outcome = await take("tell me a story about the sea", turn_timeout=0.3)

    assert isinstance(outcome.error, DeadlineExceeded)
    assert not window.is_open


async def test_blank_input_is_answered_by_nobody(take: Take, model_server: ModelServer, window: Window) -> None:
    local = Local(LIGHT_IS_ON)

    outcome = await take("", routing=RoutingMode.LOCAL_FIRST, local=local)

    assert isinstance(outcome.error, EmptyInput)
    assert (local.asked, model_server.requests, window.messages()) == ([], [], ())


async def test_question_that_cannot_be_prepared_asks_nobody(
    take: Take, model_server: ModelServer, window: Window
) -> None:
    outcome = await take("hello", asked=PromptRenderingFailed("the instructions cannot be rendered"))

    assert isinstance(outcome.error, PromptRenderingFailed)
    assert (model_server.requests, window.messages()) == ([], ())


async def test_local_answer_is_kept_and_asks_no_model(take: Take, model_server: ModelServer, window: Window) -> None:
    outcome = await take("turn on the kitchen light", routing=RoutingMode.LOCAL_FIRST, local=Local(LIGHT_IS_ON))

    assert outcome.decision == RouteDecision(Route.LOCAL, RouteReason.LOCAL_MATCH)
    assert [message.role for message in window.messages()] == ["user", "assistant", "tool", "assistant"]
    assert window.messages()[0].content == "turn on the kitchen light"
    assert window.stats().tag_distribution["route:local"] == 1
    assert model_server.requests == []


async def test_what_nothing_local_understood_is_put_to_the_model(take: Take, window: Window) -> None:
    local = Local()

    outcome = await take("my name is Ada", routing=RoutingMode.LOCAL_FIRST, local=local)

    assert outcome.decision == RouteDecision(Route.MODEL, RouteReason.NO_LOCAL_MATCH)
    assert (len(local.asked), outcome.sent_text) == (1, "Nice to meet you, Ada.")
    assert window.stats().tag_distribution["route:model"] == 1


@pytest.mark.parametrize("routing", [RoutingMode.LOCAL_FIRST, RoutingMode.LOCAL_ONLY])
async def test_local_answer_that_failed_is_not_put_to_the_model(
    routing: RoutingMode, take: Take, model_server: ModelServer, window: Window
) -> None:
    outcome = await take("turn on the sun", routing=routing, local=Local(LocalAnswerFailed("no such thing")))

    assert isinstance(outcome.error, LocalAnswerFailed)
    assert (model_server.requests, window.messages()) == ([], ())


async def test_local_answer_that_tells_no_messages_leaves_nothing_in_the_window(take: Take, window: Window) -> None:
    outcome = await take("forget my name", routing=RoutingMode.LOCAL_FIRST, local=Local(()))

    assert (outcome.error, window.messages()) == (None, ())


async def test_local_answer_is_no_models(take: Take) -> None:
    await take("turn on the kitchen light", routing=RoutingMode.LOCAL_FIRST, local=Local(LIGHT_IS_ON))
    local = Local(LIGHT_IS_ON)

    await take("turn it off", routing=RoutingMode.LOCAL_FIRST, local=local)

    assert local.asked == [Situation()]


async def test_long_input_goes_to_the_model_at_once(take: Take) -> None:
    local = Local(LIGHT_IS_ON)

    outcome = await take("word " * MAX_COMMAND_CHARS, routing=RoutingMode.LOCAL_FIRST, local=local)

    assert outcome.decision == RouteDecision(Route.MODEL, RouteReason.TOO_LONG)
    assert (local.asked, outcome.error) == ([], None)
