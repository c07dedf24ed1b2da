"""What of a model's text is spoken: thinking aloud, echoes of the context prefix and chat markers are not.

Works on a stream, so a mark may be cut anywhere by a chunk border. What the marks mean to a provider is not in here.
"""

from collections.abc import Iterable, Iterator
import re

from ..providers.events import ReasoningDelta, TextDelta
from .context import PREFIX_CLOSES, PREFIX_OPENS

# What opens a stretch that is not spoken, and what closes it.
_HIDDEN = {
    PREFIX_OPENS: PREFIX_CLOSES,
    "<think>": "</think>",
    "<thinking>": "</thinking>",
}
# Marks that stand alone: some chat templates put the opening mark into the prompt, some leak their end mark.
_DROPPED = ("</think>", "</thinking>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>")
_MARKS = (*_HIDDEN, *_DROPPED)
type Sorted = TextDelta | ReasoningDelta

_may_begin_mark = re.compile(f"[{re.escape(''.join(sorted({mark[0] for mark in _MARKS})))}]").search


class SpeechFilter:
    """Splits text deltas into what is spoken and what was thought. One per answer."""

    def __init__(self) -> None:
        self._held = ""
        self._opened: str | None = None
        self._trim = True
        self._ends_in_space = True

    def feed(self, delta: TextDelta) -> Iterable[Sorted]:
        """Return what can be told apart so far; the beginning of what may be a mark is held back."""
        text = delta.text
        if not text or self._held or self._opened or self._trim or _may_begin_mark(text):
            return self._told_apart(text)
        self._ends_in_space = text[-1].isspace()
        return (delta,)

    def _told_apart(self, text: str) -> Iterator[Sorted]:
        self._held += text
        while self._held:
            step = self._hidden_step() if self._opened else self._spoken_step()
            if step is None:
                return
            yield from step

    def flush(self) -> Iterator[Sorted]:
        """Yield what was held back, at the end of the answer. A stretch that was never closed is not spoken."""
        held, self._held = self._held, ""
        yield from self._reasoned(held) if self._opened else self._spoken(held)

    def _spoken_step(self) -> list[Sorted] | None:
        """Take the text up to the next mark, and the mark; None when there is nothing left to tell apart."""
        found = _first_mark(self._held)
        if found is None:
            keep = _partial_mark(self._held, _MARKS)
            ready = self._held[: len(self._held) - keep]
            self._held = self._held[len(self._held) - keep :]
            return [*self._spoken(ready)] if ready else None
        at, mark = found
        before, self._held = self._held[:at], self._held[at + len(mark) :]
        self._opened = mark if mark in _HIDDEN else None
        spoken = [*self._spoken(before)]
        self._trim = self._ends_in_space
        return spoken

    def _hidden_step(self) -> list[Sorted] | None:
        """Take the hidden text up to the mark that closes it; None while more may come."""
        assert self._opened is not None
        closes = _HIDDEN[self._opened]
        at = self._held.find(closes)
        if at < 0:
            keep = _partial_mark(self._held, (closes,))
            hidden, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
            return [*self._reasoned(hidden)] if hidden else None
        hidden, self._held = self._held[:at], self._held[at + len(closes) :]
        reasoned = [*self._reasoned(hidden)]
        self._opened = None
        return reasoned

    def _spoken(self, text: str) -> Iterator[Sorted]:
        if self._trim:
            text = text.lstrip()
        if text:
            self._trim = False
            self._ends_in_space = text[-1].isspace()
            yield TextDelta(text)

    def _reasoned(self, text: str) -> Iterator[Sorted]:
        if text and self._opened != PREFIX_OPENS:
            yield ReasoningDelta(text)


def _first_mark(text: str) -> tuple[int, str] | None:
    """Return where the first mark begins and which it is."""
    found = [(at, mark) for mark in _MARKS if (at := text.find(mark)) >= 0]
    return min(found, default=None)


def _partial_mark(text: str, marks: tuple[str, ...]) -> int:
    """Return how many characters at the end of the text may be the beginning of a mark."""
    longest = max(len(mark) for mark in marks) - 1
    tail = text[-longest:]
    if not any(mark[0] in tail for mark in marks):
        return 0
    for size in range(len(tail), 0, -1):
        if any(mark.startswith(text[-size:]) for mark in marks):
            return size
    return 0
