"""Tests for the weight of a request: its total, and the room that it leaves."""

import pytest

from custom_components.windowed_conversation.providers import ToolSchema
from custom_components.windowed_conversation.turn.limits import Budget, RequestWeight, weigh_request
from custom_components.windowed_conversation.window import TextKind, WindowPolicy


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
