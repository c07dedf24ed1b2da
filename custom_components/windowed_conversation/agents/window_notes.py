"""The notes of an agent on its windows, which outlive a turn and a reload, but not a restart."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..home.core.home import NO_STATES_TEXT, StatesText
from ..window import Window, WindowStats

# In percent of the token budget. A window above this is full.
FULL_WINDOW_PERCENT = 95

# Only this many trims in a row that leave a window full count as a problem, because one large exchange causes one such
# trim, and a question about it another. Turns are not counted, because every window exceeds 95 % before a trim, and a
# large one does so for many turns.
_FUTILE_TRIM_LIMIT = 3


@dataclass(slots=True)
class WindowNotes:
    """Notes of an agent on one of its windows."""

    # The states of the home that its last turn listed.
    listed_states: StatesText = NO_STATES_TEXT
    # The number of trims in a row that have left it full.
    futile_trims: int = 0


class NotesByWindow(WeakKeyDictionary[Window, WindowNotes]):
    """The notes of an agent on its windows, which say whether one of them stays full."""

    def on_turn(self, window: Window, before: WindowStats, after: WindowStats) -> None:
        """Evaluate an ended turn by the statistics of its window before and after it."""
        if after.utilization <= FULL_WINDOW_PERCENT and window in self:
            self[window].futile_trims = 0
        elif after.utilization > FULL_WINDOW_PERCENT and after.trims > before.trims:
            self.setdefault(window, WindowNotes()).futile_trims += 1

    def find_full_window(self) -> WindowStats | None:
        """Return the statistics of a window that stays full, or None."""
        stats = [window.stats() for window, notes in self.items() if notes.futile_trims >= _FUTILE_TRIM_LIMIT]
        return next((each for each in stats if each.utilization > FULL_WINDOW_PERCENT), None)

    def list_issues(self) -> list[dict[str, Any]]:
        """Return the problems as plain values: names and numbers, but no conversation text."""
        if (full := self.find_full_window()) is None:
            return []
        return [
            {"issue": "window_stays_full", "tokens": full.current_tokens, "protected_tokens": full.protected_tokens}
        ]
