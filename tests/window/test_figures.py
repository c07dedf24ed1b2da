"""Figures from outside: integers from 0 up to a bound."""

import pytest

from custom_components.windowed_conversation.window import Message, Native, ToolCall, message_tokens
from custom_components.windowed_conversation.window.figures import MAX_COUNT, is_count

from .histories import LengthCounter


@pytest.mark.parametrize("value", [0, 1, MAX_COUNT])
def test_whole_number_is_a_figure(value: object) -> None:
    assert is_count(value)


@pytest.mark.parametrize("value", [-1, MAX_COUNT + 1, 10**400, True, False, 1.0, float("nan"), "1", None, [1]], ids=str)
def test_anything_else_is_none(value: object) -> None:
    assert not is_count(value)


@pytest.mark.parametrize(("said", "believed"), [(-100_000, 0), (7, 7), (10**400, MAX_COUNT)], ids=str)
def test_residue_costs_no_less_than_nothing_and_no_more_than_any_message(said: int, believed: int) -> None:
    assert Native("provider", "model", "signed", said).tokens == believed


@pytest.mark.parametrize("calls", [(), (ToolCall("call", "look", {}),)], ids=["text", "calls"])
def test_message_with_an_absurd_residue_costs_no_more_than_what_is_read_again(calls: tuple[ToolCall, ...]) -> None:
    message = Message.assistant("hello", tool_calls=calls, native=Native("provider", "model", "signed", 10**400))

    assert message_tokens(message, LengthCounter()) == MAX_COUNT
