"""The state of a memory, and the counts of its writer."""

from dataclasses import dataclass
from pathlib import Path

from .errors import Reason
from .records import Figures


@dataclass(frozen=True, slots=True)
class State:
    """Why memory is off (None if it is on), where a damaged file is kept, and the figures, or None if not read yet."""

    reason: Reason | None = None
    set_aside: Path | None = None
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Records that are queued, written, dropped because the queue was full, or refused because they cannot be stored.

    `failures` counts failed tries, `error` is the type of the last error, and `written_at` the time of the last commit.
    """

    queued: int = 0
    written: int = 0
    dropped: int = 0
    refused: int = 0
    failures: int = 0
    error: str | None = None
    written_at: float | None = None

    @property
    def lost(self) -> int:
        """How many were not kept."""
        return self.dropped + self.refused
