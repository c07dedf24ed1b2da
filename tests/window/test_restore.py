"""Tests for restored windows: their order, the current policy, and their idle time."""

import pytest

from custom_components.windowed_conversation.window import Message, Window, WindowBusy, WindowPolicy, WindowRegistry
from custom_components.windowed_conversation.window.exchange import Snapshot

from .histories import LengthCounter, create_window
from .turns import begin_turn


@pytest.fixture
def windows() -> WindowRegistry[str]:
    """Return a registry whose clock is always at 10,000 seconds."""
    return WindowRegistry(
        lambda key: Window(key, WindowPolicy(), LengthCounter()), idle_seconds=3600, clock=lambda: 10_000.0
    )


def snapshot(exchanges: int = 1) -> Snapshot:
    """Return the snapshot of a conversation with this many exchanges of 28 tokens each."""
    window = create_window(WindowPolicy())
    for _ in range(exchanges):
        window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))
    return window.snapshot()


def test_restored_window_has_the_key_that_it_was_restored_under(windows: WindowRegistry[str]) -> None:
    windows.restore("mine", snapshot())

    (window,) = windows.loaded_windows().values()
    assert window.conversation_id == "mine"
    assert window.messages() == snapshot().exchanges[0].messages


def test_restored_windows_are_in_the_order_of_their_last_use(windows: WindowRegistry[str]) -> None:
    for key in ("first", "second"):
        windows.restore(key, snapshot())

    assert [window.conversation_id for window in windows.loaded_windows().values()] == ["second", "first"]


def test_time_before_the_restart_counts_as_idle(windows: WindowRegistry[str]) -> None:
    windows.restore("idle", snapshot(), idle_seconds=3600)
    windows.restore("busy", snapshot(), idle_seconds=3599)

    assert windows.expire_windows() == 1
    assert windows.get_loaded("busy")


async def test_window_in_use_is_not_replaced(windows: WindowRegistry[str]) -> None:
    async with begin_turn(windows, "mine") as window:
        with pytest.raises(WindowBusy):
            windows.restore("mine", snapshot())
        assert windows.get_loaded("mine") is window
