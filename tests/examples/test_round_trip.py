"""Tests that the state of a LangGraph graph is read back as the same window."""

import json

from hypothesis import given, settings

from custom_components.windowed_conversation.window import Attachment, Message, Window, WindowPolicy
from examples.window_interop import from_langgraph_state, to_langgraph_state
from tests.window.conversations import windows
from tests.window.histories import LengthCounter, create_window


def round_trip(window: Window) -> Window:
    state = json.loads(json.dumps(to_langgraph_state(window)))
    return from_langgraph_state(state, window.policy, LengthCounter(), clock=lambda: 1_000.0)


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_window_comes_back_equal(window: Window) -> None:
    again = round_trip(window)

    assert again.stats() == window.stats()
    assert again.snapshot() == window.snapshot()


def test_nothing_is_counted_again() -> None:
    window = create_window(WindowPolicy(), "obey")
    window.add_exchange((Message.user("a"), Message.assistant("b")))

    again = round_trip(window)

    assert isinstance(again._counter, LengthCounter)
    assert again._counter.asked == 0


def test_exchange_that_is_open_is_not_written() -> None:
    window = create_window(WindowPolicy(history_tokens=40), "obey")
    window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))
    before = window.messages()
    window.open("z" * 30)

    assert round_trip(window).messages() == before


def test_attachments_come_back() -> None:
    window = create_window(WindowPolicy())
    picture = Attachment("image/png", bytes(range(256)), "door.png")
    window.add_exchange((Message.user("who is there?", attachments=(picture,)), Message.assistant("Ada")))

    assert round_trip(window).messages()[0].attachments == (picture,)


def test_sources_come_back() -> None:
    window = create_window(WindowPolicy())
    window.open("what is my name?")
    window.add_sources(["fact:1"])
    window.add(Message.assistant("Ada"))
    window.close()

    assert [exchange.sources for exchange in round_trip(window).exchanges()] == [{"fact:1"}]


def test_policy_in_force_trims_what_comes_back() -> None:
    window = create_window(WindowPolicy(history_tokens=1000))
    for _ in range(4):
        window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))
    window.policy = WindowPolicy(history_tokens=60, trim_share=0)

    assert round_trip(window).stats().exchange_count == 2
