"""Entities as text: a state in a few words, and a history on one line. None of the text counts as instructions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
import math
from operator import itemgetter
import re
from typing import Any

from ...turn.names import format_name

UNKNOWN_STATES = frozenset({"unavailable", "unknown"})

_MAX_TITLE_CHARS = 40
_LOW_BATTERY_PERCENT = 20
_LOW_BATTERY_PATTERN = re.compile(r" battery \d+%$")
_FULL_PERCENT = 100
_SIGNIFICANT_DIGITS = 3
# Kinds with the same state are joined with a slash.
_KIND_SEPARATORS = str.maketrans("_/:", "   ")

# The rounding step by unit; values with other units are rounded to `_SIGNIFICANT_DIGITS` significant digits.
_ROUNDING_STEP_BY_UNIT = {"°C": 0.5, "°F": 1.0, "%": 1.0}

# The usual states by domain; those of binary sensors depend on the device class.
_USUAL_STATES_BY_DOMAIN: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("fan", "humidifier", "input_boolean", "light", "siren", "switch"), frozenset({"off"})),
    **dict.fromkeys(("cover", "valve"), frozenset({"closed"})),
    "lawn_mower": frozenset({"docked"}),
    "lock": frozenset({"locked"}),
    "media_player": frozenset({"off", "idle", "standby"}),
    "vacuum": frozenset({"docked", "idle", "off"}),
}
# Domains in which a state that is not known yet is nothing unusual.
_STATELESS_DOMAINS = frozenset({"button", "event", "image", "input_button", "notify", "scene", "stt", "tts"})
# Device classes without a usual state: shades and plugs are used both ways, and people come and go all the time.
_NEUTRAL_DEVICE_CLASSES = frozenset(
    {"awning", "battery_charging", "blind", "curtain", "damper", "plug", "presence", "shade", "shutter"}
)

_DETECTION_TEXTS = ("clear", "detected")
_OPENING_TEXTS = ("closed", "open")
# The texts for off and on, by the device class of a binary sensor.
_BINARY_TEXTS_BY_CLASS: Mapping[str, tuple[str, str]] = {
    "battery": ("normal", "low"),
    "carbon_monoxide": _DETECTION_TEXTS,
    "connectivity": ("disconnected", "connected"),
    "door": _OPENING_TEXTS,
    "garage_door": _OPENING_TEXTS,
    "gas": _DETECTION_TEXTS,
    "lock": ("locked", "unlocked"),
    "moisture": ("dry", "wet"),
    "motion": _DETECTION_TEXTS,
    "occupancy": _DETECTION_TEXTS,
    "opening": _OPENING_TEXTS,
    "plug": ("unplugged", "plugged in"),
    "presence": ("away", "home"),
    "problem": ("ok", "problem"),
    "safety": ("safe", "unsafe"),
    "smoke": _DETECTION_TEXTS,
    "sound": _DETECTION_TEXTS,
    "tamper": _DETECTION_TEXTS,
    "window": _OPENING_TEXTS,
}

type Attributes = Mapping[str, Any]

# The attributes with the current and the target value, by domain. A value without a unit is a temperature.
_TARGET_ATTRIBUTES_BY_DOMAIN = {
    "climate": ("current_temperature", "temperature", ""),
    "humidifier": ("current_humidity", "humidity", "%"),
    "water_heater": ("current_temperature", "temperature", ""),
}
# The attribute with the action of a device, which its state does not show: a radiator set to heat may be idle.
_ACTION_ATTRIBUTE_BY_DOMAIN = {"climate": "hvac_action", "humidifier": "action"}

MAX_CHANGES = 24
_DEFAULT_SPAN = timedelta(days=1)

# The maximum length of a time span; a longer one keeps only its end. Home Assistant keeps ten days of history by
# default.
_MAX_SPAN = timedelta(days=31)

_MAX_TIME_CHARS = 40


class StateCategory(StrEnum):
    """The category of a state: usual, unusual, or without a usual state to compare it with."""

    USUAL = "usual"
    UNUSUAL = "unusual"
    NEUTRAL = "measured"


@dataclass(frozen=True, slots=True)
class EntityState:
    """An entity as a request lists it. Its area, name and state contain no separators."""

    area: str
    name: str
    state: str
    # The device class or domain.
    kind: str = ""
    category: StateCategory = StateCategory.NEUTRAL
    # The time of the last change of state, in seconds since the epoch.
    changed_at: float = 0.0
    domain: str = ""
    # Whether people rarely ask about entities of this domain, so that the state is sent only if the entity is named.
    is_uncommon: bool = False
    # All names and aliases.
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The label under which the entity is counted: "measurements", or its kind and a word, such as "light on"."""
        if self.category is StateCategory.NEUTRAL:
            kind = self.kind if self.domain in ("binary_sensor", "cover") else self.domain.replace("_", " ")
            return "measurements" if self.domain == "sensor" else kind
        # the state without details, such as "on" of "on 50%"
        word = self.state.partition(" ")[0]
        if _LOW_BATTERY_PATTERN.search(self.state):
            word = "battery low"
        elif self.domain == "sensor" and self.state not in UNKNOWN_STATES:
            # the only measurement with unusual values is a battery's
            word = "low"
        return f"{self.kind} {word}"


