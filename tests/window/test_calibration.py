"""Tests for calibrating token estimates with reported usage, and that a changed factor does not affect a window."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
import random
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from benchmarks.counting_day import BILLED_SHARES, measure_worst_errors
from custom_components.windowed_conversation.window import EstimatedCounter, Message, ToolCall, Window, WindowPolicy
from custom_components.windowed_conversation.window.tokens import (
    MAX_FACTOR,
    MIN_FACTOR,
    CalibratedCounter,
    Calibration,
    Calibrator,
    RequestEstimate,
    TextKind,
    estimate_request,
)

from ..exact_tokens import exact_count
from .histories import LengthCounter

factors = st.floats(0.65, 1.9)


@dataclass(frozen=True)
class Model:
    """The ratio of a model's tokens to the estimate, for each kind of text."""

    fixed: float = 1.0
    prose: float = 1.0
    tools: float = 1.0

    def reported(self, estimate: RequestEstimate) -> int:
        """Return the usage in tokens that the provider would report for a request."""
        texts = estimate.fixed * self.fixed + estimate.prose * self.prose + estimate.tools * self.tools
        return round(estimate.frame_tokens + texts)


models = st.builds(Model, factors, factors, factors)
usual_models = st.builds(Model, *(st.floats(0.7, 1.5),) * 3)


def requests(fixed: int, history: list[tuple[int, int, int]]) -> Iterator[RequestEstimate]:
    """Yield the estimates of a history's requests. A turn is the tokens of question, tool result and answer."""
    prose = tools = messages = 0
    for question, results, answer in history:
        prose += question
        messages += 1
        yield RequestEstimate(fixed, prose, tools, 4 * messages)
        tools += results
        messages += 2
        yield RequestEstimate(fixed, prose, tools, 4 * messages)
        prose += answer
        messages += 1


def calibrate(calibration: Calibration, model: Model, estimates: Iterator[RequestEstimate]) -> Calibration:
    """Return the calibration after these requests to a model."""
    for estimate in estimates:
        calibration = calibration.after_request(estimate, model.reported(estimate))
    return calibration


def off(calibration: Calibration, model: Model, estimate: RequestEstimate) -> float:
    """Return the relative error of a calibrated estimate, as a share of the reported tokens."""
    return abs(calibration.predict_tokens(estimate) / model.reported(estimate) - 1)


def mixed_turns(seed: int, count: int) -> list[tuple[int, int, int]]:
    """Return turns with random amounts of prose and tool results. A fixed proportion would need only one factor."""
    number = random.Random(seed).randint
    return [(number(15, 80), number(40, 600), number(15, 80)) for _ in range(count)]


@given(models, st.integers(500, 8000), st.integers())
@settings(deadline=None)
def test_requests_are_within_five_percent_after_five_mixed_turns(model: Model, fixed: int, seed: int) -> None:
    history = mixed_turns(seed, 6)

    calibration = calibrate(Calibration(), model, requests(fixed, history[:5]))

    assert max(off(calibration, model, each) for each in list(requests(fixed, history))[-2:]) <= 0.05


@given(usual_models, st.integers(500, 8000), st.integers())
@settings(deadline=None, max_examples=50)
def test_each_kind_of_text_gets_its_own_factor_where_mixtures_differ(model: Model, fixed: int, seed: int) -> None:
    number = random.Random(seed).randint
    history = [(number(15, 80), number(0, 1) * number(40, 600), number(15, 80)) for _ in range(30)]

    calibration = calibrate(Calibration(), model, requests(fixed, history))

    assert calibration.as_dict()[TextKind.PROSE] == pytest.approx(model.prose, rel=0.3)
    assert calibration.as_dict()[TextKind.TOOLS] == pytest.approx(model.tools, rel=0.3)


exact = cache(exact_count)


@pytest.mark.parametrize("share", BILLED_SHARES)
@pytest.mark.parametrize("day", range(1, 6))
def test_live_contexts_weigh_what_a_server_counts_after_each_hour_of_a_day(day: int, share: float) -> None:
    worst = [abs(error) for error in measure_worst_errors(day, share, exact)]

    assert (max(worst) <= 0.1, max(worst[3:]) <= 0.05) == (True, True)


