"""Tests for the names of tools without their namespace, in calls and in the history of a request."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.turn.tool_names import name_as_offered, resolve_tool_name
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
