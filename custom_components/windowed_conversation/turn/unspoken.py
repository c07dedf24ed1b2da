"""Parts of a text that are not spoken, and patterns for text that arrives in pieces."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import re
from typing import NamedTuple

_OPENS, _CLOSES, _GOES_ON = "([{", ")]}", "{"
_space = re.compile(r"\s*")
_opens_or_line = re.compile(r"[(\[{\n]")
_bracket_or_quote = re.compile(r"[()\[\]{}\"']")
_in_string = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_square_or_line = re.compile(r"[\[\]\n]")


@dataclass(frozen=True, slots=True)
class Run:
    """From `least` to `most` characters of a character class."""

    chars: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """Text that must follow the mark but is not part of it."""

    text: str


# Plain texts match in any letter case.
type MarkPart = str | Run | Ahead
type MarkParts = tuple[MarkPart, ...]


def compiled(marks: Mapping[str, MarkParts], *, halves: bool = True) -> re.Pattern[str]:
    """Return a pattern of all marks, each as a named group.

    With `halves`, the beginning of a mark at the end of the text also matches, without a group. An earlier mark takes
    precedence over a later one, and so does its beginning. Every mark ends in a plain text, so no complete mark is also
    the beginning of itself.
    """
    by_first: dict[str, dict[str, list[Run | Ahead]]] = {}
    for name, parts in marks.items():
        first, steps = _split(parts)
        by_first.setdefault(first, {})[name] = steps
    # alternatives that begin with a plain character let the search skip all other characters
    return re.compile("|".join(f"{re.escape(first)}{_branch(each, halves=halves)}" for first, each in by_first.items()))


def _branch(marks: Mapping[str, Sequence[Run | Ahead]], *, halves: bool) -> str:
    """Return a pattern that matches one of these marks after their first character."""
    ways: list[str] = []
    for name, steps in marks.items():
        ways.append(f"(?P<{name}>{''.join(map(_whole, steps))})")
        if halves and steps:
            ways.append(_half(steps))
    return f"{_glance(marks.values())}(?:{'|'.join(ways)})"


def _glance(marks: Iterable[Sequence[Run | Ahead]]) -> str:
    """Return a lookahead for the next character, which quickly rules out most texts that only begin like a mark."""
    classes: set[str] = set()
    for steps in marks:
        for step in steps:
            classes.add(_either_case(step.text[0]) if isinstance(step, Ahead) else step.chars)
            if isinstance(step, Ahead) or step.least:
                break
        else:
            return ""
    return rf"(?=\Z|{'|'.join(sorted(classes))})"


def _split(parts: MarkParts) -> tuple[str, list[Run | Ahead]]:
    """Return the first character, if it is fixed, and the remaining parts, with plain characters as runs of one."""
    head = parts[0]
    first = head[0] if isinstance(head, str) else ""
    steps: list[Run | Ahead] = []
    for part in (head[1:], *parts[1:]) if isinstance(head, str) else parts:
        if isinstance(part, str):
            steps += [Run(_either_case(char), 1, 1) for char in part]
        else:
            steps.append(part)
    return first, steps


def _either_case(char: str) -> str:
    return f"[{char.lower()}{char.upper()}]" if char.isalpha() else re.escape(char)


def _whole(step: Run | Ahead) -> str:
    if isinstance(step, Ahead):
        return f"(?={re.escape(step.text)})"
    return step.chars if step.most == 1 == step.least else f"{step.chars}{{{step.least},{step.most}}}"


def _half(steps: Iterable[Run | Ahead]) -> str:
    """Return a pattern for an incomplete sequence of the steps, possibly empty, at the end of the text."""
    runs: list[Run] = []
    for step in steps:
        runs += [Run(_either_case(char), 1, 1) for char in step.text] if isinstance(step, Ahead) else [step]
    half = r"\Z"
    for run in reversed(runs[:-1]):
        if run.most == 1 == run.least:
            half = rf"(?:\Z|{run.chars}{half})"
        else:
            half = rf"(?:{run.chars}{{{run.least},{run.most}}}{half}|{run.chars}{{0,{run.most}}}\Z)"
    return half


class Read(NamedTuple):
    """Progress in an unspoken part of a text: where it ends, where to continue reading, and whether it is complete."""

    end: int
    at: int
    is_over: bool


class Until:
    """An unspoken part that ends at the first of these texts. It includes that text unless `keeps_end` is set."""

    def __init__(self, *ends: str, keeps_end: bool = False) -> None:
        self._ends = compiled({f"end{place}": (end,) for place, end in enumerate(ends)})
        self._keeps_end = keeps_end

    def read(self, text: str, at: int) -> Read:
        """Read up to the first end text. If there is none, everything read so far is unspoken."""
        found = self._ends.search(text, at)
        if found is None:
            return Read(len(text), len(text), is_over=False)
        if found.lastgroup is None:
            return Read(found.start(), found.start(), is_over=False)
        return Read(found.start(), found.start() if self._keeps_end else found.end(), is_over=True)


class NoteText:
    """The rest of a note in square brackets, up to the closing bracket or the end of the line."""

    def __init__(self) -> None:
        self._depth = 1

    def read(self, text: str, at: int) -> Read:
        """Read up to the closing bracket or the end of the line."""
        for found in _square_or_line.finditer(text, at):
            if found[0] == "\n":
                return Read(found.start(), found.start(), is_over=True)
            self._depth += 1 if found[0] == "[" else -1
            if not self._depth:
                return Read(found.end(), found.end(), is_over=True)
        return Read(len(text), len(text), is_over=False)


class CallText:
    """The rest of a tool call: an optional name and a bracketed part, or without brackets, the rest of the line.

    Brackets inside quotes are ignored. Braces that follow immediately also belong to the call: `[ARGS]{...}`. `depth`
    is the number of brackets that are already open.
    """

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._had_brackets = depth > 0
        self._leads = True
        self._line_broke = False
        self._quote = ""
        self._skips = 0
        self._last = ""

    def read(self, text: str, at: int) -> Read:
        """Read up to the closing bracket, or to the end of the line if there are none."""
        at += self._skips
        self._skips = 0
        while at < len(text):
            if self._quote:
                at = self._read_string(text, at)
            elif self._depth:
                at = self._read_brackets(text, at)
            else:
                end = self._find_brackets(text, at)
                if end < len(text) and text[end] not in (_GOES_ON if self._had_brackets else _OPENS):
                    return Read(end, end, is_over=True)
                if end < len(text):
                    self._depth, self._had_brackets = 1, True
                at = end + 1
        self._skips = max(0, at - len(text)) if self._quote else 0
        self._last = text[-1:] or self._last
        return Read(len(text), len(text), is_over=False)

    def _find_brackets(self, text: str, at: int) -> int:
        """Return the position of the next opening bracket, or the end of the call or of the text."""
        if self._had_brackets:
            return at
        if self._leads:
            begins = end_of_space(text, at)
            self._line_broke = self._line_broke or "\n" in text[at:begins]
            at = begins
            if at == len(text) or self._line_broke:
                return at
            self._leads = False
        found = _opens_or_line.search(text, at)
        return found.start() if found else len(text)

    def _read_brackets(self, text: str, at: int) -> int:
        found = _bracket_or_quote.search(text, at)
        if found is None:
            return len(text)
        char = found[0]
        if char in _OPENS:
            self._depth += 1
        elif char in _CLOSES:
            self._depth -= 1
        elif char == '"' or not _is_in_word(text[found.start() - 1] if found.start() else self._last):
            self._quote = char
        return found.end()

    def _read_string(self, text: str, at: int) -> int:
        found = _in_string[self._quote].search(text, at)
        if found is None:
            return len(text)
        if found[0] == "\\":
            return found.end() + 1
        self._quote = ""
        return found.end()


# A part of a text that is not spoken, read piece by piece. If its end is not found, text from `Read.at` on is passed
# again with the next piece.
type UnspokenSpan = Until | NoteText | CallText


def _is_in_word(char: str) -> bool:
    """Return whether an apostrophe after this character is inside a word, as in "Ada's"."""
    return char.isalnum() or char == "_"


def end_of_space(text: str, at: int) -> int:
    """Return the position after the white space at this position."""
    found = _space.match(text, at)
    return found.end() if found else at
