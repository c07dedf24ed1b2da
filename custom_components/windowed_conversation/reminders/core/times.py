"""The times that a sentence names: days, hours, durations, recurrences, and persons who come home or leave."""

from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import partial
from operator import itemgetter
import re
from typing import Any, NamedTuple

from ...turn.names import SENTENCE_MARKS
from .recurrence import MAX_INTERVAL, Frequency, Recurrence

_WEEK_DAYS = 7
_MAX_DAYS_AHEAD = 9 * 366
_NOON = 12
_DAY_HOURS = 24
_HOUR_MINUTES = 60
_DAY_MINUTES = 1_440
# "At nine at night" is in the evening, "at two at night" is not.
_FIRST_NIGHT_HOUR = 6
_MAX_SPAN_MINUTES = 366 * 1_440
_YEAR_MONTHS = 12
_MAX_SPAN_MONTHS = 9 * _YEAR_MONTHS
_LEAP_YEAR = 2000

_MINUTES_BY_UNIT = {"minutes": 1, "hours": 60, "days": 1_440, "weeks": 10_080}
_MONTHS_BY_UNIT = {"months": 1, "years": _YEAR_MONTHS}
_FREQUENCY_BY_UNIT = {each.name.casefold(): each for each in Frequency}
_UNITS = (*_MINUTES_BY_UNIT, *_MONTHS_BY_UNIT)
_PARTS = ("am", "pm", "night")
# The parts of a time whose words belong to those of a recurrence.
_REPEATED = frozenset({"weekday", "day", "until", "recurrence"})
# The parts without which a reminder has no time.
_DUE = frozenset({"clock", "minutes", "months", "who"})
_DAILY = Recurrence(Frequency.DAYS)
_BY_DAY = (Frequency.MONTHS, Frequency.YEARS)
_WORKDAYS, _WEEKEND = (0, 1, 2, 3, 4), (5, 6)
_MARKS = f"{SENTENCE_MARKS}?？「」"
_GAP_PATTERN = re.compile(rf"[{_MARKS}]*")


class Clock(NamedTuple):
    """An hour and a minute. An hour from 1 to 11 that is not exact may be in the morning or in the evening."""

    hour: int
    minute: int
    is_exact: bool


class NamedTime(NamedTuple):
    """The parts of a time that a sentence names. None is named."""

    days_ahead: int | None = None
    weekday: int | None = None
    # Whether a weekday that is today's is the one in a week.
    is_next: bool = False
    # The month, or 0 for any, and the day.
    day: tuple[int, int] | None = None
    clock: Clock | None = None
    # "am", "pm" or "night".
    part: str | None = None
    # A duration from now in minutes, or in months.
    minutes: int | None = None
    months: int | None = None
    recurrence: Recurrence | None = None
    # The recurrence in the user's words.
    repeats: str = ""
    # The month and the day on which the recurrence ends.
    until: tuple[int, int] | None = None
    # The name of the person who arrives or leaves, empty for the speaker.
    who: str | None = None
    is_arrival: bool = False
    # The sign of the zone, or empty for home. See `ReminderSentences`.
    zone: str = ""

    @property
    def is_nth_weekday(self) -> bool:
        """Whether it is a weekday of a month, such as "the first Monday of every month", which no recurrence is."""
        return self.weekday is not None and self.recurrence is not None and self.recurrence.frequency in _BY_DAY

    @property
    def is_span(self) -> bool:
        """Whether it is a duration from now."""
        return self.minutes is not None or self.months is not None

    def with_parts_of(self, other: NamedTime) -> NamedTime:
        """Return this time with the parts that another one names instead of its own."""
        named = other._asdict().items()
        return self._replace(**{name: value for name, value in named if value != self._field_defaults[name]})

    def find_day(self, today: date) -> date | None:
        """Return the next such day, today included, or None if it names no day of the calendar."""
        if self.day is not None:
            return _find_day(*self.day, today)
        if self.months is not None:
            return _add_months(today, self.months)
        if self.days_ahead is not None or self.minutes is not None:
            day = today + timedelta(days=self.days_ahead or 0, minutes=self.minutes or 0)
            # "next week on Tuesday"
            return day if self.weekday is None else day + timedelta(days=self.weekday - day.weekday())
        if self.weekday is not None:
            ahead = (self.weekday - today.weekday()) % _WEEK_DAYS
            return today + timedelta(days=_WEEK_DAYS if self.is_next and not ahead else ahead)
        return None


