"""What a window holds besides its exchanges, as one immutable value."""

from typing import NamedTuple

from .messages import Message
from .summary import Passage


class Evicted(NamedTuple):
    """What a window has evicted since it began; `trims` is the number of trims."""

    exchanges: int = 0
    messages: int = 0
    tokens: int = 0
    trims: int = 0

    def and_a_trim(self, exchanges: int, messages: int, tokens: int) -> Evicted:
        """Return the figures with one more trim."""
        return Evicted(self.exchanges + exchanges, self.messages + messages, self.tokens + tokens, self.trims + 1)


class State(NamedTuple):
    """The system message, the figures of evicted exchanges, and the evicted exchanges that wait for a summary."""

    system: Message | None = None
    evicted: Evicted = Evicted()
    unsummarized: Passage | None = None
