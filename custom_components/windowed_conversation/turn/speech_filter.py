"""Filters a model's text for speech: removes reasoning, tool calls, notes of ours, and marks of chat templates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
from itertools import product
import re

from ..providers import UNSEEN, ReasoningDelta, TextDelta
from ..window import CUT_BEGINS, INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, STUB_BEGINS
from .context import HEADINGS, PREFIX_CLOSES, PREFIX_OPENS
from .state import REPEATED
from .unspoken import Ahead, CallText, MarkPart, MarkParts, NoteText, Run, UnspokenSpan, Until, compiled, end_of_space

_BLANKS = Run(r"[ \t]", 0, 3)
_SPACE = Run(r"\s", 0, 8)
_WORDS = r"[\w.=: -]"
_BAR = Run("[|\N{FULLWIDTH VERTICAL LINE}]", 1, 1)
_FENCE = "```"
_ROLES = ("assistant", "user", "system", "tool", "developer")
_NOTES = (INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, REPEATED, UNSEEN)

# How many words of a note have to match: a model that repeats a note may change its end.
_WORDS_OF_NOTE = 4

_NEW_LINE = "\n"

# White space and zero-width characters: an answer that contains nothing else is empty.
_unheard = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]*")

_name_in_call = re.compile(r'"name"\s*:\s*"([^"]*)"')


class Kind(StrEnum):
    """The kind of a mark.

    THOUGHT opens reasoning. CALL opens a tool call. NAMED_CALL does so only if it names a tool that is offered. TIME is
    the first section of the context. SECTION is another section, which counts only after a section.
    """

    OTHER = auto()
    THOUGHT = auto()
    CALL = auto()
    NAMED_CALL = auto()
    TIME = auto()
    SECTION = auto()


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark, and a factory for the reader of the unspoken text that follows it, or None if no such text follows."""

    parts: MarkParts
    span: Callable[[], UnspokenSpan] | None = None
    kind: Kind = Kind.OTHER


def _until(*ends: str, keeps_end: bool = False) -> Callable[[], UnspokenSpan]:
    until = Until(*ends, keeps_end=keeps_end)
    return lambda: until


def _notes() -> Iterator[Mark]:
    """Yield the marks of the notes that this integration writes into conversation histories."""
    yield Mark((PREFIX_OPENS[0], _BLANKS, PREFIX_OPENS[1:-1], _BLANKS, PREFIX_OPENS[-1]), _until(PREFIX_CLOSES))
    beginnings = (" ".join(note.split()[:_WORDS_OF_NOTE]) for note in _NOTES)
    yield from (Mark((begins,), NoteText) for begins in (STUB_BEGINS, CUT_BEGINS, *beginnings))


def _thoughts() -> Iterator[Mark]:
    """Yield the marks around reasoning. Some chat templates already put the opening mark into the prompt."""
    for tag in ("think", "thinking"):
        yield Mark((f"<{tag}>",), _until(f"</{tag}>"), Kind.THOUGHT)
        yield Mark((f"</{tag}>",))


def _channels() -> Iterator[Mark]:
    """Yield the marks of gpt-oss, of whose channels only the final one is meant for the user.

    https://cookbook.openai.com/articles/openai-harmony
    """
    ends = _until("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>", keeps_end=True)
    formats: tuple[MarkParts, ...] = ((), ("<|constrain|>", Run(_WORDS, 0, 40)))
    for constrained in formats:
        after: MarkParts = (*constrained, "<|message|>")
        yield Mark(("<|channel|>", _BLANKS, "final", Run(_WORDS, 0, 100), *after))
        yield Mark(("<|channel|>commentary to=", Run(_WORDS, 0, 100), *after), ends, Kind.CALL)
        yield Mark(("<|channel|>", Run(_WORDS, 1, 100), *after), ends, Kind.THOUGHT)
    yield Mark(("<|start|>", Run(_WORDS, 0, 100), Ahead("<|")))


def _calls() -> Iterator[Mark]:
    """Yield the marks of tool calls that models write as text instead of in the API's format."""
    yield Mark(("<tool_call>",), _until("</tool_call>"), Kind.CALL)
    yield Mark(("</tool_call>",))
    yield Mark(("<function=", Run(r"[\w.-]", 1, 100), ">"), _until("</function>"), Kind.CALL)
    yield Mark(("[TOOL_CALLS]",), CallText, Kind.CALL)
    yield Mark(("<|tool_call|>",), CallText, Kind.CALL)
    yield Mark(("<|python_tag|>",), _until("<|eom_id|>", "<|eot_id|>"), Kind.CALL)
    kimi, deepseek = "<|tool_calls_section_{}|>", "<\uff5ctool\u2581calls\u2581{}\uff5c>"
    for section in (kimi, deepseek):
        yield Mark((section.format("begin"),), _until(section.format("end")), Kind.CALL)


