"""Helpers that read the content of a memory file independently of `Memory`."""

import sqlite3
from typing import Any

from custom_components.windowed_conversation.memory.core import PastTurn
from custom_components.windowed_conversation.memory.core.rows import insert_record
from custom_components.windowed_conversation.memory.core.words import Words

DAY = 86_400.0
NOW = 1_800_000_000.0

_TEXTS = {
    "fact": "SELECT id, text FROM fact WHERE replaced_by IS NULL",
    "summary": "SELECT id, text FROM summary",
    "turn": "SELECT id, said || char(10) || answer FROM turn",
}


def turn(said, answer="", *, conversation="c1", at=NOW, person=None):
    return PastTurn(conversation=conversation, at=at, said=said, answer=answer, person=person)


def insert_summary(memory, summary):
    """Store a summary without checking its turns, and return its id."""
    with memory.database.write_transaction() as connection:
        return insert_record(connection, memory.words, summary)


def get_texts(found):
    return [recalled.text for recalled in found]


def read_all_files(path):
    """Return the content of all files of a memory on disk."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def indexed(path):
    """Return each term in the index with its kind, row, column and position, as reported by FTS5."""
    connection = sqlite3.connect(path)
    try:
        for kind in _TEXTS:
            connection.execute(f"INSERT INTO {kind}_words({kind}_words) VALUES ('integrity-check')")
            connection.execute(f"CREATE VIRTUAL TABLE temp.{kind}_places USING fts5vocab(main, {kind}_words, instance)")
        return {
            (kind, *place)
            for kind in _TEXTS
            for place in connection.execute(f"SELECT doc, col, offset, term FROM temp.{kind}_places")
        }
    finally:
        connection.rollback()
        connection.close()


def stored(path, languages):
    """Return the index entries that should exist, built from the stored texts. Compare them with those of `indexed`."""
    words = Words(languages)
    connection = sqlite3.connect(path)
    try:
        rows = [(kind, row, text) for kind, query in _TEXTS.items() for row, text in connection.execute(query)]
    finally:
        connection.close()
    places = set[tuple[Any, ...]]()
    for kind, row, text in rows:
        terms = words.build_index_terms(text)
        places.update((kind, row, "words", at, term) for at, term in enumerate(terms.words.split()))
        parts = f"{terms.word_parts} {terms.word_edges}" if kind == "fact" else terms.word_parts
        places.update((kind, row, "parts", at, term) for at, term in enumerate(parts.split()))
    return places
