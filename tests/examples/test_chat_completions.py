"""Tests for converting a window's messages to the Chat Completions format and back."""

from dataclasses import replace
import json
from typing import Any

from hypothesis import assume, given, settings
import pytest

from custom_components.windowed_conversation.providers.encoder import encode_name
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect, encode_messages
from custom_components.windowed_conversation.window import Message, ToolCall, Window
from custom_components.windowed_conversation.window.codecs import CodecError
from examples.window_interop import from_chat_completions, to_chat_completions
from tests.window.conversations import NO_NUMBERS, NULLS, windows
from tests.window.histories import said


def encode_tool_names(message: Message) -> Message:
    calls = tuple(replace(call, name=encode_name(call.name)) for call in message.tool_calls)
    return replace(message, tool_calls=calls)


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_chat_completions_come_back_as_they_were_said(window: Window) -> None:
    messages = window.messages()

    written = json.loads(json.dumps(to_chat_completions(messages)))

    assert said(from_chat_completions(written)) == said(messages)


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_chat_completions_are_what_a_provider_is_sent(window: Window) -> None:
    messages = window.messages()
    # blank texts and some names are changed before they are sent, because providers refuse them; the conversion keeps
    # them
    assume(not any(message.content.isspace() for message in messages))

    assert to_chat_completions(map(encode_tool_names, messages)) == encode_messages(messages, Dialect.OPENAI)


def test_chat_completions_of_other_programs_are_read() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "time", "arguments": ""}}
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "be "}, "kind"]},
        {"role": "user", "content": "what time is it?", "name": "Ada"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "1", "content": "noon"},
    ]

    assert from_chat_completions(messages) == (
        Message.system("be kind"),
        Message.user("what time is it?", name="Ada"),
        Message.assistant(tool_calls=(ToolCall("1", "time", {}),)),
        Message.tool("1", "time", "noon"),
    )


def test_numbers_that_json_has_not_are_null_in_chat_completions() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "dim", "arguments": NO_NUMBERS}}

    (message,) = from_chat_completions([{"role": "assistant", "tool_calls": [call]}])

    assert message.tool_calls[0].arguments == NULLS


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"role": "user", "content": "hi"},
        ["hi"],
        [{"role": "narrator", "content": "hi"}],
        [{"content": "hi"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        [{"role": "assistant", "tool_calls": [{"id": "1"}]}],
        [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "[]"}}]}],
        [{"role": "assistant", "tool_calls": [{"id": 1, "function": {"name": "f", "arguments": "{}"}}]}],
    ],
    ids=str,
)
def test_malformed_chat_completions_are_refused(data: Any) -> None:
    with pytest.raises(CodecError):
        from_chat_completions(data)