class TimeQuestion(NamedTuple):
    """The part of a time that has to be asked: whether an hour is in the morning, or any time if `hour` is None."""

    hour: int | None = None


class DueTime(NamedTuple):
    """A time at which a reminder is due, with the names of its fields in `Reminder`."""

    at: datetime | None = None
    instant: float | None = None
    recurrence: Recurrence | None = None
    repeats: str = ""


def resolve_time(named: NamedTime, now: datetime) -> DueTime | TimeQuestion:
    """Return the time of a sentence, or the question about it. `now` has a time zone."""
    local = now.replace(tzinfo=None)
    if named.clock is None and named.minutes is not None and named.minutes % _DAY_MINUTES:
        return DueTime(instant=now.timestamp() + named.minutes * 60)
    if named.clock is None:
        day = named.find_day(local.date()) if named.is_span else None
        return TimeQuestion() if day is None else DueTime(datetime.combine(day, time(local.hour, local.minute)))
    recurrence, minute = _complete_recurrence(named, local.date()), named.clock.minute
    times = [_find_time(named, recurrence, time(hour, minute), local) for hour in _list_hours(named.clock, named.part)]
    possible = [each for each in times if each is not None]
    # "at seven" in the afternoon is in the evening
    is_plain = recurrence is None and named.find_day(local.date()) is None
    possible = [each for each in possible if is_plain and each.date() == local.date()] or possible
    if len(possible) > 1:
        return TimeQuestion(named.clock.hour)
    return DueTime(possible[0], None, recurrence, named.repeats) if possible else TimeQuestion()


def _list_hours(clock: Clock, part: str | None) -> list[int]:
    hour = clock.hour % _DAY_HOURS
    if hour > _NOON or (clock.is_exact and part is None):
        return [hour]
    if part == "am" or (part == "night" and hour % _NOON < _FIRST_NIGHT_HOUR):
        return [hour % _NOON]
    if part is not None:
        return [hour % _NOON + _NOON]
    return [hour] if hour in (0, _NOON) else [hour, hour + _NOON]


def _complete_recurrence(named: NamedTime, today: date) -> Recurrence | None:
    recurrence = named.recurrence
    if recurrence is None:
        return None
    if named.until is not None:
        recurrence = replace(recurrence, until=_find_day(*named.until, today))
    if recurrence.frequency is Frequency.WEEKS and named.weekday is not None and not recurrence.weekdays:
        return replace(recurrence, weekdays=(named.weekday,))
    if recurrence.frequency in _BY_DAY:
        return replace(recurrence, day=named.day[1] if named.day else today.day)
    return recurrence


def _find_time(named: NamedTime, recurrence: Recurrence | None, at: time, now: datetime) -> datetime | None:
    """Return the first time after now, or None if the named day has none."""
    day, is_one_day = named.find_day(now.date()), named.is_span or (named.day, named.days_ahead) != (None, None)
    found = datetime.combine(day or now.date(), at)
    if recurrence is not None and not (is_one_day and found > now):
        # its interval begins with the first time
        return replace(recurrence, interval=1).find_next(datetime.combine(now, at), now)
    if found > now:
        return found
    return None if is_one_day else found + timedelta(days=1 if day is None else _WEEK_DAYS)


def _add_months(day: date, months: int) -> date:
    """Return the same day of a later month, or the month's last day if it has no such day."""
    year, month = divmod(day.year * _YEAR_MONTHS + day.month - 1 + months, _YEAR_MONTHS)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _find_day(month: int, day: int, today: date) -> date | None:
    """Return the next such day, today included, of any month if it is 0. 29 February may be years ahead."""
    days = (today + timedelta(days=ahead) for ahead in range(_MAX_DAYS_AHEAD))
    return next((each for each in days if each.day == day and month in (0, each.month)), None)


# The parts of a time that a phrase names, by the names of the fields of `NamedTime`, or None if it names none.
type _Parts = dict[str, Any] | None
type _Reader = Callable[[re.Match[str]], _Parts]


