"""Tests for the names of tools without their namespace, in calls and in the history of a request."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.providers import ToolSchema
from custom_components.windowed_conversation.turn.tool_names import (
    CALL_TOOL,
    name_as_offered,
    resolve_tool_name,
    unwrap_call,
    wrap_calls,
)
from custom_components.windowed_conversation.window import Message, NativeData, ToolCall

OFFERED = ("intent__HassTurnOn", "house__GetState", "home__intent__HassGetWeather", "one__Play", "two__Play", "recall")
NAMES = {
    "HassTurnOn": "intent__HassTurnOn",
    "HassGetWeather": "home__intent__HassGetWeather",
    "intent__HassTurnOn": "intent__HassTurnOn",
    "recall": "recall",
    "Play": "Play",
    "one__Play": "one__Play",
    "other__HassTurnOn": "other__HassTurnOn",
    "HassTurn": "HassTurn",
    "": "",
}
CALL = Message.assistant("", tool_calls=(ToolCall("a", "HassTurnOn", {"name": "lamp"}), ToolCall("b", "Play", {})))
HISTORY = (
    Message.user("lamp on"),
    CALL,
    Message.tool("a", "HassTurnOn", "{}"),
    Message.tool("b", "Play", "{}"),
    Message.assistant("Done."),
)


@pytest.mark.parametrize(("name", "offered"), NAMES.items())
def test_name_is_resolved_if_one_tool_is_meant(name: str, offered: str) -> None:
    assert resolve_tool_name(name, OFFERED) == offered


def test_calls_and_their_results_have_the_offered_name() -> None:
    messages = name_as_offered(HISTORY, OFFERED)

    assert [call.name for call in messages[1].tool_calls] == ["intent__HassTurnOn", "Play"]
    assert [message.name for message in messages[2:4]] == ["intent__HassTurnOn", "Play"]
    assert messages[0] is HISTORY[0]
    assert [call.arguments for call in messages[1].tool_calls] == [call.arguments for call in CALL.tool_calls]


def test_message_with_native_data_keeps_the_name_that_the_data_has() -> None:
    history = (replace(CALL, native=NativeData("gemini", "model", {})), *HISTORY[2:])

    assert name_as_offered(history, OFFERED) == history


def test_history_is_the_same_without_tools() -> None:
    assert name_as_offered(HISTORY, ()) is HISTORY


DEFERRED = (ToolSchema("house__GetState", "", {}), ToolSchema("one__Play", "", {}), ToolSchema("two__Play", "", {}))
WRAPPED = ToolCall("a", CALL_TOOL, {"name": "one__Play", "arguments": {"song": "Waltz"}})


def test_call_of_a_deferred_tool_is_unwrapped_and_wrapped_again() -> None:
    called = unwrap_call(WRAPPED, DEFERRED)

    (message,) = wrap_calls((Message.assistant("", tool_calls=(called,)),), DEFERRED)
    assert called == ToolCall("a", "one__Play", {"song": "Waltz"})
    assert message.tool_calls == (WRAPPED,)


@pytest.mark.parametrize(
    "call",
    [
        replace(WRAPPED, arguments={"name": "Play"}),
        replace(WRAPPED, arguments={"name": "three__Play"}),
        replace(WRAPPED, arguments={"name": ["one__Play"]}),
        replace(WRAPPED, arguments={"arguments": {}}),
        replace(WRAPPED, arguments={"name": "one__Play", "arguments": "[" * 100_000}),
        replace(WRAPPED, arguments={"name": "one__Play", "arguments": "no JSON"}),
        replace(WRAPPED, arguments={"name": "one__Play", "arguments": [1]}),
        replace(WRAPPED, name="one__Play"),
    ],
    ids=["of two", "unknown", "no name", "none", "deep", "no JSON", "a list", "direct"],
)
def test_call_of_no_deferred_tool_stays_as_it_is(call: ToolCall) -> None:
    assert unwrap_call(call, DEFERRED) == call


def test_messages_without_deferred_calls_are_the_same() -> None:
    assert wrap_calls(HISTORY, DEFERRED) == HISTORY
