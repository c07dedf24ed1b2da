"""Windows that were dropped too early: only the newest keys are kept."""

from math import inf

from custom_components.windowed_conversation.window.registry import Overflow


def dropped(*keys: int) -> Overflow[int]:
    """Return the record of windows that were dropped in this order, one a second, long after their last turn."""
    overflow = Overflow[int]()
    for now, key in enumerate(keys):
        overflow.on_dropped(key, -inf, now)
    return overflow


def count_when_wanted(overflow: Overflow[int], key: int) -> int:
    overflow.wanted(key, 1_000, inf)
    return overflow.too_early(1_000, inf)


def test_key_of_500_others_ago_is_no_longer_known() -> None:
    assert count_when_wanted(dropped(*range(501)), 0) == 0
    assert count_when_wanted(dropped(*range(501)), 1) == 1


def test_key_that_is_dropped_again_is_new() -> None:
    assert count_when_wanted(dropped(*range(500), 0, 500), 0) == 1
    assert count_when_wanted(dropped(*range(500), 0, 500), 1) == 0
