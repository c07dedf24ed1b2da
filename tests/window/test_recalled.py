"""What memory has added to a user's message: it stays until the next trim, and nothing of it is left then."""

import json

from hypothesis import example, given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.window import Message, Remembered, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs import Malformed, dump_snapshot, load_snapshot

from .histories import (
    Exchange,
    LengthCounter,
    cost,
    keeping,
    new_window,
    policies,
    short_histories,
    steps,
    without_system,
)

SOURCES = ("fact:1", "turn:2")


def take_turn(window: Window, text: str, recalled: str = "") -> None:
    """Let the window go through a turn, before whose question something is recalled."""
    mark = Remembered(1, 1 + len(recalled), len(recalled), SOURCES) if recalled else None
    window.open(f"[{recalled}]{text}", recalled=mark)
    window.add(Message.assistant("Yes."))
    window.close()


def questions(window: Window) -> list[str]:
    """Return what the user's messages say."""
    return [message.content for message in window.messages() if message.role == "user"]


def test_it_stays_until_a_trim_and_leaves_what_stays() -> None:
    window = new_window(WindowPolicy(200, 0.3))
    take_turn(window, "x" * 60)
    take_turn(window, "who am I?", "Ada")
    assert questions(window)[-1] == "[Ada]who am I?"

    window.open("y" * 100)

    assert questions(window) == ["[]who am I?", "y" * 100]


@pytest.mark.parametrize(("length", "staying"), [(69, ["x" * 40, "who am I?"]), (70, ["who am I?"])])
def test_nothing_is_evicted_if_what_leaves_frees_a_sixteenth_of_the_budget(length: int, staying: list[str]) -> None:
    window = new_window(WindowPolicy(160, 0.3))
    take_turn(window, "x" * 40)
    take_turn(window, "who am I?", "Ada " * 5)

    window.open("y" * length)

    assert questions(window) == [*(f"[]{text}" for text in staying), "y" * length]


def test_its_sources_stay_noted_when_it_has_left() -> None:
    window = new_window(WindowPolicy(200, 0.4))
    take_turn(window, "who am I?", "Ada " * 5)
    take_turn(window, "x" * 60)

    window.open("y" * 80)

    assert window.messages()[0].remembered == Remembered(1, 1, 0, SOURCES)


def test_abort_puts_it_back() -> None:
    window = new_window(WindowPolicy(200, 0.4))
    take_turn(window, "x" * 60)
    take_turn(window, "who am I?", "Ada " * 5)
    before = window.messages()

    window.open("y" * 80)
    window.abort()

    assert window.messages() == before


def test_summary_is_of_what_was_sent() -> None:
    window = new_window(WindowPolicy(200, 0.5, summarize=True))
    take_turn(window, "who am I?", "Ada " * 5)
    take_turn(window, "x" * 60)
    sent = window.messages()

    window.open("y" * 100)

    assert window.unsummarized is not None
    assert sent[: len(window.unsummarized.messages(frozenset()))] == window.unsummarized.messages(frozenset())


@settings(deadline=None, max_examples=100)
@given(short_histories, policies, st.integers(1, 40))
def test_after_a_trim_only_the_newest_exchange_has_any(
    history: list[Exchange], policy: WindowPolicy, recalled: int
) -> None:
    window = new_window(policy)
    trims = 0
    for _ in steps(window, history, recalled):
        stats = window.stats()
        assert stats.current_tokens == cost(without_system(window.messages()))
        if stats.evicted_exchanges and stats.trims > trims:
            older = [each for each in window.messages() if each.role == "user"][:-1]
            assert [each for each in older if each.remembered and each.remembered.tokens] == []
        trims = stats.trims


@settings(deadline=None, max_examples=100)
@given(short_histories, keeping, st.integers(1, 40), st.integers(0, 200))
def test_what_stays_is_known_before(history: list[Exchange], policy: WindowPolicy, recalled: int, length: int) -> None:
    window = new_window(policy)
    for _ in steps(window, history, recalled):
        pass
    would_stay = window.would_stay(length + 4)

    window.open("y" * length)

    assert would_stay == window.exchanges()


@settings(deadline=None, max_examples=100)
@given(short_histories, keeping, st.integers(1, 40))
@example([(Message.user(""), Message.assistant(""))] * 2, WindowPolicy(17, 0.0, "keep"), 1)
def test_trim_that_evicts_nothing_leaves_room(history: list[Exchange], policy: WindowPolicy, recalled: int) -> None:
    window = new_window(policy)
    before = window.stats()
    for _ in steps(window, history, recalled):
        stats = window.stats()
        if stats.trims > before.trims and stats.evicted_exchanges == before.evicted_exchanges:
            *older, _newest = questions(window)
            # a policy may let a trim leave more than that
            most = max(15 / 16 * policy.history_tokens, policy.low_water)
            assert stats.current_tokens <= most or not older
        before = stats


def test_it_comes_back_from_a_file() -> None:
    window = new_window(WindowPolicy(200, 0.4))
    window.set_system("Be brief. Ada.", Remembered(10, 14, 4, SOURCES))
    take_turn(window, "x" * 60)
    take_turn(window, "who am I?", "Ada " * 5)
    again = Window("conversation", window.policy, LengthCounter())
    again.restore(load_snapshot(json.loads(json.dumps(dump_snapshot(window.snapshot())))))

    assert again.messages() == window.messages()
    again.open("y" * 80)
    assert questions(again) == [f"[]{'x' * 60}", "[]who am I?", "y" * 80]


def test_part_that_ends_before_it_begins_is_refused() -> None:
    window = new_window(WindowPolicy())
    take_turn(window, "who am I?", "Ada")
    written = dump_snapshot(window.snapshot())
    written["exchanges"][0]["messages"][0]["remembered"] |= {"start": 9, "end": 2}

    with pytest.raises(Malformed):
        load_snapshot(written)


def test_what_would_stay_is_what_stays() -> None:
    window = new_window(WindowPolicy(200, 0.3))
    take_turn(window, "x" * 60)
    take_turn(window, "z" * 20)
    would_stay = window.would_stay(100 + 4)

    window.open("y" * 100)

    assert would_stay == window.exchanges()
    assert [each.messages[0].content for each in would_stay] == [f"[]{'z' * 20}"]
