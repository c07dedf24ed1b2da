"""The times that a sentence names: days, hours, durations, recurrences, and persons who come home or leave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from operator import itemgetter
import re
from typing import Any, NamedTuple

from .recurrence import MAX_INTERVAL, Frequency, Recurrence

_WEEK_DAYS = 7
_NOON = 12
_DAY_HOURS = 24
_HOUR_MINUTES = 60
# "At nine at night" is in the evening, "at two at night" is not.
_FIRST_NIGHT_HOUR = 6
_MAX_SPAN_DAYS = 366
_LEAP_YEAR = 2000

_UNITS = ("minutes", "hours", "days", "weeks", "months", "years")
_MINUTES_BY_UNIT = {"minutes": 1, "hours": 60, "days": 1_440, "weeks": 10_080}
_FREQUENCY_BY_UNIT = {
    "days": Frequency.DAYS,
    "weeks": Frequency.WEEKS,
    "months": Frequency.MONTHS,
    "years": Frequency.YEARS,
}
_WORKDAYS, _WEEKEND = (0, 1, 2, 3, 4), (5, 6)
_GAP_PATTERN = re.compile(r"[\s,;:.、。，]*")  # noqa: RUF001 - of several scripts


class Clock(NamedTuple):
    """An hour and a minute. An hour from 1 to 11 that is not exact may be in the morning or in the evening."""

    hour: int
    minute: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class NamedTime:
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
    # A duration from now.
    minutes: int | None = None
    recurrence: Recurrence | None = None
    # The month and the day on which the recurrence ends.
    until: tuple[int, int] | None = None
    # The name of the person who arrives or leaves, empty for the speaker.
    who: str | None = None
    is_arrival: bool = False

    def with_parts_of(self, other: NamedTime) -> NamedTime:
        """Return this time with the parts that another one names instead of its own."""
        empty = NamedTime()
        named = {name: getattr(other, name) for name in self.__slots__}
        return replace(self, **{name: value for name, value in named.items() if value != getattr(empty, name)})


class TimeQuestion(NamedTuple):
    """The part of a time that has to be asked: whether an hour is in the morning, or any time if `hour` is None."""

    hour: int | None = None


class DueTime(NamedTuple):
    """A time at which a reminder is due, with the names of its fields in `Reminder`."""

    at: datetime | None = None
    instant: float | None = None
    recurrence: Recurrence | None = None


def resolve_time(named: NamedTime, now: datetime) -> DueTime | TimeQuestion:
    """Return the time of a sentence, or the question about it. `now` has a time zone."""
    if named.minutes is not None and named.clock is None and (named.minutes % 1_440 or not named.minutes):
        return DueTime(instant=now.timestamp() + named.minutes * 60)
    local = now.replace(tzinfo=None)
    if named.clock is None and named.minutes is not None:
        return DueTime(at=(local + timedelta(minutes=named.minutes)).replace(second=0, microsecond=0))
    if named.clock is None:
        return TimeQuestion()
    hours = _list_hours(named.clock, named.part)
    recurrence = _complete_recurrence(named, local.date())
    times = [_find_time(named, recurrence, time(hour, named.clock.minute), local) for hour in hours]
    possible = [each for each in times if each is not None]
    # "at seven" in the afternoon is in the evening
    is_plain = named.days_ahead is None and named.weekday is None and named.day is None and recurrence is None
    today = [each for each in possible if each.date() == local.date()] if is_plain else []
    possible = today or possible
    if len(possible) > 1:
        return TimeQuestion(named.clock.hour)
    return DueTime(at=possible[0], recurrence=recurrence) if possible else TimeQuestion()


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
    if recurrence.frequency in (Frequency.MONTHS, Frequency.YEARS):
        return replace(recurrence, day=named.day[1] if named.day else today.day)
    return recurrence


def _find_time(named: NamedTime, recurrence: Recurrence | None, at: time, now: datetime) -> datetime | None:
    """Return the first time after now, or None if the named day has none."""
    today = now.date()
    if named.day is not None:
        day = _find_day(*named.day, today)
        return datetime.combine(day, at) if day is not None and datetime.combine(day, at) > now else None
    if named.days_ahead is not None or named.minutes is not None:
        day = today + timedelta(days=named.days_ahead or 0, minutes=named.minutes or 0)
        return datetime.combine(day, at) if datetime.combine(day, at) > now else None
    if recurrence is not None:
        return recurrence.find_first(at, now)
    if named.weekday is not None:
        ahead = (named.weekday - today.weekday()) % _WEEK_DAYS
        found = datetime.combine(today + timedelta(days=ahead), at)
        is_over = found <= now or (named.is_next and not ahead)
        return found + timedelta(days=_WEEK_DAYS) if is_over else found
    found = datetime.combine(today, at)
    return found if found > now else found + timedelta(days=1)


def _find_day(month: int, day: int, today: date) -> date | None:
    """Return the next such day, today included. 29 February may be years ahead."""
    for year in range(today.year, today.year + 9):
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found >= today:
            return found
    return None


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
        self._numbers = _read_numbers(past["numbers"]) | clock_numbers
        self._own_word = re.compile(data["i"], re.IGNORECASE)
        self._names = {
            "n": _name_number("n", self._numbers),
            **{name: _name_number(name, clock_numbers) for name in ("h", "m", "d")},
            "weekday": _name_groups("w", data.get("weekdays", past["weekday_names"]).split()),
            "month": _name_groups("o", data.get("months", past["month_names"]).split()),
            "unit": "|".join(f"(?P<{unit}>{data['units'][unit]})" for unit in _UNITS if unit in data["units"]),
        }
        self._phrases: list[tuple[re.Pattern[str], _Reader]] = [
            *[(each, partial(self._read_clock, offset)) for each, offset in self._compile_all(data["clock"])],
            *[(each, partial(_read_fixed, parts)) for each, parts in self._compile_all(_list_fixed_phrases(data))],
            *[(each, self._read_duration) for each in self._compile_list(data["in"])],
            *[(each, self._read_day) for each in self._compile_list(data["date"])],
            *[(each, partial(self._read_day, name="until")) for each in self._compile_list(data.get("until", []))],
            *[(each, _read_weekday) for each in self._compile_list(data["on_weekday"])],
            *[(each, partial(_read_weekday, is_next=True)) for each in self._compile_list(data["next_weekday"])],
            *[(each, self._read_recurrence) for each in self._compile_list(data["every"])],
            *[(each, partial(self._read_place, True)) for each in self._compile_list(data["arrives"])],
            *[(each, partial(self._read_place, False)) for each in self._compile_list(data["leaves"])],
        ]
        self._fillers = self._compile(data["fillers"])
        self._connectors = self._compile(data["connectors"])
        ends = f"{self._fillers.pattern}|{self._connectors.pattern}"
        self._trailing = re.compile(rf"{r'(?<!\w)' if edge else ''}(?:{ends})$", re.IGNORECASE)
        self._word_start = re.compile(r"\b(?=\w)" if edge else r"(?=\w)")

    def find_around(self, text: str) -> tuple[NamedTime, str]:
        """Return the time that is named before and after a task, and the task."""
        parts, start = self._scan(text, 0, has_connectors=True)
        end = len(text)
        if not parts.keys() & {"clock", "minutes", "who"}:
            for place in [each.start() for each in self._word_start.finditer(text, start)][1:]:
                later, reached = self._scan(text, place)
                if reached == len(text) and later and not later.keys() & parts.keys():
                    parts, end = {**parts, **later}, place
                    break
        task = text[start:end].strip(" \t,;:.!?、。，「」")  # noqa: RUF001 - of several scripts
        return NamedTime(**parts), self._trailing.sub("", task).strip(" ,、")

    def find_only(self, text: str) -> NamedTime | None:
        """Return the time that a text names if it names nothing else, or None."""
        parts, reached = self._scan(text.rstrip(" .!?。！？"), 0)  # noqa: RUF001 - of several scripts
        return NamedTime(**parts) if parts and reached >= len(text.rstrip(" .!?。！？")) else None  # noqa: RUF001

    def find_recurrence(self, text: str, today: date) -> Recurrence | None:
        """Return the recurrence that is all of a text, or None."""
        named = self.find_only(text)
        return _complete_recurrence(named, today) if named is not None and named.clock is None else None

    def cut_recurrence(self, text: str) -> str:
        """Return the words of a text that name its recurrence, with the end of it, or an empty text."""
        for place in [each.start() for each in self._word_start.finditer(text)]:
            parts, end = self._scan(text, place, only={"recurrence", "weekday", "until"})
            if "recurrence" in parts:
                return self._trailing.sub("", text[place:end].strip(" ,、"))
        return ""

    def _scan(
        self, text: str, place: int, *, has_connectors: bool = False, only: set[str] | None = None
    ) -> tuple[dict[str, Any], int]:
        """Return the parts of the time that is named from a place on, and the place where that ends."""
        parts: dict[str, Any] = {}
        while True:
            end = place
            place = _GAP_PATTERN.match(text, place).end()  # type: ignore[union-attr] # matches everywhere
            found = self._find_phrase(text, place)
            if found is not None and (merged := _merge(parts, found[1], only)) is not None:
                parts, place = merged, found[0]
            elif (filler := self._fillers.match(text, place)) and (parts or not only):
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
        names = dict(self._names)
        named = re.sub(r"\{([a-z]+)\}", lambda each: f"(?:{names[each[1]]})", pattern)
        return re.compile(f"(?:{named}){self._edge}", re.IGNORECASE)

    def _compile_list(self, patterns: list[str]) -> list[re.Pattern[str]]:
        return [self._compile(each) for each in patterns]

    def _compile_all[Value](self, patterns: Mapping[str, Value]) -> list[tuple[re.Pattern[str], Value]]:
        return [(self._compile(each), value) for each, value in patterns.items()]

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
        hours, minute = divmod(minutes % (_DAY_HOURS * _HOUR_MINUTES), _HOUR_MINUTES)
        # half past twelve is not half past midnight
        hours = hours or (_NOON if hour == 1 else 0)
        return {"clock": Clock(hours, minute, is_exact)}

    def _read_duration(self, match: re.Match[str]) -> _Parts:
        minutes = self._read_number(match, "n", 1) * _MINUTES_BY_UNIT.get(_get_unit(match), 0)
        return {"minutes": minutes} if 0 < minutes <= _MAX_SPAN_DAYS * _DAY_HOURS * _HOUR_MINUTES else None

    def _read_day(self, match: re.Match[str], name: str = "day") -> _Parts:
        month, day = _get_group(match, "o"), self._read_number(match, "d")
        try:
            date(_LEAP_YEAR, month + 1, day)
        except ValueError:
            return None
        return {name: (month + 1, day)}

    def _read_place(self, is_arrival: bool, match: re.Match[str]) -> _Parts:
        who = match.groupdict().get("who") or ""
        return {"who": "" if self._own_word.fullmatch(who) else who, "is_arrival": is_arrival}

    def _read_recurrence(self, match: re.Match[str]) -> _Parts:
        interval = self._read_number(match, "n", 2 if match.groupdict().get("other") else 1)
        if not 0 < interval <= MAX_INTERVAL:
            return None
        if any(name.startswith("w") and value and name[1:].isdecimal() for name, value in match.groupdict().items()):
            return {"recurrence": Recurrence(Frequency.WEEKS, interval, (_get_group(match, "w"),))}
        frequency = _FREQUENCY_BY_UNIT.get(_get_unit(match))
        return {"recurrence": Recurrence(frequency, interval)} if frequency is not None else None


def _list_fixed_phrases(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the phrases whose words alone say everything, with the parts of the time that they name."""
    fixed: dict[str, dict[str, Any]] = {each: {"days_ahead": days} for each, days in data["days"].items()}
    fixed |= {data[part]: {"part": part} for part in ("am", "pm", "night") if part in data}
    fixed |= {data["noon"]: {"clock": Clock(_NOON, 0, True)}, data["midnight"]: {"clock": Clock(0, 0, True)}}
    fixed |= {each: {"minutes": minutes} for each, minutes in data["durations"].items()}
    fixed[data["workdays"]] = {"recurrence": Recurrence(Frequency.WEEKS, 1, _WORKDAYS)}
    fixed[data["weekends"]] = {"recurrence": Recurrence(Frequency.WEEKS, 1, _WEEKEND)}
    fixed |= {
        pattern: {"recurrence": Recurrence(_FREQUENCY_BY_UNIT[unit])} for unit, pattern in data.get("each", {}).items()
    }
    return fixed


