"""Messages are what their fields say, whichever way they were made."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from custom_components.windowed_conversation.window import Attachment, Message, Native, Role, ToolCall
from custom_components.windowed_conversation.window.messages import new_message

_EVERY_FIELD: dict[str, Any] = {
    "role": Role.ASSISTANT,
    "content": "on it",
    "tool_calls": (ToolCall("call-1", "turn_on", {}),),
    "tool_call_id": "call-0",
    "name": "ada",
    "tags": frozenset({"output"}),
    "created": 1_000.0,
    "tokens": 7,
    "native": Native("provider", "model", {}),
    "attachments": (Attachment("image/png", b"png"),),
}


def test_message_that_is_made_past_its_constructor_is_equal() -> None:
    assert new_message(**_EVERY_FIELD) == Message(**_EVERY_FIELD)


def test_message_that_is_made_past_its_constructor_has_the_same_defaults() -> None:
    assert new_message(Role.USER) == Message(role=Role.USER)


def test_every_field_of_a_message_is_tried_here() -> None:
    assert set(_EVERY_FIELD) == {field.name for field in fields(Message)}


def test_message_that_is_made_past_its_constructor_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Message.user("hello").content = "goodbye"  # type: ignore[misc]  # which is what fails


def test_arguments_of_a_call_are_apart_from_the_dictionary_that_they_came_in() -> None:
    arguments = {"area": "kitchen"}
    call = ToolCall("call-1", "turn_on", arguments)
    arguments.clear()
    assert call.arguments == {"area": "kitchen"}