def entity_kind(domain: str, device_class: object) -> str:
    """Return the kind of an entity (its device class, or else its domain), by which it is counted and named."""
    kind = format_name(device_class.translate(_KIND_SEPARATORS)) if isinstance(device_class, str) else ""
    return kind or domain.replace("_", " ")


def classify_state(domain: str, device_class: object, state: str, text: str) -> StateCategory:
    """Return the category of a state of such an entity. `text` is the text of the state."""
    is_alarm = (domain, state) == ("alarm_control_panel", "triggered")
    if state in UNKNOWN_STATES or _LOW_BATTERY_PATTERN.search(text) or is_alarm:
        is_stateless = state == "unknown" and domain in _STATELESS_DOMAINS
        return StateCategory.NEUTRAL if is_stateless else StateCategory.UNUSUAL
    if isinstance(device_class, str) and device_class in _NEUTRAL_DEVICE_CLASSES:
        return StateCategory.NEUTRAL
    if domain == "binary_sensor":
        usual = "on" if device_class == "connectivity" else "off"
        return StateCategory.USUAL if state == usual else StateCategory.UNUSUAL
    if domain == "sensor" and device_class == "battery":
        charge = _parse_number(state)
        return StateCategory.UNUSUAL if charge is not None and charge < _LOW_BATTERY_PERCENT else StateCategory.NEUTRAL
    if domain not in _USUAL_STATES_BY_DOMAIN:
        return StateCategory.NEUTRAL
    return StateCategory.USUAL if state in _USUAL_STATES_BY_DOMAIN[domain] else StateCategory.UNUSUAL


def state_text(domain: str, state: str, attributes: Attributes, temperature_unit: str) -> str:
    """Return the text for an entity's state; `temperature_unit` is the unit of the user's system."""
    if state in UNKNOWN_STATES:
        return state
    words = [_main_state_text(domain, state, attributes), *_iter_details(domain, state, attributes, temperature_unit)]
    battery = _parse_number(attributes.get("battery_level"))
    if battery is not None and battery < _LOW_BATTERY_PERCENT:
        words.append(f"battery {_format_rounded(battery, '%')}")
    return format_name(" ".join(filter(None, words)))


def _main_state_text(domain: str, state: str, attributes: Attributes) -> str:
    if domain == "binary_sensor" and state in ("off", "on"):
        return _BINARY_TEXTS_BY_CLASS.get(str(attributes.get("device_class")), ("off", "on"))[state == "on"]
    if domain in ("person", "device_tracker") and state == "not_home":
        return "away"
    if domain == "calendar" and state in ("off", "on"):
        # "off" would say that nothing is planned
        return "event now" if state == "on" else "no event now"
    unit = attributes.get("unit_of_measurement")
    number = _parse_number(state) if unit or domain in ("input_number", "number", "sensor") else None
    return state if number is None else _format_rounded(number, str(unit or ""))


def _iter_details(domain: str, state: str, attributes: Attributes, unit: str) -> Iterator[str]:
    """Yield details of a state, such as brightness, position, temperature, or title."""
    if domain in _TARGET_ATTRIBUTES_BY_DOMAIN:
        action = attributes.get(_ACTION_ATTRIBUTE_BY_DOMAIN.get(domain, ""))
        if isinstance(action, str) and action != state:
            yield f"now {action}"
        yield from _iter_target_parts(attributes, *_TARGET_ATTRIBUTES_BY_DOMAIN[domain], unit)
    elif domain == "media_player" and state in ("playing", "paused", "buffering"):
        title = attributes.get("media_title")
        if isinstance(title, str) and title:
            yield f'"{format_name(title, _MAX_TITLE_CHARS).replace('"', "'")}"'
    elif domain == "weather" and (temperature := _parse_number(attributes.get("temperature"))) is not None:
        yield _format_rounded(temperature, str(attributes.get("temperature_unit") or unit))
    elif domain == "todo":
        yield "to do"
    else:
        yield from _iter_percentages(domain, state, attributes)


