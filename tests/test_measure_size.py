"""Tests for the comparison of the integration's size with its baseline."""

import pytest

from scripts.measure_size import find_growth

BASELINE = {"lines": 1_000, "modules": 19}


@pytest.mark.parametrize(
    "sizes",
    [
        {"lines": 1_000, "modules": 19},
        {"lines": 1_050},
        # 5 % of 19 is less than one
        {"modules": 19},
        {"lines": 0, "modules": 1},
        {},
    ],
    ids=str,
)
def test_size_may_shrink_or_grow_by_five_percent(sizes: dict[str, int]) -> None:
    assert find_growth(sizes, BASELINE) == []


@pytest.mark.parametrize(("name", "size"), [("lines", 1_051), ("modules", 20)])
def test_growth_by_more_than_five_percent_is_named_with_what_to_do(name: str, size: int) -> None:
    (message,) = find_growth({**BASELINE, name: size}, BASELINE)

    assert message.startswith(f"{name}: {size:,}, more than 5 % above {BASELINE[name]:,}. ")
    assert "change the baseline in a commit that says why" in message


def test_size_without_a_baseline_is_refused() -> None:
    (message,) = find_growth({"lines": 1_000, "a new walk, functions": 7}, BASELINE)

    assert message.startswith("a new walk, functions: 7, not in the baseline. ")


def test_every_growth_is_listed() -> None:
    assert len(find_growth({"lines": 2_000, "modules": 40, "a new walk, functions": 7}, BASELINE)) == 3
