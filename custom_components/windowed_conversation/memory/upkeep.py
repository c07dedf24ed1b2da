"""What the writer does while its queue is empty: indexing, reading the figures, and the daily work."""

from collections.abc import Callable
import math
import time

from .errors import MemoryUnavailable
from .memory import Memory
from .records import Figures

_DAY = 86_400.0
# Reading the figures reads the whole file: it takes at most this share of the time.
_SHARE = 0.01


class Upkeep:
    """Decides when something is due. Times are seconds on the monotonic clock."""

    def __init__(self, daily: Callable[[Memory], None]) -> None:
        self._daily = daily
        self._daily_at = -math.inf
        self._look_at = math.inf
        self._not_before = -math.inf
        self._may_be_unindexed = False

    @property
    def due_at(self) -> float:
        """When the next work is due."""
        return -math.inf if self._may_be_unindexed else min(self._daily_at, self._look_at)

    def on_opened(self) -> None:
        """Handle that the file was opened, and may be another one."""
        self._may_be_unindexed = True
        self._look_at = -math.inf

    def on_changed(self) -> None:
        """Handle that the figures have changed."""
        self._look_at = min(self._look_at, self._not_before)

    def look_now(self) -> None:
        """Make reading the file due now."""
        self._look_at = -math.inf

    def repeat(self) -> None:
        """Make the daily work due now."""
        self._daily_at = -math.inf

    def postpone(self) -> None:
        """Handle that there is no file."""
        self._daily_at, self._look_at, self._may_be_unindexed = time.monotonic() + _DAY, math.inf, False

    def run(self, memory: Memory) -> Figures | None:
        """Do one thing that is due, and return the figures if it read them."""
        if self._may_be_unindexed:
            self._may_be_unindexed = memory.reindex()
            if not self._may_be_unindexed:
                self.on_changed()
            return None
        if self._daily_at <= time.monotonic():
            self._daily_at = time.monotonic() + _DAY
            try:
                self._daily(memory)
            except MemoryUnavailable:
                self.repeat()
                raise
            self.on_changed()
            return None
        began = time.monotonic()
        figures = memory.figures()
        ended = time.monotonic()
        self._look_at, self._not_before = math.inf, ended + (ended - began) / _SHARE
        # many rows were loaded at once
        self._may_be_unindexed = figures.unindexed > 0
        return figures