class TimeParser:
    """Finds times in the sentences of a language.

    `data` is the part of the language's file about reminders, and `past` the part about times in the past, with which
    it shares the names of weekdays and months and the numbers. `edge` is the pattern for the end of a word.
    """

    def __init__(self, data: Mapping[str, Any], past: Mapping[str, Any], edge: str) -> None:
        self._edge = edge
        clock_numbers = _read_numbers(data["numbers"]) | data["tens"]
        day_numbers = _read_numbers(data.get("ordinals", "")) | clock_numbers
        self._numbers = _read_numbers(past["numbers"]) | day_numbers
        self._at = data.get("at", "")
        self._own_word = re.compile(data["i"], re.IGNORECASE)
        self._names = {
            "n": _name_number("n", self._numbers),
            **{name: _name_number(name, clock_numbers) for name in ("h", "m")},
            "d": _name_number("d", day_numbers),
            "weekday": _name_groups("w", data.get("weekdays", past["weekday_names"]).split()),
            "month": _name_groups("o", data.get("months", past["month_names"]).split()),
            "unit": "|".join(f"(?P<{unit}>{data['units'][unit]})" for unit in _UNITS if unit in data["units"]),
            "zone": "(?P<zone>[\ue000-\uf8ff])",
        }
        readers: list[tuple[Iterable[str], _Reader]] = [
            *[([each], partial(self._read_clock, offset)) for each, offset in data["clock"].items()],
            *[([each], partial(_read_days, days)) for each, days in data["days"].items()],
            *[([each], lambda _match, parts=parts: parts) for each, parts in _list_fixed_phrases(data).items()],
            (data["in"], self._read_duration),
            (data["date"], self._read_day),
            (data.get("until", ()), partial(self._read_day, name="until")),
            (data["on_weekday"], _read_weekday),
            (data["next_weekday"], partial(_read_weekday, is_next=True)),
            (data["every"], self._read_recurrence),
            (data["arrives"], partial(self._read_place, True)),
            (data["leaves"], partial(self._read_place, False)),
        ]
        self._phrases = [(self._compile(each), read) for patterns, read in readers for each in patterns]
        self._fillers = self._compile(data["fillers"])
        self._connectors = self._compile(data["connectors"])
        ends = f"{self._fillers.pattern}|{self._connectors.pattern}"
        self._trailing = re.compile(rf"{r'(?<!\w)' if edge else ''}(?:{ends})$", re.IGNORECASE)
        self._last_filler = re.compile(rf"\W+(?:{self._fillers.pattern})$", re.IGNORECASE)
        self._word_start = re.compile(r"\b(?=\w)" if edge else r"(?=\w)")

    def find_around(self, text: str) -> tuple[NamedTime, str]:
        """Return the time that is named before and after a task, and the task."""
        parts, start = self._scan(text, 0, has_connectors=True)
        end, after = len(text), len(text)
        if not parts.keys() & _DUE:
            places = [each.start() for each in self._word_start.finditer(text, start)][1:]
            found = [(place, *self._scan(text, place)) for place in places]
            # "to take the pills at eight in the kitchen"
            inside = [each for each in found if each[1].keys() & _DUE and not parts]
            for place, later, reached in [each for each in found if each[2] == len(text)] or inside:
                if later and (merged := _merge(parts, later)) is not None:
                    parts, end, after = merged, place, reached
                    break
        task = self._trailing.sub("", " ".join((text[start:end] + text[after:]).split()).strip(_MARKS))
        return _name_time(parts), task.strip(_MARKS)

    def find_only(self, text: str) -> NamedTime | None:
        """Return the time that a text names if it names nothing else, or None. "Seven" is "at seven"."""
        for said in (text.rstrip(_MARKS), f"{self._at} {text.rstrip(_MARKS)}"):
            parts, reached = self._scan(said, 0)
            if parts and reached >= len(said):
                return _name_time(parts)
        return None

    def drop_last_filler(self, text: str) -> str:
        """Return a sentence without a word such as "please" at its end."""
        return self._last_filler.sub("", text)

    def find_end(self, text: str) -> int:
        """Return the place where a sentence goes on after the time with which it begins, or 0."""
        parts, reached = self._scan(text, 0)
        return _skip_gap(text, reached) if parts else 0

    def names_time(self, text: str) -> bool:
        """Return whether a time of day, a duration, a day or a place is named anywhere in a text."""
        places = [each.start() for each in self._word_start.finditer(text)]
        return any((found := self._find_phrase(text, place)) and found[1].keys() - {"part"} for place in places)

    def find_recurrence(self, text: str, today: date) -> Recurrence | None:
        """Return the recurrence that is all of a text, or None."""
        named = self.find_only(text)
        return _complete_recurrence(named, today) if named is not None and named.clock is None else None

    def _scan(self, text: str, place: int, *, has_connectors: bool = False) -> tuple[dict[str, Any], int]:
        """Return the parts of the time that is named from a place on, and the place where that ends."""
        parts: dict[str, Any] = {}
        # the end of the last words about a recurrence, if only fillers such as "and" follow them
        last: int | None = None
        while True:
            end = place
            place = _skip_gap(text, place)
            found = self._find_phrase(text, place)
            if found is not None:
                is_repeated = bool(found[1].keys() & _REPEATED)
                words = text[place if last is None else last : found[0]].strip() if is_repeated else ""
                merged = _merge(parts, {**found[1], "repeats": words})
            if found is not None and merged is not None:
                parts, place, last = merged, found[0], found[0] if is_repeated else None
            elif filler := self._fillers.match(text, place):
                place = filler.end()
            elif has_connectors and (connector := self._connectors.match(text, place)):
                place = connector.end()
                if parts:
                    return parts, place
            else:
                return parts, end if place < len(text) else place

    def _find_phrase(self, text: str, place: int) -> tuple[int, dict[str, Any]] | None:
        """Return the end of the longest phrase at a place, and the parts of the time that it names."""
        matches = [(read, match) for pattern, read in self._phrases if (match := pattern.match(text, place))]
        found = [(match.end(), parts) for read, match in matches if (parts := read(match)) is not None]
        return max(found, key=itemgetter(0), default=None)

    def _compile(self, pattern: str) -> re.Pattern[str]:
        named = re.sub(r"\{([a-z]+)\}", lambda each: f"(?:{self._names[each[1]]})", pattern)
        return re.compile(f"(?:{named}){self._edge}", re.IGNORECASE)

    def _read_number(self, match: re.Match[str], name: str, default: int = 0) -> int:
        word = match.groupdict().get(name)
        if word is None:
            return default
        return int(word) if word.isdecimal() else self._numbers[word.casefold()]

    def _read_clock(self, offset: int | str, match: re.Match[str]) -> _Parts:
        """Return the clock of a phrase. `offset` are the minutes to add, or "-" for those that the phrase names."""
        hour, minute = self._read_number(match, "h"), self._read_number(match, "m")
        groups = match.groupdict()
        is_exact = any(groups.get(name) is not None for name in ("exact", "am", "pm"))
        if groups.get("am") or groups.get("pm"):
            hour = hour % _NOON + (_NOON if groups.get("pm") else 0)
        minutes = hour * _HOUR_MINUTES + (-minute if offset == "-" else minute + int(offset))
        if hour > _DAY_HOURS or minute >= _HOUR_MINUTES:
            return None
        hours, minute = divmod(minutes % _DAY_MINUTES, _HOUR_MINUTES)
        # half past twelve is not half past midnight
        hours = hours or (_NOON if hour == 1 else 0)
        return {"clock": Clock(hours, minute, is_exact)}

    def _read_duration(self, match: re.Match[str]) -> _Parts:
        unit, count = _get_unit(match), self._read_number(match, "n", 1)
        if unit in _MONTHS_BY_UNIT:
            months = count * _MONTHS_BY_UNIT[unit]
            return {"months": months} if 0 < months <= _MAX_SPAN_MONTHS else None
        minutes = count * _MINUTES_BY_UNIT.get(unit, 0) + self._read_number(match, "m")
        minutes += _MINUTES_BY_UNIT.get(unit, 0) // 2 if match.groupdict().get("half") else 0
        return {"minutes": minutes} if 0 < minutes <= _MAX_SPAN_MINUTES else None

    def _read_day(self, match: re.Match[str], name: str = "day") -> _Parts:
        month, day = _get_group(match, "o", -1) + 1 or self._read_number(match, "m"), self._read_number(match, "d")
        try:
            date(_LEAP_YEAR, month or 1, day)
        except ValueError:
            return None
        return {name: (month, day)}

    def _read_place(self, is_arrival: bool, match: re.Match[str]) -> _Parts:
        who, zone = match.groupdict().get("who") or "", match.groupdict().get("zone") or ""
        return {"who": "" if self._own_word.fullmatch(who) else who, "is_arrival": is_arrival, "zone": zone}

    def _read_recurrence(self, match: re.Match[str]) -> _Parts:
        interval = self._read_number(match, "n", 2 if match.groupdict().get("other") else 1)
        if not 0 < interval <= MAX_INTERVAL:
            return None
        if (weekday := _get_group(match, "w", -1)) >= 0:
            return {"recurrence": Recurrence(Frequency.WEEKS, interval, (weekday,)), **_read_part(match)}
        if match.groupdict().get("d"):
            # "every 15th"
            day = self._read_day(match)
            return day and {"recurrence": Recurrence(Frequency.MONTHS, interval), **day}
        frequency = _FREQUENCY_BY_UNIT.get(_get_unit(match))
        return {"recurrence": Recurrence(frequency, interval)} if frequency is not None else None


