"""The text of one answer in pieces: its total length, and the number of pieces that are passed on."""

from collections.abc import Iterable

from .errors import BadStream
from .events import Event, ReasoningDelta, TextDelta

# In characters of text and reasoning: several hundred times the longest answer that anyone listens to.
_LONGEST_ANSWER = 4 * 2**20
# Home Assistant keeps every piece of an answer for a while. After as many as the longest answers of good models have,
# short ones wait until together they are this long, in characters.
_SINGLE_PIECES = 4096
_LONG_PIECE = 128


class Pieces:
    """Passes on the events of an answer."""

    def __init__(self) -> None:
        self._length = 0
        self._count = 0
        self._held: list[str] = []
        self._held_length = 0
        self._kind: type[TextDelta | ReasoningDelta] = TextDelta

    def take(self, event: Event) -> Iterable[Event]:
        """Return the events to pass on after one more came. Raises `BadStream` if the answer is too long."""
        if not isinstance(event, TextDelta | ReasoningDelta):
            return (*self.rest(), event)
        self._count += 1
        self._length += len(event.text)
        if self._length > _LONGEST_ANSWER:
            raise BadStream("the answer is longer than 4 MB")
        return (event,) if self._count <= _SINGLE_PIECES else self._hold(event)

    def rest(self) -> Iterable[Event]:
        """Return the events for the text that is held back, at the end of the stream."""
        if not self._held:
            return ()
        joined = self._kind("".join(self._held))
        self._held.clear()
        self._held_length = 0
        return (joined,)

    def _hold(self, event: TextDelta | ReasoningDelta) -> Iterable[Event]:
        before = self.rest() if type(event) is not self._kind else ()
        self._kind = type(event)
        self._held.append(event.text)
        self._held_length += len(event.text)
        return (*before, *self.rest()) if self._held_length >= _LONG_PIECE else before
