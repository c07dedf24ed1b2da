"""Tests with examples of tool results: cut when added, replaced by stubs at the close, or kept by the policy."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Message,
    ToolCall,
    Window,
    WindowPolicy,
)

from .histories import LengthCounter, create_window, said

CALL = ToolCall("call-1", "get_states", {"area": "Küche", "domain": ["light"]})
STATES = json.dumps({"states": [{"entity_id": f"light.lamp_{number}", "state": "off"} for number in range(30)]})


def call_tool(window: Window, result: str, call: ToolCall = CALL) -> None:
    """Open an exchange with a tool call and its result."""
    window.open("which lamps are on?")
    window.add(Message.assistant(tool_calls=(call,)))
    window.add(Message.tool(call.id, call.name, result))


def take_turn(window: Window, result: str, call: ToolCall = CALL) -> None:
    """Record an exchange with a tool call, its result and an answer."""
    call_tool(window, result, call)
    window.add(Message.assistant("None."))
    window.close()


def tool_texts(window: Window) -> list[str]:
    """Return the texts of the tool results."""
    return [message.content for message in window.messages() if message.role == "tool"]


def test_stub_tells_tool_arguments_size_and_first_words() -> None:
    window = create_window(WindowPolicy())
    take_turn(window, STATES)
    size = len(f"get_states\n{STATES}") + 4
    assert tool_texts(window)[0] == (
        f'[Shortened result of get_states {{"area":"Küche","domain":["light"]}}: {size} tokens, beginning with '
        '{"states": [{"entity_id": "light.lamp_0", "state": "off"}, {"entity_id": "light.lamp_1", "state": "o…]'
    )


@pytest.mark.parametrize("blank", ["\n", "\r\n", "\t ", "\u2028", "\x85"])
def test_stub_is_one_line(blank: str) -> None:
    window = create_window(WindowPolicy())
    take_turn(window, blank.join(["word"] * 500), ToolCall("call-1", f"odd{blank}name", {f"a{blank}": f"b{blank}"}))
    assert len(tool_texts(window)[0].splitlines()) == 1


def test_stub_is_short_whatever_the_call_was() -> None:
    window = create_window(WindowPolicy(100_000, result_cap_tokens=50_000))
    take_turn(window, "y" * 9_000, ToolCall("call-1", "n" * 3_000, {"code": "z" * 3_000}))
    assert len(tool_texts(window)[0]) < 400


def test_result_that_is_shorter_than_its_stub_stays() -> None:
    window = create_window(WindowPolicy())
    take_turn(window, '{"success": true}')
    assert tool_texts(window) == ['{"success": true}']


def test_stub_has_no_stub_of_its_own() -> None:
    window, restored = create_window(WindowPolicy()), create_window(WindowPolicy())
    take_turn(window, STATES)
    restored.add_exchange(window.messages())
    assert said(restored.messages()) == said(window.messages())


def test_each_of_several_results_has_the_stub_of_its_own_call() -> None:
    calls = tuple(ToolCall(f"call-{room}", "get_states", {"area": room}) for room in ("hall", "attic"))
    window = create_window(WindowPolicy())
    window.open("which lamps are on?")
    window.add(Message.assistant(tool_calls=calls))
    for call in reversed(calls):
        window.add(Message.tool(call.id, call.name, STATES))
    window.close()
    assert ["attic" in tool_texts(window)[0], "hall" in tool_texts(window)[1]] == [True, True]


def test_results_of_the_open_exchange_are_those_of_the_newest_tool_turn() -> None:
    window = create_window(WindowPolicy(4_000, max_tool_turns=1))
    take_turn(window, STATES)
    call_tool(window, STATES)
    window.add(Message.assistant("x" * 1_000))
    assert [text == STATES for text in tool_texts(window)] == [False, True]


def add_rounds(window: Window, count: int) -> None:
    """Open an exchange with this many rounds of a tool call and its result."""
    window.open("which lamps are on?")
    for number in range(count):
        window.add(Message.assistant(tool_calls=(ToolCall(f"call-{number}", "get_states", {}),)))
        window.add(Message.tool(f"call-{number}", "get_states", STATES))


def test_newest_rounds_keep_their_results_inside_one_exchange() -> None:
    window = create_window(WindowPolicy(20_000, max_tool_turns=2))
    add_rounds(window, 5)
    window.close()
    assert tool_texts(window) == [STATES] * 5

    window.set_policy(WindowPolicy(7_000, max_tool_turns=2))

    assert [text == STATES for text in tool_texts(window)] == [False] * 3 + [True] * 2


def test_rounds_of_the_open_exchange_count_with_those_before_it() -> None:
    window = create_window(WindowPolicy(20_000, max_tool_turns=3))
    add_rounds(window, 4)
    window.close()
    add_rounds(window, 1)

    window.set_policy(WindowPolicy(7_000, 0.0, max_tool_turns=3))

    assert [text == STATES for text in tool_texts(window)] == [False] * 2 + [True] * 3


def test_rounds_of_the_open_exchange_beyond_the_number_lose_their_results_at_a_trim() -> None:
    window = create_window(WindowPolicy(20_000, max_tool_turns=1))
    add_rounds(window, 6)
    window.set_turn_limit(window.open_tokens - 1)
    assert [text == STATES for text in tool_texts(window)] == [False] * 5 + [True]


def test_restored_window_keeps_the_results_of_as_many_tool_turns() -> None:
    policy = WindowPolicy(8_000, max_tool_turns=2)
    window, restored = create_window(policy), create_window(policy)
    for _ in range(4):
        take_turn(window, STATES)
    restored.restore(window.snapshot())
    for _ in range(2):
        take_turn(restored, STATES)
    assert [text == STATES for text in tool_texts(restored)] == [False] * 4 + [True] * 2


def test_results_from_before_the_policy_changed_are_replaced_at_the_next_trim() -> None:
    window = create_window(WindowPolicy(8_000, tool_results="keep"))
    for _ in range(5):
        take_turn(window, STATES)
    window.set_policy(WindowPolicy(8_000))
    assert tool_texts(window) == [STATES] * 5
    window.set_policy(WindowPolicy(7_000))
    assert [text == STATES for text in tool_texts(window)] == [False] * 4 + [True]


def test_stub_keeps_the_tags_and_the_date_of_the_result() -> None:
    window = create_window(WindowPolicy())
    take_turn(window, STATES)
    (result,) = (message for message in window.messages() if message.role == "tool")
    assert (result.tags, result.created) == (frozenset({"tool_call"}), 1_000.0)


def test_long_result_is_cut_on_entry_and_says_so_in_its_last_line() -> None:
    window = create_window(WindowPolicy(result_cap_tokens=500))
    call_tool(window, STATES)
    *beginning, last = window.messages()[-1].content.split("\n")
    assert STATES.startswith("\n".join(beginning))
    assert last == f"[Cut: these are the first {len(beginning[0])} of {len(STATES)} characters.]"
    assert 400 < (window.messages()[-1].tokens or 0) <= 500


class CounterOfWork(LengthCounter):
    """Adds up the lengths of the texts that it counts."""

    counted_chars = 0

    def count(self, text: str) -> int:
        self.counted_chars += len(text)
        return EstimatedCounter().count(text)


def test_no_more_of_ten_megabytes_is_counted_than_may_enter() -> None:
    counter = CounterOfWork()
    window = Window("conversation", WindowPolicy(), counter)
    take_turn(window, "word " * 2_000_000)
    assert counter.counted_chars < 4_000 * 8 * 3


@pytest.mark.parametrize("policy", [{}, {"tool_results": "keep"}, {"max_tool_turns": 2}], ids=str)
def test_result_of_a_live_tool_says_nothing_once_its_exchange_is_closed(policy: dict[str, Any]) -> None:
    window = Window("c", WindowPolicy(live_tools=frozenset({"get_states"}), **policy), EstimatedCounter())
    window.open("is it open?")
    window.add(Message.assistant(tool_calls=(ToolCall("1", "get_states", {}), ToolCall("2", "other", {}))))
    window.add(Message.tool("1", "get_states", "Window=open"))
    window.add(Message.tool("2", "other", "short"))
    assert [message.content for message in window.messages()[2:]] == ["Window=open", "short"]

    window.close()

    closed = window.exchanges()[0]
    shown = [message.content for message in closed.messages[2:]]
    assert shown == ["[Shortened result of get_states {}: true only at that moment]", "short"]
    assert closed.tokens == sum(message.tokens or 0 for message in closed.messages)
