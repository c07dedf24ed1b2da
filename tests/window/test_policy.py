"""Tests for window policies, which are checked when they are created."""

from decimal import Decimal
from math import inf, nan
from typing import Any

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.window import WindowPolicy

IMPOSSIBLE: dict[str, list[Any]] = {
    "history_tokens": [0, -1, -0.5, 0.5, 8000.5, nan, inf, -inf, True, None, "8000", Decimal(8000), 10**400, [8000]],
    "trim_share": [-0.01, 0.91, 1, 25, nan, inf, -inf, False, True, "0.25", 10**400],
    "max_tool_turns": [0, -1, 0.5, nan, inf, True, "3", [3]],
    "result_cap_tokens": [0, 99, -1, 100.5, nan, inf, True, None, "4000"],
    "tool_results": ["", "drop", None, True, ["stub"]],
}


def test_impossible_value_is_refused_by_name(subtests: pytest.Subtests) -> None:
    for name, values in IMPOSSIBLE.items():
        for value in values:
            with subtests.test(name=name, value=str(value)), pytest.raises(ValueError, match=name):
                WindowPolicy(**{name: value})


@pytest.mark.parametrize("share", [0, 0.0, 0.25, 0.9])
def test_share_may_be_from_none_to_nine_tenths(share: float) -> None:
    assert WindowPolicy(trim_share=share).trim_share == share


@pytest.mark.parametrize(
    ("budget", "share"),
    [(1, 0.25), (8_000, 0.25), (16_000, 0.25), (20_000, 0.225), (24_000, 0.2), (32_000, 0.15), (1_000_000, 0.15)],
)
def test_share_follows_the_budget_where_none_is_given(budget: int, share: float) -> None:
    assert WindowPolicy(budget).effective_trim_share == pytest.approx(share)


def test_given_share_stays_whatever_the_budget() -> None:
    assert WindowPolicy(100_000, trim_share=0.4).effective_trim_share == 0.4


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_larger_budget_never_retains_less_after_a_trim(one: int, other: int) -> None:
    assert (one <= other) == (WindowPolicy(one).low_water_tokens <= WindowPolicy(other).low_water_tokens)


def test_policy_is_made_as_the_contract_says() -> None:
    policy = WindowPolicy(history_tokens=8000, trim_share=0.25, tool_results="stub", max_tool_turns=None)
    assert policy == WindowPolicy(8000, 0.25)


def test_whole_number_from_a_form_becomes_an_integer() -> None:
    form: dict[str, Any] = {"history_tokens": 8000.0, "max_tool_turns": 3.0, "result_cap_tokens": 500.0}
    policy = WindowPolicy(**form)
    assert str((policy.history_tokens, policy.max_tool_turns, policy.result_cap_tokens)) == "(8000, 3, 500)"


def test_low_water_mark_is_the_budget_less_the_share() -> None:
    assert WindowPolicy(8000, 0.25).low_water_tokens == 6000


@pytest.mark.parametrize("tokens", [8000, 9000])
def test_limit_that_is_no_smaller_changes_nothing(tokens: int) -> None:
    policy = WindowPolicy(8000)

    assert policy.with_limit(tokens) is policy


def test_trim_frees_less_of_a_limit() -> None:
    assert WindowPolicy(8000).with_limit(3000).low_water_tokens == 0.85 * 3000


def test_share_that_the_user_has_chosen_is_that_of_a_limit_too() -> None:
    assert WindowPolicy(8000, trim_share=0.5).with_limit(3000).low_water_tokens == 1500


def test_limit_may_leave_no_room_at_all() -> None:
    assert WindowPolicy(8000).with_limit(-500).history_tokens == 1
