"""Filters a model's text for speech: reasoning, tool calls, and text of ours or of a chat template are not spoken.

Works on a stream, so a chunk may end inside a mark. A stretch that is never closed is not spoken; half a mark at the
end of the answer is.
"""

from collections.abc import Iterable, Sequence
import re

from ..providers import ReasoningDelta, TextDelta
from .hidden import UnspokenSpan, end_of_space
from .marks import AT_END, FIRST_CHARACTERS, GOING_ON, MARKS, Kind, Mark, Patterns

type Sorted = TextDelta | ReasoningDelta

# White space and zero-width characters: an answer of nothing else is empty.
_unheard = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]*")
_name_in_call = re.compile(r'"name"\s*:\s*"([^"]*)"')
_may_begin_mark = re.compile(f"[{re.escape(''.join(sorted(FIRST_CHARACTERS)))}]").search


class SpeechFilter:
    """Splits text deltas into speech and reasoning. One filter for each answer.

    `tools` are the names of the tools that the model may call. White space and zero-width characters at the beginning
    of the answer are not spoken, nor is white space after a mark that follows white space.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        # a model may write a name as it stands in its tool's description, without the API that the tool is of
        self._tools = {written for name in tools for written in (name, name.rpartition("__")[2])}
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
        """Return the deltas of a piece that can be decided so far. The beginning of a possible mark is held back."""
        if self._is_plain and text and not _may_begin_mark(text):
            self._ends_in_space = text[-1].isspace()
            return (TextDelta(text),)
        return self._sort(text, GOING_ON)

    def flush(self) -> Sequence[Sorted]:
        """Return the deltas held back, at the end of the answer. A stretch that was never closed is not spoken."""
        return self._sort("", AT_END)

    def _sort(self, text: str, patterns: Patterns) -> Sequence[Sorted]:
        """Continue reading. Return at most one delta of each kind, however many marks there are."""
        text, at, goes_on = self._rest + text, 0, True
        while goes_on and at < len(text):
            at, goes_on = self._read_span(text, at) if self._span else self._read_speech(text, at, patterns)
        self._rest = text[at:]
        if patterns is AT_END:
            self._hide(self._rest)
            self._rest = ""
        self._is_plain = not (self._rest or self._span or self._trim or self._begins_line)
        sorted_out = TextDelta("".join(self._speech)), ReasoningDelta("".join(self._thoughts))
        self._speech.clear()
        self._thoughts.clear()
        return [delta for delta in sorted_out if delta.text]

    def _read_span(self, text: str, at: int) -> tuple[int, bool]:
        """Return the place to continue, and whether there is anything left."""
        assert self._span is not None
        read = self._span.read(text, at)
        self._hide(text[at : read.end])
        if read.is_over:
            self._span = None
        return read.at, read.is_over

    def _read_speech(self, text: str, at: int, patterns: Patterns) -> tuple[int, bool]:
        """Take the text up to the next mark, and the mark, or the rest. Returns the same as `_read_span`."""
        if not self._has_speech:
            unheard = _unheard.match(text, at)
            at = unheard.end() if unheard else at
        found = self._next_mark(text, at, patterns)
        if found is None:
            self._speak(text[at:])
            return len(text), True
        # the end of a line is found with the mark after it
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
