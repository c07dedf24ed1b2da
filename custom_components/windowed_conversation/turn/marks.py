"""The marks that begin and end text which is not spoken: one table, one pattern.

Marks of our own texts come from the modules that write them. The others are those of chat templates.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
from itertools import product
import re

from ..providers import UNSEEN
from ..window import CUT_BEGINS, INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, STUB_BEGINS
from .context import HEADINGS, PREFIX_CLOSES, PREFIX_OPENS
from .hidden import CallText, NoteText, UnspokenSpan, Until
from .patterns import Ahead, MarkPart, MarkParts, Run, compiled
from .repetition import REPEATED


class Kind(StrEnum):
    """The kind of a mark.

    THOUGHT: it opens reasoning. CALL: it opens a tool call. NAMED_CALL: only if it names a tool that is offered. TIME:
    the first section of the context. SECTION: another section, if it follows one.
    """

    OTHER = auto()
    THOUGHT = auto()
    CALL = auto()
    NAMED_CALL = auto()
    TIME = auto()
    SECTION = auto()


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark, and the reader of the stretch that it opens, or None if it stands alone."""

    parts: MarkParts
    span: Callable[[], UnspokenSpan] | None = None
    kind: Kind = Kind.OTHER


def _until(*ends: str, keeps_end: bool = False) -> Callable[[], UnspokenSpan]:
    until = Until(*ends, keeps_end=keeps_end)
    return lambda: until


_BLANKS = Run(r"[ \t]", 0, 3)
_SPACE = Run(r"\s", 0, 8)
_WORDS = r"[\w.=: -]"
_BAR = Run("[|\N{FULLWIDTH VERTICAL LINE}]", 1, 1)
_FENCE = "```"
_ROLES = ("assistant", "user", "system", "tool", "developer")
_NOTES = (INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, REPEATED, UNSEEN)
# A model that repeats a note may end it in its own way.
_WORDS_OF_NOTE = 4


def _notes() -> Iterator[Mark]:
    """Yield the marks of notes that this integration writes into histories."""
    yield Mark((PREFIX_OPENS[0], _BLANKS, PREFIX_OPENS[1:-1], _BLANKS, PREFIX_OPENS[-1]), _until(PREFIX_CLOSES))
    beginnings = (" ".join(note.split()[:_WORDS_OF_NOTE]) for note in _NOTES)
    yield from (Mark((begins,), NoteText) for begins in (STUB_BEGINS, CUT_BEGINS, *beginnings))


def _thoughts() -> Iterator[Mark]:
    """Yield the marks around reasoning. Some chat templates put the opening mark into the prompt."""
    for tag in ("think", "thinking"):
        yield Mark((f"<{tag}>",), _until(f"</{tag}>"), Kind.THOUGHT)
        yield Mark((f"</{tag}>",))


def _channels() -> Iterator[Mark]:
    """Yield the marks of gpt-oss, whose final channel alone is for the user.

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
    """Yield the marks of tool calls in a text, as models write them outside of their own format."""
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
    """Yield the marks that chat templates put between messages, with the role; last, as these match by form alone."""
    for begins, role in product(("<|im_start|>", "<|start|>"), _ROLES):
        yield Mark((f"{begins}{role}",))
    yield Mark(("<|start_header_id|>", Run(_WORDS, 0, 40), "<|end_header_id|>"))
    yield Mark(("<", _BAR, Run(r"[\w/\N{LOWER ONE EIGHTH BLOCK}]", 1, 40), _BAR, ">"))


def _line_marks() -> Iterator[Mark]:
    """Yield the marks that count only at the beginning of a line.

    The sections of the context begin with the time, in our own notation. Another text below "## Time" is an answer in
    Markdown, and so are the other headings if they do not follow it.
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
    """Yield the marks that count only at the beginning of the answer: calls as JSON, fenced or not."""
    for is_list, arguments in product((False, True), ("arguments", "parameters")):
        begins: MarkParts = ("[", _SPACE, "{") if is_list else ("{",)
        name: MarkParts = (_SPACE, '"name"', _SPACE, ":", _SPACE, '"', Run(r"[\w.-]", 1, 100), '"')
        call: MarkParts = (*begins, *name, _SPACE, ",", _SPACE, f'"{arguments}"', _SPACE, ":")
        yield Mark(call, partial(CallText, depth=1 + is_list), Kind.NAMED_CALL)
        yield Mark((_FENCE, Run(r"\w", 0, 12), _SPACE, *call), _until(_FENCE), Kind.NAMED_CALL)


_NEW_LINE = "\n"
_in_text = [*_notes(), *_thoughts(), *_channels(), *_calls(), *_template_marks()]
_at_line = [*_line_marks()]
_at_start = [*_first_marks()]
# By the name of its group in the pattern.
MARKS: Mapping[str, Mark] = {f"mark{place}": mark for place, mark in enumerate((*_in_text, *_at_line, *_at_start))}
# With which each mark in a text begins, the end of a line before it included.
FIRST_CHARACTERS = frozenset({_NEW_LINE, *(str(mark.parts[0])[0] for mark in _in_text)})


@dataclass(frozen=True, slots=True)
class Patterns:
    """All marks as patterns: `search` finds them in a text, the others match at a given position.

    `at_line` is for the beginning of a line and `at_start` for that of the answer. Inside a text, the line break before
    a mark is part of the match.
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


# For a text that goes on, and for its end, where a half is none.
GOING_ON = _patterns(halves=True)
AT_END = _patterns(halves=False)
