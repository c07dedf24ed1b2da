"""An entity as text: its state in a few words, and its history as one line. All of it is data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
import math
from operator import itemgetter
import re
from typing import Any

from .context import without_breaks

UNKNOWN_STATES = frozenset({"unavailable", "unknown"})

# Separators of states in a text, besides those that separate or close parts of the prefix.
_SEPARATES = re.compile(r"[=|,]+")
_CUT = "…"
_MOST_CHARACTERS = 60
_LOW_BATTERY = 20
_FULL = 100
_BRIGHTEST = 255
_DIGITS = 3

# The greatest difference that is none, by unit; other values have this number of significant digits.
_STEPS = {"°C": 0.5, "°F": 1.0, "%": 1.0}

# The states that are as usual, by domain; binary sensors have theirs in `_BINARY`.
_USUAL: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("fan", "humidifier", "input_boolean", "light", "siren", "switch"), frozenset({"off"})),
    **dict.fromkeys(("cover", "valve"), frozenset({"closed"})),
    "lawn_mower": frozenset({"docked"}),
    "lock": frozenset({"locked"}),
    "media_player": frozenset({"off", "idle", "standby"}),
    "vacuum": frozenset({"docked", "idle", "off"}),
}
# Shades and plugs are used both ways, and people come and go all the time.
_USED_BOTH_WAYS = frozenset(
    {"awning", "battery_charging", "blind", "curtain", "damper", "plug", "presence", "shade", "shutter"}
)

_DETECTED = ("clear", "detected")
_OPEN = ("closed", "open")
# The texts of off and on, by the device class of a binary sensor.
_BINARY: Mapping[str, tuple[str, str]] = {
    "battery": ("normal", "low"),
    "carbon_monoxide": _DETECTED,
    "connectivity": ("disconnected", "connected"),
    "door": _OPEN,
    "garage_door": _OPEN,
    "gas": _DETECTED,
    "lock": ("locked", "unlocked"),
    "moisture": ("dry", "wet"),
    "motion": _DETECTED,
    "occupancy": _DETECTED,
    "opening": _OPEN,
    "plug": ("unplugged", "plugged in"),
    "presence": ("away", "home"),
    "problem": ("ok", "problem"),
    "safety": ("safe", "unsafe"),
    "smoke": _DETECTED,
    "sound": _DETECTED,
    "tamper": _DETECTED,
    "window": _OPEN,
}

_MEASUREMENTS = "measurements"

type Attributes = Mapping[str, Any]

# The attributes with the current and the wanted value, by domain; without a unit it is a temperature.
_CURRENT_AND_TARGET = {
    "climate": ("current_temperature", "temperature", ""),
    "humidifier": ("current_humidity", "humidity", "%"),
    "water_heater": ("current_temperature", "temperature", ""),
}

MOST_CHANGES = 24
_DEFAULT_SPAN = timedelta(days=1)

# Longer times are cut to this, up to their end: Home Assistant keeps ten days unless the user changed that.
_LONGEST = timedelta(days=31)

_LONGEST_TIME = 40


class Standing(StrEnum):
    """The standing of an entity: as usual, not as usual, or without a usual state."""

    USUAL = "usual"
    UNUSUAL = "unusual"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class EntityState:
    """An entity as a request lists it: its area, name and state hold no separators.

    `kind` is its device class or domain. `extra` is its domain if only agents that were given this domain get it.
    `changed` is when its state has changed, in seconds since the epoch, and `names` are all names it is called by.
    """

    area: str
    name: str
    state: str
    kind: str = ""
    standing: Standing = Standing.MEASURED
    changed: float = 0.0
    domain: str = ""
    extra: str = ""
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The label under which it is counted: "measurements", "light on", or for a usual one "off"."""
        # without details, such as "on" of "on 50%"
        word = self.state.partition(" ")[0]
        if self.standing is Standing.USUAL:
            return word
        if self.standing is Standing.UNUSUAL:
            is_low = self.kind == "battery" and self.state not in UNKNOWN_STATES
            return f"{self.kind} {'low' if is_low else word}"
        return _MEASUREMENTS if self.domain == "sensor" else self.kind


