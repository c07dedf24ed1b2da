"""What the limit on the number of windows has cost: those that it let go too early. Letting go is the registry's."""

from collections.abc import Hashable
from math import inf

# Home Assistant's own session of a conversation lasts so many seconds after its last turn: a window that goes before
# that may be in the middle of its conversation.
_STILL_GOING_ON = 300

# So many keys are remembered, the newest ones: five times as many as there are windows by default.
_MOST_KEYS = 500


class Overflow[K: Hashable]:
    """The keys whose windows went because there were too many. All times are in seconds on the registry's clock."""

    __slots__ = ("_missed", "_went")

    def __init__(self) -> None:
        # When each went, in that order; and when it showed that this was too early.
        self._went: dict[K, float] = {}
        self._missed: dict[K, float] = {}

    def let_go(self, key: K, last_used: float, now: float) -> None:
        """Take note of a window that goes."""
        _put(self._went, key, now)
        if now - last_used < _STILL_GOING_ON:
            _put(self._missed, key, now)

    def wanted(self, key: K, now: float, within: float) -> None:
        """Take note of a key that begins anew: one that went less than `within` seconds ago had gone too early."""
        if now - self._went.pop(key, -inf) < within:
            _put(self._missed, key, now)

    def too_early(self, now: float, within: float) -> int:
        """Return how many windows went too early, as it showed in the last `within` seconds."""
        for key in [key for key, at in self._missed.items() if now - at >= within]:
            del self._missed[key]
        return len(self._missed)

    def clear(self) -> None:
        """Begin anew."""
        self._went.clear()
        self._missed.clear()


def _put[K: Hashable](times: dict[K, float], key: K, now: float) -> None:
    times.pop(key, None)
    times[key] = now
    if len(times) > _MOST_KEYS:
        del times[next(iter(times))]
