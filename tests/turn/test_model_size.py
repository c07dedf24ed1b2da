"""Tests for a model's size, as learned from its server and from accepted and refused requests."""

from collections.abc import Callable
import json
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import dictionaries, floats, integers, none, one_of, sampled_from, text
import pytest

from custom_components.windowed_conversation.providers import Request, Usage
from custom_components.windowed_conversation.turn.model_size import ContextSizeTracker
from custom_components.windowed_conversation.window import Attachment, Message

DAY = 24 * 60 * 60
ANSWER = 30


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
    """Return the size of a model that has accepted a request of 3,900 tokens."""
    size = ContextSizeTracker(clock=clock)
    size.on_answered(3900)
    return size


@pytest.fixture
def learned(size: ContextSizeTracker) -> ContextSizeTracker:
    """Return a size that was learned from two refusals."""
    size.on_refused(4100, 3600)
    size.on_refused(4100, 3600)
    return size


def test_nobody_knows_the_size_of_a_new_model() -> None:
    assert ContextSizeTracker().get_context_tokens() is None


def test_listed_size_is_planned_with() -> None:
    assert ContextSizeTracker().get_context_tokens(8192) == 8192


def test_request_that_was_served_proves_its_size_against_a_list(size: ContextSizeTracker) -> None:
    assert size.get_context_tokens(2048) == 3900


def test_answer_belongs_to_what_was_served() -> None:
    size = ContextSizeTracker()
    size.on_answered(3000, answer=500, billed=3600)

    assert size.get_context_tokens(2048) == 3600


def test_single_refusal_leaves_no_trace(size: ContextSizeTracker) -> None:
    size.on_refused(2000, 1500)

    assert size.get_context_tokens() is None
    assert size.get_context_tokens(8192) == 8192


def test_second_refusal_in_a_row_is_believed(learned: ContextSizeTracker) -> None:
    assert learned.get_context_tokens() == 4000
    assert learned.get_context_tokens(128_000) == 4000


def test_list_that_names_less_than_was_learned_counts(learned: ContextSizeTracker) -> None:
    assert learned.get_context_tokens(3950) == 3950


def test_request_of_the_refused_size_that_is_served_refutes_the_refusal(learned: ContextSizeTracker) -> None:
    learned.on_answered(4100)

    assert learned.get_context_tokens() is None


def test_refusals_with_a_larger_served_request_between_them_are_not_in_a_row(size: ContextSizeTracker) -> None:
    size.on_refused(4100, 3600)
    size.on_answered(4200)
    size.on_refused(4300, 3600)

    assert size.get_context_tokens() is None


def test_half_is_planned_with_as_long_as_next_to_nothing_was_served() -> None:
    size = ContextSizeTracker()
    size.on_refused(4001, 0)
    size.on_refused(4001, 0)

    assert size.get_context_tokens() == 2000


def test_server_that_reads_less_than_before_is_believed(size: ContextSizeTracker) -> None:
    size.on_refused(3000, 1900)
    size.on_refused(3000, 1900)

    assert size.get_context_tokens() == 2450


def test_refusal_just_below_what_was_served_is_a_difference_in_counting(size: ContextSizeTracker) -> None:
    size.on_refused(3890, 2500)
    size.on_refused(3890, 2500)

    assert size.get_context_tokens() == 3889


def test_named_size_counts_at_once() -> None:
    size = ContextSizeTracker()
    size.on_size_named(8192)

    assert size.get_context_tokens() == 8192
    assert size.get_context_tokens(128_000) == 8192


def test_newest_named_size_counts() -> None:
    size = ContextSizeTracker()
    size.on_size_named(8192)
    size.on_size_named(4096)

    assert size.get_context_tokens() == 4096


def test_refusals_below_the_named_size_show_less() -> None:
    size = ContextSizeTracker()
    size.on_size_named(8192)
    size.on_answered(5000)
    size.on_refused(6000, 5000)
    size.on_refused(6000, 5000)

    assert size.get_context_tokens() == 5500


def test_larger_request_is_tried_again_after_some_that_were_limited(learned: ContextSizeTracker) -> None:
    for _ in range(8):
        learned.on_answered(3800)

    assert learned.get_context_tokens() is None


def test_small_requests_are_not_limited(learned: ContextSizeTracker) -> None:
    for _ in range(100):
        learned.on_answered(1000)

    assert learned.get_context_tokens() == 4000


def test_patience_doubles_when_the_same_size_is_refused_again(learned: ContextSizeTracker) -> None:
    for _ in range(8):
        learned.on_answered(3800)
    learned.on_refused(4050, 3800)
    for _ in range(15):
        learned.on_answered(3800)
    waiting = learned.get_context_tokens()
    learned.on_answered(3800)

    assert waiting == 3975
    assert learned.get_context_tokens() is None


