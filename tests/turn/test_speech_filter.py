"""Tests for the spoken part of a model's text, without thoughts and metadata, however the stream is cut."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from itertools import count, pairwise
import re
import sys
from typing import Any, Self, SupportsIndex, override

from hypothesis import example, given, strategies as st
import pytest

from custom_components.windowed_conversation.providers.events import TextDelta
from custom_components.windowed_conversation.turn.errors import EmptyAnswer
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.speech import speech_filter
from custom_components.windowed_conversation.turn.speech.speech_filter import SpeechFilter
from custom_components.windowed_conversation.turn.state import ReplyDelta
from custom_components.windowed_conversation.window import INTERRUPTED_ANSWER, Message, Window
from custom_components.windowed_conversation.window.tool_results import STUB_PREFIX
from tests.providers.byte_server import CALLS, DONE, STOP, ByteServer, fragment, text

from .conftest import Take
from .plain_speech import UNHEARD, PlainSpeech
from .spoken import ALL_NOTES, CONTEXT, JSON_CALL, RECALL, RECALL_SECTIONS, SECTIONS, TIME, TOOLS, filter_pieces
from .world import Ear, Home, take_turn

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
@example("\U000e0000\x1c", [])
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


def cuts(text: str) -> list[list[str]]:
    """Return the text in one piece, in pieces of several equal sizes, and in two pieces at every position."""
    sizes = [[text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 3, 7, 10)]
    return [[text], *sizes, *([text[:at], text[at:]] for at in range(1, len(text)))]


def spoken_at_any_cut(text: str) -> set[str]:
    return {filter_pieces(pieces)[0] for pieces in cuts(text)}


def test_thinking_is_kept_apart_at_any_border(subtests: pytest.Subtests) -> None:
    for size in range(1, 12):
        for tag in ["think", "thinking"]:
            with subtests.test(tag=tag, size=size):
                text = f"<{tag}>The user says <hello>.\n</{tag}>\n\nHello there!"

                spoken, thought = filter_pieces(text[at : at + size] for at in range(0, len(text), size))

                assert spoken == "Hello there!"
                assert thought == "The user says <hello>.\n"


SPOKEN_AND_THOUGHT = [
    ("Hello.", "Hello.", ""),
    ("\n\n Hello. ", "Hello. ", ""),
    ("  \n ", "", ""),
    ("One. <think>two</think> Three.", "One. Three.", "two"),
    ("One.<think>two</think> Three.", "One. Three.", "two"),
    ("<think>one</think><think>two</think>Three.", "Three.", "onetwo"),
    ("<think>never closed", "", "never closed"),
    ("Hello.<think></think>", "Hello.", ""),
    ("never opened</think>Hello.", "never openedHello.", ""),
    ("<think>a <thinking> b</think> c", "c", "a <thinking> b"),
    ("Hello.<|im_end|>", "Hello.", ""),
    ("Hello.<|eot_id|><|end|>", "Hello.", ""),
    (f"{CONTEXT}\n\nHello.", "Hello.", ""),
    (f"{RECALL}\n\nHello.", "Hello.", ""),
    (f"{RECALL_SECTIONS}\n\nHello.", "Hello.", ""),
    (f"You wrote: {CONTEXT}\n\nhello", "You wrote: hello", ""),
    (f"<think>{CONTEXT} hm</think>Hello.", "Hello.", f"{CONTEXT} hm"),
    ("[CONTEXT: never closed", "", ""),
    ("[contexts: other] 2 < 3, a [list], <b>bold</b>", "[contexts: other] 2 < 3, a [list], <b>bold</b>", ""),
    ("1 <", "1 <", ""),
    ("<thin", "<thin", ""),
]


def test_spoken_and_thought(subtests: pytest.Subtests) -> None:
    for written, spoken, thought in SPOKEN_AND_THOUGHT:
        with subtests.test(text=written):
            assert filter_pieces([written]) == (spoken, thought)


ANSWERS_WITH_METADATA = [
    f"{CONTEXT}\n\nHello.",
    f"{CONTEXT.lower()} Hello.",
    f"[Context : {CONTEXT[9:]}Hello.",
    f"{SECTIONS}\n\nHello.",
    f"{SECTIONS}\nHello.".replace("\n", "\r\n"),
    f"<think>hm</think>\n\n{SECTIONS}\n\nHello.",
    *(f"{note}\nHello." for note in ALL_NOTES),
    *(f"{note} Hello." for note in ALL_NOTES),
    *(f"Hello.{note}" for note in ALL_NOTES),
    f"{STUB_PREFIX}GetState {{}}: 5000 tokens, beginning with [[{{…]\nHello.",
    "<THINK>hm</Think>Hello.",
    "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
    "<|channel|>analysis<|message|>hmm<|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
    "<|channel|>commentary to=functions.HassTurnOn <|constrain|>json<|message|>{}<|call|>Hello.",
    "<|start|>assistant<|channel|>final <|constrain|>text<|message|>Hello.",
    "<|start|>functions.GetState to=assistant<|channel|>commentary<|message|>{}<|end|>Hello.",
    "<|im_start|>assistant\nHello.<|im_end|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>",
    "Hello.<\uff5cend\u2581of\u2581sentence\uff5c>",
    "tool_call: HassTurnOn(name=\"a :)\", area=['Ada\\'s (big) room'])\nHello.",
    "tool_call: HassTurnOn(name=Ada's lamp) Hello.",
    "Tool_Call: HassTurnOn\nHello.",
    f"tool_calls:\n[{JSON_CALL}]\nHello.",
    "tool_call:\nHello.",
    f"<tool_call>\n{JSON_CALL}\n</tool_call>\nHello.",
    '[TOOL_CALLS] [{"name": "HassTurnOn", "arguments": {"name": "]"}}] Hello.',
    '[TOOL_CALLS]HassTurnOn[ARGS]{"name": "a"}[TOOL_CALLS]GetState[ARGS]{}\nHello.',
    f"<|tool_call|>[{JSON_CALL}]<|/tool_call|>Hello.",
    '<function=HassTurnOn>{"name": "a"}</function>Hello.',
    "<function=a>\n<parameter=name>\nlamp\n</parameter>\n</function>\n</tool_call>\nHello.",
    f"<|python_tag|>{JSON_CALL}<|eom_id|>Hello.",
    f"<|tool_calls_section_begin|><|tool_call_begin|>{JSON_CALL}<|tool_calls_section_end|>Hello.",
    f"<\uff5ctool\u2581calls\u2581begin\uff5c>{JSON_CALL}<\uff5ctool\u2581calls\u2581end\uff5c>Hello.",
    f"{JSON_CALL}\nHello.",
    f"\n {JSON_CALL} {JSON_CALL} Hello.",
    f"[{JSON_CALL}, {JSON_CALL}]\nHello.",
    f"```json\n{JSON_CALL}\n```\nHello.",
    f"``` [ {JSON_CALL} ]```\nHello.",
    "```tool_code\nprint(turn_on('lamp'))\n```\nHello.",
    '{\n  "name" : "GetState",\n  "parameters": {}\n}\nHello.',
]


def test_metadata_is_not_spoken_at_any_cut(subtests: pytest.Subtests) -> None:
    for written in ANSWERS_WITH_METADATA:
        with subtests.test(text=written):
            assert {spoken.strip() for spoken in spoken_at_any_cut(written)} == {"Hello."}


ANSWERS_LIKE_METADATA = [
    "a < b, c <| d |> e, <b>bold</b>, <thinker>, < think>",
    "[1] and [context] and [the list], [Cut: no], [What was said?]",
    "# Plan\n\n## Time\nIt is five.\n\n## Speaker\nThe one in the attic.\n\n## Area\n40 square metres",
    "## Shopping list\n- milk\n- tea\n## Times\nMonday 2026-11-23 08:05",
    f"It says {TIME} there.",
    "x\n    ## Time\nMonday 2026-11-23 08:05",
    "Say tool_call: HassTurnOn() to call a tool.\nTools: none\ntool_calling: no\ntool call: no",
    'x {"name": "HassTurnOn", "arguments": {}}',
    '{"name": "Elsewhere", "arguments": {}}',
    '{"name": "Ada", "age": 36}',
    '[{"name": "Ada", "arguments": []}]',
    '```json\n{"name": "Ada"}\n```',
    f"Like this:\n```json\n{JSON_CALL}\n```",
    "{a} = {x | x < 3}",
    "```python\ndef f(x: list[int]) -> dict[str, int]:\n    return {'a': x[0] << 2}\n```",
    "Type <|channel",
    "Type [CONTEXT",
    f"Type {INTERRUPTED_ANSWER[:20]}",
    "To turn\nTo\ntool",
    "A\n\n\n  B  \n# C\n",
]


def test_whatever_else_looks_like_metadata_is_spoken_at_any_cut(subtests: pytest.Subtests) -> None:
    for written in ANSWERS_LIKE_METADATA:
        with subtests.test(text=written):
            assert spoken_at_any_cut(written) == {written}


@pytest.mark.parametrize(
    ("text", "has_call"),
    [
        (JSON_CALL, True),
        ("Well.\ntool_call: HassTurnOn()", True),
        ("<|channel|>commentary to=functions.HassTurnOn<|message|>{}", True),
        ("<|channel|>commentary<|message|>I look.", False),
        (f"<think>{JSON_CALL}</think>Hello.", False),
    ],
)
def test_call_in_a_text_is_known(*, text: str, has_call: bool) -> None:
    speech = SpeechFilter(TOOLS)
    speech.feed(text)

    assert speech.has_call is has_call


def test_tool_that_was_not_offered_is_not_called() -> None:
    speech = SpeechFilter()

    assert list(speech.feed(JSON_CALL)) == [TextDelta(JSON_CALL)]


LOOK = fragment("{}", "homeassistant__GetLiveContext", index=0, id="call_0") + CALLS + DONE
TEXT_CALL = "<tool_call>{}</tool_call>"


def said(words: str) -> bytes:
    """Return an answer that consists of this text."""
    return text(words) + STOP + DONE


@pytest.mark.parametrize(
    "answer",
    [
        "<think>hm</think>",
        "  \n",
        "\u200b \ufeff",
        "\u202e\u2066\ufe0f\u3164\u2800",
        "[CONTEXT: area: Attic]",
        "<|im_end|>",
        SECTIONS,
        INTERRUPTED_ANSWER,
        "<|channel|>analysis<|message|>hm<|end|>",
        TEXT_CALL,
        JSON_CALL,
        'tool_call: HassTurnOn(name="kitchen light")',
    ],
)
async def test_answer_of_which_nothing_is_spoken_is_empty(
    answer: str, take: Take, byte_question: Question, byte_server: ByteServer, home: Home
) -> None:
    byte_server.set_reply(said(answer))

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, EmptyAnswer)
    assert home.ran == []


async def test_model_that_acts_and_then_only_thinks_has_succeeded(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(LOOK)
    byte_server.add_reply(said("<think>It is on.</think>"))

    outcome = await take("hello", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, "Done.")


async def test_model_that_acts_and_then_writes_a_call_as_text_has_not_succeeded(
    take: Take, byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(LOOK)
    byte_server.add_reply(said(TEXT_CALL))

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, EmptyAnswer)
    assert outcome.sent_text == ""
    assert home.ran == ["look"]
    assert window.messages()[-1].content == INTERRUPTED_ANSWER


async def test_call_as_text_where_none_is_allowed_is_no_failure(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(LOOK)
    byte_server.add_reply(said(TEXT_CALL))

    outcome = await take("hello", asked=byte_question, max_tool_rounds=1)

    assert (outcome.error, outcome.sent_text) == (None, "Done.")


async def test_answer_that_ends_like_the_beginning_of_a_mark_is_spoken_whole(
    take: Take, byte_question: Question, byte_server: ByteServer, reply: Ear
) -> None:
    byte_server.set_reply(said("Type <th"))

    outcome = await take("hello", asked=byte_question)

    assert outcome.sent_text == reply.text == "Type <th"


class Listener(Ear):
    """An `Ear` that records for each piece of text how often another task has run before it."""

    ran: list[int]

    @override
    async def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        self.ran, turns = [], count()

        async def run() -> None:
            while True:
                next(turns)
                await asyncio.sleep(0)

        async def noted() -> AsyncGenerator[ReplyDelta]:
            async for delta in deltas:
                self.ran.append(next(turns))
                yield delta

        other = asyncio.create_task(run())
        async for message in super().add_deltas(noted()):
            yield message
        other.cancel()


async def test_others_have_their_turn_while_a_long_text_is_read(
    byte_question: Question, byte_server: ByteServer, window: Window, home: Home
) -> None:
    byte_server.set_reply(said("a<|im_end|>" * 40_000))
    listener = Listener(home.tools)

    await take_turn(window, "hello", byte_question, listener)

    assert listener.text == "a" * 40_000
    assert len(listener.heard) > 10
    assert all(later > earlier + 1 for earlier, later in pairwise(listener.ran))
