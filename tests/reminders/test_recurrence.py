"""Tests for recurrences and due times: each at its local time, through changes of the clock, the zone and the year."""

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.reminders.core.recurrence import Frequency, Recurrence
from custom_components.windowed_conversation.reminders.core.reminder import Presence, Reminder

BERLIN = ZoneInfo("Europe/Berlin")


def local(text: str) -> datetime:
    """Return a local time, without a zone."""
    return datetime.fromisoformat(text)


def dues(recurrence: Recurrence, at: datetime, until: datetime) -> list[datetime]:
    """Return the local times at which a reminder is delivered, when each is delivered as soon as it is due."""
    reminder, found = Reminder("1", "eat", 0.0, at=at, recurrence=recurrence), list[datetime]()
    while reminder.is_waiting and (due := reminder.at_local(BERLIN)) is not None and due < until:
        found.append(due)
        reminder = reminder.after_delivery(due)
    return found


def test_a_year_of_weekly_reminders_is_at_seven_each_friday() -> None:
    weekly = Recurrence(Frequency.WEEKS, weekdays=(4,))

    found = dues(weekly, local("2026-01-02T07:00"), local("2027-01-01T00:00"))

    assert len(found) == 52
    assert {(each.weekday(), each.time()) for each in found} == {(4, time(7))}
    assert len(set(found)) == 52


@pytest.mark.parametrize(("day", "hour"), [(date(2026, 3, 29), 3), (date(2026, 10, 25), 2)])
def test_a_daily_reminder_at_half_past_two_comes_once_on_the_day_of_a_change(day: date, hour: int) -> None:
    found = dues(Recurrence(Frequency.DAYS), local("2026-01-01T02:30"), local("2027-01-01T00:00"))

    assert [each for each in found if each.date() == day] == [datetime.combine(day, time(hour, 30))]
    assert len(found) == 365


def test_a_reminder_of_the_first_of_each_month_is_at_nine_through_both_changes() -> None:
    found = dues(Recurrence(Frequency.MONTHS, day=1), local("2026-01-01T09:00"), local("2027-01-01T00:00"))

    assert found == [local(f"2026-{month:02}-01T09:00") for month in range(1, 13)]


def test_a_reminder_of_the_31st_is_on_the_last_day_of_each_month_and_after_the_hour_that_is_skipped() -> None:
    # the clock changes on 31 March 2024
    found = dues(Recurrence(Frequency.MONTHS, day=31), local("2024-01-31T02:30"), local("2024-07-01T00:00"))

    assert [f"{each:%m-%d %H:%M}" for each in found] == [
        "01-31 02:30",
        "02-29 02:30",
        "03-31 03:30",
        "04-30 02:30",
        "05-31 02:30",
        "06-30 02:30",
    ]


@pytest.mark.parametrize(
    ("recurrence", "start", "expected"),
    [
        (Recurrence(Frequency.WEEKS, 2, (0, 3)), "2026-12-03", ["2026-12-14", "2026-12-17", "2026-12-28"]),
        (Recurrence(Frequency.DAYS, 3), "2026-12-30", ["2027-01-02", "2027-01-05", "2027-01-08"]),
        (Recurrence(Frequency.MONTHS, day=31), "2027-01-31", ["2027-02-28", "2027-03-31", "2027-04-30"]),
        (Recurrence(Frequency.YEARS, day=29), "2028-02-29", ["2029-02-28", "2030-02-28", "2031-02-28"]),
        (Recurrence(Frequency.WEEKS, until=date(2026, 12, 18)), "2026-12-04", ["2026-12-11", "2026-12-18"]),
    ],
)
def test_the_next_times_follow_the_rule(recurrence: Recurrence, start: str, expected: list[str]) -> None:
    at = datetime.fromisoformat(f"{start}T07:00")

    found = dues(recurrence, at, local("2032-01-01T00:00"))

    assert [str(each.date()) for each in found[1 : len(expected) + 1]] == expected


def test_missed_times_are_skipped() -> None:
    reminder = Reminder("1", "eat", 0.0, at=local("2026-01-02T07:00"), recurrence=Recurrence(Frequency.WEEKS))

    assert reminder.after_delivery(local("2026-01-25T12:00")).at == local("2026-01-30T07:00")


def test_a_recurrence_ends_with_the_calendar() -> None:
    assert Recurrence(Frequency.YEARS).find_next(local("9999-01-01T00:00"), local("9999-06-01T00:00")) is None


recurrences = st.builds(
    Recurrence,
    st.sampled_from(Frequency),
    st.integers(1, 99),
    st.sets(st.integers(0, 6)).map(sorted).map(tuple),
    st.none() | st.integers(1, 31),
    st.none() | st.dates(),
)
reminders = st.builds(
    Reminder,
    st.uuids().map(str),
    st.text(min_size=1, max_size=300),
    st.floats(1, 1e10),
    at=st.none() | st.datetimes(),
    is_all_day=st.booleans(),
    instant=st.none() | st.floats(1, 1e10),
    recurrence=st.none() | recurrences,
    place=st.none() | st.builds(Presence, st.text(), st.booleans()),
    is_done=st.booleans(),
)


@given(reminders)
def test_a_stored_reminder_is_read_back(reminder: Reminder) -> None:
    assert Reminder.from_json(reminder.as_json()) == reminder


@given(recurrences, st.datetimes(local("2000-01-01T00:00"), local("2100-01-01T00:00")), st.integers(0, 1_000))
def test_the_next_time_is_later_at_the_same_time_of_day(recurrence: Recurrence, start: datetime, days: int) -> None:
    after = datetime.fromtimestamp(start.replace(tzinfo=UTC).timestamp() + days * 86_400, UTC).replace(tzinfo=None)
    found = recurrence.find_next(start, after)

    assert found is None or (found > after and found.time() == start.time())