def _template_marks() -> Iterator[Mark]:
    """Yield the marks that chat templates put between messages. They come last because they match by form alone."""
    for begins, role in product(("<|im_start|>", "<|start|>"), _ROLES):
        yield Mark((f"{begins}{role}",))
    yield Mark(("<|start_header_id|>", Run(_WORDS, 0, 40), "<|end_header_id|>"))
    yield Mark(("<", _BAR, Run(r"[\w/\N{LOWER ONE EIGHTH BLOCK}]", 1, 40), _BAR, ">"))


def _line_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of a line.

    The context's sections begin with a "## Time" heading and the time in our own notation. With another text below it,
    the heading is part of an answer in Markdown, and so are the other headings if they do not follow that section.
    """
    first, *others = HEADINGS
    line_end: MarkParts = (_BLANKS, Run(r"\r", 0, 1), "\n")
    digits = tuple(Run(r"\d", size, size) for size in (4, 2, 2, 2, 2))
    time: list[MarkPart] = [Run("[A-Za-z]", 6, 9)]
    for between, run in zip(" -- :", digits, strict=True):
        time += [between, run]
    yield Mark((first, *line_end, *time[:-1], Run(r"\d", 1, 1), Run(r"\d", 1, 1)), kind=Kind.TIME)
    for heading in others:
        yield Mark((heading, *line_end), _until("\n", keeps_end=True), Kind.SECTION)
    for name in ("tool_call:", "tool_calls:"):
        yield Mark((name,), CallText, Kind.CALL)
    for name in ("tool_call", "tool_code"):
        yield Mark((f"{_FENCE}{name}", *line_end), _until(_FENCE), Kind.CALL)


def _first_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of the answer: calls as JSON, with or without a code fence."""
    for is_list, arguments in product((False, True), ("arguments", "parameters")):
        begins: MarkParts = ("[", _SPACE, "{") if is_list else ("{",)
        name: MarkParts = (_SPACE, '"name"', _SPACE, ":", _SPACE, '"', Run(r"[\w.-]", 1, 100), '"')
        call: MarkParts = (*begins, *name, _SPACE, ",", _SPACE, f'"{arguments}"', _SPACE, ":")
        yield Mark(call, partial(CallText, depth=1 + is_list), Kind.NAMED_CALL)
        yield Mark((_FENCE, Run(r"\w", 0, 12), _SPACE, *call), _until(_FENCE), Kind.NAMED_CALL)


