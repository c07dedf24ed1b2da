"""Tests for a model's size, as stated by its server and as shown by answered and refused requests."""

from collections.abc import Callable
import json
from typing import Any

from hypothesis import given
from hypothesis.strategies import dictionaries, floats, integers, lists, none, one_of, sampled_from, text, tuples
import pytest

from custom_components.windowed_conversation.turn.model_size import ContextSizeTracker

DAY = 24 * 60 * 60


class Clock:
    """A clock that tests can set, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the current time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def size(clock: Clock) -> ContextSizeTracker:
    """Return the size of a model that has answered a request of 3,900 tokens."""
    size = ContextSizeTracker(clock=clock)
    size.on_answered(3900)
    return size


@pytest.fixture
def learned(size: ContextSizeTracker) -> ContextSizeTracker:
    """Return a size that was learned from a refusal."""
    size.on_answered(3600, refused=4100)
    return size


def test_nobody_knows_the_size_of_a_new_model() -> None:
    assert ContextSizeTracker().get_context_tokens() is None


def test_listed_size_is_planned_with() -> None:
    assert ContextSizeTracker().get_context_tokens(8192) == 8192


def test_answered_request_proves_its_size_against_a_list(size: ContextSizeTracker) -> None:
    assert size.get_context_tokens(2048) == 3900


def test_no_more_is_planned_after_a_refusal_than_was_answered(learned: ContextSizeTracker) -> None:
    assert learned.get_context_tokens() == 3900
    assert learned.get_context_tokens(128_000) == 3900


def test_listed_size_below_the_refused_one_counts(learned: ContextSizeTracker) -> None:
    assert learned.get_context_tokens(4000) == 4000


def test_answer_to_the_refused_size_refutes_the_refusal(learned: ContextSizeTracker) -> None:
    learned.on_answered(4100)

    assert learned.get_context_tokens() is None


def test_refusal_below_what_was_answered_means_that_the_server_reads_less_now(size: ContextSizeTracker) -> None:
    size.on_answered(1900, refused=3000)

    assert size.get_context_tokens() == 1900


def test_refusal_of_less_than_any_server_reads_shows_nothing(size: ContextSizeTracker) -> None:
    size.on_answered(1900, refused=2048)

    assert size.get_context_tokens() is None


def test_refusal_of_less_than_was_answered_instead_shows_nothing(size: ContextSizeTracker) -> None:
    size.on_answered(3500, refused=3000)

    assert size.get_context_tokens() is None


def test_named_size_counts_at_once() -> None:
    size = ContextSizeTracker()
    size.on_size_named(8192)

    assert size.get_context_tokens(128_000) == 8192


def test_newest_stated_size_counts() -> None:
    size = ContextSizeTracker()
    size.on_size_named(8192)
    size.on_size_queried(16_384)
    queried = size.get_context_tokens()
    size.on_size_named(4096)

    assert (queried, size.get_context_tokens()) == (16_384, 4096)


def test_named_size_that_is_too_large_counts_no_more_after_a_refusal() -> None:
    size = ContextSizeTracker()
    size.on_size_named(8192)
    size.on_answered(5000, refused=6000)

    assert size.get_context_tokens() == 5000


def test_named_size_that_is_too_small_is_raised_to_what_was_answered(size: ContextSizeTracker) -> None:
    size.on_size_named(2000)

    assert size.get_context_tokens() == 3900


@pytest.mark.parametrize("later", [DAY, -DAY])
def test_learned_size_is_forgotten_after_a_day_whichever_way_the_clock_goes(
    later: int, learned: ContextSizeTracker, clock: Clock
) -> None:
    learned.on_size_named(2048)
    clock.now += later

    assert learned.get_context_tokens() is None


def test_learned_size_stays_for_a_day(learned: ContextSizeTracker, clock: Clock) -> None:
    clock.now += DAY - 1

    assert learned.get_context_tokens() == 3900


def test_reconfigured_model_begins_anew(learned: ContextSizeTracker) -> None:
    learned.on_size_named(2048)
    learned.reset()

    assert (learned.get_context_tokens(), learned.as_dict()) == (None, {})


def test_next_request_is_as_large_as_what_was_answered(size: ContextSizeTracker) -> None:
    assert size.get_retry_tokens(4100, 3000) == 3900


def test_next_request_has_the_named_size(size: ContextSizeTracker) -> None:
    size.on_size_named(3000)

    assert size.get_retry_tokens(4100, 3500) == 3000


@pytest.mark.parametrize(("refused", "half"), [(3900, 3000), (3000, 2000), (8000, 5000)])
def test_nothing_better_than_half_is_known(refused: int, half: int, size: ContextSizeTracker) -> None:
    size.on_size_named(16_384)

    assert size.get_retry_tokens(refused, half) is None


def test_what_was_learned_outlives_a_restart(learned: ContextSizeTracker, clock: Clock) -> None:
    restored = ContextSizeTracker(clock=clock)
    restored.restore(json.loads(json.dumps(learned.as_dict())))

    assert restored.get_context_tokens() == 3900


def test_each_change_is_reported_once() -> None:
    reported = list[int]()
    size = ContextSizeTracker(lambda: reported.append(1))
    size.on_size_named(1000)
    size.on_answered(3000, refused=4000)
    size.on_answered(5000)
    size.reset()
    size.reset()

    assert len(reported) == 4


DAMAGED: list[Callable[[dict[str, Any]], Any]] = [
    lambda stored: None,
    lambda stored: [stored],
    lambda stored: {},
    lambda stored: {"tokens": 1891, "at": stored["at"]},
    lambda stored: stored | {"refused": True},
    lambda stored: stored | {"refused": 0},
    lambda stored: stored | {"named": "8192"},
    lambda stored: stored | {"accepted": -1},
    lambda stored: stored | {"accepted": 10**9 + 1},
    lambda stored: stored | {"at": float("nan")},
    lambda stored: stored | {"at": 10**400},
    lambda stored: {name: value for name, value in stored.items() if name != "queried"},
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_damaged_is_forgotten(damage: Callable[[dict[str, Any]], Any], learned: ContextSizeTracker) -> None:
    size = ContextSizeTracker()
    size.restore(damage(learned.as_dict()))

    assert (size.get_context_tokens(), size.as_dict()) == (None, {})


@given(
    dictionaries(
        sampled_from(["named", "queried", "accepted", "refused", "at"]),
        one_of(none(), integers(), floats(), text(max_size=3)),
    )
)
def test_whatever_was_stored_can_be_planned_with(stored: dict[str, Any]) -> None:
    plain = ContextSizeTracker()
    plain.on_size_named(1)
    size = ContextSizeTracker()
    size.restore(plain.as_dict() | stored)
    size.on_answered(1000)
    size.on_answered(3000, refused=4000)

    assert (size.get_context_tokens() or 0) >= 1


@given(lists(tuples(integers(1, 20_000), one_of(none(), integers(2049, 20_000))), min_size=1, max_size=20))
def test_plan_stays_below_what_was_refused(requests: list[tuple[int, int | None]]) -> None:
    size, refused = ContextSizeTracker(), 0
    for answered, before in requests:
        size.on_answered(answered, refused=before)
        refused = 0 if answered >= refused else refused
        refused = min(refused or before, before) if before is not None and before > answered else refused

    planned = size.get_context_tokens()
    assert (planned is None) == (refused == 0)
    assert planned is None or planned < refused


def test_what_a_server_says_that_it_reads_is_planned_with_whatever_was_sent_before() -> None:
    size = ContextSizeTracker()
    size.on_answered(9000)
    size.on_size_queried(4096)
    size.on_answered(4000, billed=4000)

    assert size.get_context_tokens(128_000) == 4096


def test_bill_above_what_a_server_is_said_to_read_raises_it() -> None:
    size = ContextSizeTracker()
    size.on_size_queried(4096)
    size.on_answered(6000, billed=6000)

    assert (size.get_context_tokens(), size.may_have_changed) == (6000, True)


def test_plan_that_counts_too_little_is_given_less() -> None:
    size = ContextSizeTracker()
    size.on_size_queried(4000)
    size.on_answered(1000, billed=1250)

    assert size.get_context_tokens() == 3200
