"""Tests for exchanges with many tool rounds."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest

from custom_components.windowed_conversation.window import Message, ToolCall, Window, WindowPolicy

from .histories import create_window, defects, said
from .instructions import executed_by

# Tokens before the history of every request: a system prompt and the schemas of the tools.
_FRONT = 650 + 900
_ROUNDS = 50
_STATE = '{"entity_id": "light.lamp_7", "state": "off", "attributes": {"brightness": null}}, '


class FourCharCounter:
    """Counts four characters as one token."""

    def count(self, text: str) -> int:
        return len(text) // 4


def tool_loop(window: Window, result_tokens: int) -> Iterator[tuple[Message, ...]]:
    """Yield the requests of one exchange with fifty tool rounds, each with a call and a result of this many tokens."""
    result = (_STATE * 500)[: 4 * (result_tokens - 6)]
    window.open("which of the lamps are on?")
    for number in range(_ROUNDS):
        window.set_turn_limit(None)
        yield window.messages()
        call = ToolCall(f"call-{number}", "get_states", {"area": f"room {number}", "domain": ["light", "switch"]})
        window.add(Message.assistant(tool_calls=(call,)))
        window.add(Message.tool(call.id, call.name, result))
    window.set_turn_limit(None)
    yield window.messages()


def tokens(messages: tuple[Message, ...]) -> int:
    return sum(message.tokens or 0 for message in messages)


def shared(before: tuple[Message, ...], after: tuple[Message, ...]) -> float:
    """Return the share of a request, in tokens, that is identical to the beginning of the previous request."""
    changed = next((place for place, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), None)
    return (_FRONT + tokens(before[:changed])) / (_FRONT + tokens(after))


@pytest.fixture
def window() -> Window:
    return Window("conversation", WindowPolicy(8000), FourCharCounter(), clock=lambda: 1_000.0)


def test_request_of_a_long_tool_loop_mostly_begins_like_the_one_before(window: Window) -> None:
    requests = list(tool_loop(window, 1000))
    assert mean(shared(before, after) for before, after in pairwise(requests)) >= 0.8


def test_stubs_that_fill_the_window_leave_the_newest_result_at_least_a_hundred_tokens() -> None:
    window = Window("conversation", WindowPolicy(2000), FourCharCounter())
    requests = list(tool_loop(window, 1000))
    newest = [request[-1].tokens or 0 for request in requests[1:]]
    assert newest[0] == 1000
    assert 80 < newest[-1] <= 100
    assert [defects(request) for request in requests] == [[]] * (_ROUNDS + 1)
    assert window.stats().over_budget


def go_round(window: Window, number: int, results: Sequence[str]) -> None:
    """Add a tool round to the open exchange, with one call for each of these results."""
    called = tuple(ToolCall(f"call-{number}-{place}", "get", {"n": number}) for place in range(len(results)))
    window.add(Message.assistant(tool_calls=called))
    for call, result in zip(called, results, strict=True):
        window.add(Message.tool(call.id, call.name, result))


def asked(policy: WindowPolicy, results: Sequence[str]) -> Window:
    """Return a window whose open exchange has one tool round with these results."""
    window = create_window(policy)
    window.open("which lamps are on?")
    go_round(window, 0, results)
    return window


def tool_texts(window: Window) -> list[str]:
    """Return the texts of the tool results."""
    return [message.content for message in window.messages() if message.role == "tool"]


def whole(window: Window) -> list[bool]:
    """Return for each tool result whether it is complete, neither cut nor replaced by a stub."""
    return [not text.startswith("[Shortened") and "[Cut" not in text for text in tool_texts(window)]


@pytest.mark.parametrize("results", ["stub", "keep"])
def test_block_of_the_oldest_rounds_becomes_stubs_down_to_half_of_the_budget(results: Any) -> None:
    window = create_window(WindowPolicy(8000, tool_results=results))
    window.open("which lamps are on?")
    for number in range(8):
        go_round(window, number, ["x" * 900])
    assert (whole(window), window.stats().trims) == ([True] * 8, 0)
    go_round(window, 8, ["x" * 900])
    assert (whole(window), window.stats().trims) == ([False] * 6 + [True] * 3, 1)


def test_result_that_is_too_large_is_cut_before_a_request_and_not_before() -> None:
    window = asked(WindowPolicy(2000), ["x" * 3000])
    assert tool_texts(window) == ["x" * 3000]
    window.set_turn_limit(None)
    kept = tool_texts(window)[0].count("x")
    assert tool_texts(window) == [f"{'x' * kept}\n[Cut: these are the first {kept} of 3000 characters.]"]
    assert 1900 < window.stats().current_tokens <= 2000


def test_small_results_of_a_round_stay_whole_and_large_ones_share_what_is_left() -> None:
    window = asked(WindowPolicy(2000), ["x" * 3000, "x" * 300, "x" * 2000])
    window.set_turn_limit(None)
    first, small, last = tool_texts(window)
    assert small == "x" * 300
    assert abs(len(first) - len(last)) < 50
    assert 1850 < window.stats().current_tokens <= 2000


def test_smaller_limit_cuts_the_whole_result_again_and_one_line_says_so() -> None:
    window = asked(WindowPolicy(8000, result_cap_tokens=3000), ["x" * 7000])
    for limit in (2000, 1000, 500):
        window.set_turn_limit(limit)
        (text,) = tool_texts(window)
        kept = text.count("x")
        assert text == f"{'x' * kept}\n[Cut: these are the first {kept} of 7000 characters.]"
        assert window.stats().current_tokens <= limit


def test_cut_result_stays_cut_when_there_is_more_room_again() -> None:
    window = asked(WindowPolicy(8000), ["x" * 3000])
    window.set_turn_limit(1000)
    before = window.messages()
    window.set_turn_limit(None)
    assert window.messages() == before


def test_kept_results_stay_as_the_limit_has_cut_them() -> None:
    window = asked(WindowPolicy(8000, tool_results="keep"), ["x" * 3000])
    window.set_turn_limit(1000)
    before = window.messages()
    window.close()
    assert window.messages() == before


def test_stubs_of_a_tool_loop_are_those_of_the_close() -> None:
    large, small = create_window(WindowPolicy(100_000)), create_window(WindowPolicy(2000))
    for window in (large, small):
        window.open("which lamps are on?")
        for number in range(5):
            go_round(window, number, ["x" * 900, "done"])
        window.add(Message.assistant("None."))
        window.close()
    assert said(small.messages()) == said(large.messages())


def test_append_costs_the_same_in_a_long_tool_loop_as_at_its_begin() -> None:
    window = asked(WindowPolicy(1_000_000), ["done"])
    early = executed_by(lambda: go_round(window, 1, ["done"]))
    for number in range(2, 1000):
        go_round(window, number, ["done"])
    assert executed_by(lambda: go_round(window, 1000, ["done"])) == early


def test_append_costs_the_same_when_there_is_nothing_left_to_replace() -> None:
    window = create_window(WindowPolicy(1000))
    window.open("x" * 2000)
    for number in range(2):
        go_round(window, number, ["done"])
    early = executed_by(lambda: go_round(window, 2, ["done"]))
    for number in range(3, 1000):
        go_round(window, number, ["done"])
    assert executed_by(lambda: go_round(window, 1000, ["done"])) == early