@pytest.mark.parametrize("share", BILLED_SHARES)
@pytest.mark.parametrize(("day", "factor"), [(10, 0.7), (15, 0.7), (9, 1.35), (11, 1.35)])
def test_live_contexts_weigh_what_another_tokenizer_counts_after_a_morning(
    day: int, factor: float, share: float
) -> None:
    worst = measure_worst_errors(day, share, lambda text: round(factor * exact(text)))

    assert max(map(abs, worst[5:])) <= 0.1


def test_request_that_is_sent_again_costs_what_was_billed() -> None:
    estimate = RequestEstimate(fixed=3000, frame_tokens=8)

    calibration = Calibration().after_request(estimate, 3700).after_request(estimate, 3700)

    assert calibration.predict_tokens(estimate) == pytest.approx(3700, rel=0.001)


@given(factors)
def test_large_fixed_part_says_nothing_of_what_is_said(fixed: float) -> None:
    calibration = calibrate(Calibration(), Model(fixed=fixed), requests(6000, [(40, 0, 40)] * 5))

    assert calibration.as_dict()[TextKind.PROSE] == pytest.approx(1, abs=0.05)


@given(factors)
def test_fixed_part_that_changes_says_nothing_of_what_is_said(fixed: float) -> None:
    said = [(40, 100, 40)] * 5
    calibration = calibrate(Calibration(), Model(), requests(2000, said))

    calibration = calibrate(calibration, Model(fixed=fixed), requests(6000, said))

    assert calibration.as_dict()[TextKind.PROSE] == pytest.approx(1, abs=0.08)


def test_kind_that_is_not_in_the_requests_keeps_its_factor() -> None:
    calibration = calibrate(Calibration(), Model(prose=1.4), requests(500, [(60, 0, 60)] * 20))

    assert calibration.as_dict()[TextKind.TOOLS] == 1


def test_another_language_is_learned_when_the_window_holds_it() -> None:
    calibration = calibrate(Calibration(), Model(prose=0.9), requests(1000, [(60, 0, 60)] * 20))

    calibration = calibrate(calibration, Model(prose=1.3), requests(1000, [(60, 0, 60)] * 20))

    assert calibration.as_dict()[TextKind.PROSE] == pytest.approx(1.3, rel=0.1)


@pytest.mark.parametrize("kind", ["prose", "tools"])
def test_slow_change_is_learned_over_a_hundred_conversations(kind: str) -> None:
    calibration = Calibration()
    for weight in range(100, 120):
        model = Model(**{kind: weight / 100})
        for _ in range(5):
            calibration = calibrate(calibration, model, requests(1000, [(60, 120, 60)] * 3))

    assert calibration.as_dict()[TextKind(kind)] == pytest.approx(1.19, rel=0.1)


SMALL = RequestEstimate(500, 400, 100, 20)


@pytest.mark.parametrize(
    ("estimate", "reported", "cached"),
    [
        pytest.param(SMALL, 0, 0, id="nothing"),
        pytest.param(SMALL, -5, 0, id="less than nothing"),
        pytest.param(SMALL, 300, 0, id="less than any model"),
        pytest.param(SMALL, 10**12, 0, id="more than any model"),
        pytest.param(SMALL, 600, 700, id="what was cached apart"),
        pytest.param(RequestEstimate(), 0, 0, id="nothing of nothing"),
        pytest.param(RequestEstimate(frame_tokens=4), 4, 0, id="no text"),
    ],
)
def test_usage_that_cannot_be_the_requests_is_ignored(estimate: RequestEstimate, reported: int, cached: int) -> None:
    calibration = Calibration()

    assert calibration.after_request(estimate, reported, cached) is calibration