@pytest.mark.parametrize("later", [DAY, -DAY])
def test_learned_size_is_forgotten_after_a_day_whichever_way_the_clock_goes(
    later: int, learned: ContextSizeTracker, clock: Clock
) -> None:
    learned.on_size_named(2048)
    clock.now += later

    assert learned.get_context_tokens() is None


def test_learned_size_stays_for_a_day(learned: ContextSizeTracker, clock: Clock) -> None:
    clock.now += DAY - 1

    assert learned.get_context_tokens() == 4000


def test_reconfigured_model_begins_anew(learned: ContextSizeTracker) -> None:
    learned.on_size_named(2048)
    learned.reset()

    assert learned.get_context_tokens() is None
    assert learned.as_dict() == {}


def test_smaller_request_is_between_what_was_served_and_what_was_refused(size: ContextSizeTracker) -> None:
    assert size.get_retry_tokens(4100) == 4000


def test_smaller_request_follows_the_named_size(size: ContextSizeTracker) -> None:
    size.on_size_named(3000)

    assert size.get_retry_tokens(4100) == 3000


def test_nothing_shows_a_smaller_size_if_more_was_served(size: ContextSizeTracker) -> None:
    assert size.get_retry_tokens(3000) is None


def test_any_request_is_larger_than_none() -> None:
    assert ContextSizeTracker().exceeds_last_answered(1)


def test_request_has_grown_against_the_last_one_that_was_served(size: ContextSizeTracker) -> None:
    size.on_answered(1000)

    assert size.exceeds_last_answered(1001)
    assert not size.exceeds_last_answered(1000)


def test_what_was_learned_outlives_a_restart(learned: ContextSizeTracker, clock: Clock) -> None:
    kept = json.loads(json.dumps(learned.as_dict()))

    assert ContextSizeTracker.from_dict(kept, clock=clock).get_context_tokens() == 4000


def test_change_is_told_once() -> None:
    told = list[int]()
    size = ContextSizeTracker(lambda: told.append(1))
    size.on_size_named(1000)
    size.reset()
    size.reset()

    assert told == [1, 1]


def test_refuted_refusal_is_told() -> None:
    told = list[int]()
    size = ContextSizeTracker(lambda: told.append(1))
    size.on_refused(4000, 3000)
    size.on_answered(5000)

    assert told == [1, 1]


