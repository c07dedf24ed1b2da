"""What is known of a memory and of what it was given."""

from dataclasses import dataclass
from pathlib import Path

from .errors import Reason
from .records import Figures


@dataclass(frozen=True, slots=True)
class State:
    """Why memory is off, None if it is not; where a damaged file is kept; how much there is, None if not yet known."""

    reason: Reason | None = None
    set_aside: Path | None = None
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the records: waiting, written, dropped as the queue was full, refused as they cannot be stored.

    `failures` counts tries that failed, `error` is the kind of the last one, `written_at` when the last commit was.
    """

    queued: int = 0
    written: int = 0
    dropped: int = 0
    refused: int = 0
    failures: int = 0
    error: str | None = None
    written_at: float | None = None
