"""What forgetting removes from conversations, in the store and in working memory, and what it leaves."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest

from custom_components.windowed_conversation.memory import KINDS, Forgotten, Selection
from custom_components.windowed_conversation.store import Database
from custom_components.windowed_conversation.turn.context import Stamp
from custom_components.windowed_conversation.turn.forgetting import CONVERSATIONS, ConversationForgetting, Erasure
from custom_components.windowed_conversation.turn.profile import HEADING
from custom_components.windowed_conversation.turn.scope import WindowKey
from custom_components.windowed_conversation.window import Exchange, Message, Native, WindowStats
from custom_components.windowed_conversation.window.codecs.rows import (
    ConversationChange,
    read_conversation,
    stored_conversations,
    write_change,
)
from custom_components.windowed_conversation.window.restore import Snapshot
from custom_components.windowed_conversation.window.summary import QUESTION

HOMES = frozenset({None})
SHARED = str(WindowKey("mine"))
AGENT = "agent"
STATS = WindowStats(0, 0, 0, 1000, 0.0, 0, False, {}, 0, 0, 0, 0, 0)


def selection(**conditions: Any) -> Selection:
    """Return what somebody wants forgotten, a fact if nothing else is said."""
    nothing: dict[str, Any] = dict.fromkeys(("ids", "since", "before", "query"))
    return Selection(**{**nothing, "person": ..., "kinds": KINDS, **(conditions or {"ids": (("fact", 7),)})})


def exchange(
    at: float | None, said: str = "hello", answer: str = "hi", sources: Iterable[str] = (), **fields: Any
) -> Exchange:
    end = None if at is None else at + 1
    messages = Message.user(said, created=at, tokens=5), Message.assistant(answer, created=end, tokens=5, **fields)
    return Exchange(messages, frozenset(), tokens=10, sources=frozenset(sources))


def window(*exchanges: Exchange, system: Message | None = None) -> Snapshot:
    return Snapshot("mine", system, exchanges)


class Store:
    """Conversations in a file, and the windows in working memory; `gone` is how many exchanges were concerned."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path, [CONVERSATIONS])
        self.erasures: list[Erasure] = []
        self.gone = 0

    def keep(self, *exchanges: Exchange, key: str = SHARED, agent: str = AGENT) -> None:
        """Store a conversation."""
        numbered = [each.numbered(number) for number, each in enumerate(exchanges)]
        with self.database.write() as connection:
            write_change(connection, ConversationChange(agent, key, 1.0, STATS, numbered))

    def forget(
        self,
        forgotten: Forgotten,
        live: dict[tuple[str, str], Snapshot] | None = None,
        *,
        selected: Selection | None = None,
        dry_run: bool = False,
    ) -> None:
        """Forget in what is stored, and beside it in windows in working memory."""
        forgetting = ConversationForgetting(("en",))
        with forgetting.beside(live or {}) as erasures, self.database.write() as connection:
            self.gone = forgetting.forget(connection, forgotten, selected or selection(), dry_run=dry_run)
        self.erasures = list(erasures)

    def rest(self, snapshot: Snapshot, forgotten: Forgotten, key: str = SHARED) -> Snapshot:
        """Return what is left of a window in working memory."""
        self.forget(forgotten, {(AGENT, key): snapshot})
        (erasure,) = self.erasures
        return erasure.rest((AGENT, key), snapshot)

    def left(self, snapshot: Snapshot, forgotten: Forgotten, key: str = SHARED) -> list[str]:
        """Return what is said in what is left of a window in working memory."""
        return said(self.rest(snapshot, forgotten, key))

    def kept(self, key: str = SHARED, agent: str = AGENT) -> list[str] | None:
        """Return what is said in a stored conversation, or None if there is none."""
        with self.database.read() as connection:
            found = read_conversation(connection, agent, key)
        return None if found is None else said(found)

    def stats(self) -> WindowStats:
        """Return the figures of the only stored conversation."""
        with self.database.read() as connection:
            (found,) = stored_conversations(connection)
        return found.stats


def said(snapshot: Snapshot) -> list[str]:
    return [each.messages[0].content for each in snapshot.exchanges]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store.db")
    with closing(store.database):
        yield store


def told(*texts: str, since: float = 100.0, people: Iterable[str | None] = HOMES, **more: Any) -> Forgotten:
    return Forgotten(facts=(7,), since=since, people=frozenset(people), told=texts, **more)


def test_what_was_over_before_stays_and_all_from_then_on_goes(store: Store) -> None:
    snapshot = window(*(exchange(at, f"at {at}") for at in (10.0, 98.0, 99.0, 500.0)))

    assert store.left(snapshot, told()) == ["at 10.0", "at 98.0"]


def test_a_window_of_before_is_the_same_one(store: Store) -> None:
    snapshot = window(exchange(10.0))

    assert store.rest(snapshot, told()) is snapshot


def test_what_goes_counts_as_evicted(store: Store) -> None:
    rest = store.rest(window(exchange(10.0), exchange(200.0), exchange(300.0)), told())

    assert (rest.evicted.exchanges, rest.evicted.messages, rest.evicted.tokens) == (2, 4, 20)


def test_what_was_said_before_it_was_remembered_goes_with_all_after_it(store: Store) -> None:
    snapshot = window(exchange(1.0, "hello"), exchange(2.0, "the bins are out on Friday"), exchange(3.0, "thanks"))

    assert store.left(snapshot, told("The bins go out on Friday")) == ["hello"]


def test_a_stamp_repeats_nothing(store: Store) -> None:
    stamp = Stamp(datetime(2026, 11, 24, tzinfo=UTC), "Anna").prefix()
    snapshot = window(exchange(1.0, f"{stamp}hello"), exchange(2.0, f"{stamp}Anna is here on Tuesday"))

    assert store.left(snapshot, told("Anna comes on Tuesday")) == [f"{stamp}hello"]