def test_one_usage_that_is_far_off_does_little_to_what_is_known() -> None:
    history = [(40, 100, 40)] * 15
    calibration = calibrate(Calibration(), Model(), requests(1500, history))
    *_, newest = requests(1500, history)

    misled = calibration.after_request(newest, newest.frame_tokens + newest.text_tokens // 2 + 1)

    assert misled.factors == pytest.approx((1, 1, 1), abs=0.1)
    assert off(misled, Model(), newest) <= 0.08


def test_another_model_behind_the_same_name_is_learned_from_ten_usages() -> None:
    history = [(40, 100, 40)] * 15
    calibration = calibrate(Calibration(), Model(), requests(3000, history))
    *_, newest = requests(3000, history)

    for _ in range(10):
        calibration = calibration.after_request(newest, Model(1.3, 1.3, 1.3).reported(newest))

    assert off(calibration, Model(1.3, 1.3, 1.3), newest) <= 0.05


estimates = st.builds(RequestEstimate, *(st.integers(0, 10**6),) * 4)


@given(st.lists(st.tuples(estimates, st.floats(0.4, 3)), max_size=30))
@settings(deadline=None)
def test_factors_stay_within_their_bounds_whatever_is_billed(reports: list[tuple[RequestEstimate, float]]) -> None:
    calibration = Calibration()
    for estimate, share in reports:
        calibration = calibration.after_request(estimate, estimate.frame_tokens + round(estimate.text_tokens * share))

    assert all(MIN_FACTOR <= factor <= MAX_FACTOR for factor in calibration.factors)


def test_what_was_learned_is_remembered() -> None:
    learned = calibrate(Calibration(), Model(1.2, 0.8, 1.4), requests(800, [(40, 100, 40)] * 8))

    remembered = Calibration.from_dict(learned.as_dict())

    assert remembered.factors == pytest.approx(learned.factors)
    assert remembered.is_learned
    assert not Calibration().is_learned


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        {},
        {"fixed": 1.0, "prose": 1.0},
        {"fixed": 1.0, "prose": 1.0, "tools": 1.0, "more": 1.0},
        *({"fixed": 1.0, "prose": value, "tools": 1.0} for value in ("1.0", None, 0.0, 40.0, float("nan"), True)),
    ],
)
def test_what_is_no_factors_is_not_remembered(damaged: Any) -> None:
    with pytest.raises(ValueError, match="factor"):
        Calibration.from_dict(damaged)


def test_request_is_estimated_by_kind_of_text() -> None:
    count = EstimatedCounter().count
    call = ToolCall("call-1", "turn_on", {"area": "kitchen"})
    messages = (
        Message.system("You are Ada."),
        Message.user("Lights, please."),
        Message.assistant("At once.", tool_calls=(call,)),
        Message.tool("call-1", "turn_on", '{"done":true}'),
        Message.assistant("They are on."),
    )

    assert estimate_request(messages, ["a schema"]) == RequestEstimate(
        fixed=count("You are Ada.") + count("a schema"),
        prose=count("Lights, please.") + count("They are on."),
        tools=count('At once.\nturn_on\n{"area":"kitchen"}') + count('turn_on\n{"done":true}'),
        frame_tokens=5 * 4 + 8,
    )


def knowing(**learned: float) -> Calibrator:
    """Return a calibrator for a model with these learned factors."""
    return Calibrator(Calibration.from_dict({"fixed": 1.0, "prose": 1.0, "tools": 1.0} | learned))


def test_counter_scales_each_kind_by_its_factor() -> None:
    window = Window("conversation", WindowPolicy(), CalibratedCounter(knowing(fixed=2, tools=0.5), LengthCounter()))
    window.set_system_prompt("x" * 100)
    window.open("x" * 100)
    window.add(Message.assistant(tool_calls=(ToolCall("call-1", "x" * 97, {}),)))
    window.add(Message.tool("call-1", "x", "x" * 98))
    window.add(Message.assistant("x" * 100))

    assert [message.tokens for message in window.messages()] == [204, 104, 4 + 8 + 50, 54, 104]


def test_counter_counts_no_text_as_nothing_and_any_other_as_something() -> None:
    counter = CalibratedCounter(knowing(prose=0.5))

    assert (counter.count(""), counter.count("a")) == (0, 1)


def test_factor_that_changes_counts_for_the_next_message_and_evicts_nothing() -> None:
    calibrator = Calibrator()
    window = Window("conversation", WindowPolicy(450), CalibratedCounter(calibrator, LengthCounter()))
    for _ in range(3):
        window.open("x" * 96)
        window.close()
    before = window.messages(), window.stats()

    calibrator.calibration = knowing(prose=2).calibration
    window.set_policy(WindowPolicy(450))

    assert (window.messages(), window.stats()) == before
    window.open("x" * 48)
    assert [message.tokens for message in window.messages()] == [100] * 4


def test_calibrator_tells_whether_it_learned() -> None:
    calibrator = Calibrator()

    assert not calibrator.learn(RequestEstimate(fixed=100), 0)
    assert calibrator.learn(RequestEstimate(fixed=100), 120)
    assert calibrator.calibration.as_dict()[TextKind.FIXED] > 1
