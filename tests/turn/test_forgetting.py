"""Forgetting removes the right words from conversations, in the store and in working memory, and no others."""

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
from custom_components.windowed_conversation.window import Exchange, Message, Native, ToolCall, WindowStats
from custom_components.windowed_conversation.window.codecs.rows import (
    ConversationChange,
    read_conversation,
    stored_conversations,
    write_change,
)
from custom_components.windowed_conversation.window.restore import Snapshot
from custom_components.windowed_conversation.window.summary import QUESTION
from custom_components.windowed_conversation.window.tags import SUMMARY

HOMES = frozenset({None})
SHARED = str(WindowKey("mine"))
HERS, HIS = (str(WindowKey("mine", person)) for person in ("anna", "ben"))
AGENT = "agent"
STATS = WindowStats(0, 0, 0, 1000, 0.0, 0, False, {}, 0, 0, 0, 0, 0)


def selection(**conditions: Any) -> Selection:
    """Return a selection of memories to forget, a fact if nothing else is said."""
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
        numbered = [each.with_number(number) for number, each in enumerate(exchanges)]
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
        """Return the rest of a window in working memory."""
        self.forget(forgotten, {(AGENT, key): snapshot})
        (erasure,) = self.erasures
        return erasure.rest((AGENT, key), snapshot)

    def left(self, snapshot: Snapshot, forgotten: Forgotten, key: str = SHARED) -> list[str]:
        """Return the words in the rest of a window in working memory."""
        return said(self.rest(snapshot, forgotten, key))

    def kept(self, key: str = SHARED, agent: str = AGENT) -> list[str] | None:
        """Return the words in a stored conversation, or None if there is none."""
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


def told(
    *texts: str, since: dict[str, float] | None = None, people: Iterable[str | None] = HOMES, **more: Any
) -> Forgotten:
    """Return a forgotten fact, which Anna told at 100 unless it is said otherwise."""
    by_person = {"anna": 100.0} if since is None else since
    return Forgotten(
        **{
            "facts": (7,),
            "since": by_person,
            "people": frozenset(people),
            "told": texts,
            "texts": {("fact", 7): "; ".join(texts)},
            **more,
        }
    )


def test_all_from_then_on_goes_from_the_windows_of_the_person_who_told_it(store: Store) -> None:
    snapshot = window(*(exchange(at, f"at {at}") for at in (10.0, 98.0, 99.0, 500.0)))

    assert store.left(snapshot, told(), HERS) == ["at 10.0", "at 98.0"]


@pytest.mark.parametrize("key", [SHARED, HIS], ids=["without an owner", "another person's"])
def test_other_windows_lose_what_repeats_it_and_nothing_else(store: Store, key: str) -> None:
    snapshot = window(
        exchange(1.0, "the bins are out on Friday"),
        exchange(200.0, "when do the bins go out?", "They go on Friday."),
        exchange(300.0, "hello"),
        exchange(None, "undated"),
    )

    assert store.left(snapshot, told("The bins go out on Friday"), key) == ["hello", "undated"]


def test_each_counts_from_their_own_time(store: Store) -> None:
    forgotten, snapshot = told(since={"anna": 100.0, "ben": 300.0}), window(exchange(200.0), exchange(400.0))

    assert (len(store.left(snapshot, forgotten, HERS)), len(store.left(snapshot, forgotten, HIS))) == (0, 1)


def test_a_window_of_before_is_the_same_one(store: Store) -> None:
    snapshot = window(exchange(10.0))

    assert store.rest(snapshot, told(), HERS) is snapshot


def test_what_goes_counts_as_evicted(store: Store) -> None:
    rest = store.rest(window(exchange(10.0), exchange(200.0), exchange(300.0)), told(), HERS)

    assert (rest.evicted.exchanges, rest.evicted.messages, rest.evicted.tokens) == (2, 4, 20)


def test_what_tools_were_asked_and_what_they_returned_repeats_it_too(store: Store) -> None:
    call = ToolCall("1", "note", {"text": "bins out"})
    looked_up = exchange(1.0, "what is it?")
    messages = (
        *looked_up.messages,
        Message.assistant(tool_calls=(call,), created=3.0, tokens=1),
        Message.tool("1", "note", "On Friday", created=4.0, tokens=1),
    )

    assert store.left(window(looked_up._replace(messages=messages)), told("The bins go out on Friday")) == []


def test_a_stamp_repeats_nothing(store: Store) -> None:
    stamp = Stamp(datetime(2026, 11, 24, tzinfo=UTC), "Anna").prefix()
    snapshot = window(exchange(1.0, f"{stamp}hello"), exchange(2.0, f"{stamp}Anna is here on Tuesday"))

    assert store.left(snapshot, told("Anna comes on Tuesday")) == [f"{stamp}hello"]


