"""The recurrence of a reminder, as the part of iCalendar's rules (RFC 5545) that people say."""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from itertools import count
from typing import Self

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEK_DAYS = 7
_YEAR_MONTHS = 12
MAX_INTERVAL = 99


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
        """Return the first time after `start` and after `after`, or None after the last one. All times are local."""
        try:
            for day in self._iter_days(start.date(), after.date()):
                found = datetime.combine(day, start.time())
                if self.until is not None and day > self.until:
                    return None
                if found > max(start, after):
                    return found
        except OverflowError, ValueError:
            # Python knows no year after 9999
            pass
        return None

    def find_first(self, at: time, now: datetime) -> datetime | None:
        """Return the first time of day `at` after now, if the recurrence begins today."""
        if self.weekdays:
            # this week is the first one, for each interval
            days = (now.date() + timedelta(days=each) for each in range(_WEEK_DAYS + 1))
            times = (datetime.combine(day, at) for day in days if day.weekday() in self.weekdays)
            return next((each for each in times if each > now), None)
        today = datetime.combine(now.date(), at)
        return today if today > now else self.find_next(today, now)

    def _iter_days(self, start: date, after: date) -> Iterator[date]:
        if self.frequency in (Frequency.MONTHS, Frequency.YEARS):
            step = self.interval * (_YEAR_MONTHS if self.frequency is Frequency.YEARS else 1)
            for number in count(1):
                year, month = divmod(start.year * _YEAR_MONTHS + start.month - 1 + number * step, _YEAR_MONTHS)
                yield date(year, month + 1, min(self.day or start.day, monthrange(year, month + 1)[1]))
        period = self.interval * (_WEEK_DAYS if self.frequency is Frequency.WEEKS else 1)
        first = start - timedelta(days=start.weekday()) if self.frequency is Frequency.WEEKS else start
        # whole periods that have passed are skipped
        first += timedelta(days=max(0, (after - first).days // period - 1) * period)
        offsets = self.weekdays or (start.weekday(),)
        for number in count():
            begin = first + timedelta(days=number * period)
            if self.frequency is Frequency.DAYS:
                yield begin
            else:
                yield from (begin + timedelta(days=each) for each in sorted(offsets))
