"""What a window is made of at rest, to be kept somewhere and made into a window again.

How it is written down is the codecs' business, when is the caller's.
"""

from typing import NamedTuple

from .exchange import Exchange
from .messages import Message
from .stats import Evicted


class Snapshot(NamedTuple):
    """A window between two turns; all of it is immutable, so that it can be read in another thread."""

    conversation_id: str
    system: Message | None = None
    exchanges: tuple[Exchange, ...] = ()
    evicted: Evicted = Evicted()