_in_text = [*_notes(), *_thoughts(), *_channels(), *_calls(), *_template_marks()]
_at_line = [*_line_marks()]
_at_start = [*_first_marks()]
# All marks, keyed by the name of their group in the pattern.
MARKS: Mapping[str, Mark] = {f"mark{place}": mark for place, mark in enumerate((*_in_text, *_at_line, *_at_start))}
# The characters with which a mark can begin, including the line break before a mark at the beginning of a line.
FIRST_CHARACTERS = frozenset({_NEW_LINE, *(str(mark.parts[0])[0] for mark in _in_text)})


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns of the marks: `search` finds them anywhere in a text, the others match at a given position.

    `at_line` is for the beginning of a line and `at_start` for the beginning of the answer. Inside a text, the line
    break before a mark is part of the match.
    """

    search: re.Pattern[str]
    at_line: re.Pattern[str]
    at_start: re.Pattern[str]


def _patterns(*, halves: bool) -> Patterns:
    in_text = {name: mark.parts for name, mark in MARKS.items() if mark in _in_text}
    at_line = {name: mark.parts for name, mark in MARKS.items() if mark in _at_line}
    at_start = {name: mark.parts for name, mark in MARKS.items() if mark in _at_start}
    after_line = {name: (_NEW_LINE, _BLANKS, *parts) for name, parts in at_line.items()}
    indented = {name: (_BLANKS, *parts) for name, parts in at_line.items()}
    return Patterns(
        search=compiled(in_text | after_line, halves=halves),
        at_line=compiled(indented, halves=halves),
        at_start=compiled(at_start | indented, halves=halves),
    )


# The patterns for text that continues, which also match the beginning of a mark at its end, and those for the end of
# the answer, where an incomplete mark is ordinary text.
GOING_ON = _patterns(halves=True)
AT_END = _patterns(halves=False)


type Sorted = TextDelta | ReasoningDelta

_may_begin_mark = re.compile(f"[{re.escape(''.join(sorted(FIRST_CHARACTERS)))}]").search


class SpeechFilter:
    """Splits the text deltas of one answer into speech and reasoning.

    `tools` are the names of the tools that the model may call. White space and zero-width characters at the beginning
    of the answer are not spoken, nor is white space after a mark if there is already some before it.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        # a model may use the short name from the tool's description, without the prefix of the tool's API
        self._tools = {form for name in tools for form in (name, name.rpartition("__")[2])}
        self._rest = ""
        self._span: UnspokenSpan | None = None
        self._is_thought = False
        self._speech: list[str] = []
        self._thoughts: list[str] = []
        self._is_plain = False
        self._has_speech = False
        self._trim = True
        self._ends_in_space = True
        self._begins_line = True
        self._in_sections = False
        self.has_call = False

    def feed(self, text: str) -> Sequence[Sorted]:
        """Process a piece of text, and return the deltas that are certain. What may begin a mark is held back."""
        if self._is_plain and text and not _may_begin_mark(text):
            self._ends_in_space = text[-1].isspace()
            return (TextDelta(text),)
        return self._sort(text, GOING_ON)

    def flush(self) -> Sequence[Sorted]:
        """Return the remaining deltas at the end of the answer. Unspoken text whose end is missing stays unspoken."""
        return self._sort("", AT_END)

    def _sort(self, text: str, patterns: Patterns) -> Sequence[Sorted]:
        """Process more text. Return at most one delta of each type, however many marks the text contains."""
        text, at, goes_on = self._rest + text, 0, True
        while goes_on and at < len(text):
            at, goes_on = self._read_span(text, at) if self._span else self._read_speech(text, at, patterns)
        self._rest = text[at:]
        if patterns is AT_END and self._rest:
            self._hide(self._rest)
            self._rest = ""
        self._is_plain = not (self._rest or self._span or self._trim or self._begins_line)
        sorted_out = TextDelta("".join(self._speech)), ReasoningDelta("".join(self._thoughts))
        self._speech.clear()
        self._thoughts.clear()
        return [delta for delta in sorted_out if delta.text]

    def _read_span(self, text: str, at: int) -> tuple[int, bool]:
        """Return the position to continue from, and whether to continue now rather than wait for more text."""
        assert self._span is not None
        read = self._span.read(text, at)
        self._hide(text[at : read.end])
        if read.is_over:
            self._span = None
        return read.at, read.is_over

    def _read_speech(self, text: str, at: int, patterns: Patterns) -> tuple[int, bool]:
        """Process the text up to the next mark, and the mark, or else all text. Returns the same as `_read_span`."""
        if not self._has_speech:
            unheard = _unheard.match(text, at)
            at = unheard.end() if unheard else at
        found = self._next_mark(text, at, patterns)
        if found is None:
            self._speak(text[at:])
            return len(text), True
        # the match may include the line break before the mark, which is still spoken
        begins = found.start() + text.startswith("\n", found.start())
        self._speak(text[at:begins])
        if found.lastgroup is None:
            return begins, False
        self._open(MARKS[found.lastgroup])
        return found.end(), True

    def _next_mark(self, text: str, at: int, patterns: Patterns) -> re.Match[str] | None:
        sections_end = end_of_space(text, at) if self._in_sections else -1
        if self._begins_line:
            beginning = patterns.at_line if self._has_speech else patterns.at_start
            found = beginning.match(text, at)
            if found and self._is_mark(found, sections_end):
                return found
        place = at
        while found := patterns.search.search(text, place):
            if self._is_mark(found, sections_end):
                return found
            place = found.start() + 1
        return None

    def _is_mark(self, found: re.Match[str], sections_end: int) -> bool:
        kind = MARKS[found.lastgroup].kind if found.lastgroup else Kind.OTHER
        if kind is Kind.SECTION:
            return found.start() <= sections_end
        if kind is Kind.NAMED_CALL:
            name = _name_in_call.search(found[0])
            return name is not None and name[1] in self._tools
        return True

    def _open(self, mark: Mark) -> None:
        self._span = mark.span() if mark.span else None
        self._is_thought = mark.kind is Kind.THOUGHT
        self._trim = self._ends_in_space
        self._in_sections = self._in_sections or mark.kind is Kind.TIME
        self.has_call = self.has_call or mark.kind in (Kind.CALL, Kind.NAMED_CALL)

    def _hide(self, text: str) -> None:
        if text and self._is_thought:
            self._thoughts.append(text)

    def _speak(self, text: str) -> None:
        if not text:
            return
        self._begins_line = text.endswith("\n")
        self._in_sections = self._in_sections and text.isspace()
        if self._trim:
            text = text.lstrip()
        if text:
            self._has_speech, self._trim = True, False
            self._ends_in_space = text[-1].isspace()
            self._speech.append(text)
