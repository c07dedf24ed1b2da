"""Filters a model's text for speech: removes reasoning, tool calls, notes of ours, and marks of chat templates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
import re

import regex

from ...providers import UNSEEN_NOTE, ReasoningDelta, TextDelta
from ...window import CUT_MARK_PREFIX, INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, STUB_PREFIX
from ..context import PREFIX_END, PREFIX_START, SECTION_HEADINGS
from ..repetition import REPETITION_NOTE
from .unspoken import CallText, DelimitedText, NoteText, UnspokenSpan, skip_space

# Runs of characters are limited, so that a mark without an end is soon spoken.
_BLANKS = r"[ \t]{0,3}"
_SPACES = r"\s{0,8}"
_WORD_CHARS = r"[\w.=: -]"
_BAR = "[|\N{FULLWIDTH VERTICAL LINE}]"
_LINE_END = rf"{_BLANKS}\r?\n"
_CODE_FENCE = "```"
_TEMPLATE_ROLES = ("assistant", "user", "system", "tool", "developer")
_OWN_NOTES = (INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, REPETITION_NOTE, UNSEEN_NOTE)

# No mark is longer. The beginning of a mark is looked for only in this many last characters of a text. A text of many
# marks would be searched up to its end for each of them otherwise.
_MAX_MARK_CHARS = 256

# The maximum length of the calls of one answer, in characters.
_MAX_CALLS_CHARS = 64 * 1024

# How many words of a note have to match: a model that repeats a note may change its end.
_MATCHED_NOTE_WORDS = 4

# White space and characters that nobody sees or hears: an answer that contains nothing else is empty. Python's white
# space has four separators that are none for `regex`.
_INVISIBLE_PATTERN = regex.compile(r"[\s\x1c-\x1f\p{Default_Ignorable_Code_Point}\N{BRAILLE PATTERN BLANK}]*")

_CALLED_NAME_PATTERN = re.compile(r'"name"\s*:\s*"([^"]*)"')


class MarkKind(StrEnum):
    """The kind of a mark.

    THOUGHT opens reasoning. CALL opens a tool call. NAMED_CALL does so only if it names a tool that is offered. TIME is
    the first section of the context. SECTION is another section, which counts only after a section.
    """

    OTHER = auto()
    THOUGHT = auto()
    CALL = auto()
    NAMED_CALL = auto()
    TIME_SECTION = auto()
    OTHER_SECTION = auto()


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark, and a factory for the reader of the unspoken text that follows it, or None if no such text follows.

    No complete mark is also the beginning of itself.
    """

    # Matches the mark in any letter case.
    pattern: str
    create_span: Callable[[], UnspokenSpan] | None = None
    kind: MarkKind = MarkKind.OTHER


def _span_until(*ends: str, keeps_end: bool = False) -> Callable[[], UnspokenSpan]:
    until = DelimitedText(*ends, keeps_end=keeps_end)
    return lambda: until


def _note_marks() -> Iterator[Mark]:
    """Yield the marks of the notes that this integration writes into conversation histories."""
    name = regex.escape(PREFIX_START[1:-1])
    yield Mark(rf"\[{_BLANKS}{name}{_BLANKS}{PREFIX_START[-1]}", _span_until(PREFIX_END))
    beginnings = (" ".join(note.split()[:_MATCHED_NOTE_WORDS]) for note in _OWN_NOTES)
    yield from (Mark(regex.escape(begins), NoteText) for begins in (STUB_PREFIX, CUT_MARK_PREFIX, *beginnings))


def _thought_marks() -> Iterator[Mark]:
    """Yield the marks around reasoning. Some chat templates already put the opening mark into the prompt."""
    for tag in ("think", "thinking"):
        yield Mark(f"<{tag}>", _span_until(f"</{tag}>"), MarkKind.THOUGHT)
        yield Mark(f"</{tag}>")


