"""The recurrence of a reminder, as the part of iCalendar's rules (RFC 5545) that people say."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Self

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEK_DAYS = 7
_YEAR_MONTHS = 12
MAX_INTERVAL = 99
_MAX_DAYS = (MAX_INTERVAL + 1) * 366


class Frequency(StrEnum):
    """The unit of a recurrence."""

    DAYS = "DAILY"
    WEEKS = "WEEKLY"
    MONTHS = "MONTHLY"
    YEARS = "YEARLY"


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A recurrence such as "every two weeks on Monday until Christmas"."""

    frequency: Frequency
    interval: int = 1
    # Numbers of weekdays, of which Monday is 0; for weeks. Empty means the weekday of the first time.
    weekdays: tuple[int, ...] = ()
    # For months and years. A month without this day has it on its last day.
    day: int | None = None
    # The last day.
    until: date | None = None

    @classmethod
    def parse(cls, rule: str) -> Self:
        """Return the recurrence of a rule that `__str__` has written. Raises `ValueError` or `KeyError` for others."""
        parts = dict(part.split("=", 1) for part in rule.split(";"))
        return cls(
            Frequency(parts["FREQ"]),
            min(max(int(parts.get("INTERVAL", 1)), 1), MAX_INTERVAL),
            tuple([_WEEKDAYS.index(each) for each in filter(None, parts.get("BYDAY", "").split(","))]),
            int(parts["BYMONTHDAY"]) if "BYMONTHDAY" in parts else None,
            date.fromisoformat(parts["UNTIL"]) if "UNTIL" in parts else None,
        )

    def __str__(self) -> str:
        """Return the rule of iCalendar."""
        parts = [f"FREQ={self.frequency}", f"INTERVAL={self.interval}"]
        if self.weekdays:
            parts.append(f"BYDAY={','.join(_WEEKDAYS[each] for each in self.weekdays)}")
        if self.day is not None:
            parts.append(f"BYMONTHDAY={self.day}")
        if self.until is not None:
            parts.append(f"UNTIL={self.until:%Y%m%d}")
        return ";".join(parts)

    def find_next(self, start: datetime, after: datetime) -> datetime | None:
        """Return the first time from `start` on that is after `after`, or None after the last one. All are local."""
        begin, until = max(start, after).date(), self.until or date.max
        for ahead in range(min(_MAX_DAYS, (until - begin).days + 1)):
            day = begin + timedelta(days=ahead)
            if self._includes(day, start.date()) and (found := datetime.combine(day, start.time())) > after:
                return found
        return None

    def _includes(self, day: date, start: date) -> bool:
        if self.frequency is Frequency.DAYS:
            return not (day - start).days % self.interval
        if self.frequency is Frequency.WEEKS:
            weeks = (day - start + timedelta(days=start.weekday())).days // _WEEK_DAYS
            return not weeks % self.interval and day.weekday() in (self.weekdays or (start.weekday(),))
        months = (day.year - start.year) * _YEAR_MONTHS + day.month - start.month
        step = self.interval * (_YEAR_MONTHS if self.frequency is Frequency.YEARS else 1)
        return not months % step and day.day == min(self.day or start.day, monthrange(day.year, day.month)[1])
