"""Tests that forgetting removes the right texts, and no others, from stored conversations and working memory."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.core import LostRows, Memory, PastTurn, Summary, Tombstone, rows
from custom_components.windowed_conversation.memory.turn.forgetting import (
    CONVERSATIONS,
    ConversationForgetting,
    ForgottenExchanges,
    remove_forgotten,
)
from custom_components.windowed_conversation.memory.turn.recall import HEADING
from custom_components.windowed_conversation.record import RECORD, forget_turns
from custom_components.windowed_conversation.turn.context import InputStamp
from custom_components.windowed_conversation.turn.routing import WindowKey
from custom_components.windowed_conversation.window import Exchange, Message, NativeData, ToolCall, WindowStats
from custom_components.windowed_conversation.window.codecs.snapshot import (
    StoredConversation,
    list_stored_conversations,
    read_conversation,
    write_conversation,
)
from custom_components.windowed_conversation.window.exchange import Snapshot
from custom_components.windowed_conversation.window.messages import SUMMARY
from custom_components.windowed_conversation.window.summary import QUESTION
from tests.record.recorded import whole, writes

SHARED_KEY = str(WindowKey("mine"))
ANNA_KEY, BEN_KEY = (str(WindowKey("mine", person)) for person in ("anna", "ben"))
AGENT_ID = "agent"
STATS = WindowStats(0, 0, 0, 1000, 0.0, 0, False, {}, 0, 0, 0, 0, 0)


def exchange(
    at: float | None, said: str = "hello", answer: str = "hi", sources: Iterable[str] = (), **fields: Any
) -> Exchange:
    end = None if at is None else at + 1
    messages = Message.user(said, created=at, tokens=5), Message.assistant(answer, created=end, tokens=5, **fields)
    return Exchange(messages, frozenset(), tokens=10, sources=frozenset(sources))


def window(*exchanges: Exchange, system: Message | None = None) -> Snapshot:
    return Snapshot("mine", system, exchanges)


def said(snapshot: Snapshot) -> list[str]:
    return [each.messages[0].content for each in snapshot.exchanges]


_QUESTION = Message.user(QUESTION, tags=frozenset({SUMMARY}), created=10.0)
SUMMARIZED = Exchange((_QUESTION, Message.assistant("Tea.", created=11.0)), frozenset(), tokens=10)
RECALLING = exchange(20.0, "now", sources=["fact:7"])


class Store:
    """A memory, the conversations in its file, and windows in working memory."""

    def __init__(self, path: Path) -> None:
        self.conversations = ConversationForgetting()
        companions = (forget_turns, self.conversations.forget)
        self.memory = Memory(path, ("en",), rooms=(RECORD, CONVERSATIONS), companions=companions)
        self.losses: list[ForgottenExchanges] = []
        self.fact_ids: list[int] = []

    def add_fact(self, text: str = "Geese are loud", by: str | None = "anna", at: float = 100.0, **more: Any) -> None:
        """Store a fact. By default, Anna states it at the time 100."""
        owner = by if more.get("private") else None
        self.fact_ids.append(self.memory.add_fact(text, person=owner, teller=by, at=at, **more))

    def say(self, text: str, at: float, person: str | None = None, conversation: str = "mine") -> int:
        """Store a past turn in memory, and return its id."""
        return self.memory.add_turn(PastTurn(conversation, at, text, "It is so.", "other", person))

    def keep(self, *exchanges: Exchange, key: str = SHARED_KEY, agent: str = AGENT_ID) -> None:
        """Store a conversation with these exchanges."""
        numbered = [each.with_number(number) for number, each in enumerate(exchanges)]
        with self.memory.database.write_transaction() as connection:
            write_conversation(connection, StoredConversation(agent, key, 1.0, STATS), numbered)

    def forget(self, live: dict[tuple[str, str], Snapshot] | None = None, **conditions: Any) -> LostRows:
        """Forget (by default all facts, by their ids), in the file and in the given windows in working memory."""
        conditions = conditions or {"ids": [("fact", each) for each in self.fact_ids]}
        with self.conversations.include_live(live or {}) as losses:
            forgotten = self.memory.forget(**conditions)
        self.losses = list(losses)
        return forgotten

    def rest(self, snapshot: Snapshot, key: str = SHARED_KEY, **conditions: Any) -> Snapshot:
        """Forget, and return the remaining part of a window in working memory."""
        self.forget({(AGENT_ID, key): snapshot}, **conditions)
        (losses,) = self.losses
        return losses.remove_lost((AGENT_ID, key), snapshot)

    def left(self, snapshot: Snapshot, key: str = SHARED_KEY, **conditions: Any) -> list[str]:
        """Forget, and return the texts that remain in a window in working memory."""
        return said(self.rest(snapshot, key, **conditions))

    def kept(self, key: str = SHARED_KEY, agent: str = AGENT_ID) -> list[str] | None:
        """Return the texts in a stored conversation, or None if it does not exist."""
        with self.memory.database.read_transaction() as connection:
            found = read_conversation(connection, agent, key)
        return None if found is None else said(found)

    def stats(self) -> WindowStats:
        """Return the statistics of the only stored conversation."""
        with self.memory.database.read_transaction() as connection:
            (found,) = list_stored_conversations(connection)
        return found.stats


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store.db")
    with closing(store.memory):
        yield store


def test_what_forget_loses(store: Store) -> None:
    """A fact of the home, which Anna stated in the kitchen at 100, is removed everywhere, and nothing else is."""
    store.say("Where is the key?", at=50.0, person="anna", conversation="kitchen")
    store.say("The key lies under the pot", at=100.0, person="anna", conversation="kitchen")
    store.say("Under the pot lies the key", at=200.0, person="ben", conversation="hall")
    store.say("Where is the pot?", at=300.0, person="ben", conversation="hall")
    store.memory.add(
        [Summary("kitchen", 100.0, 101.0, "Of a hiding place.", "other", "anna", ("The key lies under the pot",))]
    )
    store.memory.add(writes(whole(50, "Where is the key?", person="anna")))
    store.add_fact("The key lies under the red pot", conversation="kitchen")
    store.add_fact("The key lies under the mat", at=90.0)
    store.memory.add_fact("The key lies under the tree", replaces=store.fact_ids[0], at=400.0)
    repeated, recalled = exchange(10.0, "the key lies under the tree"), exchange(20.0, "where?", "A tree.", ["fact:3"])
    store.keep(
        repeated, recalled, exchange(500.0, "is the tree green?"), exchange(600.0, "where is my key?"), key=BEN_KEY
    )
    store.keep(exchange(50.0, "before"), exchange(99.5, "meanwhile"), exchange(150.0, "after"), key=ANNA_KEY)
    store.keep(exchange(99.5, "meanwhile"), exchange(150.0, "after"), key="kitchen")

    forgotten = store.forget(ids=[("fact", 3)])

    assert (forgotten.facts, forgotten.turns, forgotten.summaries, len(forgotten.textless_records)) == (
        (1, 3),
        (2, 3),
        (1,),
        1,
    )
    assert store.kept(BEN_KEY) == ["is the tree green?", "where is my key?"]
    assert store.kept(ANNA_KEY) == ["before"]
    assert store.kept("kitchen") == ["after"]
    assert [fact.text for fact in store.memory.get_facts()] == ["The key lies under the mat"]


def test_all_from_then_on_goes_from_the_windows_of_the_person_who_stated_it(store: Store) -> None:
    store.add_fact()

    assert store.left(window(*(exchange(at, f"at {at}") for at in (10.0, 98.0, 99.0, 500.0))), ANNA_KEY) == [
        "at 10.0",
        "at 98.0",
    ]


@pytest.mark.parametrize("key", [SHARED_KEY, BEN_KEY], ids=["without an owner", "another person's"])
def test_other_windows_lose_its_repetitions_and_nothing_else(store: Store, key: str) -> None:
    store.add_fact("The bins go out on Friday")
    snapshot = window(
        exchange(1.0, "the bins are out on Friday"),
        exchange(200.0, "when do the bins go out?", "They go on Friday."),
        exchange(300.0, "hello"),
        exchange(None, "undated"),
    )

    assert store.left(snapshot, key) == ["hello", "undated"]


def test_windows_of_others_lose_repetitions_of_a_fact_that_somebody_has_forgotten(store: Store) -> None:
    store.add_fact("The bins go out on Friday")
    store.keep(exchange(1.0, "the bins are out on Friday"), exchange(300.0), key=BEN_KEY)

    store.forget(ids=[("fact", 1)], person="anna")

    assert store.kept(BEN_KEY) == ["hello"]


def test_of_many_statements_the_newest_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_MAX_STATEMENTS", 2)
    for at in (10.0, 20.0, 30.0, 40.0):
        store.add_fact(by="ben", at=at)
    store.add_fact(at=0.0, by=None)

    assert store.left(window(exchange(25.0), exchange(35.0)), BEN_KEY) == ["hello"]


def test_a_persons_own_words_of_their_fact_count_before_it_was_stored(store: Store) -> None:
    store.say("My code is quokka", at=50.0, person="anna")
    store.add_fact("The code is quokka", private=True)

    assert store.left(window(exchange(40.0), exchange(60.0)), ANNA_KEY) == ["hello"]


@pytest.mark.parametrize(
    ("text", "person", "left"),
    [("The safe code is quokka", None, 0), ("Quokka!", None, 1), ("The safe code is quokka", "anna", 1)],
    ids=["an unknown speaker's", "a single word", "a person's"],
)
def test_repetitions_of_an_unknown_speakers_turn_go(store: Store, text: str, person: str | None, left: int) -> None:
    row = store.say(text, at=1.0, person=person, conversation="other")

    assert len(store.left(window(exchange(10.0, "quokka is the code of the safe")), ids=[("turn", row)])) == left


def test_a_window_of_before_is_the_same_one(store: Store) -> None:
    store.add_fact()
    snapshot = window(exchange(10.0))

    assert store.rest(snapshot, ANNA_KEY) is snapshot


def test_what_goes_counts_as_evicted(store: Store) -> None:
    store.add_fact()
    rest = store.rest(window(exchange(10.0), exchange(200.0), exchange(300.0)), ANNA_KEY)

    assert (rest.evicted.exchanges, rest.evicted.messages, rest.evicted.tokens) == (2, 4, 20)


def test_arguments_and_results_of_tools_repeat_it_too(store: Store) -> None:
    store.add_fact("The bins go out on Friday")
    call = ToolCall("1", "note", {"text": "bins out"})
    looked_up = exchange(1.0, "what is it?")
    messages = (
        *looked_up.messages,
        Message.assistant(tool_calls=(call,), created=3.0, tokens=1),
        Message.tool("1", "note", "On Friday", created=4.0, tokens=1),
    )

    assert store.left(window(looked_up._replace(messages=messages))) == []


def test_a_stamp_repeats_nothing(store: Store) -> None:
    store.add_fact("Anna comes on Tuesday")
    stamp = InputStamp(datetime(2026, 11, 24, tzinfo=UTC), "Anna").format_prefix()
    snapshot = window(exchange(1.0, f"{stamp}hello"), exchange(2.0, f"{stamp}Anna is here on Tuesday"))

    assert store.left(snapshot) == [f"{stamp}hello"]


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
    store.add_fact(at=4.0, conversation="kitchen")
    summary = exchange(2.0, QUESTION, native=NativeData("openai", "m", {"encrypted": "..."}))

    assert store.left(window(exchange(1.0), summary, exchange(5.0)), str(key)) == left


def test_a_summary_that_can_be_read_is_judged_by_its_words(store: Store) -> None:
    first = Message.user(QUESTION, tags=frozenset({SUMMARY}), created=3.0, tokens=5)
    of_tea, of_bins = (
        exchange(at, QUESTION, text)._replace(messages=(first, Message.assistant(text, created=3.0, tokens=5)))
        for at, text in ((3.0, "Anna asked for green tea."), (4.0, "You spoke of the bins."))
    )
    for summary, left in ((of_tea, []), (of_bins, [QUESTION])):
        store.add_fact("Anna likes green tea", at=3.0, conversation="mine")
        assert store.left(window(summary)) == left


@pytest.mark.parametrize(("evicted", "is_same"), [("the tea is green", False), ("hello", True)])
def test_evicted_exchanges_are_summarized_if_all_of_them_stay(store: Store, evicted: str, *, is_same: bool) -> None:
    store.add_fact("the tea is green")
    snapshot = window(exchange(5.0))._replace(pending_exchanges=(exchange(1.0, evicted), exchange(2.0)))

    rest = store.rest(snapshot)

    assert (said(rest), rest is snapshot, bool(rest.pending_exchanges)) == (["hello"], is_same, is_same)


def test_an_exchange_without_a_time_goes_from_the_windows_of_the_person_who_stated_it(store: Store) -> None:
    store.add_fact()

    assert store.left(window(exchange(1.0), exchange(None, "undated")), ANNA_KEY) == ["hello"]


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
    store.add_fact("The cat food is in the cellar")

    assert len(store.left(window(exchange(2.0, asked, answer, sources=["fact:1", "fact:8"])))) == left


@pytest.mark.parametrize(("answer", "left"), [("Sure! It is quokka.", 0), ("Sure! I am well.", 1)])
def test_an_answer_goes_with_a_recalled_turn_if_it_has_more_than_the_beginning_of_its_answer(
    store: Store, answer: str, left: int
) -> None:
    row = store.memory.add_turn(PastTurn("other", 1.0, "Where is the bread?", "Sure! Code quokka."))
    snapshot = window(exchange(20.0, "how are you?", answer, sources=[f"turn:{row}"]))

    assert len(store.left(snapshot, ids=[("turn", row)])) == left


@pytest.mark.parametrize("exchanges", [(exchange(1.0),), (exchange(1.0), exchange(200.0))], ids=["before", "after"])
@pytest.mark.parametrize("key", [ANNA_KEY, SHARED_KEY], ids=["hers", "shared"])
def test_profile_goes_because_it_may_have_it(store: Store, exchanges: tuple[Exchange, ...], key: str) -> None:
    store.add_fact()
    system = Message.system(f"Be brief.\n\n{HEADING}\ntea", tokens=100)

    rest = store.rest(window(*exchanges, system=system), key)

    assert rest.system is not None
    assert rest.system.content == "Be brief."


def test_profile_stays_where_it_cannot_have_been(store: Store) -> None:
    store.add_fact(private=True)
    row = store.say("Bread", at=50.0, conversation="other")
    snapshot = window(exchange(1.0), system=Message.system(f"Be brief.\n\n{HEADING}\ntea"))

    assert store.rest(snapshot, BEN_KEY) is snapshot
    assert store.rest(snapshot, ANNA_KEY, ids=[("turn", row)]) is snapshot


def test_a_window_loses_the_same_words_of_another_person(store: Store) -> None:
    store.add_fact("My dentist is on Tuesday", private=True)

    assert store.left(window(exchange(1.0, "my dentist is on Tuesday")), BEN_KEY) == []


def test_exchanges_after_the_decision_are_judged_as_well(store: Store) -> None:
    store.add_fact("the tea is green")
    store.forget({(AGENT_ID, SHARED_KEY): window(exchange(1.0))})
    (losses,) = store.losses

    rest = losses.remove_lost(
        (AGENT_ID, SHARED_KEY), window(exchange(1.0), exchange(2.0, "the tea is green"), exchange(3.0, "bye"))
    )

    assert said(rest) == ["hello", "bye"]


def test_what_goes_from_the_stored_version_goes_from_the_other(store: Store) -> None:
    store.add_fact("the tea is green")
    store.keep(exchange(1.0, "what is it?", "The tea is green."))

    assert store.left(window(exchange(1.0, "what is it?", "[result]"))) == []


def test_stored_conversation_loses_the_same_and_its_figures_say_so(store: Store) -> None:
    store.add_fact("the tea is green")
    store.keep(exchange(1.0), exchange(2.0, "the tea is green"), exchange(300.0, "bye"))

    assert store.forget().exchange_count == 1

    assert store.kept() == ["hello", "bye"]
    assert (store.stats().exchange_count, store.stats().current_tokens) == (2, 20)
    assert (store.stats().evicted_exchanges, store.stats().evicted_messages) == (1, 2)


def test_conversation_that_is_stored_and_in_working_memory_counts_once(store: Store) -> None:
    store.add_fact()
    store.keep(exchange(200.0), exchange(300.0), key=ANNA_KEY)
    live = {(AGENT_ID, ANNA_KEY): window(exchange(200.0), exchange(300.0), exchange(400.0))}

    assert store.forget(live).exchange_count == 3
    assert store.kept(ANNA_KEY) is None


def test_a_dry_run_changes_nothing(store: Store) -> None:
    store.add_fact()
    store.keep(exchange(10.0), exchange(200.0), key=ANNA_KEY)

    assert store.forget(ids=[("fact", 1)], dry_run=True).exchange_count == 1

    assert (store.losses, store.kept(ANNA_KEY)) == ([], ["hello", "hello"])


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
def test_words_of_the_query_are_forgotten_where_the_person_may_forget_them(
    store: Store, *, person: str | EllipsisType | None, owner: str | None, kept: list[str]
) -> None:
    key = str(WindowKey("mine", owner))
    store.keep(exchange(1.0, "the tea is green"), exchange(2.0), key=key)

    store.forget(query="the tea is green", person=person)

    assert store.kept(key) == kept


def test_all_of_a_person_goes_from_their_windows_only(store: Store) -> None:
    store.keep(exchange(1.0), key=ANNA_KEY)
    store.keep(exchange(1.0), key=BEN_KEY)

    store.forget(person="anna")

    assert (store.kept(ANNA_KEY), store.kept(BEN_KEY)) == (None, ["hello"])


def test_all_of_an_agent_goes_from_its_windows_only(store: Store) -> None:
    store.keep(exchange(1.0))
    store.keep(exchange(1.0), agent="other")
    # a past turn without a person, which other agents may have recalled
    store.say("Bread", at=1.5)

    store.forget(agent="other")

    assert (store.kept(), store.kept(agent="other")) == (["hello"], None)


def test_of_a_span_of_time_its_exchanges_go(store: Store) -> None:
    store.keep(*(exchange(at, f"at {at}") for at in (10.0, 20.0, 30.0)))

    store.forget(since=15.0, before=25.0)

    assert store.kept() == ["at 10.0", "at 30.0"]


@pytest.mark.parametrize(
    ("exchanges", "tombstone", "left"),
    [
        ((exchange(10.0), exchange(20.0, "now"), exchange(30.0)), Tombstone("turn", 3, 20.5), ["hello"]),
        ((exchange(10.0), exchange(20.0, "now"), exchange(30.0)), Tombstone("fact", 3, 20.0), ["hello"]),
        (
            (exchange(10.0), exchange(20.0, "now", sources=["fact:7"]), exchange(30.0)),
            Tombstone("fact", 7, 1.0),
            ["hello"],
        ),
        ((SUMMARIZED, exchange(20.0)), Tombstone("turn", 3, 1.0), []),
        ((exchange(None),), Tombstone("turn", 3, 1.0), ["hello"]),
    ],
    ids=["in progress", "begun", "recalled", "a summary of an earlier time", "without a time"],
)
def test_an_older_copy_loses_all_from_the_exchange_that_may_have_it(
    exchanges: tuple[Exchange, ...], tombstone: Tombstone, left: list[str]
) -> None:
    assert said(remove_forgotten(window(*exchanges), [tombstone])) == left


@pytest.mark.parametrize("tombstone", [Tombstone("turn", 3, 15.0), Tombstone("fact", 8, 1.0)])
def test_an_older_copy_without_anything_forgotten_stays(tombstone: Tombstone) -> None:
    snapshot = window(exchange(10.0), exchange(20.0, sources=["fact:7"]))

    assert remove_forgotten(snapshot, [tombstone]) is snapshot
