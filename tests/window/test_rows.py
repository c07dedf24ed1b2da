"""Tests for conversations as database rows: they are read as they were written, and only changes are written."""

from collections.abc import Iterator
from contextlib import closing
import json
import sqlite3

from hypothesis import given, settings
import pytest

from custom_components.windowed_conversation.window import Attachment, Message, NativeData, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs.snapshot import (
    TABLES_SQL,
    StoredConversation,
    delete_conversation,
    delete_orphans,
    list_stored_conversations,
    read_conversation,
    write_conversation,
)

from .conversations import windows
from .histories import LengthCounter, create_window


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(TABLES_SQL.format(sum="length(text)"))
    return connection


@pytest.fixture
def stored() -> Iterator[sqlite3.Connection]:
    """Yield a database in which the conversation "kitchen" has three exchanges, and "hall" has one."""
    with closing(connect()) as connection:
        write(connection, talk("one", "two", "three"), "kitchen", used=2.0)
        write(connection, talk("four"), "hall", used=1.0)
        yield connection


def talk(*said: str, policy: WindowPolicy | None = None) -> Window:
    window = create_window(policy or WindowPolicy())
    for text in said:
        window.add_exchange((Message.user(text), Message.assistant("Yes.")))
    return window


def write(connection: sqlite3.Connection, window: Window, key: str = "kitchen", used: float = 1.0) -> None:
    write_conversation(connection, StoredConversation("a1", key, used, window.stats()), window.exchanges())


def texts(connection: sqlite3.Connection, key: str = "kitchen") -> list[str]:
    snapshot = read_conversation(connection, "a1", key)
    assert snapshot is not None
    return [exchange.messages[0].content for exchange in snapshot.exchanges]


def again(connection: sqlite3.Connection, policy: WindowPolicy) -> Window:
    """Return the window restored from the stored conversation "kitchen"."""
    snapshot = read_conversation(connection, "a1", "kitchen")
    assert snapshot is not None
    window = Window("conversation", policy, LengthCounter(), clock=lambda: 1_000.0)
    window.restore(snapshot)
    return window


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_conversation_comes_back_equal_but_for_its_system_prompt(window: Window) -> None:
    with closing(connect()) as connection:
        write(connection, window)
        other = again(connection, window.policy)
        (listed,) = list_stored_conversations(connection)

    window.set_system_prompt("")
    assert other.snapshot().exchanges == window.snapshot().exchanges
    assert [each.number for each in other.exchanges()] == [each.number for each in window.exchanges()]
    assert other.messages() == window.messages()
    assert other.stats() == window.stats()
    assert listed.stats._replace(prefix_tokens=0) == window.stats()
    assert other._counter.asked == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "message",
    [
        Message.user("who?", attachments=(Attachment("image/png", bytes(range(256)), "door.png"),)),
        Message.user("half \ud83d of a character"),
        Message.user(
            "", tags=frozenset({"important"}), created=0.0, native=NativeData("p", "m", {"a": [1.5, None]}, 7)
        ),
    ],
    ids=["attachment", "half of a character", "residue"],
)
def test_message_comes_back_as_it_was(stored: sqlite3.Connection, message: Message) -> None:
    window = create_window(WindowPolicy())
    window.add_exchange((message, Message.assistant("Ada.")))

    write(stored, window)

    assert again(stored, WindowPolicy()).exchanges()[0] == window.exchanges()[0]


def test_exchanges_keep_their_numbers_and_the_next_one_continues_them() -> None:
    window = talk(*"abcdef", policy=WindowPolicy(history_tokens=60, trim_share=0))
    with closing(connect()) as connection:
        write(connection, window)
        other = again(connection, window.policy)

    other.add_exchange((Message.user("g"), Message.assistant("Yes.")))

    assert [each.number for each in window.exchanges()][-1] == 6
    assert [each.number for each in other.exchanges()][-1] == 7


