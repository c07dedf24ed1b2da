"""Windows that were dropped too early because there were too many."""

from collections.abc import Hashable
from math import inf

# In seconds. Home Assistant's own conversation sessions last this long after their last turn, so the conversation of a
# window that is dropped earlier may still be going on.
_STILL_GOING_ON = 300

# Only the newest keys are kept: five times as many as there are windows by default.
_MOST_KEYS = 500


class Overflow[K: Hashable]:
    """The keys of windows that were dropped because there were too many. Times are seconds on the registry's clock."""

    __slots__ = ("_dropped_at", "_missed")

    def __init__(self) -> None:
        # When each window was dropped, in that order; and when that turned out to be too early.
        self._dropped_at: dict[K, float] = {}
        self._missed: dict[K, float] = {}

    def on_dropped(self, key: K, last_used: float, now: float) -> None:
        """Record a window that is dropped."""
        _put(self._dropped_at, key, now)
        if now - last_used < _STILL_GOING_ON:
            _put(self._missed, key, now)

    def wanted(self, key: K, now: float, within: float) -> None:
        """Record the start of a window. If its key was dropped less than `within` seconds ago, that was too early."""
        if now - self._dropped_at.pop(key, -inf) < within:
            _put(self._missed, key, now)

    def too_early(self, now: float, within: float) -> int:
        """Return the number of windows that turned out to be dropped too early in the last `within` seconds."""
        for key in [key for key, at in self._missed.items() if now - at >= within]:
            del self._missed[key]
        return len(self._missed)

    def clear(self) -> None:
        """Forget all keys."""
        self._dropped_at.clear()
        self._missed.clear()


def _put[K: Hashable](times: dict[K, float], key: K, now: float) -> None:
    times.pop(key, None)
    times[key] = now
    if len(times) > _MOST_KEYS:
        del times[next(iter(times))]
