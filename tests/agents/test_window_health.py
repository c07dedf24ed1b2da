"""Tests for the health check of an agent's windows: it reports windows that stay full despite trims, and no others."""

from collections.abc import Callable
import json

import pytest

from custom_components.windowed_conversation.agents.window_notes import NotesByWindow
from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Message,
    Window,
    WindowPolicy,
    WindowStats,
)

type Say = Callable[..., WindowStats | None]


@pytest.fixture
def notes() -> NotesByWindow:
    return NotesByWindow()


@pytest.fixture
def window() -> Window:
    return Window("conversation", WindowPolicy(history_tokens=1000), EstimatedCounter())


@pytest.fixture
def say(notes: NotesByWindow, window: Window) -> Say:
    """Return a function that takes a turn with this number of words and returns the window that stays full after it."""

    def say(words: int, *tags: str) -> WindowStats | None:
        before = window.stats()
        window.add_exchange((Message.user("word " * words), Message.assistant("yes")), tags=tags)
        notes.on_turn(window, before, window.stats())
        return notes.find_full_window()

    return say


def test_window_that_protected_exchanges_fill_stays_full(say: Say, window: Window) -> None:
    for _ in range(9):
        say(98, "important")

    found = [say(20) for _ in range(20)]

    assert window.stats().protected_tokens > 900
    assert found[-1] == window.stats()


def test_window_with_room_for_one_exchange_stays_full_from_the_third_trim_on(say: Say) -> None:
    found = [say(1000) is not None for _ in range(6)]

    assert found == [False, False, False, True, True, True]


def test_window_is_no_longer_full_after_a_turn_that_leaves_room(say: Say) -> None:
    for _ in range(6):
        say(1000)

    assert say(100) is None


def test_trims_in_vain_count_only_when_they_come_in_a_row(say: Say) -> None:
    found = [say(words) for words in (1000, 1000, 1000, 100, 1000, 1000, 100)]

    assert found == [None] * 7


def test_forgotten_window_is_no_longer_full(notes: NotesByWindow) -> None:
    window = Window("conversation", WindowPolicy(history_tokens=1000), EstimatedCounter())
    for _ in range(6):
        before = window.stats()
        window.add_exchange((Message.user("word " * 1000),))
        notes.on_turn(window, before, window.stats())
    assert notes.find_full_window() is not None

    del window

    assert notes.find_full_window() is None


def test_issues_are_words_and_figures(notes: NotesByWindow, say: Say) -> None:
    found = [say(1000) for _ in range(6)][-1]

    assert found is not None
    assert json.loads(json.dumps(notes.list_issues())) == [
        {"issue": "window_stays_full", "tokens": found.current_tokens, "protected_tokens": 0}
    ]