def _iter_channel_marks() -> Iterator[Mark]:
    """Yield the marks of gpt-oss, whose final channel alone is meant for the user.

    https://cookbook.openai.com/articles/openai-harmony
    """
    ends = _span_until("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>", keeps_end=True)
    after = rf"(?:<\|constrain\|>{_WORD_CHARS}{{0,40}})?<\|message\|>"
    yield Mark(rf"<\|channel\|>{_BLANKS}final{_WORD_CHARS}{{0,100}}{after}")
    yield Mark(rf"<\|channel\|>commentary to={_WORD_CHARS}{{0,100}}{after}", ends, MarkKind.CALL)
    yield Mark(rf"<\|channel\|>{_WORD_CHARS}{{1,100}}{after}", ends, MarkKind.THOUGHT)
    yield Mark(rf"<\|start\|>{_WORD_CHARS}{{0,100}}(?=<\|)")


def _iter_call_marks() -> Iterator[Mark]:
    """Yield the marks of tool calls that models write as text instead of in the API's format."""
    yield Mark("<tool_call>", _span_until("</tool_call>"), MarkKind.CALL)
    yield Mark("</tool_call>")
    yield Mark(r"<function=[\w.-]{1,100}>", _span_until("</function>"), MarkKind.CALL)
    yield Mark(r"\[TOOL_CALLS\]", CallText, MarkKind.CALL)
    yield Mark(r"<\|tool_call\|>", CallText, MarkKind.CALL)
    yield Mark(r"<\|python_tag\|>", _span_until("<|eom_id|>", "<|eot_id|>"), MarkKind.CALL)
    kimi, deepseek = "<|tool_calls_section_{}|>", "<\uff5ctool\u2581calls\u2581{}\uff5c>"
    for section in (kimi, deepseek):
        yield Mark(regex.escape(section.format("begin")), _span_until(section.format("end")), MarkKind.CALL)


def _iter_template_marks() -> Iterator[Mark]:
    """Yield the marks that chat templates put between messages. They come last because they match by form alone."""
    yield Mark(rf"<\|(?:im_)?start\|>(?:{'|'.join(_TEMPLATE_ROLES)})")
    yield Mark(rf"<\|start_header_id\|>{_WORD_CHARS}{{0,40}}<\|end_header_id\|>")
    yield Mark(rf"<{_BAR}[\w/\N{{LOWER ONE EIGHTH BLOCK}}]{{1,40}}{_BAR}>")


def _iter_line_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of a line.

    The context's sections begin with a "## Time" heading and the time in our own notation. With another text below it,
    the heading is part of an answer in Markdown, and so are the other headings if they do not follow that section.
    """
    first, *others = map(regex.escape, SECTION_HEADINGS)
    time = r"[A-Za-z]{6,9} \d{4}-\d{2}-\d{2} \d{2}:\d{2}"
    yield Mark(f"{first}{_LINE_END}{time}", kind=MarkKind.TIME_SECTION)
    for heading in others:
        yield Mark(f"{heading}{_LINE_END}", _span_until("\n", keeps_end=True), MarkKind.OTHER_SECTION)
    yield Mark("tool_calls?:", CallText, MarkKind.CALL)
    yield Mark(f"{_CODE_FENCE}tool_(?:call|code){_LINE_END}", _span_until(_CODE_FENCE), MarkKind.CALL)


def _iter_answer_start_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of the answer: calls as JSON, with or without a code fence."""
    s = _SPACES
    for begins, depth in ((r"\{", 1), (rf"\[{s}\{{", 2)):
        call = rf'{begins}{s}"name"{s}:{s}"[\w.-]{{1,100}}"{s},{s}"(?:arguments|parameters)"{s}:'
        yield Mark(call, partial(CallText, depth=depth), MarkKind.NAMED_CALL)
        yield Mark(rf"{_CODE_FENCE}\w{{0,12}}{s}{call}", _span_until(_CODE_FENCE), MarkKind.NAMED_CALL)


