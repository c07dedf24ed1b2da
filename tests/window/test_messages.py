"""Tests for constructing messages, and the limits of their token counts."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from custom_components.windowed_conversation.window import (
    Attachment,
    Message,
    NativeData,
    Role,
    ToolCall,
    count_message_tokens,
)
from custom_components.windowed_conversation.window.messages import MAX_TOKENS, is_int_in_range, to_message

from .histories import LengthCounter

_EVERY_FIELD: dict[str, Any] = {
    "role": Role.ASSISTANT,
    "content": "on it",
    "tool_calls": (ToolCall("call-1", "turn_on", {}),),
    "tool_call_id": "call-0",
    "name": "ada",
    "tags": frozenset({"output"}),
    "created": 1_000.0,
    "tokens": 7,
    "native": NativeData("provider", "model", {}),
    "attachments": (Attachment("image/png", b"png"),),
}


def test_message_that_is_made_past_its_constructor_is_equal() -> None:
    assert to_message(**_EVERY_FIELD) == Message(**_EVERY_FIELD)


def test_message_that_is_made_past_its_constructor_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Message.user("hello").content = "goodbye"  # type: ignore[misc]


def test_arguments_of_a_call_are_apart_from_the_dictionary_that_they_came_in() -> None:
    arguments = {"area": "kitchen"}
    call = ToolCall("call-1", "turn_on", arguments)
    arguments.clear()
    assert call.arguments == {"area": "kitchen"}


@pytest.mark.parametrize("value", [0, 1, MAX_TOKENS])
def test_integer_within_the_bounds_is_a_count(value: object) -> None:
    assert is_int_in_range(value)


@pytest.mark.parametrize(
    "value", [-1, MAX_TOKENS + 1, 10**400, True, False, 1.0, float("nan"), "1", None, [1]], ids=str
)
def test_anything_else_is_no_count(value: object) -> None:
    assert not is_int_in_range(value)


@pytest.mark.parametrize(("reported", "tokens"), [(-100_000, 0), (7, 7), (10**400, MAX_TOKENS)], ids=str)
def test_residue_costs_no_less_than_nothing_and_no_more_than_any_message(reported: int, tokens: int) -> None:
    assert NativeData("provider", "model", "signed", reported).tokens == tokens


@pytest.mark.parametrize("calls", [(), (ToolCall("call", "look", {}),)], ids=["text", "calls"])
def test_message_with_an_absurd_residue_costs_no_more_than_what_is_read_again(calls: tuple[ToolCall, ...]) -> None:
    message = Message.assistant("hello", tool_calls=calls, native=NativeData("provider", "model", "signed", 10**400))

    assert count_message_tokens(message, LengthCounter()) == MAX_TOKENS
