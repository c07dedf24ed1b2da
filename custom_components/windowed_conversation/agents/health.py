"""The health of an agent's windows: whether one of them stays full."""

from typing import Any

from ..window import Window, WindowStats
from .window_notes import NotesByWindow, WindowNotes

# In percent of the token budget. A window above this is full.
FULL_WINDOW_PERCENT = 95

# Only this many trims in a row that leave a window full count as a problem, because one large exchange causes one such
# trim, and a question about it another. Turns are not counted, because every window exceeds 95 % before a trim, and a
# large one does so for many turns.
_FUTILE_TRIM_LIMIT = 3


class HealthWatch:
    """Finds the windows of an agent that stay full."""

    def __init__(self, notes_by_window: NotesByWindow) -> None:
        self._notes_by_window = notes_by_window

    def on_turn(self, window: Window, before: WindowStats, after: WindowStats) -> None:
        """Evaluate an ended turn by the statistics of its window before and after it."""
        if after.utilization > FULL_WINDOW_PERCENT:
            if after.trims > before.trims:
                self._notes_by_window.setdefault(window, WindowNotes()).futile_trims += 1
        elif (notes := self._notes_by_window.get(window)) is not None:
            notes.futile_trims = 0

    def find_full_window(self) -> WindowStats | None:
        """Return the statistics of a window that stays full, or None."""
        all_notes = self._notes_by_window.items()
        stats = [window.stats() for window, notes in all_notes if notes.futile_trims >= _FUTILE_TRIM_LIMIT]
        return next((each for each in stats if each.utilization > FULL_WINDOW_PERCENT), None)

    def list_issues(self) -> list[dict[str, Any]]:
        """Return the problems as plain values: names and numbers, but no conversation text."""
        full = self.find_full_window()
        if full is None:
            return []
        numbers = {"tokens": full.current_tokens, "protected_tokens": full.protected_tokens}
        return [{"issue": "window_stays_full", **numbers}]
