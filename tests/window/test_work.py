"""Tests that the cost of a turn does not grow (rule 7), in executed instructions of the window's own code."""

import pytest

from custom_components.windowed_conversation.window import Message, ToolCall, Window, WindowPolicy

from .histories import LengthCounter, create_window
from .instructions import executed_by

# If a trim frees a quarter of the budget, a window of 40 such exchanges trims every 11 turns, and one of 400 every 101.
_EXCHANGE_TOKENS = 100
_PERIOD_TURNS = 11 * 101


def add_tool_turns(window: Window, turns: int) -> None:
    """Add turns of 100 tokens, each with a tool call, to the window."""
    call = ToolCall("call-1", "on", {})
    for _ in range(turns):
        window.open("x" * 20)
        window.add(Message.assistant(tool_calls=(call,)))
        window.add(Message.tool("call-1", "on", "x" * 20))
        window.add_tags("route:model")
        window.add(Message.assistant("x" * 28))
        window.close()
        window.messages()
        window.stats()


def instructions(window: Window, turns: int) -> int:
    """Return the number of instructions of the window's code that these turns execute."""
    return executed_by(lambda: add_tool_turns(window, turns))


@pytest.fixture
def window() -> Window:
    return create_window(WindowPolicy(40 * _EXCHANGE_TOKENS), "You are a helpful home.")


def test_exchanges_here_cost_what_the_periods_are_made_for(window: Window) -> None:
    add_tool_turns(window, 41)
    assert (window.stats().current_tokens, window.stats().trims) == (30 * _EXCHANGE_TOKENS, 1)


@pytest.mark.long
def test_exchange_10000_costs_what_exchange_1000_cost(window: Window) -> None:
    add_tool_turns(window, 1000)
    early = instructions(window, _PERIOD_TURNS)
    add_tool_turns(window, 10_000 - 1000 - 2 * _PERIOD_TURNS)
    assert instructions(window, _PERIOD_TURNS) == early


@pytest.mark.long
def test_forty_thousand_appends_to_a_full_window_cost_the_same_each(window: Window) -> None:
    add_tool_turns(window, 1000)
    # ten times 1,001 turns of four messages; each block of turns contains the same number of trims
    costs = {instructions(window, 11 * 91) for _ in range(10)}
    assert len(costs) == 1


@pytest.mark.long
def test_exchange_10000_costs_the_same_where_protected_exchanges_stay(window: Window) -> None:
    window.open("x" * 96, tags={"important"})
    window.close()
    test_exchange_10000_costs_what_exchange_1000_cost(window)


@pytest.mark.long
def test_exchange_in_a_large_window_costs_no_more_than_in_a_small_one(window: Window) -> None:
    large = create_window(WindowPolicy(400 * _EXCHANGE_TOKENS), "You are a helpful home.")
    add_tool_turns(window, 1000)
    add_tool_turns(large, 1000)
    assert instructions(large, _PERIOD_TURNS) <= instructions(window, _PERIOD_TURNS)


def test_messages_and_the_prompt_are_counted_once_over_10000_exchanges(window: Window) -> None:
    add_tool_turns(window, 10_000)
    counter = window._counter
    assert isinstance(counter, LengthCounter)
    assert counter.asked == 40_000 + 1
