"""Patterns for text that comes in pieces: each also matches the beginning of a mark at the end of a piece."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import re


@dataclass(frozen=True, slots=True)
class Run:
    """From `least` to `most` characters of a class."""

    chars: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """Text that has to follow and is not part of the mark."""

    text: str


# Texts are found in any letter case.
type MarkPart = str | Run | Ahead
type MarkParts = tuple[MarkPart, ...]


def compiled(marks: Mapping[str, MarkParts], *, halves: bool = True) -> re.Pattern[str]:
    """Return a pattern of all marks, each a named group. The beginning of a mark at the end matches without a group.

    An earlier mark wins over a later one, and so does its beginning. Every mark ends in text, so none is the beginning
    of itself.
    """
    by_first: dict[str, dict[str, list[Run | Ahead]]] = {}
    for name, parts in marks.items():
        first, steps = _split(parts)
        by_first.setdefault(first, {})[name] = steps
    # branches that begin with a plain character let the search skip all others
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
    """Return a lookahead at the next character: most texts that begin like a mark end there."""
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
    """Return the first character, if it is fixed, and the rest as runs; a character is a run of one."""
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
    """Return a pattern for any proper beginning of the steps, including none, at the end of the text."""
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
