"""Tests for the spoken part of a model's text, however the stream is cut into pieces."""

from itertools import pairwise
import re
import sys
from typing import Any, Self, SupportsIndex, override

from hypothesis import example, given, strategies as st
import pytest

from custom_components.windowed_conversation.providers.events import TextDelta
from custom_components.windowed_conversation.turn.speech import speech_filter
from custom_components.windowed_conversation.turn.speech.speech_filter import SpeechFilter

from .plain_speech import UNHEARD, PlainSpeech
from .spoken import ALL_NOTES, CONTEXT, JSON_CALL, SECTIONS, TIME, TOOLS, filter_pieces

MARKS = (
    *(CONTEXT, "[context :", "[CONTEXT:", "]", TIME, SECTIONS, "## Speaker\n", "## Time\n", *ALL_NOTES),
    *("<think>", "</think>", "<Thinking>", "</THINKING>", "<|im_end|>", "<|eot_id|>", "<|end|>", "<|return|>"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|channel|>", "<|message|>", "<|call|>"),
    *("<|channel|>commentary to=functions.HassTurnOn <|constrain|>json<|message|>", "<|constrain|>json"),
    *("<|start|>assistant", "<|start|>functions.a to=assistant", "<|im_start|>user", "<|start_header_id|>assistant"),
    *("<|end_header_id|>", "<tool_call>", "</tool_call>", "<function=HassTurnOn>", "</function>", "[TOOL_CALLS]"),
    *("<|tool_call|>", "<|python_tag|>", "<|eom_id|>", "tool_call:", "tool_calls: ", "[ARGS]", "HassTurnOn", JSON_CALL),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "{", "}", "(", ")", "[", '"', "'", "\\"),
    *("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),
    *("```", "```json\n", "```tool_code\n", "[ "),
    *('{"name": "GetState", "parameters": {}}', '{"name": "Elsewhere", "arguments": {}}'),
)
# The parts of a tool call as fenced JSON, between which the filter accepts a limited amount of white space.
_SPACED_MARKS = ("[", "{", '"name"', ":", f'"{"a" * 100}"', ",", '"parameters"', ":")
MAX_MARK_CHARS = len(f"```{'a' * 12}") + sum(8 + len(mark) for mark in _SPACED_MARKS)

words = st.sampled_from(
    [" ", "\n", "\n\n", "    ", "word", "e", "<", "[", "#", "t", "\u200b", "\N{GRINNING FACE}", "\N{BLACK SQUARE}"]
)
marks = st.sampled_from(MARKS)
halves = marks.flatmap(lambda mark: st.integers(1, len(mark)).map(lambda size: mark[:size]))
# Texts that consist mostly of marks, beginnings of marks, and white space.
marked_texts = st.lists(st.one_of(marks, halves, words), max_size=12).map("".join)
borders = st.lists(st.integers(0, 300), max_size=30)
plain_texts = st.text(alphabet=st.characters(exclude_characters="<[\n", exclude_categories=["Cs"]))


def cut(text: str, at: list[int]) -> list[str]:
    ends = sorted({0, len(text), *(border for border in at if border < len(text))})
    return [text[start:end] for start, end in pairwise(ends)]


@given(marked_texts, borders)
@example("<think>a</think>b", list(range(20)))
@example(f"{CONTEXT}\n\nhello", list(range(100)))
def test_text_is_read_as_if_it_had_come_whole_and_slowly(text: str, at: list[int]) -> None:
    plain = PlainSpeech(text, TOOLS | {"HassTurnOn"})

    assert filter_pieces(cut(text, at)) == (plain.speech, plain.reasoning)
    assert filter_pieces([text]) == (plain.speech, plain.reasoning)


@given(plain_texts, plain_texts, borders)
def test_echo_of_the_context_is_never_spoken(before: str, after: str, at: list[int]) -> None:
    spoken, thought = filter_pieces(cut(f"{before}{CONTEXT}\n\n{after}", at))

    assert "CONTEXT" not in spoken + thought
    assert "Ada" not in (spoken + thought).removeprefix(before.lstrip()).removesuffix(after)


@given(st.text(alphabet=st.characters(exclude_characters="<[{#t T", exclude_categories=["Cs"])), borders)
@example("\ufeff \u200b\nA\u200b \n", [1, 2, 3, 4])
def test_text_without_marks_is_spoken_as_it_is_but_for_leading_space(text: str, at: list[int]) -> None:
    leading = UNHEARD.match(text)

    assert filter_pieces(cut(text, at)) == (text[leading.end() if leading else 0 :], "")


@given(st.lists(plain_texts.filter(str.strip)))
def test_text_without_marks_passes_unchanged_and_immediately(pieces: list[str]) -> None:
    speech = SpeechFilter()
    pieces = [f"x{piece}" for piece in pieces]

    passed = [list(speech.feed(piece)) for piece in pieces]

    assert passed == [[TextDelta(piece)] for piece in pieces]
    assert list(speech.flush()) == []


@pytest.mark.parametrize(
    ("piece", "passed"),
    [
        ("2 < 3", "2 < 3"),
        ("see [1]", "see [1]"),
        ("go <", "go "),
        ("go <th", "go "),
        ("a <b", "a <b"),
        ("a tool", "a tool"),
        ("a\nto", "a\n"),
        ("a\n# ", "a\n# "),
        ("a {", "a {"),
    ],
)
def test_only_what_may_become_a_mark_is_held_back(piece: str, passed: str) -> None:
    assert list(SpeechFilter().feed(piece)) == [TextDelta(passed)]


@given(marked_texts)
@example(f"<|channel|>{'a ' * 300}")
@example(f"<|channel|>final{'a ' * 300}")
@example(f"<|start|>{'a' * 300}")
@example('{"name": "' + "a" * 300)
@example(f"<function={'a' * 300}")
@example("[" + " " * 300)
@example("x\n" + " " * 300)
def test_no_more_is_held_back_than_the_longest_mark(text: str) -> None:
    speech = SpeechFilter(TOOLS)
    for char in text:
        speech.feed(char)

    assert sum(len(delta.text) for delta in speech.flush()) <= MAX_MARK_CHARS


class Copied(str):
    """A text that counts the characters that are copied out of it."""

    __slots__ = ()
    copied = 0

    @override
    def __getitem__(self, key: SupportsIndex | slice) -> Self:
        part = type(self)(super().__getitem__(key))
        type(self).copied += len(part)
        return part

    def __radd__(self, before: str) -> Self:
        return type(self)(before + str(self))


def work(text: str) -> int:
    """Return the number of copied characters plus the number of function calls for filtering a text in one piece."""
    calls = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    Copied.copied = 0
    speech = SpeechFilter(TOOLS)
    sys.setprofile(count)
    try:
        list(speech.feed(Copied(text)))
        list(speech.flush())
    finally:
        sys.setprofile(None)
    return Copied.copied + calls


@pytest.mark.parametrize(
    "text",
    [
        "<think>x</think>",
        "a<think>x</think>",
        "<|im_end|>",
        "[CONTEXT:]",
        "<",
        "\n## Speaker\n",
        f"{TIME}\n",
        "[TOOL_CALLS]{'",
        "<|channel|>a<|message|>",
        "{",
        '{"name": "Elsewhere", "arguments": ',
    ],
)
def test_work_grows_with_the_text(text: str) -> None:
    assert work(text * 800) < 2.2 * work(text * 400)


def test_no_mark_is_longer_than_the_end_in_which_its_beginning_is_looked_for() -> None:
    parse: Any = re._parser  # type: ignore[attr-defined]
    widths = [parse.parse(mark.pattern).getwidth()[1] for mark in speech_filter._MARK_BY_GROUP.values()]

    assert 0 < max(widths) < speech_filter._MAX_MARK_CHARS - len("\n   ")
