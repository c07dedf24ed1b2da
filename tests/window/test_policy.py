"""A policy is checked when it is made."""

from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from custom_components.windowed_conversation.window import WindowPolicy


@pytest.mark.parametrize(
    "value", [0, -1, -0.5, 0.5, 8000.5, nan, inf, -inf, True, None, "8000", Decimal(8000), 10**400, [8000]]
)
def test_impossible_budget_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match="history_tokens"):
        WindowPolicy(history_tokens=value)


@pytest.mark.parametrize("value", [-0.01, 0.91, 1, 25, nan, inf, -inf, False, True, None, "0.25", 10**400])
def test_impossible_trim_share_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match="trim_share"):
        WindowPolicy(trim_share=value)


@pytest.mark.parametrize("share", [0, 0.0, 0.25, 0.9])
def test_share_may_be_from_none_to_nine_tenths(share: float) -> None:
    assert WindowPolicy(trim_share=share).trim_share == share


def test_whole_number_from_a_form_becomes_an_integer() -> None:
    assert repr(WindowPolicy(history_tokens=8000.0)) == "WindowPolicy(history_tokens=8000, trim_share=0.25)"


def test_low_water_mark_is_the_budget_less_the_share() -> None:
    assert WindowPolicy(8000, 0.25).low_water == 6000
