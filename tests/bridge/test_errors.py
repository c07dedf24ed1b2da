"""Tests for the error messages, such as the one for a rate limit with a waiting time."""

import math

import pytest

from custom_components.windowed_conversation.bridge.errors import describe_error
from custom_components.windowed_conversation.providers.errors import RateLimited


@pytest.mark.parametrize(
    ("seconds", "key", "placeholders"),
    [
        (0.2, "rate_limited_for", {"seconds": "2"}),
        (119, "rate_limited_for", {"seconds": "119"}),
        (119.5, "rate_limited_for_minutes", {"minutes": "2"}),
        (601, "rate_limited_for_minutes", {"minutes": "11"}),
        (7200, "rate_limited_for_hours", {"hours": "2"}),
        (31_536_000, "rate_limited_for_hours", {"hours": "8760"}),
    ],
)
def test_wait_is_told_in_seconds_minutes_or_hours(seconds: float, key: str, placeholders: dict[str, str]) -> None:
    failure = describe_error(RateLimited("", seconds))

    assert (failure.key, failure.placeholders) == (key, placeholders)


@pytest.mark.parametrize("seconds", [None, 0, -1, math.nan, math.inf, 1e300])
def test_wait_that_is_none_is_not_told(seconds: float | None) -> None:
    assert describe_error(RateLimited("", seconds)).key == "rate_limited"
