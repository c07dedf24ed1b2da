"""Tests for answers that claim an action without a call: a call is then required, once, and nothing else is heard."""

import asyncio
from dataclasses import replace
import json

import pytest

from custom_components.windowed_conversation.providers.events import ReasoningDelta, ToolSchema
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import Role, Window
from tests.providers.byte_server import CALLS, DONE, JSON, STOP, ByteServer, chunk, fragment, text

from .answers import LOOK, TURN_ON, calls, said
from .conftest import Take
from .world import TOOLS, Ear, Home

COMMAND, CLAIM, FAILURE = "switch on the kitchen light", "The kitchen light is on.", "That did not work."
ON = {"name": "kitchen light"}
REFUSED = (
    b'{"error": {"message": "tool_choice is not supported", "type": "invalid_request_error", "code": "invalid_value"}}'
)


@pytest.fixture
def command(byte_question: Question) -> Question:
    """Return the question for an input after which any answer may be a claim."""
    return replace(byte_question, may_claim_change=bool, failure_phrase=FAILURE)


async def test_claim_is_made_true(
    take: Take, command: Question, byte_server: ByteServer, home: Home, reply: Ear
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(calls(ON))

    outcome = await take(COMMAND, asked=command)

    assert (outcome.error, outcome.sent_text, reply.text) == (None, CLAIM, CLAIM)
    assert home.ran == ["on kitchen light"]
    assert reply.recorded == [CLAIM]


async def test_claim_that_cannot_be_made_true_is_taken_back(
    take: Take, command: Question, byte_server: ByteServer, window: Window
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(calls(ON, name="intent__HassExplode"))

    outcome = await take(
        COMMAND, asked=replace(command, tools=(*TOOLS, ToolSchema("intent__HassExplode", "", {"type": "object"})))
    )

    assert outcome.sent_text == f"{CLAIM} {FAILURE}"
    assert window.messages()[-1].content == FAILURE


async def test_window_has_the_call_and_ends_with_the_answer(
    take: Take, command: Question, byte_server: ByteServer, window: Window
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(calls(ON))

    await take(COMMAND, asked=command)

    _, _, answer, called, result, last = window.messages()
    assert (answer.content, last.content, window.is_open) == (CLAIM, CLAIM, False)
    assert [call.name for call in called.tool_calls] == [TURN_ON]
    assert result.role is Role.TOOL


async def test_request_for_a_call_begins_with_the_bytes_of_the_one_before_it(
    take: Take, command: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(calls(ON))

    await take(COMMAND, asked=command)

    before, last = byte_server.requests
    assert json.dumps(last["tools"]) == json.dumps(before["tools"])
    assert last["messages"][: len(before["messages"])] == before["messages"]
    assert (before.get("tool_choice"), last["tool_choice"]) == (None, "required")
    assert [each["role"] for each in last["messages"][-2:]] == ["assistant", "user"]


async def test_tool_for_nothing_is_added_only_if_no_other_tool_changes_nothing(
    take: Take, command: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(calls({}, name="nothing_to_do"))

    await take(COMMAND, asked=replace(command, tools=TOOLS[1:3]))

    names = [each["function"]["name"] for each in byte_server.requests[-1]["tools"]]
    assert names == ["intent__HassTurnOff", "intent__HassTurnOn", "nothing_to_do"]


NOTHING = {
    "a call that only looks": calls({}, name=LOOK),
    "a call of the tool for nothing": calls({}, name="nothing_to_do"),
    "a call of an unknown tool": calls({}, name="HassExplode"),
    "text": said("It is really on."),
    "reasoning": chunk({"reasoning_content": "Hm."}) + STOP + DONE,
    "no text": STOP + DONE,
    "a stream that breaks off": text("It"),
}


@pytest.mark.parametrize("answer", NOTHING.values(), ids=NOTHING.keys())
async def test_answer_stays_as_it_is_after_anything_but_a_call(
    answer: bytes, take: Take, command: Question, byte_server: ByteServer, reply: Ear
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(answer)

    outcome = await take(COMMAND, asked=command)

    assert (outcome.error, outcome.sent_text, outcome.tool_calls) == (None, CLAIM, 0)
    assert not [each for each in reply.heard if isinstance(each, ReasoningDelta)]
    assert len(byte_server.requests) == 2


async def test_call_that_is_written_as_text_is_carried_out_where_one_is_required(
    take: Take, command: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(said(f'<tool_call>{{"name": "HassTurnOn", "arguments": {json.dumps(ON)}}}</tool_call>'))

    outcome = await take(COMMAND, asked=command)

    assert (outcome.sent_text, home.ran) == (CLAIM, ["on kitchen light"])


async def test_model_that_refuses_such_a_request_gets_no_other_one(
    take: Take, command: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(REFUSED, status=400, headers=JSON)
    byte_server.add_reply(said(CLAIM))

    first, second = await take(COMMAND, asked=command), await take(COMMAND, asked=command)

    assert (first.error, first.sent_text, second.error, second.sent_text) == (None, CLAIM, None, CLAIM)
    assert len(byte_server.requests) == 3


async def test_server_that_is_away_meanwhile_costs_nothing(
    take: Take, command: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(b"{}", status=503, headers=JSON)
    byte_server.add_reply(said(CLAIM))
    byte_server.add_reply(calls(ON))

    first = await take(COMMAND, asked=command)
    await take(COMMAND, asked=command)

    assert (first.error, first.sent_text) == (None, CLAIM)
    assert home.ran == ["on kitchen light"]


async def test_server_that_says_nothing_is_not_waited_for(
    take: Take, command: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(asyncio.Event())

    outcome = await take(COMMAND, asked=command)

    assert (outcome.error, outcome.sent_text) == (None, CLAIM)
    assert outcome.duration_seconds < outcome.turn_timeout / 2


async def test_answer_that_asks_is_left_alone(take: Take, command: Question, byte_server: ByteServer) -> None:
    byte_server.set_reply(said("Which kitchen light?"))

    await take(COMMAND, asked=command)

    assert len(byte_server.requests) == 1


async def test_answer_after_a_call_is_left_alone(take: Take, command: Question, byte_server: ByteServer) -> None:
    byte_server.set_reply(calls(ON))
    byte_server.add_reply(said(CLAIM))

    await take(COMMAND, asked=command)

    assert len(byte_server.requests) == 2


async def test_answer_after_a_look_may_be_a_claim(
    take: Take, command: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(calls({}, name=LOOK))
    byte_server.add_reply(said(CLAIM))
    byte_server.add_reply(calls(ON))

    await take(COMMAND, asked=command)

    assert home.ran == ["look", "on kitchen light"]


@pytest.mark.parametrize("tools", [(), TOOLS[:1]], ids=["no tools", "tools that only look"])
async def test_model_that_can_change_nothing_is_left_alone(
    tools: tuple[ToolSchema, ...], take: Take, command: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(said(CLAIM))

    await take(COMMAND, asked=replace(command, tools=tools))

    assert len(byte_server.requests) == 1


async def test_answer_to_anything_else_is_left_alone(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(said("You are welcome."))

    await take("thank you", asked=byte_question)

    assert len(byte_server.requests) == 1


async def test_claim_is_checked_once(take: Take, command: Question, byte_server: ByteServer, home: Home) -> None:
    byte_server.set_reply(said(CLAIM))
    byte_server.add_reply(fragment(json.dumps(ON), TURN_ON, index=0, id="call_0") + text("Done.") + CALLS + DONE)

    outcome = await take(COMMAND, asked=command)

    assert (outcome.sent_text, home.ran, len(byte_server.requests)) == (CLAIM, ["on kitchen light"], 2)
