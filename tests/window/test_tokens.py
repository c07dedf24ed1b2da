"""Tests for the estimated tokens of a text, and the total cost of a message."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.window import (
    Attachment,
    EstimatedCounter,
    Message,
    ToolCall,
    count_message_tokens,
)
from custom_components.windowed_conversation.window.tokens import format_tool_definition

from .histories import LengthCounter

count = EstimatedCounter().count

# Texts with their exact numbers of tokens in o200k_base.
COUNTED = json.loads(Path(__file__).with_name("counted_texts.json").read_text("utf-8"))


@pytest.mark.parametrize("counted", COUNTED, ids=[counted["what"] for counted in COUNTED])
def test_estimate_is_within_a_fifth_of_the_exact_count(counted: dict[str, Any]) -> None:
    assert count(counted["text"]) == pytest.approx(counted["tokens"], rel=0.2)


def test_empty_text_costs_nothing() -> None:
    assert count("") == 0


@given(st.text(min_size=1))
@settings(deadline=None)
def test_any_other_text_costs_at_least_one_token(text: str) -> None:
    assert count(text) >= 1


@given(st.text(), st.text())
@settings(deadline=None)
def test_more_text_never_costs_less(text: str, more: str) -> None:
    assert count(text + more) >= count(text)


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
def test_characters_that_are_none_are_counted(text: str) -> None:
    assert count(text) == 1


@pytest.mark.parametrize(("first", "last"), [("一", "龥"), ("가", "힣"), ("ぁ", "ヺ"), ("Б", "я")], ids=str)
def test_letters_of_one_script_cost_the_same(first: str, last: str) -> None:
    assert count(first * 100) == count(last * 100)


def test_only_a_space_makes_what_follows_it_dearer() -> None:
    assert count('ä"' * 100) < count('ä "' * 100)


def test_long_text_costs_as_much_as_its_parts() -> None:
    assert count("turn on the light. " * 10_000) == pytest.approx(10_000 * count("turn on the light. "), rel=0.1)


def test_message_costs_its_text_and_a_frame_of_four() -> None:
    assert count_message_tokens(Message.user("hello"), LengthCounter()) == 9


def test_message_without_text_costs_its_frame() -> None:
    assert count_message_tokens(Message.assistant(), LengthCounter()) == 4


def test_tool_result_costs_its_name_too() -> None:
    assert count_message_tokens(Message.tool("call-1", "turn_on", "done"), LengthCounter()) == 4 + len("turn_on\ndone")


def test_tool_calls_cost_their_names_and_arguments_as_json() -> None:
    calls = (ToolCall("a", "turn_on", {"area": "Küche"}), ToolCall("b", "get_time", {}))
    text = 'turn_on\n{"area":"Küche"}\nget_time\n{}'
    assert count_message_tokens(Message.assistant(tool_calls=calls), LengthCounter()) == 4 + 2 * 8 + len(text)


@pytest.mark.parametrize("argument", [{1, 2}, object(), float("nan"), [{"deep": (1, 2)}]])
def test_arguments_that_json_does_not_know_are_counted_all_the_same(argument: Any) -> None:
    call = ToolCall("a", "turn_on", {"odd": argument})
    assert count_message_tokens(Message.assistant(tool_calls=(call,)), LengthCounter()) > 4 + 8 + len("turn_on")


def test_tool_is_counted_by_its_name_description_and_schema() -> None:
    assert format_tool_definition("turn_on", "Turns on", {"type": "object"}) == 'turn_on\nTurns on\n{"type":"object"}'


@pytest.mark.parametrize(("size", "pages"), [(1, 1), (99_999, 1), (100_000, 2), (350_000, 4)])
def test_pdf_costs_a_page_for_each_begun_100_000_bytes(size: int, pages: int) -> None:
    pdf = Attachment("application/pdf", bytes(size))

    assert count_message_tokens(Message.user("", attachments=(pdf,)), LengthCounter()) == 4 + 3_000 * pages


def test_counter_is_asked_once_for_a_message() -> None:
    counter = LengthCounter()
    call = ToolCall("a", "turn_on", {"area": "kitchen"})
    count_message_tokens(Message.assistant("on it", tool_calls=(call, call), name="ada"), counter)
    assert counter.asked == 1
