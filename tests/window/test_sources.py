"""Tests for the ids of memories that were recalled for an exchange. The window does not store their text."""

import json

import pytest

from custom_components.windowed_conversation.window import NoOpenExchange, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs import dump_snapshot, load_snapshot

from .histories import LengthCounter, calls, create_window, results

_POLICY = WindowPolicy(4_000, tool_results="stub", max_tool_turns=1)
_SOURCE_IDS = frozenset({"fact:1", "turn:7"})


@pytest.fixture
def window() -> Window:
    """Return a window with an exchange for which memories were recalled, and whose tool results may become stubs."""
    window = create_window(_POLICY)
    window.open("what is my name?")
    window.add_sources(["fact:1"])
    window.add_sources(["turn:7", "fact:1"])
    called = calls(1)
    window.add(window.messages()[0].assistant(tool_calls=called))
    window.add(*results(called, "r" * 900))
    window.close()
    return window


def _sources(window: Window) -> list[frozenset[str]]:
    return [exchange.sources for exchange in window.exchanges()]


def test_exchange_has_all_that_was_lent_to_it(window: Window) -> None:
    assert _sources(window) == [_SOURCE_IDS]


def test_sources_stay_when_results_become_stubs(window: Window) -> None:
    for _ in range(3):
        window.add_exchange(window.exchanges()[0].messages)
    window.set_policy(WindowPolicy(2_900, 0.0, max_tool_turns=1))
    assert _sources(window)[0] == _SOURCE_IDS


def test_sources_stay_in_a_file(window: Window) -> None:
    loaded = Window("other", _POLICY, LengthCounter())
    loaded.restore(load_snapshot(json.loads(json.dumps(dump_snapshot(window.snapshot())))))
    assert _sources(loaded) == [_SOURCE_IDS]


def test_aborted_exchange_lends_nothing_to_the_next(window: Window) -> None:
    window.open("and hers?")
    window.add_sources(["fact:2"])
    window.abort()
    window.add_exchange(window.exchanges()[0].messages)
    assert _sources(window) == [_SOURCE_IDS, frozenset()]


def test_nothing_is_lent_without_an_open_exchange(window: Window) -> None:
    with pytest.raises(NoOpenExchange):
        window.add_sources(["fact:1"])
