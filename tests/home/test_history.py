"""Tests for the time span of a question about the past, and the line with the changes in it."""

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.home.core.state_text import (
    MAX_CHANGES,
    EntityState,
    Period,
    history_text,
    period_of,
)

ZONE = ZoneInfo("Europe/Amsterdam")
# The clock was set back to winter time in the previous night.
NOW = datetime(2026, 10, 26, 8, 30, tzinfo=ZONE)
ONE_DAY = timedelta(days=1)
DOOR = EntityState("Hall", "Door", "closed")


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 10, day, hour, minute, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("start", "end", "span"),
    [
        ("", "", Period(at(25, 8, 30), NOW)),
        ("2026-10-25T22:00", "", Period(at(25, 22), NOW)),
        (" 2026-10-25 22:00 ", "2026-10-26T07:00", Period(at(25, 22), at(26, 7))),
        ("", "2026-10-24", Period(at(23, 0), at(24, 0))),
        ("2026-10-25T20:00:00Z", "2027-01-01", Period(at(25, 21), NOW)),
        ("2020-01-01", "", Period(NOW - 31 * ONE_DAY, NOW)),
        ("last night", "", None),
        ("", "22:00", None),
        ("0001-01-01T00:00+23:00", "", None),
        ("2026-10-26", "2026-10-25", None),
        ("2027-01-01", "", None),
    ],
)
def test_times_of_a_question(start: str, end: str, span: Period | None) -> None:
    assert period_of(start, end, NOW) == span


@given(st.text() | st.datetimes().map(str), st.text() | st.datetimes().map(str))
def test_whatever_the_times_are_the_span_is_bounded(start: str, end: str) -> None:
    span = period_of(start, end, NOW)

    assert span is None or NOW >= span.end > span.start >= span.end - 31 * ONE_DAY


def test_date_is_written_where_it_changes_and_equal_states_are_one() -> None:
    states = [(at(24, 22), "closed"), (at(24, 23), "open"), (at(24, 23, 30), "open"), (at(25, 1), "closed")]

    assert history_text(DOOR, states, NOW) == (
        "Hall: Door: 2026-10-24 22:00=closed, 23:00=open, 2026-10-25 01:00=closed | until 2026-10-26 08:30"
    )


@given(st.lists(st.sampled_from(["on", "off"]), max_size=80))
def test_newest_changes_are_listed_and_the_others_counted(states: list[str]) -> None:
    changes = sum(one != other for one, other in pairwise(["", *states]))
    times = [(at(1, 1) + number * timedelta(hours=1), state) for number, state in enumerate(states)]
    history = history_text(DOOR, times, NOW)

    assert history.count("=") == min(changes, MAX_CHANGES)
    assert f"={''.join(states[-1:])} | until " in history or not states
    assert history.endswith(f" | {changes - MAX_CHANGES} earlier changes") == (changes > MAX_CHANGES)
