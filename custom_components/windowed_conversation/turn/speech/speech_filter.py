"""Filters a model's text for speech: removes reasoning, tool calls, notes of ours, and marks of chat templates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
from itertools import product
import re

from ...providers import UNSEEN_NOTE, ReasoningDelta, TextDelta
from ...window import CUT_MARK_PREFIX, INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, STUB_PREFIX
from ..context import PREFIX_END, PREFIX_START, SECTION_HEADINGS
from ..repetition import REPETITION_NOTE
from .unspoken import (
    CallText,
    CharRun,
    DelimitedText,
    Lookahead,
    MarkPart,
    MarkParts,
    NoteText,
    UnspokenSpan,
    compile_marks,
    skip_space,
)

_BLANK_RUN = CharRun(r"[ \t]", 0, 3)
_SPACES = CharRun(r"\s", 0, 8)
_WORD_CHARS = r"[\w.=: -]"
_BAR_RUN = CharRun("[|\N{FULLWIDTH VERTICAL LINE}]", 1, 1)
_CODE_FENCE = "```"
_TEMPLATE_ROLES = ("assistant", "user", "system", "tool", "developer")
_OWN_NOTES = (INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, REPETITION_NOTE, UNSEEN_NOTE)

# How many words of a note have to match: a model that repeats a note may change its end.
_MATCHED_NOTE_WORDS = 4

_NEW_LINE = "\n"

# White space and zero-width characters: an answer that contains nothing else is empty.
_INVISIBLE_PATTERN = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]*")

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
    """A mark, and a factory for the reader of the unspoken text that follows it, or None if no such text follows."""

    parts: MarkParts
    create_span: Callable[[], UnspokenSpan] | None = None
    kind: MarkKind = MarkKind.OTHER


def _span_until(*ends: str, keeps_end: bool = False) -> Callable[[], UnspokenSpan]:
    until = DelimitedText(*ends, keeps_end=keeps_end)
    return lambda: until


def _note_marks() -> Iterator[Mark]:
    """Yield the marks of the notes that this integration writes into conversation histories."""
    yield Mark((PREFIX_START[0], _BLANK_RUN, PREFIX_START[1:-1], _BLANK_RUN, PREFIX_START[-1]), _span_until(PREFIX_END))
    beginnings = (" ".join(note.split()[:_MATCHED_NOTE_WORDS]) for note in _OWN_NOTES)
    yield from (Mark((begins,), NoteText) for begins in (STUB_PREFIX, CUT_MARK_PREFIX, *beginnings))


def _thought_marks() -> Iterator[Mark]:
    """Yield the marks around reasoning. Some chat templates already put the opening mark into the prompt."""
    for tag in ("think", "thinking"):
        yield Mark((f"<{tag}>",), _span_until(f"</{tag}>"), MarkKind.THOUGHT)
        yield Mark((f"</{tag}>",))


def _iter_channel_marks() -> Iterator[Mark]:
    """Yield the marks of gpt-oss, whose final channel alone is meant for the user.

    https://cookbook.openai.com/articles/openai-harmony
    """
    ends = _span_until("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>", keeps_end=True)
    formats: tuple[MarkParts, ...] = ((), ("<|constrain|>", CharRun(_WORD_CHARS, 0, 40)))
    for constrained in formats:
        after: MarkParts = (*constrained, "<|message|>")
        yield Mark(("<|channel|>", _BLANK_RUN, "final", CharRun(_WORD_CHARS, 0, 100), *after))
        yield Mark(("<|channel|>commentary to=", CharRun(_WORD_CHARS, 0, 100), *after), ends, MarkKind.CALL)
        yield Mark(("<|channel|>", CharRun(_WORD_CHARS, 1, 100), *after), ends, MarkKind.THOUGHT)
    yield Mark(("<|start|>", CharRun(_WORD_CHARS, 0, 100), Lookahead("<|")))


def _iter_call_marks() -> Iterator[Mark]:
    """Yield the marks of tool calls that models write as text instead of in the API's format."""
    yield Mark(("<tool_call>",), _span_until("</tool_call>"), MarkKind.CALL)
    yield Mark(("</tool_call>",))
    yield Mark(("<function=", CharRun(r"[\w.-]", 1, 100), ">"), _span_until("</function>"), MarkKind.CALL)
    yield Mark(("[TOOL_CALLS]",), CallText, MarkKind.CALL)
    yield Mark(("<|tool_call|>",), CallText, MarkKind.CALL)
    yield Mark(("<|python_tag|>",), _span_until("<|eom_id|>", "<|eot_id|>"), MarkKind.CALL)
    kimi, deepseek = "<|tool_calls_section_{}|>", "<\uff5ctool\u2581calls\u2581{}\uff5c>"
    for section in (kimi, deepseek):
        yield Mark((section.format("begin"),), _span_until(section.format("end")), MarkKind.CALL)