def _list_fixed_phrases(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the phrases whose words alone say everything, with the parts of the time that they name."""
    fixed: dict[str, dict[str, Any]] = {data[part]: {"part": part} for part in _PARTS if part in data}
    fixed |= {data["noon"]: {"clock": Clock(_NOON, 0, False)}, data["midnight"]: {"clock": Clock(0, 0, True)}}
    fixed |= {each: {"minutes": minutes} for each, minutes in data["durations"].items()}
    fixed[data["workdays"]] = {"recurrence": Recurrence(Frequency.WEEKS, 1, _WORKDAYS)}
    fixed[data["weekends"]] = {"recurrence": Recurrence(Frequency.WEEKS, 1, _WEEKEND)}
    for each, pattern in data["each"].items():
        fixed[pattern] = {"recurrence": Recurrence(_FREQUENCY_BY_UNIT.get(each, Frequency.DAYS))}
        fixed[pattern] |= {"part": each} if each in _PARTS else {}
    return fixed


def _merge(parts: dict[str, Any], more: dict[str, Any]) -> dict[str, Any] | None:
    """Return the parts of a time with those of the next phrase, or None if they do not belong together."""
    recurrence: Recurrence | None = parts.get("recurrence")
    if recurrence is not None and recurrence.weekdays and "weekday" in more:
        # "every Monday and Thursday"
        more = {**more, "recurrence": Recurrence(Frequency.WEEKS, weekdays=(more["weekday"],))}
        del more["weekday"]
    if recurrence is not None and "recurrence" in more:
        more = {**more, "recurrence": _combine(recurrence, more["recurrence"])}
        parts = {**parts, "recurrence": more["recurrence"] or recurrence}
    if any(parts.get(name, value) != value for name, value in more.items() if name != "repeats"):
        return None
    return {**parts, **more, "repeats": " ".join(filter(None, (parts.get("repeats"), more.get("repeats"))))}


def _combine(first: Recurrence, second: Recurrence) -> Recurrence | None:
    """Return "every two weeks" and "on Mondays" as one recurrence, or None if they are two."""
    weekdays = tuple(sorted({*first.weekdays, *second.weekdays}))
    if not weekdays or any(each.frequency is not Frequency.WEEKS and each != _DAILY for each in (first, second)):
        return None
    return Recurrence(Frequency.WEEKS, max(first.interval, second.interval), weekdays)


def _skip_gap(text: str, place: int) -> int:
    gap = _GAP_PATTERN.match(text, place)
    return gap.end() if gap else place


def _name_time(parts: dict[str, Any]) -> NamedTime:
    return NamedTime(**parts) if "recurrence" in parts else NamedTime(**parts)._replace(repeats="")


def _read_weekday(match: re.Match[str], *, is_next: bool = False) -> _Parts:
    return {"weekday": _get_group(match, "w"), **_read_part(match)} | ({"is_next": True} if is_next else {})


def _read_days(days: int, match: re.Match[str]) -> _Parts:
    return {"days_ahead": days, **_read_part(match)}


def _read_part(match: re.Match[str]) -> dict[str, str]:
    named = match.groupdict()
    return next(({"part": each} for each in _PARTS if named.get(each)), {})


def _read_numbers(words: str) -> dict[str, int]:
    numbered = enumerate(words.split(), 1)
    return {word.replace("_", " "): number for number, each in numbered for word in each.split("|")}


def _name_number(name: str, numbers: Mapping[str, int]) -> str:
    words = sorted(map(re.escape, numbers), key=len, reverse=True)
    return rf"(?P<{name}>\d{{1,3}}|{'|'.join(words)})"


def _name_groups(prefix: str, names: list[str]) -> str:
    return "|".join(f"(?P<{prefix}{number}>{name})" for number, name in enumerate(names))


def _get_group(match: re.Match[str], prefix: str, default: int = 0) -> int:
    named = match.groupdict().items()
    numbers = (int(name[1:]) for name, value in named if value and name[0] == prefix and name[1:].isdecimal())
    return next(numbers, default)


def _get_unit(match: re.Match[str]) -> str:
    return next((name for name, value in match.groupdict().items() if value and name in _UNITS), "")
