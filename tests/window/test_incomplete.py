"""Tests for exchanges whose turn ended before the answer was complete, and their form in the next request."""

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.window import (
    INTERRUPTED_ANSWER,
    INTERRUPTED_CALL,
    ExchangeStillOpen,
    Message,
    NoOpenExchange,
    ToolCall,
    Window,
    WindowPolicy,
)

from .histories import Exchange, all_policies, calls, create_window, defects, exchanges, said

CALL = ToolCall("call-1", "add_item", {"item": "milk"})
NEXT = ToolCall("call-2", "add_item", {"item": "bread"})


@pytest.fixture
def window() -> Window:
    return create_window(WindowPolicy(8000), "You are a helpful home.")


@pytest.fixture
def called(window: Window) -> Window:
    """Return a window with an open exchange in which a tool call has its result."""
    window.open("add milk")
    window.add(Message.assistant(tool_calls=(CALL,)))
    window.add(Message.tool("call-1", "add_item", "done"))
    return window


def roles(window: Window) -> list[str]:
    return [str(message.role) for message in window.messages()]


def test_incomplete_exchange_keeps_call_and_result_and_says_what_became_of_the_answer(called: Window) -> None:
    called.close_incomplete("Milk is on")
    assert said(called.messages()[1:]) == said(
        (
            Message.user("add milk"),
            Message.assistant(tool_calls=(CALL,)),
            Message.tool("call-1", "add_item", "done"),
            Message.assistant(f"Milk is on\n{INTERRUPTED_ANSWER}"),
        )
    )


def test_incomplete_exchange_is_closed_and_tagged(called: Window) -> None:
    called.add_tags("route:model")
    called.close_incomplete()
    assert not called.is_open
    assert called.exchanges()[-1].tags == {"input", "output", "tool_call", "route:model", "incomplete"}


def test_tag_of_an_incomplete_exchange_may_be_removed(called: Window) -> None:
    called.close_incomplete()
    called.tag_exchange(1, remove={"incomplete"})
    assert called.stats().tag_distribution == {"input": 1, "output": 1, "tool_call": 1}


def test_calls_without_results_get_one_that_leaves_open_what_they_did(window: Window) -> None:
    window.open("add milk and bread")
    window.add(Message.assistant(tool_calls=(CALL, NEXT)))
    window.add(Message.tool("call-2", "add_item", "done"))
    window.close_incomplete()
    results = [(message.tool_call_id, message.content) for message in window.messages() if message.role == "tool"]
    assert results == [("call-2", "done"), ("call-1", INTERRUPTED_CALL)]


def test_calls_of_the_answer_that_was_under_way_are_known_to_the_next_request(called: Window) -> None:
    called.close_incomplete("And now", (NEXT,))
    assert said(called.messages()[-3:]) == said(
        (
            Message.assistant(tool_calls=(NEXT,)),
            Message.tool("call-2", "add_item", INTERRUPTED_CALL),
            Message.assistant(f"And now\n{INTERRUPTED_ANSWER}"),
        )
    )


@pytest.mark.parametrize("under_way", [(CALL,), (ToolCall("", "add_item", {}),)], ids=["known id", "no id"])
def test_calls_that_could_not_be_added_are_excluded(called: Window, under_way: tuple[ToolCall, ...]) -> None:
    called.close_incomplete("And now", under_way)
    assert roles(called) == ["system", "user", "assistant", "tool", "assistant"]


def test_results_of_an_incomplete_exchange_become_stubs_and_what_was_interrupted_does_not(window: Window) -> None:
    window.open("add milk and bread")
    window.add(Message.assistant(tool_calls=(CALL, NEXT)))
    window.add(Message.tool("call-1", "add_item", "x" * 900))
    window.close_incomplete()
    stub, interrupted = (message.content for message in window.messages() if message.role == "tool")
    assert stub.startswith("[Shortened result of add_item")
    assert interrupted == INTERRUPTED_CALL


def test_nothing_is_closed_where_nothing_is_open(window: Window) -> None:
    with pytest.raises(NoOpenExchange):
        window.close_incomplete("hello")
    assert len(window.messages()) == 1


def test_window_says_whether_the_open_exchange_holds_a_tool_call(window: Window) -> None:
    held = [window.has_tool_calls]
    window.open("add milk")
    held.append(window.has_tool_calls)
    window.add(Message.assistant(tool_calls=(CALL,)))
    held.append(window.has_tool_calls)
    with pytest.raises(ExchangeStillOpen):
        window.open("again")
    window.close_incomplete()
    assert [*held, window.has_tool_calls] == [False, False, True, False]


@settings(deadline=None, max_examples=150)
@given(exchanges(), all_policies, st.data())
def test_rule_1_holds_wherever_an_exchange_was_interrupted(
    exchange: Exchange, policy: WindowPolicy, data: st.DataObject
) -> None:
    window = create_window(policy)
    window.open(exchange[0].content)
    for message in exchange[1 : data.draw(st.integers(1, len(exchange)))]:
        window.add(message)
    known = [call for message in window.messages() for call in message.tool_calls]
    under_way = tuple(data.draw(st.permutations([*calls(2), *known])))
    window.close_incomplete(data.draw(st.text(max_size=5)), under_way)
    assert not defects(window.messages())
    assert window.messages()[-1].content.splitlines()[-1] == INTERRUPTED_ANSWER


@pytest.fixture
def interrupted(called: Window) -> Window:
    """Return a window with an exchange that was interrupted during a tool call and the answer."""
    called.close_incomplete("And now", (NEXT,))
    return called
