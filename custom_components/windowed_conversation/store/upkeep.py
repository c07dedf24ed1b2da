"""The writing thread's work while the queue is empty, and its times: indexing, reading figures, erasing, daily work."""

from collections.abc import Callable
import math
import time
from typing import Any

from .errors import StoreUnavailable

# In seconds.
_DAY = 86_400.0
_ERASE_AGAIN = 60.0
# How long nothing was written before a part of the index is merged, so that no turn shares the disk with that.
_QUIET = 2.0
# Reading the figures reads the whole file: it takes at most this share of the time.
_SHARE = 0.01


# The open store with all of its rooms. It can `add` records in one transaction, `reindex` and `merge` a part of its
# indexes, tell its `figures` and `rows_set_aside`, `erase` the bytes of deleted rows, `checkpoint` and `close`. Each
# raises `StoreUnavailable`.
type OpenStore = Any


class Upkeep:
    """Decides what is due. Times are seconds on the monotonic clock."""

    def __init__(self, daily: Callable[[OpenStore], None]) -> None:
        self._daily = daily
        self._daily_at = -math.inf
        self._look_at = math.inf
        self._not_before = -math.inf
        self._erase_at = self._merge_at = math.inf
        self._may_be_unindexed = False

    @property
    def due_at(self) -> float:
        """When the next work is due."""
        if self._may_be_unindexed:
            return -math.inf
        return min(self._daily_at, self._look_at, self._erase_at, self._merge_at)

    def on_opened(self) -> None:
        """Handle that the file was opened, and may be another one."""
        self._may_be_unindexed = True
        self._look_at = -math.inf

    def on_changed(self) -> None:
        """Handle that the figures have changed."""
        self._look_at = min(self._look_at, self._not_before)
        if self._merge_at < math.inf:
            self._merge_at = time.monotonic() + _QUIET

    def look_now(self) -> None:
        """Make reading the file due now."""
        self._look_at = -math.inf

    def repeat(self) -> None:
        """Make the daily work due now."""
        self._daily_at = -math.inf

    def postpone(self) -> None:
        """Handle that there is no file."""
        self._daily_at, self._look_at, self._may_be_unindexed = time.monotonic() + _DAY, math.inf, False
        self._erase_at = self._merge_at = math.inf

    def run(self, opened: OpenStore) -> Any:
        """Do one thing that is due, and return the figures if it read them."""
        if self._may_be_unindexed:
            self._may_be_unindexed = opened.reindex()
            if not self._may_be_unindexed:
                self.on_changed()
        elif self._daily_at <= time.monotonic():
            self._daily_at = time.monotonic() + _DAY
            try:
                self._daily(opened)
            except StoreUnavailable:
                self.repeat()
                raise
            self._merge_at = time.monotonic() + _QUIET if opened.merge(anew=True) else math.inf
            self.on_changed()
        elif self._merge_at <= time.monotonic():
            self._merge_at = time.monotonic() if opened.merge(anew=False) else math.inf
        elif self._erase_at <= time.monotonic():
            self._erase_at = math.inf
            opened.erase()
            self.look_now()
        else:
            return self._read(opened)
        return None

    def _read(self, opened: OpenStore) -> Any:
        began = time.monotonic()
        figures = opened.figures()
        ended = time.monotonic()
        self._look_at, self._not_before = math.inf, ended + (ended - began) / _SHARE
        # many rows were loaded at once
        self._may_be_unindexed = figures.unindexed > 0
        if figures.unerased and self._erase_at == math.inf:
            self._erase_at = ended + _ERASE_AGAIN
        return figures