def test_only_what_has_changed_is_written(stored: sqlite3.Connection) -> None:
    window = again(stored, WindowPolicy())
    window.add_exchange((Message.user("new"), Message.assistant("Yes.")))
    window.tag_exchange(2, add={"important"})
    before, changes = dict(stored.execute("SELECT id, text FROM exchange")), stored.total_changes

    conversation = StoredConversation("a1", "kitchen", 3.0, window.stats())
    write_conversation(stored, conversation, window.exchanges()[1:4:2], removed_numbers=[1])

    assert stored.total_changes - changes == 4
    assert texts(stored) == ["two", "three", "new"]
    after = dict(stored.execute("SELECT id, text FROM exchange"))
    assert {row & 0xFF for row in after if after[row] != before.get(row)} == {2, 4}
    assert list_stored_conversations(stored, "a1")[-1].stats == window.stats()


def test_conversations_are_listed_by_their_last_use(stored: sqlite3.Connection) -> None:
    write_conversation(stored, StoredConversation("a2", "kitchen", 1.5, talk().stats()))

    found = [(each.agent_id, each.window_key, each.used_at) for each in list_stored_conversations(stored)]

    assert found == [("a1", "hall", 1.0), ("a2", "kitchen", 1.5), ("a1", "kitchen", 2.0)]
    assert [each.window_key for each in list_stored_conversations(stored, "a2")] == ["kitchen"]


def test_deleted_conversation_takes_its_exchanges_and_no_others(stored: sqlite3.Connection) -> None:
    delete_conversation(stored, "a1", "kitchen")
    delete_conversation(stored, "a2", "hall")

    assert read_conversation(stored, "a1", "kitchen") is None
    assert texts(stored, "hall") == ["four"]
    assert stored.execute("SELECT count(*) FROM exchange").fetchone() == (1,)


def test_exchanges_without_their_conversation_are_deleted_and_no_others(stored: sqlite3.Connection) -> None:
    stored.execute("DELETE FROM conversation WHERE key = 'kitchen'")

    delete_orphans(stored)

    assert stored.execute("SELECT count(*) FROM exchange").fetchone() == (1,)
    write(stored, talk(), "kitchen")
    assert texts(stored) == []


FOREIGN = {
    "nothing": "",
    "cut off": '{"tags": [], "mess',
    "a list": "[]",
    "a number": "1",
    "nested too deeply": "[" * 100_000,
    "without messages": '{"tags": []}',
    "messages that are none": '{"tags": [], "messages": [1]}',
    "messages that are a number": '{"tags": [], "messages": 1}',
    "a role of its own": '{"tags": [], "messages": [{"role": "butler", "content": "", "tokens": 1}]}',
    "without tokens": '{"tags": [], "messages": [{"role": "user", "content": ""}]}',
    "tokens that are no number": '{"tags": [], "messages": [{"role": "user", "content": "", "tokens": "1"}]}',
    "a tag that is none": '{"tags": [" "], "messages": [{"role": "user", "content": "", "tokens": 1}]}',
    "tags that are none": '{"tags": [[]], "messages": [{"role": "user", "content": "", "tokens": 1}]}',
    "an attachment that is none": json.dumps(
        {"tags": [], "messages": [{"role": "user", "content": "", "tokens": 1, "attachments": [{"data": "?"}]}]}
    ),
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_row_that_is_none_of_ours_is_skipped(stored: sqlite3.Connection, text: str) -> None:
    stored.execute("UPDATE exchange SET text = ? WHERE id & 255 = 2", (text,))

    assert texts(stored) == ["one", "three"]


@pytest.mark.parametrize("state", ["", "[]", "null", "{}", '{"trims": 1}', "[" * 100_000], ids=range(6))
def test_conversation_whose_figures_cannot_be_read_has_its_exchanges(stored: sqlite3.Connection, state: str) -> None:
    stored.execute("UPDATE conversation SET state = ?", (state,))

    assert texts(stored) == ["one", "two", "three"]
    assert {each.stats.exchange_count for each in list_stored_conversations(stored)} == {0}