class MarkFinder:
    """Finds marks in a text that arrives in pieces. An earlier mark takes precedence over a later one."""

    def __init__(self, marks: Mapping[str, str]) -> None:
        """Take the pattern of each mark by the name of its group in the matches."""
        self._mark_pattern = regex.compile(
            "|".join(f"(?P<{name}>{pattern})" for name, pattern in marks.items()), regex.IGNORECASE
        )
        # never matches a whole mark
        self._beginning_pattern = regex.compile(f"(?:{'|'.join(marks.values())})(?!)", regex.IGNORECASE)

    def search(self, text: str, at: int, *, is_last: bool) -> regex.Match[str] | None:
        """Return the first mark, or unless the text `is_last`, a mark that begins at its end, which has no group.

        Such a beginning takes precedence over a mark inside of it, for example over a mark that matches by form alone.
        """
        found = self._mark_pattern.search(text, at)
        tail = max(at, len(text) - _MAX_MARK_CHARS)
        if is_last or (found and found.start() < tail):
            return found
        begins = self._beginning_pattern.search(text, tail, partial=True)
        # there is always an empty one after the last character
        if begins and begins.start() < len(text) and (found is None or begins.start() <= found.start()):
            return begins
        return found

    def match(self, text: str, at: int, *, is_last: bool) -> regex.Match[str] | None:
        """Return the same as `search`, but only for a mark at this place."""
        begins = None if is_last else self._beginning_pattern.match(text, at, partial=True)
        return begins or self._mark_pattern.match(text, at)


_TEXT_MARKS = [*_note_marks(), *_thought_marks(), *_iter_channel_marks(), *_iter_call_marks(), *_iter_template_marks()]
_LINE_MARKS = [*_iter_line_marks()]
_START_MARKS = [*_iter_answer_start_marks()]
_MARK_BY_GROUP = {f"mark{place}": mark for place, mark in enumerate((*_TEXT_MARKS, *_LINE_MARKS, *_START_MARKS))}
# The characters with which a mark can begin, including the line break before a mark at the beginning of a line.
_FIRST_MARK_CHARS = "\n<["


def _select_patterns(marks: Sequence[Mark], before: str = "") -> dict[str, str]:
    return {name: before + mark.pattern for name, mark in _MARK_BY_GROUP.items() if mark in marks}


# Finds a mark anywhere in a text. The line break before a mark is part of the match.
_MARKS_IN_TEXT = MarkFinder(_select_patterns(_TEXT_MARKS) | _select_patterns(_LINE_MARKS, rf"\n{_BLANKS}"))
_MARKS_AT_LINE_START = MarkFinder(_select_patterns(_LINE_MARKS, _BLANKS))
_MARKS_AT_ANSWER_START = MarkFinder(_select_patterns(_START_MARKS) | _select_patterns(_LINE_MARKS, _BLANKS))


type FilteredDelta = TextDelta | ReasoningDelta

_search_mark_start = re.compile(f"[{re.escape(_FIRST_MARK_CHARS)}]").search