@pytest.mark.parametrize(
    ("key", "left"),
    [
        (WindowKey("mine", "anna"), ["hello"]),
        (WindowKey("kitchen"), ["hello", "hello"]),
        (WindowKey("mine"), ["hello", QUESTION, "hello"]),
        (WindowKey("mine", "ben"), ["hello", QUESTION, "hello"]),
    ],
    ids=["hers", "where it was said", "shared", "his"],
)
def test_a_summary_that_only_its_provider_reads_goes_where_it_may_have_it(
    store: Store, key: WindowKey, left: list[str]
) -> None:
    summary = exchange(2.0, QUESTION, native=Native("openai", "m", {"encrypted": "..."}))
    forgotten = told("tea", since={"anna": 2.5}, conversations=frozenset({"kitchen"}))

    assert store.left(window(exchange(1.0), summary, exchange(3.0)), forgotten, str(key)) == left


def test_a_summary_that_can_be_read_is_judged_by_its_words(store: Store) -> None:
    first = Message.user(QUESTION, tags=frozenset({SUMMARY}), created=3.0, tokens=5)
    of_tea, of_bins = (
        exchange(at, QUESTION, text)._replace(messages=(first, Message.assistant(text, created=3.0, tokens=5)))
        for at, text in ((3.0, "Anna asked for green tea."), (4.0, "You spoke of the bins."))
    )
    forgotten = told("Anna likes green tea", moments={"mine": [2.0]})

    assert store.left(window(of_tea), forgotten) == []
    assert store.left(window(of_bins), forgotten) == [QUESTION]


def test_evicted_exchanges_are_not_summarized_if_one_of_them_goes(store: Store) -> None:
    snapshot = window(exchange(5.0))._replace(pending_exchanges=(exchange(1.0, "the tea is green"), exchange(2.0)))

    rest = store.rest(snapshot, told("the tea is green"))

    assert (said(rest), rest.pending_exchanges) == (["hello"], ())


def test_evicted_exchanges_are_summarized_if_all_of_them_stay(store: Store) -> None:
    snapshot = window(exchange(5.0))._replace(pending_exchanges=(exchange(2.0),))

    assert store.rest(snapshot, told("the tea is green")) is snapshot


def test_an_exchange_without_a_time_goes_from_the_windows_of_the_person_who_told_it(store: Store) -> None:
    assert store.left(window(exchange(1.0), exchange(None, "undated")), told(), HERS) == ["hello"]


@pytest.mark.parametrize(
    ("asked", "answer", "left"),
    [
        ("where is the cat?", "Look in the cellar.", 0),
        ("where is the cat?", "The cat is in the garden.", 1),
        ("is the cellar dry?", "The cellar is dry.", 1),
    ],
    ids=["a word from memory", "none", "only words of the question"],
)
def test_an_exchange_in_which_it_was_recalled_goes_if_the_answer_has_it_from_there(
    store: Store, asked: str, answer: str, left: int
) -> None:
    recalled = exchange(2.0, asked, answer, sources=["fact:7", "fact:8"])

    assert len(store.left(window(recalled), told("The cat food is in the cellar"))) == left


def test_the_exchange_in_which_it_was_said_goes_and_nothing_after_it(store: Store) -> None:
    snapshot = window(*(exchange(at, f"at {at}") for at in (1.0, 3.0, 5.0)))
    forgotten = Forgotten(turns=(3,), people=HOMES, moments={"mine": [4.0]}, conversations=frozenset({"mine"}))

    assert store.left(snapshot, forgotten) == ["at 1.0", "at 5.0"]
    assert len(store.left(snapshot, forgotten, "other")) == 3


@pytest.mark.parametrize("exchanges", [(exchange(1.0),), (exchange(1.0), exchange(200.0))], ids=["before", "after"])
@pytest.mark.parametrize("key", [str(WindowKey("mine", "anna")), SHARED], ids=["hers", "shared"])
def test_profile_goes_because_it_may_have_it(store: Store, exchanges: tuple[Exchange, ...], key: str) -> None:
    system = Message.system(f"Be brief.\n\n{HEADING}\ntea", tokens=100)

    rest = store.rest(window(*exchanges, system=system), told(), key)

    assert rest.system is not None
    assert rest.system.content == "Be brief."


@pytest.mark.parametrize(
    "forgotten",
    [told(people={"anna"}), Forgotten(turns=(3,), people=HOMES)],
    ids=["another person's", "no fact"],
)
def test_profile_stays_where_it_cannot_have_been(store: Store, forgotten: Forgotten) -> None:
    system = Message.system(f"Be brief.\n\n{HEADING}\ntea")
    snapshot = window(exchange(1.0), system=system)

    assert store.rest(snapshot, forgotten, HIS) is snapshot


def test_what_somebody_else_was_told_in_the_same_words_goes_too(store: Store) -> None:
    snapshot = window(exchange(1.0, "my dentist is on Tuesday"))

    assert store.left(snapshot, told("My dentist is on Tuesday", people={"anna"}), HIS) == []


