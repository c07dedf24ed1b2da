"""What forgetting removes from a window, and what it leaves."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from custom_components.windowed_conversation.memory import Forgotten
from custom_components.windowed_conversation.turn.context import Stamp
from custom_components.windowed_conversation.turn.forgetting import Erasure, Search
from custom_components.windowed_conversation.turn.profile import HEADING
from custom_components.windowed_conversation.turn.scope import WindowKey
from custom_components.windowed_conversation.window import Exchange, Message, Native
from custom_components.windowed_conversation.window.restore import Snapshot
from custom_components.windowed_conversation.window.summary import QUESTION

HOMES = frozenset({None})
SHARED = str(WindowKey("mine"))


def exchange(
    at: float | None, said: str = "hello", answer: str = "hi", sources: Iterable[str] = (), **fields: Any
) -> Exchange:
    end = None if at is None else at + 1
    messages = Message.user(said, created=at), Message.assistant(answer, created=end, **fields)
    return Exchange(messages, frozenset(), tokens=10, sources=frozenset(sources))


def window(*exchanges: Exchange, system: Message | None = None) -> Snapshot:
    return Snapshot("mine", system, exchanges)


def left(snapshot: Snapshot, forgotten: Forgotten, key: str = SHARED) -> list[str]:
    """Return what is said in a window after something was forgotten."""
    rest = Search(Erasure.of(forgotten), ("en",), forgotten.told).rest(key, snapshot)
    return [each.messages[0].content for each in rest.exchanges]


def told(*texts: str, since: float = 100.0, people: Iterable[str | None] = HOMES, **more: Any) -> Forgotten:
    return Forgotten(facts=(7,), since=since, people=frozenset(people), told=texts, **more)


def test_what_was_over_before_stays_and_all_from_then_on_goes() -> None:
    snapshot = window(*(exchange(at, f"at {at}") for at in (10.0, 98.0, 99.0, 500.0)))

    assert left(snapshot, told()) == ["at 10.0", "at 98.0"]


def test_a_window_of_before_is_the_same_one() -> None:
    snapshot = window(exchange(10.0))

    assert Erasure.of(told()).rest(SHARED, snapshot) is snapshot


def test_what_goes_counts_as_evicted() -> None:
    rest = Erasure.of(told()).rest(SHARED, window(exchange(10.0), exchange(200.0), exchange(300.0)))

    assert (rest.evicted.exchanges, rest.evicted.messages, rest.evicted.tokens) == (2, 4, 20)


def test_what_was_said_before_it_was_remembered_goes_with_all_after_it() -> None:
    snapshot = window(exchange(1.0, "hello"), exchange(2.0, "the bins are out on Friday"), exchange(3.0, "thanks"))

    assert left(snapshot, told("The bins go out on Friday")) == ["hello"]


def test_a_stamp_repeats_nothing() -> None:
    stamp = Stamp(datetime(2026, 11, 24, tzinfo=UTC), "Anna").prefix()
    snapshot = window(exchange(1.0, f"{stamp}hello"), exchange(2.0, f"{stamp}Anna is here on Tuesday"))

    assert left(snapshot, told("Anna comes on Tuesday")) == [f"{stamp}hello"]


def test_a_summary_that_only_its_provider_reads_goes() -> None:
    summary = exchange(2.0, QUESTION, native=Native("openai", "m", {"encrypted": "..."}))

    assert left(window(exchange(1.0), summary, exchange(3.0)), told("tea")) == ["hello"]


def test_an_exchange_without_a_time_goes() -> None:
    assert left(window(exchange(1.0), exchange(None, "undated")), told()) == ["hello"]


def test_an_exchange_in_which_it_was_recalled_goes_also_if_the_clock_was_set_back() -> None:
    recalled = exchange(2.0, "recalled", sources=["fact:7"])

    assert left(window(exchange(1.0), recalled), told()) == ["hello"]


@pytest.mark.parametrize("exchanges", [(exchange(1.0),), (exchange(1.0), exchange(200.0))], ids=["before", "after"])
def test_profile_goes_because_it_may_have_it(exchanges: tuple[Exchange, ...]) -> None:
    system = Message.system(f"Be brief.\n\n{HEADING}\ntea", tokens=100)

    rest = Erasure.of(told()).rest(SHARED, window(*exchanges, system=system))

    assert rest.system is not None
    assert rest.system.content == "Be brief."


def test_profile_stays_where_it_cannot_have_been() -> None:
    key, system = str(WindowKey("mine", "ben")), Message.system(f"Be brief.\n\n{HEADING}\ntea")
    snapshot = window(exchange(1.0), system=system)

    assert Erasure.of(told(people={"anna"})).rest(key, snapshot) is snapshot


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        (WindowKey("mine", "anna"), 0),
        (WindowKey("mine", "ben"), 1),
        (WindowKey("mine"), 1),
        (WindowKey("kitchen"), 0),
    ],
    ids=["hers", "his", "shared", "where it was said"],
)
def test_what_is_private_is_looked_for_where_it_may_have_been(key: WindowKey, kept: int) -> None:
    forgotten = told(people={"anna"}, conversations=frozenset({"kitchen"}))

    assert len(left(window(exchange(200.0)), forgotten, str(key))) == kept


def test_what_somebody_else_was_told_in_the_same_words_goes_too() -> None:
    snapshot = window(exchange(1.0, "my dentist is on Tuesday"))

    assert left(snapshot, told("My dentist is on Tuesday", people={"anna"}), str(WindowKey("mine", "ben"))) == []
