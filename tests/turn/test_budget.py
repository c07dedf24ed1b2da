"""Tests for the budget of a request, how many tokens fit into a model, and for the weights of its parts."""

from dataclasses import replace

from hypothesis import given
from hypothesis.strategies import integers
import pytest

from custom_components.windowed_conversation.providers import ToolSchema
from custom_components.windowed_conversation.providers.events import ModelSettings
from custom_components.windowed_conversation.providers.models import UNKNOWN_MODEL, Effort, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.turn.limits import (
    Budget,
    RequestWeight,
    Shortfall,
    calculate_answer_limit,
    choose_evictions,
    find_shortfall,
    free_tokens,
    weigh_request,
)
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import IMPORTANT, Exchange, Message, TextKind, Window, WindowPolicy

from .conftest import Take
from .world import Ear, Home

POLICY = WindowPolicy(history_tokens=8000)
TOKENS = integers(min_value=0, max_value=20_000)


def test_model_of_unknown_size_has_no_limit() -> None:
    assert free_tokens(Budget(POLICY, schema_tokens=5000), 9000) is None


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_request_that_fills_the_room_fits(context: int, reply: int, schemas: int, system: int) -> None:
    budget = Budget(POLICY, context_tokens=context, max_answer_tokens=reply, schema_tokens=schemas)
    history = free_tokens(budget, system)

    assert history is not None
    assert find_shortfall(budget, system, history) is None
    assert find_shortfall(budget, system, history + 1) is not None


def test_model_that_is_too_small_is_told_with_the_numbers() -> None:
    budget = Budget(POLICY, context_tokens=8192, max_answer_tokens=1000, schema_tokens=6000)

    assert find_shortfall(budget, 2000, 120) == Shortfall(needed_tokens=9120, context_tokens=8192)


def test_oldest_exchanges_leave_a_request_first_and_important_ones_last() -> None:
    tags = (frozenset({IMPORTANT}), frozenset[str](), frozenset[str]())
    exchanges = [Exchange((), each, tokens=10, number=number) for number, each in enumerate(tags, 1)]

    assert [choose_evictions(exchanges, spare) for spare in (0, -10, -11, -21)] == [set(), {2}, {2, 3}, {1, 2, 3}]


def test_thoughts_have_the_room_that_the_model_has_left() -> None:
    assert calculate_answer_limit(Budget(POLICY, context_tokens=8192, max_answer_tokens=500), 4000, 8192) == 3192


@given(TOKENS, integers(min_value=16, max_value=20_000), TOKENS, TOKENS)
def test_what_is_reserved_is_always_for_the_answer(context: int, reply: int, sent: int, thoughts: int) -> None:
    limit = calculate_answer_limit(Budget(POLICY, context_tokens=context, max_answer_tokens=reply), sent, thoughts)

    assert limit is not None
    assert reply <= limit <= max(reply, context - sent)


@pytest.mark.parametrize(
    ("profile", "effort", "limit"),
    [
        (ModelProfile(reasoning=ReasoningStyle.NONE), None, 1000),
        (ModelProfile(reasoning=ReasoningStyle.NONE), Effort.HIGH, 1000),
        (UNKNOWN_MODEL, None, 1000),
        (UNKNOWN_MODEL, Effort.HIGH, 1000),
        (ModelProfile(reasoning=ReasoningStyle.EFFORT), None, 9192),
        (ModelProfile(reasoning=ReasoningStyle.BUDGET), Effort.NONE, 1000),
        (ModelProfile(reasoning=ReasoningStyle.LEVEL), Effort.MINIMAL, 5096),
        (ModelProfile(reasoning=ReasoningStyle.ADAPTIVE), Effort.LOW, 5096),
        (ModelProfile(reasoning=ReasoningStyle.EFFORT), Effort.HIGH, 25_576),
        (ModelProfile(reasoning=ReasoningStyle.EFFORT, efforts=(Effort.HIGH,)), None, 25_576),
    ],
)
def test_request_has_room_for_the_thoughts_of_its_model(
    profile: ModelProfile, effort: Effort | None, limit: int, question: Question
) -> None:
    model = replace(
        question.model,
        budget=Budget(POLICY, max_answer_tokens=1000),
        profile=profile,
        settings=ModelSettings(effort=effort),
    )

    assert replace(question, model=model).build_request((Message.user("hello"),), ()).max_answer_tokens == limit


def replace_budget(question: Question, budget: Budget) -> Question:
    return replace(question, model=replace(question.model, budget=budget))


async def test_policy_that_changes_while_a_tool_runs_is_in_force_at_once_and_stays(
    take: Take, question: Question, window: Window, home: Home, reply: Ear
) -> None:
    async def turn_on(name: str) -> dict[str, str]:
        window.set_policy(WindowPolicy(history_tokens=500))
        return {"response_type": "action_done"}

    reply.tools = {**home.tools, "intent__HassTurnOn": turn_on}
    await take("turn on the kitchen light", asked=question)

    assert window.policy.history_tokens == 500
    assert window.stats().max_tokens == 500


class WordCounter:
    """Counts words. Text that is not of the fixed part of a request is not expected."""

    def count(self, text: str) -> int:
        """Refuse text of another kind."""
        raise AssertionError(text)

    def count_as(self, kind: TextKind, text: str) -> int:
        """Return the number of words of a text of the fixed part."""
        assert kind is TextKind.FIXED
        return len(text.split())


def weigh(facts: str | None = "h i j k l", context: int | None = None) -> RequestWeight:
    """Return the weight of a request with three, four and two tokens beside the facts."""
    budget = Budget(WindowPolicy(history_tokens=1_000), context, max_answer_tokens=50, live_tokens=100)
    tools = (ToolSchema("GetTime", "", {}),)
    return weigh_request("a b c", "d e f g", tools, facts=facts, budget=budget, counter=WordCounter())


def test_each_part_is_counted_alone() -> None:
    weight = weigh()

    assert (weight.instructions, weight.home, weight.tools, weight.facts) == (3, 4, 2, 5)


@pytest.mark.parametrize(("facts", "total"), [("h i j k l", 14), ("", 9), (None, 9)])
def test_total_has_the_facts_if_they_are_known(facts: str | None, total: int) -> None:
    assert weigh(facts).total == total


@pytest.mark.parametrize(("context", "window"), [(None, 1_000), (5_000, 1_000), (564, 425), (64, 0), (10, 0)])
def test_window_is_what_the_other_parts_leave_of_the_model(context: int | None, window: int) -> None:
    assert weigh(context=context).window == window
