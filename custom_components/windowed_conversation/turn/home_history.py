"""The history of a state: the span of time that a model asks about, and the changes as one line."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from operator import itemgetter

from .state_text import EntityState

MOST_CHANGES = 24
_DEFAULT_SPAN = timedelta(days=1)
# Longer times are cut to this, up to their end: Home Assistant keeps ten days unless the user changed that.
_LONGEST = timedelta(days=31)
_LONGEST_TIME = 40

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
