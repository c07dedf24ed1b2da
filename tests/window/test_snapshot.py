"""The snapshot of a window: what is kept of it at any moment."""

from collections.abc import Callable

import pytest

from custom_components.windowed_conversation.window import EstimatedCounter, Message, Window, WindowPolicy


def said(window: Window, text: str) -> None:
    """Let an exchange happen."""
    window.record((Message.user(text), Message.assistant("Yes.")))


@pytest.fixture
def window() -> Window:
    """Return a window with two exchanges, of which a snapshot was taken."""
    window = Window("conversation", WindowPolicy(history_tokens=200), EstimatedCounter())
    window.set_system("You are a voice assistant.")
    said(window, "one")
    said(window, "two")
    window.snapshot()
    return window


CHANGES: dict[str, Callable[[Window], None]] = {
    "an exchange": lambda window: said(window, "three"),
    "a system prompt": lambda window: window.set_system("You are a butler."),
    "a tag": lambda window: window.tag_exchange(1, add={"important"}),
    "a smaller policy": lambda window: window.set_policy(WindowPolicy(history_tokens=15)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_snapshot_follows_a_change(window: Window, change: Callable[[Window], None]) -> None:
    before = window.snapshot()

    change(window)

    assert window.snapshot() != before


def test_snapshot_is_taken_once_until_something_changes(window: Window) -> None:
    assert window.snapshot() is window.snapshot()


def test_snapshot_does_not_see_an_exchange_that_is_open_or_aborted(window: Window) -> None:
    before = window.snapshot()

    window.open("three")
    during = window.snapshot()
    window.abort()

    assert during == window.snapshot() == before
