"""Tests for one input from start to end: its route, the model's calls, its exchange in the window, its outcome."""

import asyncio
from dataclasses import replace
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream, DeadlineExceeded, ProviderError
from custom_components.windowed_conversation.providers.openai.clients import create_openai_chat
from custom_components.windowed_conversation.turn.errors import (
    EmptyAnswer,
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
from custom_components.windowed_conversation.window import Message, Role, ToolCall, Window
from demo.model_server import FAULTS, ModelServer, call, thought, words
from tests.providers.byte_server import CALLS, DONE, STOP, ByteServer, chunk, fragment, text

from .answers import TURN_ON, calls, said
from .conftest import PREFIX, Take
from .world import Ear, Home, Local, take_turn

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

    await take_turn(window, "switch on the kitchen light", question, reply, billed=on_billed)

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


def roles(window: Window) -> list[Role]:
    return [message.role for message in window.messages()]


@pytest.mark.parametrize("shape", ["openai", "one_chunk", "ollama", "no_id", "dict_arguments", "finish_stop"])
async def test_calls_of_every_shape_are_run_and_answered(
    shape: str, take: Take, model_server: ModelServer, home: Home
) -> None:
    model_server.change(shapes=(shape,))

    outcome = await take("switch on the kitchen light and the bedroom light")

    assert outcome.error is None
    assert outcome.sent_text == "Done, the kitchen light and the bedroom light are on."
    assert home.things == {"kitchen light": "on", "bedroom light": "on"}


async def test_model_looks_and_then_acts(take: Take, home: Home, window: Window) -> None:
    outcome = await take("is the kitchen light on? if not, switch it on")

    assert outcome.sent_text == "Done, the kitchen light is on."
    assert home.ran == ["look", "on kitchen light"]
    assert (len(outcome.attempts), outcome.tool_calls) == (3, 2)
    assert roles(window) == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]


async def test_words_of_two_messages_are_kept_apart(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(text("One moment.") + calls({"name": "lamp"}))
    byte_server.add_reply(said("It is on."))

    outcome = await take("hello", asked=byte_question)

    assert outcome.sent_text == "One moment. It is on."


async def test_first_token_is_passed_on_before_the_answer_is_complete(
    take: Take, byte_question: Question, byte_server: ByteServer, reply: Ear
) -> None:
    rest = asyncio.Event()
    byte_server.set_reply(text("Hello"), rest, text(" there."), STOP, DONE)
    turn = asyncio.create_task(take("hello", asked=byte_question))
    await reply.spoke.wait()

    assert reply.text == "Hello"
    rest.set()
    outcome = await turn

    assert outcome.sent_text == "Hello there."
    assert outcome.first_token_seconds is not None
    assert outcome.duration_seconds is not None
    assert 0 < outcome.first_token_seconds < outcome.duration_seconds


async def test_call_is_run_before_the_answer_is_complete(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, reply: Ear
) -> None:
    rest = asyncio.Event()
    byte_server.set_reply(fragment('{"name": "lamp"}', TURN_ON, index=0), text("On it."), rest, CALLS, DONE)
    byte_server.add_reply(said("It is on."))
    turn = asyncio.create_task(take("hello", asked=byte_question))
    await reply.spoke.wait()
    await asyncio.sleep(0)

    assert home.ran == ["on lamp"]
    rest.set()
    await turn


async def test_last_request_offers_no_tools_to_a_compatible_server(take: Take, model_server: ModelServer) -> None:
    model_server.fault("same_call")

    outcome = await take("my name is Ada", max_tool_rounds=2)

    assert ["tools" in request.body for request in model_server.requests] == [True, True, False]
    assert outcome.sent_text == "Nice to meet you, Ada."


async def test_last_request_begins_to_openai_with_the_bytes_of_the_one_before_it(
    take: Take, question: Question, http_client: Any, model_server: ModelServer
) -> None:
    model_server.fault("same_call")
    provider = create_openai_chat("made-up", http_client, model_server.url)

    outcome = await take(
        "my name is Ada",
        asked=replace(question, model=replace(question.model, provider=provider)),
        max_tool_rounds=2,
    )

    *_, before, last = [request.body for request in model_server.requests]
    assert json.dumps(last["tools"]) == json.dumps(before["tools"])
    assert json.dumps(last["messages"]).startswith(json.dumps(before["messages"]).removesuffix("]"))
    assert last["tool_choice"] == "none"
    assert outcome.sent_text == "Nice to meet you, Ada."


async def test_call_of_a_model_without_tools_is_ignored(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, window: Window
) -> None:
    byte_server.set_reply(text("I cannot switch it.") + calls({"name": "one"}))

    outcome = await take("hello", asked=replace(byte_question, tools=()))

    assert outcome.sent_text == "I cannot switch it."
    assert (home.ran, roles(window)) == ([], ["system", "user", "assistant"])


async def test_model_without_tools_that_only_calls_one_has_failed(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(calls({"name": "one"}))

    outcome = await take("hello", asked=replace(byte_question, tools=()))

    assert isinstance(outcome.error, EmptyAnswer)
    assert home.ran == []


async def test_model_that_calls_where_it_may_not_after_tools_ran_has_succeeded(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, window: Window
) -> None:
    byte_server.set_reply(calls({"name": "one"}))
    byte_server.add_reply(calls({"name": "two"}))

    outcome = await take("hello", asked=byte_question, max_tool_rounds=1)

    assert (outcome.error, outcome.sent_text) == (None, "Done.")
    assert home.ran == ["on one"]
    assert (window.messages()[-1].content, window.messages()[-1].tool_calls) == ("Done.", ())


async def test_tool_that_does_not_exist_is_told_to_the_model(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(calls({}, name="no_such_tool"))
    byte_server.add_reply(said("I cannot do that."))

    outcome = await take("hello", asked=byte_question)

    assert outcome.sent_text == "I cannot do that."
    assert byte_server.requests[-1]["messages"][-1]["content"] == '{"error": "no such tool"}'


async def test_ids_that_a_server_uses_in_every_answer_are_told_apart(
    take: Take, byte_question: Question, byte_server: ByteServer, window: Window
) -> None:
    byte_server.set_reply(calls({"name": "one"}))
    byte_server.add_reply(calls({"name": "two"}, {"name": "three"}))
    byte_server.add_reply(said("All are on."))

    outcome = await take("hello", asked=byte_question)

    ids = [call.id for message in window.messages() for call in message.tool_calls]
    assert outcome.error is None
    assert len(set(ids)) == 3


async def test_call_that_began_before_a_break_has_its_result(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, window: Window
) -> None:
    byte_server.set_reply(fragment('{"name": "lamp"}', TURN_ON, index=0), chunk(5), CALLS, DONE)

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, BadStream)
    assert home.ran == ["on lamp"]
    assert [message.content for message in window.messages() if message.role is Role.TOOL] == [
        '{"response_type": "action_done"}'
    ]


async def test_half_a_character_does_not_spoil_the_conversation(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(fragment('{"name": "\\ud83d"}', TURN_ON, index=0), CALLS, DONE)
    byte_server.add_reply(said("It is \ud83d on."))
    await take("hello", asked=byte_question)

    outcome = await take("hello again", asked=byte_question)

    assert outcome.error is None
