"""Tests for the made-up week of the demo: it begins before the view does, grows, and ends where the real one begins."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from demo.example_week import build_example_week

NOW = datetime(2026, 11, 23, 8, 40, tzinfo=UTC)
WEEK = build_example_week(NOW)


@pytest.mark.parametrize("key", WEEK)
def test_week_has_each_hour_up_to_the_last_full_one(key: str) -> None:
    starts = [datetime.fromisoformat(row["start"]) for row in WEEK[key]]

    assert starts[-1] == datetime(2026, 11, 23, 7, tzinfo=UTC)
    assert {after - before for before, after in pairwise(starts)} == {timedelta(hours=1)}
    assert starts[-1] - starts[0] == timedelta(days=9)


@pytest.mark.parametrize("key", WEEK)
def test_sums_grow_to_zero_so_that_the_real_ones_continue_them(key: str) -> None:
    sums = [row["sum"] for row in WEEK[key]]

    assert sums == sorted(sums)
    assert sums[0] < sums[-1] == 0


@pytest.mark.parametrize("key", sorted(WEEK.keys() - {"turns_failed"}))
def test_each_day_of_the_week_has_a_figure(key: str) -> None:
    sums = [row["sum"] for row in WEEK[key]]

    assert [day for day in range(9) if sums[24 * day + 24] == sums[24 * day]] == []