def _merge(parts: dict[str, Any], more: dict[str, Any], only: set[str] | None) -> dict[str, Any] | None:
    """Return the parts of a time with those of the next phrase, or None if they do not belong together."""
    recurrence: Recurrence | None = parts.get("recurrence")
    if recurrence is not None and recurrence.weekdays and more.keys() == {"weekday"}:
        weekdays = tuple(sorted({*recurrence.weekdays, more["weekday"]}))
        return {**parts, "recurrence": replace(recurrence, weekdays=weekdays)}
    if parts.keys() & more.keys() or (only is not None and not more.keys() <= only):
        return None
    return {**parts, **more}


def _read_fixed(parts: dict[str, Any], _match: re.Match[str]) -> _Parts:
    return parts


def _read_weekday(match: re.Match[str], *, is_next: bool = False) -> _Parts:
    return {"weekday": _get_group(match, "w")} | ({"is_next": True} if is_next else {})


def _read_numbers(words: str) -> dict[str, int]:
    return {word: number for number, each in enumerate(words.split(), 1) for word in each.split("|")}


def _name_number(name: str, numbers: Mapping[str, int]) -> str:
    words = sorted(map(re.escape, numbers), key=len, reverse=True)
    return rf"(?P<{name}>\d{{1,3}}|{'|'.join(words)})"


def _name_groups(prefix: str, names: list[str]) -> str:
    return "|".join(f"(?P<{prefix}{number}>{name})" for number, name in enumerate(names))


def _get_group(match: re.Match[str], prefix: str) -> int:
    named = match.groupdict().items()
    return next(int(name[1:]) for name, value in named if value and name[0] == prefix and name[1:].isdecimal())


def _get_unit(match: re.Match[str]) -> str:
    return next((name for name, value in match.groupdict().items() if value and name in _UNITS), "")