def test_a_summary_that_only_its_provider_reads_goes(store: Store) -> None:
    summary = exchange(2.0, QUESTION, native=Native("openai", "m", {"encrypted": "..."}))

    assert store.left(window(exchange(1.0), summary, exchange(3.0)), told("tea")) == ["hello"]


def test_an_exchange_without_a_time_goes(store: Store) -> None:
    assert store.left(window(exchange(1.0), exchange(None, "undated")), told()) == ["hello"]


def test_an_exchange_in_which_it_was_recalled_goes_also_if_the_clock_was_set_back(store: Store) -> None:
    recalled = exchange(2.0, "recalled", sources=["fact:7"])

    assert store.left(window(exchange(1.0), recalled), told()) == ["hello"]


@pytest.mark.parametrize("exchanges", [(exchange(1.0),), (exchange(1.0), exchange(200.0))], ids=["before", "after"])
def test_profile_goes_because_it_may_have_it(store: Store, exchanges: tuple[Exchange, ...]) -> None:
    system = Message.system(f"Be brief.\n\n{HEADING}\ntea", tokens=100)

    rest = store.rest(window(*exchanges, system=system), told())

    assert rest.system is not None
    assert rest.system.content == "Be brief."


def test_profile_stays_where_it_cannot_have_been(store: Store) -> None:
    key, system = str(WindowKey("mine", "ben")), Message.system(f"Be brief.\n\n{HEADING}\ntea")
    snapshot = window(exchange(1.0), system=system)

    assert store.rest(snapshot, told(people={"anna"}), key) is snapshot


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
def test_what_is_private_is_looked_for_where_it_may_have_been(store: Store, key: WindowKey, kept: int) -> None:
    forgotten = told(people={"anna"}, conversations=frozenset({"kitchen"}))

    assert len(store.left(window(exchange(200.0)), forgotten, str(key))) == kept


def test_what_somebody_else_was_told_in_the_same_words_goes_too(store: Store) -> None:
    snapshot = window(exchange(1.0, "my dentist is on Tuesday"))

    assert store.left(snapshot, told("My dentist is on Tuesday", people={"anna"}), str(WindowKey("mine", "ben"))) == []


def test_stored_conversation_loses_the_same_and_its_figures_say_so(store: Store) -> None:
    store.keep(exchange(10.0), exchange(200.0), exchange(300.0))

    store.forget(told())

    assert store.kept() == ["hello"]
    assert (store.gone, store.stats().exchange_count, store.stats().current_tokens) == (2, 1, 10)
    assert (store.stats().evicted_exchanges, store.stats().evicted_messages) == (2, 4)


def test_stored_conversation_of_which_nothing_is_left_is_deleted(store: Store) -> None:
    store.keep(exchange(200.0))

    store.forget(told())

    assert store.kept() is None


def test_conversation_that_is_stored_and_in_working_memory_counts_once(store: Store) -> None:
    store.keep(exchange(200.0), exchange(300.0))

    store.forget(told(), {(AGENT, SHARED): window(exchange(200.0), exchange(300.0), exchange(400.0))})

    assert (store.gone, store.kept()) == (3, None)


def test_nothing_changes_where_somebody_asks_only_what_would_be_forgotten(store: Store) -> None:
    store.keep(exchange(10.0), exchange(200.0))

    store.forget(told(), dry_run=True)

    assert (store.gone, store.erasures) == (1, [])
    assert store.kept() == ["hello", "hello"]


@pytest.mark.parametrize(
    ("person", "owner", "kept"),
    [
        (..., "ben", None),
        ("anna", "anna", None),
        ("anna", None, None),
        ("anna", "ben", ["the tea is green"]),
        (None, "ben", ["the tea is green"]),
    ],
    ids=["an administrator", "one's own", "everybody's", "another person's", "an unknown speaker's"],
)
def test_words_that_memory_does_not_have_are_forgotten_where_the_person_may_forget_them(
    store: Store, person: str | EllipsisType | None, owner: str | None, kept: list[str] | None
) -> None:
    key = str(WindowKey("mine", owner))
    store.keep(exchange(1.0, "the tea is green"), key=key)

    store.forget(Forgotten(told=("the tea is green",)), selected=selection(query="the tea is green", person=person))

    assert store.kept(key) == kept


def test_all_of_a_person_goes_from_their_windows_only(store: Store) -> None:
    hers, his = str(WindowKey("mine", "anna")), str(WindowKey("mine", "ben"))
    store.keep(exchange(1.0), key=hers)
    store.keep(exchange(1.0), key=his)

    store.forget(Forgotten(), selected=selection(person="anna"))

    assert (store.kept(hers), store.kept(his)) == (None, ["hello"])


def test_all_of_an_agent_goes_from_its_windows_only(store: Store) -> None:
    store.keep(exchange(1.0))
    store.keep(exchange(1.0), agent="other")

    # its turns were the home's, and others may have recalled them
    of_the_home = Forgotten(turns=(7,), since=0.5, people=HOMES, conversations=frozenset({"mine"}))
    store.forget(of_the_home, selected=selection(agent=AGENT))

    assert (store.kept(), store.kept(agent="other")) == (None, ["hello"])


def test_of_a_span_of_time_its_exchanges_go(store: Store) -> None:
    store.keep(*(exchange(at, f"at {at}") for at in (10.0, 20.0, 30.0)))

    store.forget(Forgotten(), selected=selection(since=15.0, before=25.0))

    assert store.kept() == ["at 10.0", "at 30.0"]