def _iter_template_marks() -> Iterator[Mark]:
    """Yield the marks that chat templates put between messages. They come last because they match by form alone."""
    for begins, role in product(("<|im_start|>", "<|start|>"), _TEMPLATE_ROLES):
        yield Mark((f"{begins}{role}",))
    yield Mark(("<|start_header_id|>", CharRun(_WORD_CHARS, 0, 40), "<|end_header_id|>"))
    yield Mark(("<", _BAR_RUN, CharRun(r"[\w/\N{LOWER ONE EIGHTH BLOCK}]", 1, 40), _BAR_RUN, ">"))


def _iter_line_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of a line.

    The context's sections begin with a "## Time" heading and the time in our own notation. With another text below it,
    the heading is part of an answer in Markdown, and so are the other headings if they do not follow that section.
    """
    first, *others = SECTION_HEADINGS
    line_end: MarkParts = (_BLANK_RUN, CharRun(r"\r", 0, 1), "\n")
    digits = tuple(CharRun(r"\d", size, size) for size in (4, 2, 2, 2, 2))
    time: list[MarkPart] = [CharRun("[A-Za-z]", 6, 9)]
    for between, run in zip(" -- :", digits, strict=True):
        time += [between, run]
    yield Mark((first, *line_end, *time[:-1], CharRun(r"\d", 1, 1), CharRun(r"\d", 1, 1)), kind=MarkKind.TIME_SECTION)
    for heading in others:
        yield Mark((heading, *line_end), _span_until("\n", keeps_end=True), MarkKind.OTHER_SECTION)
    for name in ("tool_call:", "tool_calls:"):
        yield Mark((name,), CallText, MarkKind.CALL)
    for name in ("tool_call", "tool_code"):
        yield Mark((f"{_CODE_FENCE}{name}", *line_end), _span_until(_CODE_FENCE), MarkKind.CALL)


def _iter_answer_start_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of the answer: calls as JSON, with or without a code fence."""
    for is_list, arguments in product((False, True), ("arguments", "parameters")):
        begins: MarkParts = ("[", _SPACES, "{") if is_list else ("{",)
        name: MarkParts = (_SPACES, '"name"', _SPACES, ":", _SPACES, '"', CharRun(r"[\w.-]", 1, 100), '"')
        call: MarkParts = (*begins, *name, _SPACES, ",", _SPACES, f'"{arguments}"', _SPACES, ":")
        yield Mark(call, partial(CallText, depth=1 + is_list), MarkKind.NAMED_CALL)
        yield Mark((_CODE_FENCE, CharRun(r"\w", 0, 12), _SPACES, *call), _span_until(_CODE_FENCE), MarkKind.NAMED_CALL)


_TEXT_MARKS = [*_note_marks(), *_thought_marks(), *_iter_channel_marks(), *_iter_call_marks(), *_iter_template_marks()]
_LINE_MARKS = [*_iter_line_marks()]
_START_MARKS = [*_iter_answer_start_marks()]
# All marks, keyed by the name of their group in the pattern.
MARK_BY_GROUP: Mapping[str, Mark] = {
    f"mark{place}": mark for place, mark in enumerate((*_TEXT_MARKS, *_LINE_MARKS, *_START_MARKS))
}
# The characters with which a mark can begin, including the line break before a mark at the beginning of a line.
FIRST_MARK_CHARS = frozenset({_NEW_LINE, *(str(mark.parts[0])[0] for mark in _TEXT_MARKS)})


@dataclass(frozen=True, slots=True)
class MarkPatterns:
    """Patterns of the marks. Inside a text, the line break before a mark is part of the match."""

    # Finds a mark anywhere in a text.
    in_text: re.Pattern[str]
    # Matches a mark at the beginning of a line.
    at_line_start: re.Pattern[str]
    # Matches a mark at the beginning of the answer.
    at_answer_start: re.Pattern[str]