def _iter_percentages(domain: str, state: str, attributes: Attributes) -> Iterator[str]:
    if domain == "light" and state == "on" and (brightness := _parse_number(attributes.get("brightness"))) is not None:
        yield f"{max(1, round(_FULL_PERCENT * min(brightness / 255, 1)))}%"
    if domain == "fan" and state == "on" and (speed := _parse_number(attributes.get("percentage"))) is not None:
        yield _format_rounded(speed, "%")
    position = _parse_number(attributes.get("current_position")) if domain in ("cover", "valve") else None
    if position is not None and 0 < position < _FULL_PERCENT:
        yield _format_rounded(position, "%")


def _iter_target_parts(attributes: Attributes, current: str, target: str, own_unit: str, unit: str) -> Iterator[str]:
    unit = own_unit or unit
    now, wanted, low, high = (
        _parse_number(attributes.get(name)) for name in (current, target, "target_temp_low", "target_temp_high")
    )
    if now is not None:
        yield _format_rounded(now, unit)
    if wanted is not None:
        yield f"set to {_format_rounded(wanted, unit)}"
    elif low is not None and high is not None:
        yield f"set to {_format_rounded(low, unit)} - {_format_rounded(high, unit)}"


def _parse_number(value: object) -> float | None:
    """Return the value as a finite number, or None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError, OverflowError:
        return None
    return number if math.isfinite(number) else None


def _format_rounded(number: float, unit: str) -> str:
    """Return the number with its unit, rounded so that changes too small to notice do not count as changes."""
    step = _ROUNDING_STEP_BY_UNIT.get(unit)
    if step is not None and math.isfinite(number / step):
        number = round(number / step) * step
    elif number:
        number = round(number, _SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(number))))
    # adding 0.0 avoids "-0"
    text = f"{number + 0.0:.10g}"
    return f"{text}{unit}" if unit == "%" or not unit else f"{text} {format_name(unit, 12)}"


type Change = tuple[datetime, str]


@dataclass(frozen=True, slots=True)
class Period:
    """A time span; its start and end are in the home's time zone."""

    start: datetime
    end: datetime


def period_of(start: str, end: str, now: datetime) -> Period | None:
    """Return the span between two times, or None if one of them is not a time, or if they are in the wrong order.

    Times without an offset are local. An empty `start` means one day before the end, an empty `end` means now. The span
    ends now at the latest, and begins 31 days before its end at the earliest.
    """
    try:
        until = min(_parse_time(end, now), now) if end.strip() else now
        since = _parse_time(start, now) if start.strip() else until - _DEFAULT_SPAN
        since = max(since, until - _MAX_SPAN)
    except ValueError, OverflowError:
        return None
    return Period(since, until) if since < until else None


def _parse_time(text: str, now: datetime) -> datetime:
    """Return the time in a text, in the home's time zone. Raises `ValueError` and `OverflowError`."""
    time = datetime.fromisoformat(text.strip()[:_MAX_TIME_CHARS])
    return (time if time.tzinfo else time.replace(tzinfo=now.tzinfo)).astimezone(now.tzinfo)


def history_text(entity: EntityState, states: Iterable[Change], until: datetime) -> str:
    """Return a line with the newest changes of an entity, oldest first, and the number of earlier changes.

    Consecutive equal states count as one change. `until` is the end of the span.
    """
    changes = [next(equal) for _, equal in groupby(states, itemgetter(1))]
    listed = changes[-MAX_CHANGES:]
    name = f"{entity.area}: {entity.name}" if entity.area else entity.name
    earlier = f" | {len(changes) - len(listed)} earlier changes" if len(changes) > len(listed) else ""
    texts, day = list[str](), ""
    for at, state in listed:
        # the date stands where it changes
        date = f"{at:%Y-%m-%d} "
        texts.append(f"{'' if date == day else date}{at:%H:%M}={state}")
        day = date
    return f"{name}: {', '.join(texts)} | until {until:%Y-%m-%d %H:%M}{earlier}"
