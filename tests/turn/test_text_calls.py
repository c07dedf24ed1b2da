"""Tests for tool calls that a model writes as text: whole calls of offered tools run, and nothing else does."""

from dataclasses import replace
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import ToolSchema
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.text_calls import read_text_calls
from custom_components.windowed_conversation.window import Role, Window
from tests.providers.byte_server import DONE, STOP, ByteServer, text

from .answers import calls, said
from .conftest import Take
from .world import TOOLS, Home

ARGUMENTS = '{"name": "kitchen light"}'
CALL = f'{{"name": "HassTurnOn", "arguments": {ARGUMENTS}}}'
TEXT_CALLS = [
    CALL,
    f'{{"name": "intent__HassTurnOn", "parameters": {ARGUMENTS}}}',
    f"[{CALL}]",
    f"```json\n{CALL}\n```",
    f"```tool_call\n{CALL}\n```",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<tool_call>{CALL}",
    f"<function=HassTurnOn>{ARGUMENTS}</function>",
    f"<tool_call>\n<function=intent__HassTurnOn>\n{ARGUMENTS}\n</function>\n</tool_call>",
    f"[TOOL_CALLS] [{CALL}]",
    f"[TOOL_CALLS]HassTurnOn[ARGS]{ARGUMENTS}",
    f"<|tool_call|>[{CALL}]<|/tool_call|>",
    f"<|python_tag|>{CALL}<|eom_id|>",
    f"tool_call: HassTurnOn({ARGUMENTS})",
    f"<|channel|>commentary to=functions.HassTurnOn <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    f"<|tool_calls_section_begin|><|tool_call_begin|>{CALL}<|tool_call_end|><|tool_calls_section_end|>",
]
NOT_CALLS = {
    "of a tool that is not offered": CALL.replace("HassTurnOn", "HassExplode"),
    "that is cut off": f"<tool_call>{CALL[:-2]}",
    "with an argument that the tool does not have": f"<tool_call>{CALL.replace('{"name": "k', '{"names": "k')}",
    "with an argument of another type": f"<tool_call>{CALL.replace('"kitchen light"', '["kitchen light"]')}",
    "with arguments of another form": f"<tool_call>{CALL.replace(ARGUMENTS, '"kitchen light"')}",
    "with both kinds of arguments": f'<tool_call>{CALL[:-1]}, "parameters": {{}}}}',
    "that is one of two in a mark": f"<tool_call>{CALL}, {CALL}</tool_call>",
    "with words after it": f"<tool_call>{CALL} and the bedroom light</tool_call>",
    "that names two tools": f"tool_call: HassTurnOn HassTurnOff({ARGUMENTS})",
    "in Python": "tool_call: HassTurnOn(name='kitchen light')",
    "of absurd length": f"<tool_call>{CALL}{' ' * 20_000}</tool_call>",
    "with a list without end": f'<tool_call>{{"name": "HassTurnOn", "arguments": {"[" * 10_000}</tool_call>',
    "in thoughts": f"<think>{CALL}</think>",
    "that is quoted": f"You could send {CALL} to the home.",
}


@pytest.mark.parametrize("written", TEXT_CALLS)
async def test_call_that_is_written_as_text_is_carried_out(
    written: str, take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(*map(text, written), STOP, DONE)
    byte_server.add_reply(said("It is on."))

    outcome = await take("switch on the kitchen light", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, "It is on.")
    assert home.ran == ["on kitchen light"]


@pytest.mark.parametrize("written", NOT_CALLS.values(), ids=NOT_CALLS.keys())
async def test_nothing_else_that_is_written_is_carried_out(
    written: str, take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(written))

    await take("switch on the kitchen light", asked=byte_question)

    assert home.ran == []


async def test_window_has_a_call_that_is_written_as_text_like_any_other(
    take: Take, byte_question: Question, byte_server: ByteServer, window: Window
) -> None:
    byte_server.set_reply(said(CALL))
    byte_server.add_reply(said("It is on."))

    await take("switch on the kitchen light", asked=byte_question)

    _, _, called, result, answer = window.messages()
    assert (called.content, called.tool_calls[0].name) == ("", "intent__HassTurnOn")
    assert (result.role, result.tool_call_id) == (Role.TOOL, called.tool_calls[0].id)
    assert answer.content == "It is on."


async def test_words_before_a_call_that_is_written_as_text_are_heard(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(f"One moment. <tool_call>{CALL}</tool_call>"))
    byte_server.add_reply(said("It is on."))

    outcome = await take("switch on the kitchen light", asked=byte_question)

    assert outcome.sent_text == "One moment. It is on."
    assert home.ran == ["on kitchen light"]


async def test_call_that_is_made_and_also_written_is_carried_out_once(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(text(f"<tool_call>{CALL}</tool_call>") + calls({"name": "kitchen light"}))
    byte_server.add_reply(said("It is on."))

    await take("switch on the kitchen light", asked=byte_question)

    assert home.ran == ["on kitchen light"]


async def test_answer_has_at_most_eight_calls_that_are_written_as_text(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(f"<tool_call>{CALL}</tool_call>\n" * 20))
    byte_server.add_reply(said("They are on."))

    await take("switch on the lights", asked=byte_question)

    assert home.ran == ["on kitchen light"] * 8


async def test_call_that_is_written_as_text_is_not_carried_out_where_none_is_offered(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(f"Hello. <tool_call>{CALL}</tool_call>"))

    outcome = await take("hello", asked=replace(byte_question, tools=()))

    assert (outcome.sent_text.strip(), home.ran) == ("Hello.", [])


SET = ToolSchema(
    "set",
    "",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "level": {"type": ["integer", "null"]},
            "areas": {"type": "array", "items": {"type": "string"}},
            "any": {"anyOf": [{"type": "string"}, {"type": "object"}]},
            "inner": {"type": "object", "properties": {"on": {"type": "boolean"}}},
        },
        "required": ["name"],
    },
)


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"name": "a", "level": 3, "areas": ["b"], "any": {"c": 1}, "inner": {"on": True}}, True),
        ({"name": "a", "level": None, "areas": [], "any": "d", "inner": {}}, True),
        ({}, False),
        ({"name": 1}, False),
        ({"name": "a", "level": 1.5}, False),
        ({"name": "a", "level": True}, False),
        ({"name": "a", "areas": [1]}, False),
        ({"name": "a", "inner": {"off": True}}, False),
    ],
)
def test_only_arguments_that_fit_the_schema_are_read(*, arguments: Any, fits: bool) -> None:
    written = json.dumps({"name": "set", "arguments": arguments})

    read = list(read_text_calls([written], (*TOOLS, SET)))

    assert [(call.name, dict(call.arguments)) for call in read] == ([("set", arguments)] if fits else [])
