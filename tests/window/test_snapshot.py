"""Tests for snapshots, which contain the exchanges that changed since the window was last stored."""

from collections.abc import Callable

import pytest

from custom_components.windowed_conversation.window import EstimatedCounter, Message, Window, WindowPolicy


def said(window: Window, text: str) -> None:
    """Record an exchange with this question."""
    window.add_exchange((Message.user(text), Message.assistant("Yes.")))


@pytest.fixture
def window() -> Window:
    """Return a window with two exchanges, of which a snapshot has been taken."""
    window = Window("conversation", WindowPolicy(history_tokens=200), EstimatedCounter())
    window.set_system_prompt("You are a voice assistant.")
    said(window, "one")
    said(window, "two")
    window.snapshot()
    return window


CHANGES: dict[str, Callable[[Window], None]] = {
    "an exchange": lambda window: said(window, "three"),
    "a system prompt": lambda window: window.set_system_prompt("You are a butler."),
    "a tag": lambda window: window.tag_exchange(1, add={"important"}),
    "a smaller policy": lambda window: window.set_policy(WindowPolicy(history_tokens=15)),
}


@pytest.mark.parametrize("change", [change for name, change in CHANGES.items() if name != "a system prompt"])
def test_exchanges_are_given_once_after_each_change(window: Window, change: Callable[[Window], None]) -> None:
    assert window.take_changed_exchanges() == window.exchanges()
    assert window.take_changed_exchanges() is None

    change(window)

    assert window.take_changed_exchanges() == window.exchanges()
    assert window.take_changed_exchanges() is None


def test_exchanges_are_not_given_while_one_is_open_and_are_when_it_has_ended(window: Window) -> None:
    window.take_changed_exchanges()
    window.open("three")
    assert window.take_changed_exchanges() is None
    window.add(Message.assistant("Yes."))
    window.close()

    assert window.take_changed_exchanges() == window.exchanges()


def test_exchanges_are_as_before_when_what_was_evicted_for_an_open_one_comes_back(window: Window) -> None:
    before = window.take_changed_exchanges()
    window.open("three" * 200)
    assert window.take_changed_exchanges() is None
    window.abort()

    assert window.take_changed_exchanges() == before


def test_system_prompt_is_no_change_of_exchanges(window: Window) -> None:
    window.take_changed_exchanges()

    window.set_system_prompt("You are a butler.")

    assert window.take_changed_exchanges() is None