def one_name(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return a text as one name among others: on one line, without separators, at most so long."""
    # a text that is many times too long is not read to its end
    name = " ".join(_SEPARATES.sub(" ", without_breaks(text[: 4 * most])).split())
    return name if len(name) <= most else f"{name[: most - 1]}{_CUT}"


def area_name(text: str) -> str:
    """Return the name of an area, which stands before a colon."""
    return one_name(text.replace(":", " "), _MOST_CHARACTERS - 20)


def kind_of(domain: str, device_class: object) -> str:
    """Return the kind of a thing, its device class or else its domain, by which it is counted and asked for."""
    return (device_class if isinstance(device_class, str) and device_class else domain).replace("_", " ")


def standing_of(domain: str, device_class: object, state: str, text: str) -> Standing:
    """Return whether a state, and the text that was made of it, is as usual for such a thing."""
    if state in UNKNOWN_STATES or " battery " in f" {text}":
        return Standing.UNUSUAL
    if isinstance(device_class, str) and device_class in _USED_BOTH_WAYS:
        return Standing.MEASURED
    if domain == "binary_sensor":
        usual = "on" if device_class == "connectivity" else "off"
        return Standing.USUAL if state == usual else Standing.UNUSUAL
    if domain == "sensor" and device_class == "battery":
        charge = _number(state)
        return Standing.UNUSUAL if charge is not None and charge < _LOW_BATTERY else Standing.MEASURED
    if domain not in _USUAL:
        return Standing.MEASURED
    return Standing.USUAL if state in _USUAL[domain] else Standing.UNUSUAL


def state_text(domain: str, state: str, attributes: Attributes, temperature_unit: str) -> str:
    """Return the text of the state of an entity; `temperature_unit` is that of the user's system."""
    if state in UNKNOWN_STATES:
        return state
    words = [_plain(domain, state, attributes), *_details(domain, state, attributes, temperature_unit)]
    battery = _number(attributes.get("battery_level"))
    if battery is not None and battery < _LOW_BATTERY:
        words.append(f"battery {_rounded(battery, '%')}")
    return one_name(" ".join(filter(None, words)))


def _plain(domain: str, state: str, attributes: Attributes) -> str:
    if domain == "binary_sensor" and state in ("off", "on"):
        return _BINARY.get(str(attributes.get("device_class")), ("off", "on"))[state == "on"]
    if domain in ("person", "device_tracker") and state == "not_home":
        return "away"
    unit = attributes.get("unit_of_measurement")
    number = _number(state) if unit or domain in ("input_number", "number", "sensor") else None
    return state if number is None else _rounded(number, str(unit or ""))


def _details(domain: str, state: str, attributes: Attributes, unit: str) -> Iterator[str]:
    """Yield details of a state, such as brightness, position, temperature, or title."""
    if domain in _CURRENT_AND_TARGET:
        yield from _current_and_target(attributes, *_CURRENT_AND_TARGET[domain], unit)
    elif domain == "media_player" and state in ("playing", "paused", "buffering"):
        title = attributes.get("media_title")
        if isinstance(title, str) and title:
            yield f'"{one_name(title, _MOST_CHARACTERS - 20).replace('"', "'")}"'
    elif domain == "weather" and (temperature := _number(attributes.get("temperature"))) is not None:
        yield _rounded(temperature, str(attributes.get("temperature_unit") or unit))
    elif domain == "todo":
        yield "to do"
    else:
        yield from _percentage(domain, state, attributes)


def _percentage(domain: str, state: str, attributes: Attributes) -> Iterator[str]:
    if domain == "light" and state == "on" and (brightness := _number(attributes.get("brightness"))) is not None:
        yield f"{max(1, round(_FULL * min(brightness / _BRIGHTEST, 1)))}%"
    if domain == "fan" and state == "on" and (speed := _number(attributes.get("percentage"))) is not None:
        yield _rounded(speed, "%")
    position = _number(attributes.get("current_position")) if domain in ("cover", "valve") else None
    if position is not None and 0 < position < _FULL:
        yield _rounded(position, "%")


def _current_and_target(attributes: Attributes, current: str, target: str, own_unit: str, unit: str) -> Iterator[str]:
    unit = own_unit or unit
    now, wanted, low, high = (
        _number(attributes.get(name)) for name in (current, target, "target_temp_low", "target_temp_high")
    )
    if now is not None:
        yield _rounded(now, unit)
    if wanted is not None:
        yield f"set to {_rounded(wanted, unit)}"
    elif low is not None and high is not None:
        yield f"set to {_rounded(low, unit)} - {_rounded(high, unit)}"


def _number(value: object) -> float | None:
    """Return a finite number, or None if the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError, OverflowError:
        return None
    return number if math.isfinite(number) else None


def _rounded(number: float, unit: str) -> str:
    """Return a number with its unit, rounded so that changes that nobody notices do not count."""
    step = _STEPS.get(unit)
    if step is not None and math.isfinite(number / step):
        number = round(number / step) * step
    elif number:
        number = round(number, _DIGITS - 1 - math.floor(math.log10(abs(number))))
    # no "-0"
    text = f"{number + 0.0:.10g}"
    return f"{text}{unit}" if unit == "%" or not unit else f"{text} {one_name(unit, 12)}"


type Change = tuple[datetime, str]


class SpanError(StrEnum):
    """The reason that a model's times cannot be used."""

    NO_TIME = "no_time"
    BACKWARDS = "backwards"


@dataclass(frozen=True, slots=True)
class Span:
    """A time with a beginning and an end, both with the zone of the home."""

    start: datetime
    end: datetime


def span_of(start: str, end: str, now: datetime) -> Span | SpanError:
    """Return the time between these, which are local unless they say more. Empty is a day before the end, and now.

    It ends now at the latest, and begins 31 days before its end at the earliest.
    """
    try:
        until = min(_time(end, now), now) if end.strip() else now
        since = _time(start, now) if start.strip() else until - _DEFAULT_SPAN
        since = max(since, until - _LONGEST)
    except ValueError, OverflowError:
        return SpanError.NO_TIME
    return Span(since, until) if since < until else SpanError.BACKWARDS


def _time(text: str, now: datetime) -> datetime:
    """Return the time in a text. Raises `ValueError` and `OverflowError`."""
    time = datetime.fromisoformat(text.strip()[:_LONGEST_TIME])
    return (time if time.tzinfo else time.replace(tzinfo=now.tzinfo)).astimezone(now.tzinfo)


def history_text(entity: EntityState, states: Iterable[Change], until: datetime) -> str:
    """Return a line with the newest changes among states, oldest first, and how many earlier ones there are.

    Equal states in a row are one. `until` is when the last one ends.
    """
    changes = [next(equal) for _, equal in groupby(states, itemgetter(1))]
    listed = changes[-MOST_CHANGES:]
    name = f"{entity.area}: {entity.name}" if entity.area else entity.name
    earlier = f" | {len(changes) - len(listed)} earlier changes" if len(changes) > len(listed) else ""
    return f"{name}: {', '.join(_lines(listed))} | until {until:%Y-%m-%d %H:%M}{earlier}"


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the changes, with a date where it is another one than before."""
    day = ""
    for at, state in changes:
        date = f"{at:%Y-%m-%d} "
        yield f"{'' if date == day else date}{at:%H:%M}={state}"
        day = date
