"""The health of an agent: whether its windows stay full, and whether its prompt cache has collapsed."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..window import Window, WindowStats
from .prompt_cache import CacheUse, CacheWatch

# In percent of the token budget. A window above this is full.
FULL_WINDOW_PERCENT = 95

# Only this many trims in a row that leave a window full count as a problem, because one large exchange causes one such
# trim, and a question about it another. Turns are not counted, because every window exceeds 95 % before a trim, and a
# large one does so for many turns.
_FUTILE_TRIM_LIMIT = 3


@dataclass(frozen=True, slots=True)
class Health:
    """The current problems: the statistics of a window that stays full, and a collapse of the prompt cache."""

    full_window: WindowStats | None = None
    collapse: CacheUse | None = None

    def list_issues(self) -> list[dict[str, Any]]:
        """Return the problems as plain values: names and numbers, but no conversation text."""
        issues: list[dict[str, Any]] = []
        if self.full_window:
            numbers = {"tokens": self.full_window.current_tokens, "protected_tokens": self.full_window.protected_tokens}
            issues.append({"issue": "window_stays_full", **numbers})
        if self.collapse:
            numbers = {"expected_tokens": self.collapse.expected, "cached_tokens": self.collapse.cached_tokens}
            issues.append({"issue": "cache_lost", "changed": [*self.collapse.changed_parts], **numbers})
        return issues


class HealthWatch:
    """Finds problems of an agent's windows in its turns. `cache_watch` finds those of the prompt cache."""

    def __init__(self) -> None:
        self.cache_watch = CacheWatch()
        self._futile_trims: WeakKeyDictionary[Window, int] = WeakKeyDictionary()

    def on_turn(self, window: Window, before: WindowStats, after: WindowStats) -> None:
        """Evaluate an ended turn by the statistics of its window before and after it."""
        if after.utilization <= FULL_WINDOW_PERCENT:
            self._futile_trims.pop(window, None)
        elif after.trims > before.trims:
            self._futile_trims[window] = self._futile_trims.get(window, 0) + 1

    def get_health(self) -> Health:
        """Return the current problems."""
        stats = [window.stats() for window, trims in self._futile_trims.items() if trims >= _FUTILE_TRIM_LIMIT]
        full = [each for each in stats if each.utilization > FULL_WINDOW_PERCENT]
        return Health(full[0] if full else None, self.cache_watch.collapse)