DAMAGED: list[Callable[[dict[str, Any]], Any]] = [
    lambda kept: None,
    lambda kept: [kept],
    lambda kept: {},
    lambda kept: {"tokens": 1891, "at": kept["at"]},
    lambda kept: kept | {"refused": True},
    lambda kept: kept | {"refused": 0},
    lambda kept: kept | {"named": "8192"},
    lambda kept: kept | {"served": -1},
    lambda kept: kept | {"served": 10**9 + 1},
    lambda kept: kept | {"patience": 0},
    lambda kept: kept | {"patience": 10**6},
    lambda kept: kept | {"at": float("nan")},
    lambda kept: {name: value for name, value in kept.items() if name != "since"},
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_damaged_is_forgotten(damage: Callable[[dict[str, Any]], Any], learned: ContextSizeTracker) -> None:
    size = ContextSizeTracker.from_dict(damage(learned.as_dict()))

    assert (size.get_context_tokens(), size.as_dict()) == (None, {})


@given(
    dictionaries(
        sampled_from(["named", "served", "since", "refused", "tried", "refusals", "limited", "patience", "at"]),
        one_of(none(), integers(), floats(), text(max_size=3)),
    )
)
def test_whatever_was_kept_can_be_planned_with(kept: dict[str, Any]) -> None:
    plain = ContextSizeTracker()
    plain.on_size_named(1)
    size = ContextSizeTracker.from_dict(plain.as_dict() | kept)
    size.on_answered(1000)
    size.on_refused(1200, 900)
    size.on_refused(1200, 900)

    assert (size.get_context_tokens() or 0) >= 1


class Server:
    """A server that accepts requests up to its context size, answers included."""

    def __init__(self, context: int, size: ContextSizeTracker, *, fixed: int, step: int, history: int) -> None:
        self.context = context
        self.size = size
        self.fixed, self.step, self.history = fixed, step, history
        self.window = 0
        self.requests = self.refused = 0
        self.greatest = 0

    def talk(self) -> None:
        """Take a turn: the window grows, is trimmed to the plan, and is sent; after a refusal, less of it is sent."""
        self.window += self.step
        planned = self.size.get_context_tokens()
        room = self.history if planned is None else min(self.history, planned - planned // 16 - self.fixed)
        if self.window > room:
            self.window = max(int(0.9 * room), self.step)
        sent, refused = self.fixed + self.window, None
        while not self._can_serve(sent):
            refused = sent
            target = self.size.get_retry_tokens(sent)
            smaller = sent * 2 // 3 if target is None else target - target // 16
            sent = max(min(smaller, sent - 1), self.fixed)
        answer = min(ANSWER, self.context - sent)
        self.size.on_answered(sent, answer)
        if refused is not None:
            self.size.on_refused(refused, sent)
        self.greatest = max(self.greatest, sent + answer)

    def _can_serve(self, sent: int) -> bool:
        self.requests += 1
        self.refused += sent > self.context
        return sent <= self.context


@settings(deadline=None)
@given(
    # at least the size of the system prompt and one exchange: a smaller context would refuse every request
    integers(1700, 200_000),
    integers(300, 1200),
    integers(20, 400),
    sampled_from([4000, 8000, 32_000, 400_000]),
)
def test_any_size_is_learned_with_few_refusals_and_what_was_served_is_planned_with(
    context: int, fixed: int, step: int, history: int
) -> None:
    server = Server(context, ContextSizeTracker(), fixed=fixed, step=step, history=history)
    for _ in range(100):
        server.talk()
        assert server.greatest <= (server.size.get_context_tokens() or server.greatest)

    assert server.refused <= server.requests / 10


@settings(deadline=None)
@given(integers(1500, 200_000), integers(20, 400))
def test_size_that_was_learned_is_in_use(context: int, step: int) -> None:
    server = Server(context, ContextSizeTracker(), fixed=1000, step=step, history=10**9)
    server.window = context - 1000 - 10 * step
    for _ in range(60):
        server.talk()

    assert server.fixed + server.window >= 0.75 * context
    assert abs((server.size.get_context_tokens() or context) / context - 1) <= 0.25


@settings(deadline=None)
@given(integers(3000, 100_000), sampled_from([0.3, 0.5, 0.8]))
def test_server_that_shrinks_is_followed(context: int, share: float) -> None:
    server = Server(context, ContextSizeTracker(), fixed=400, step=60, history=10**9)
    server.window = context - 1000
    for _ in range(30):
        server.talk()
    server.context = int(share * context)
    for _ in range(30):
        server.talk()
    before = server.refused
    for _ in range(40):
        server.talk()

    assert server.refused - before <= 6


def test_refusal_without_a_reason_teaches_nothing_from_one_question(size: ContextSizeTracker) -> None:
    for _ in range(5):
        size.on_unexplained_refusal(5000, 1000, newest=1)

    assert size.get_context_tokens() is None


def test_two_different_questions_show_a_size(size: ContextSizeTracker) -> None:
    size.on_unexplained_refusal(5000, 1000, newest=1)
    size.on_unexplained_refusal(4600, 1000, newest=2)

    assert size.get_context_tokens() == 4250


def test_refusals_that_are_hardly_larger_than_what_was_served_show_nothing(size: ContextSizeTracker) -> None:
    for newest in range(5):
        size.on_unexplained_refusal(4200, 1000, newest=newest)

    assert size.get_context_tokens() is None


def test_larger_request_that_is_served_refutes_a_refusal_without_a_reason(size: ContextSizeTracker) -> None:
    size.on_unexplained_refusal(4600, 1000, newest=1)
    size.on_answered(4700)
    size.on_unexplained_refusal(5300, 1000, newest=2)

    assert size.get_context_tokens() is None


def test_what_a_server_says_that_it_reads_is_planned_with_whatever_was_sent_before() -> None:
    size = ContextSizeTracker()
    size.on_answered(9000)
    size.on_size_queried(4096)
    size.on_answered(9000, billed=4000)

    assert size.get_context_tokens(128_000) == 4096


def test_bill_above_what_a_server_is_said_to_read_heals_it() -> None:
    size = ContextSizeTracker()
    size.on_size_queried(4096)
    size.on_billed(Request("scripted", ()), Usage(input=6000, output=10), "fp_ollama scripted")

    assert (size.get_context_tokens(), size.may_have_changed) == (None, True)


def test_plan_that_counts_too_little_is_given_less() -> None:
    size = ContextSizeTracker()
    size.on_size_queried(4000)
    size.on_answered(1000, billed=1250)

    assert size.get_context_tokens() == 3200


@pytest.mark.parametrize("billed", [85, 4800])
def test_bill_of_a_request_with_a_picture_changes_no_size(size: ContextSizeTracker, billed: int) -> None:
    size.on_size_queried(4000)
    before = size.as_dict()
    seen = Message.tool("call", "look", "Front door", attachments=(Attachment("image/jpeg", b"picture"),))
    request = Request("model", (Message.user("who is there?"), seen))

    is_cut = size.on_billed(request, Usage(input=billed, output=ANSWER), "server")

    assert (is_cut, size.as_dict(), size.may_have_changed) == (False, before, False)