def _compile_patterns(*, halves: bool) -> MarkPatterns:
    in_text = {name: mark.parts for name, mark in MARK_BY_GROUP.items() if mark in _TEXT_MARKS}
    at_line = {name: mark.parts for name, mark in MARK_BY_GROUP.items() if mark in _LINE_MARKS}
    at_start = {name: mark.parts for name, mark in MARK_BY_GROUP.items() if mark in _START_MARKS}
    after_line = {name: (_NEW_LINE, _BLANK_RUN, *parts) for name, parts in at_line.items()}
    indented = {name: (_BLANK_RUN, *parts) for name, parts in at_line.items()}
    return MarkPatterns(
        in_text=compile_marks(in_text | after_line, halves=halves),
        at_line_start=compile_marks(indented, halves=halves),
        at_answer_start=compile_marks(at_start | indented, halves=halves),
    )


# The patterns for text that continues, which also match the beginning of a mark at its end, and those for the end of
# the answer, where an incomplete mark is ordinary text.
PARTIAL_PATTERNS = _compile_patterns(halves=True)
FINAL_PATTERNS = _compile_patterns(halves=False)


type FilteredDelta = TextDelta | ReasoningDelta

_search_mark_start = re.compile(f"[{re.escape(''.join(sorted(FIRST_MARK_CHARS)))}]").search


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
        self.has_call = False

    def feed(self, text: str) -> Sequence[FilteredDelta]:
        """Process a piece of text, and return the deltas that are certain. Text that may begin a mark is held back."""
        if self._is_plain and text and not _search_mark_start(text):
            self._ends_in_space = text[-1].isspace()
            return (TextDelta(text),)
        return self._filter_text(text, PARTIAL_PATTERNS)

    def flush(self) -> Sequence[FilteredDelta]:
        """Return the remaining deltas at the end of the answer. Unspoken text whose end is missing stays unspoken."""
        return self._filter_text("", FINAL_PATTERNS)

    def _filter_text(self, text: str, patterns: MarkPatterns) -> Sequence[FilteredDelta]:
        """Process more text. Return at most one delta of each type, however many marks the text contains."""
        text, at, goes_on = self._pending + text, 0, True
        while goes_on and at < len(text):
            at, goes_on = self._read_span(text, at) if self._span else self._read_speech(text, at, patterns)
        self._pending = text[at:]
        if patterns is FINAL_PATTERNS and self._pending:
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
        if read.is_complete:
            self._span = None
        return read.next_position, read.is_complete

    def _read_speech(self, text: str, at: int, patterns: MarkPatterns) -> tuple[int, bool]:
        """Process the text up to the next mark, and the mark, or else all text. Returns the same as `_read_span`."""
        if not self._has_speech:
            unheard = _INVISIBLE_PATTERN.match(text, at)
            at = unheard.end() if unheard else at
        found = self._find_mark(text, at, patterns)
        if found is None:
            self._add_speech(text[at:])
            return len(text), True
        # the match may include the line break before the mark, which is still spoken
        begins = found.start() + text.startswith("\n", found.start())
        self._add_speech(text[at:begins])
        if found.lastgroup is None:
            return begins, False
        self._apply_mark(MARK_BY_GROUP[found.lastgroup])
        return found.end(), True

    def _find_mark(self, text: str, at: int, patterns: MarkPatterns) -> re.Match[str] | None:
        sections_end = skip_space(text, at) if self._in_sections else -1
        if self._at_line_start:
            beginning = patterns.at_line_start if self._has_speech else patterns.at_answer_start
            found = beginning.match(text, at)
            if found and self._is_mark(found, sections_end):
                return found
        place = at
        while found := patterns.in_text.search(text, place):
            if self._is_mark(found, sections_end):
                return found
            place = found.start() + 1
        return None

    def _is_mark(self, match: re.Match[str], sections_end: int) -> bool:
        kind = MARK_BY_GROUP[match.lastgroup].kind if match.lastgroup else MarkKind.OTHER
        if kind is MarkKind.OTHER_SECTION:
            return match.start() <= sections_end
        if kind is MarkKind.NAMED_CALL:
            name = _CALLED_NAME_PATTERN.search(match[0])
            return name is not None and name[1] in self._tool_names
        return True

    def _apply_mark(self, mark: Mark) -> None:
        self._span = mark.create_span() if mark.create_span else None
        self._in_thought = mark.kind is MarkKind.THOUGHT
        self._trims = self._ends_in_space
        self._in_sections = self._in_sections or mark.kind is MarkKind.TIME_SECTION
        self.has_call = self.has_call or mark.kind in (MarkKind.CALL, MarkKind.NAMED_CALL)

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