def test_what_was_said_after_the_windows_were_looked_at_is_judged_as_well(store: Store) -> None:
    store.forget(told("the tea is green"), {(AGENT, SHARED): window(exchange(1.0))})
    (erasure,) = store.erasures

    rest = erasure.rest((AGENT, SHARED), window(exchange(1.0), exchange(2.0, "the tea is green"), exchange(3.0, "bye")))

    assert said(rest) == ["hello", "bye"]


def test_what_goes_from_the_stored_version_goes_from_the_other(store: Store) -> None:
    store.keep(exchange(1.0, "what is it?", "The tea is green."))

    store.forget(told("the tea is green"), {(AGENT, SHARED): window(exchange(1.0, "what is it?", "[result]"))})

    (erasure,) = store.erasures
    assert erasure.rest((AGENT, SHARED), window(exchange(1.0, "what is it?", "[result]"))).exchanges == ()


def test_stored_conversation_loses_the_same_and_its_figures_say_so(store: Store) -> None:
    store.keep(exchange(10.0), exchange(200.0), exchange(300.0), key=HERS)

    store.forget(told())

    assert store.kept(HERS) == ["hello"]
    assert (store.gone, store.stats().exchange_count, store.stats().current_tokens) == (2, 1, 10)
    assert (store.stats().evicted_exchanges, store.stats().evicted_messages) == (2, 4)


def test_stored_conversation_loses_one_in_the_middle(store: Store) -> None:
    store.keep(exchange(1.0), exchange(2.0, "the tea is green"), exchange(3.0, "bye"))

    store.forget(told("the tea is green"))

    assert store.kept() == ["hello", "bye"]


def test_stored_conversation_of_which_nothing_is_left_is_deleted(store: Store) -> None:
    store.keep(exchange(200.0), key=HERS)

    store.forget(told())

    assert store.kept(HERS) is None


def test_conversation_that_is_stored_and_in_working_memory_counts_once(store: Store) -> None:
    store.keep(exchange(200.0), exchange(300.0), key=HERS)

    store.forget(told(), {(AGENT, HERS): window(exchange(200.0), exchange(300.0), exchange(400.0))})

    assert (store.gone, store.kept(HERS)) == (3, None)


def test_nothing_changes_where_somebody_asks_only_what_would_be_forgotten(store: Store) -> None:
    store.keep(exchange(10.0), exchange(200.0), key=HERS)

    store.forget(told(), dry_run=True)

    assert (store.gone, store.erasures) == (1, [])
    assert store.kept(HERS) == ["hello", "hello"]


@pytest.mark.parametrize(
    ("person", "owner", "kept"),
    [
        (..., "ben", ["hello"]),
        ("anna", "anna", ["hello"]),
        ("anna", None, ["hello"]),
        ("anna", "ben", ["the tea is green", "hello"]),
        (None, "ben", ["the tea is green", "hello"]),
    ],
    ids=["an administrator", "one's own", "everybody's", "another person's", "an unknown speaker's"],
)
@pytest.mark.parametrize("forgotten", [Forgotten(), told("Ben is in", since={})], ids=["nothing", "something else"])
def test_words_of_the_query_are_forgotten_where_the_person_may_forget_them(
    store: Store, *, person: str | EllipsisType | None, owner: str | None, kept: list[str], forgotten: Forgotten
) -> None:
    key = str(WindowKey("mine", owner))
    store.keep(exchange(1.0, "the tea is green"), exchange(2.0), key=key)

    store.forget(forgotten, selected=selection(query="the tea is green", person=person))

    assert store.kept(key) == kept


def test_all_of_a_person_goes_from_their_windows_only(store: Store) -> None:
    store.keep(exchange(1.0), key=HERS)
    store.keep(exchange(1.0), key=HIS)

    store.forget(Forgotten(), selected=selection(person="anna"))

    assert (store.kept(HERS), store.kept(HIS)) == (None, ["hello"])


def test_all_of_an_agent_goes_from_its_windows_only(store: Store) -> None:
    store.keep(exchange(1.0))
    store.keep(exchange(1.0), agent="other")

    # its turns were the home's, and others may have recalled them
    of_the_home = Forgotten(turns=(7,), people=HOMES, conversations=frozenset({"mine"}), moments={"mine": [1.5]})
    store.forget(of_the_home, selected=selection(agent=AGENT))

    assert (store.kept(), store.kept(agent="other")) == (None, ["hello"])


def test_of_a_span_of_time_its_exchanges_go(store: Store) -> None:
    store.keep(*(exchange(at, f"at {at}") for at in (10.0, 20.0, 30.0)))

    store.forget(Forgotten(), selected=selection(since=15.0, before=25.0))

    assert store.kept() == ["at 10.0", "at 30.0"]
