"""Helpers that read and damage the database file, with all of its rooms, independently of the store."""

from contextlib import closing
import sqlite3

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.memory.turn.forgetting import CONVERSATIONS
from custom_components.windowed_conversation.record import RECORD, forget_turns
from custom_components.windowed_conversation.store import VALUE_TABLE, write_value
from custom_components.windowed_conversation.window import EstimatedCounter, Message, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs.snapshot import StoredConversation, write_conversation

LANGUAGES = ("en", "de")
PAGE = 4_096


def opened(path):
    """Open the file with all rooms, as the agents do."""
    return Memory(path, LANGUAGES, rooms=(RECORD, CONVERSATIONS, VALUE_TABLE), companions=(forget_turns,))


def add_conversation(memory, *said):
    """Store a conversation of the home with these user messages."""
    window = Window("c1", WindowPolicy(10**9), EstimatedCounter())
    for each in said:
        window.add_exchange((Message.user(each), Message.assistant("I see.")))
    with memory.database.write_transaction() as connection:
        write_conversation(connection, StoredConversation("a1", "c1", 1.0, window.stats()), window.exchanges())


def add_value(memory, name, value):
    """Store a value for agent "a1"."""
    with memory.database.write_transaction() as connection:
        write_value(connection, "a1", name, value)


def rows(path, query):
    """Return the rows of a query, with texts as bytes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        return connection.execute(query).fetchall()


def replace_bytes(path, text, other):
    """Replace a text in a closed file, which must contain it exactly once."""
    content = path.read_bytes()
    assert content.count(text) == 1
    path.write_bytes(content.replace(text, other))


def overwrite_page(path, text):
    """Overwrite the page with this text in a closed file, which must contain the text exactly once."""
    content = bytearray(path.read_bytes())
    assert content.count(text) == 1
    start = content.index(text) // PAGE * PAGE
    content[start : start + PAGE] = b"\xff" * PAGE
    path.write_bytes(content)
