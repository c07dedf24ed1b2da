"""Problems of an agent's windows, as its turns show them: a window that stays full, a cold cache."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..window import Window, WindowStats
from .cache_health import CacheUse, CacheWatch

# In percent of the budget.
FULL = 95
# This many trims in a row that leave a window full are no accident: one large exchange makes one, a question about it
# another. Turns are not counted, because every window climbs over 95 % before a trim, a large one in many turns.
_TRIMS_IN_VAIN = 3


@dataclass(frozen=True, slots=True)
class Health:
    """The problems: the figures of a window that stays full, and a collapse of the prompt cache."""

    full: WindowStats | None = None
    collapse: CacheUse | None = None

    def issues(self) -> list[dict[str, Any]]:
        """Return the issues that the problems raise, as plain values: words and figures, nothing that was said."""
        issues: list[dict[str, Any]] = []
        if self.full:
            figures = {"tokens": self.full.current_tokens, "protected_tokens": self.full.protected_tokens}
            issues.append({"issue": "window_stays_full", **figures})
        if self.collapse:
            figures = {"expected_tokens": self.collapse.expected, "cached_tokens": self.collapse.cached}
            issues.append({"issue": "cache_lost", "changed": [*self.collapse.changed], **figures})
        return issues


class HealthWatch:
    """The problems that an agent's turns show of its windows; `cache` has those of the prompt cache."""

    def __init__(self) -> None:
        self.cache = CacheWatch()
        self._trims_in_vain: WeakKeyDictionary[Window, int] = WeakKeyDictionary()

    def on_turn(self, window: Window, before: WindowStats, after: WindowStats) -> None:
        """Learn from an ended turn, by the figures of its window before and after it."""
        if after.utilization <= FULL:
            self._trims_in_vain.pop(window, None)
        elif after.trims > before.trims:
            self._trims_in_vain[window] = self._trims_in_vain.get(window, 0) + 1

    def health(self) -> Health:
        """Return the current problems."""
        full = [window.stats() for window, trims in self._trims_in_vain.items() if trims >= _TRIMS_IN_VAIN]
        return Health(
            full=next((stats for stats in full if stats.utilization > FULL), None),
            collapse=self.cache.collapse,
        )