class SpeechFilter:
    """Splits the text deltas of one answer into speech and reasoning.

    `tools` are the names of the tools that the model may call. White space and zero-width characters at the beginning
    of the answer are not spoken, nor is white space after a mark if there is already some before it.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        # a model may use the short name from the tool's description, without the prefix of the tool's API
        self._tool_names = {form for name in tools for form in (name, name.rpartition("__")[2])}
        self._pending = ""
        self._span: UnspokenSpan | None = None
        self._in_thought = False
        self._speech_fragments: list[str] = []
        self._thought_fragments: list[str] = []
        self._is_plain = False
        self._has_speech = False
        self._trims = True
        self._ends_in_space = True
        self._at_line_start = True
        self._in_sections = False
        # The tool calls with their opening marks, in pieces.
        self._calls: list[list[str]] = []
        self._calls_char_count = 0
        self._in_call = False

    @property
    def has_call(self) -> bool:
        """Whether the text so far contains a tool call, whole or not."""
        return bool(self._calls)

    @property
    def call_texts(self) -> list[str]:
        """The tool calls so far, each with its opening mark and without its end; none if they are too long."""
        return ["".join(pieces) for pieces in self._calls if self._calls_char_count <= _MAX_CALLS_CHARS]

    def feed(self, text: str) -> Sequence[FilteredDelta]:
        """Process a piece of text, and return the deltas that are certain. Text that may begin a mark is held back."""
        if self._is_plain and text and not _search_mark_start(text):
            self._ends_in_space = text[-1].isspace()
            return (TextDelta(text),)
        return self._filter_text(text, is_last=False)

    def flush(self) -> Sequence[FilteredDelta]:
        """Return the remaining deltas at the end of the answer. Unspoken text whose end is missing stays unspoken."""
        return self._filter_text("", is_last=True)

    def _filter_text(self, text: str, *, is_last: bool) -> Sequence[FilteredDelta]:
        """Process more text. Return at most one delta of each type, however many marks the text contains."""
        text, at, goes_on = self._pending + text, 0, True
        while goes_on and at < len(text):
            at, goes_on = self._read_span(text, at) if self._span else self._read_speech(text, at, is_last=is_last)
        self._pending = text[at:]
        if is_last and self._pending:
            self._add_thought(self._pending)
            self._pending = ""
        self._is_plain = not (self._pending or self._span or self._trims or self._at_line_start)
        sorted_out = TextDelta("".join(self._speech_fragments)), ReasoningDelta("".join(self._thought_fragments))
        self._speech_fragments.clear()
        self._thought_fragments.clear()
        return [delta for delta in sorted_out if delta.text]

    def _read_span(self, text: str, at: int) -> tuple[int, bool]:
        """Return the position to continue from, and whether to continue now rather than wait for more text."""
        assert self._span is not None
        read = self._span.read(text, at)
        self._add_thought(text[at : read.end_position])
        self._add_to_call(text[at : read.end_position])
        if read.is_complete:
            self._span = None
        return read.next_position, read.is_complete

    def _read_speech(self, text: str, at: int, *, is_last: bool) -> tuple[int, bool]:
        """Process the text up to the next mark, and the mark, or else all text. Returns the same as `_read_span`."""
        if not self._has_speech:
            unheard = _INVISIBLE_PATTERN.match(text, at)
            at = unheard.end() if unheard else at
        found = self._find_mark(text, at, is_last=is_last)
        if found is None:
            self._add_speech(text[at:])
            return len(text), True
        # the match may include the line break before the mark, which is still spoken
        begins = found.start() + text.startswith("\n", found.start())
        self._add_speech(text[at:begins])
        if found.lastgroup is None:
            return begins, False
        self._apply_mark(_MARK_BY_GROUP[found.lastgroup], found[0])
        return found.end(), True

    def _find_mark(self, text: str, at: int, *, is_last: bool) -> regex.Match[str] | None:
        sections_end = skip_space(text, at) if self._in_sections else -1
        if self._at_line_start:
            marks = _MARKS_AT_LINE_START if self._has_speech else _MARKS_AT_ANSWER_START
            found = marks.match(text, at, is_last=is_last)
            if found and self._is_mark(found, sections_end):
                return found
        place = at
        while found := _MARKS_IN_TEXT.search(text, place, is_last=is_last):
            if self._is_mark(found, sections_end):
                return found
            place = found.start() + 1
        return None

    def _is_mark(self, match: regex.Match[str], sections_end: int) -> bool:
        kind = _MARK_BY_GROUP[match.lastgroup].kind if match.lastgroup else MarkKind.OTHER
        if kind is MarkKind.OTHER_SECTION:
            return bool(match.start() <= sections_end)
        if kind is MarkKind.NAMED_CALL:
            name = _CALLED_NAME_PATTERN.search(match[0])
            return name is not None and name[1] in self._tool_names
        return True

    def _apply_mark(self, mark: Mark, text: str) -> None:
        self._span = mark.create_span() if mark.create_span else None
        self._in_thought = mark.kind is MarkKind.THOUGHT
        self._trims = self._ends_in_space
        self._in_sections = self._in_sections or mark.kind is MarkKind.TIME_SECTION
        self._in_call = mark.kind in (MarkKind.CALL, MarkKind.NAMED_CALL)
        if self._in_call:
            self._calls.append([])
            self._add_to_call(text)

    def _add_to_call(self, text: str) -> None:
        if self._in_call:
            self._calls_char_count += len(text)
            if self._calls_char_count <= _MAX_CALLS_CHARS:
                self._calls[-1].append(text)

    def _add_thought(self, text: str) -> None:
        if text and self._in_thought:
            self._thought_fragments.append(text)

    def _add_speech(self, text: str) -> None:
        if not text:
            return
        self._at_line_start = text.endswith("\n")
        self._in_sections = self._in_sections and text.isspace()
        if self._trims:
            text = text.lstrip()
        if text:
            self._has_speech, self._trims = True, False
            self._ends_in_space = text[-1].isspace()
            self._speech_fragments.append(text)
