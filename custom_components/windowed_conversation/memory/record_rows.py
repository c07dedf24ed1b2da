"""The record of turns, as it is stored: figures in rows of their own, words beside them, each text once."""

from collections.abc import Iterable
import json
import sqlite3

from .labels import label
from .record_forgetting import make_room
from .texts import NAME_LENGTH, moment
from .turn_record import RequestRecord, Sent, TurnCost, TurnRecord, TurnWords, fingerprint

# counting takes time
_EVERY = 500
# In characters. No conversation that fits a window has longer ones.
_LONGEST_SAID = 16_000
_LONGEST_CONTENT = 1_000_000
_LONGEST_CALL = 100_000
_LONGEST_MESSAGE = 500
_MOST_TOKENS = 2**53
_CUT = "…"


type Contents = dict[str, int]


def store_turn_record(connection: sqlite3.Connection, record: TurnRecord, contents: Contents) -> None:
    """Store the record of a turn with its requests. One that is there already is not stored again.

    `contents` has the rows of texts that this transaction has stored or found: requests that follow each other send
    mostly the same.
    """
    row = _stored_turn(connection, record)
    if row is None:
        return
    for number, request in enumerate(record.requests):
        _store_request(connection, row, number, request)
    if record.words is not None:
        _store_words(connection, row, record.words)
        for number, request in enumerate(record.requests):
            if request.sent is not None:
                _store_sent(connection, (row, number), request.sent, contents)
    if row % _EVERY == 0:
        make_room(connection)
        contents.clear()


def store_cost(connection: sqlite3.Connection, known: TurnCost) -> None:
    """Store what a turn has cost, if its record is there."""
    connection.execute("UPDATE turn_record SET cost = ? WHERE id = ?", (known.cost[:NAME_LENGTH], known.turn))


def _stored_turn(connection: sqlite3.Connection, record: TurnRecord) -> int | None:
    added = connection.execute(
        """
        INSERT OR IGNORE INTO turn_record (
            id, at, agent, conversation, person, device, entity_id, route, reason, outcome, error, message,
            answered_by, failures, first_token, duration, tools, failed_tool_calls, cost, cause
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            record.id,
            moment(record.at),
            *(
                _label(connection, each)
                for each in (
                    record.agent,
                    record.conversation,
                    record.person,
                    record.device,
                    record.entity_id,
                    record.route,
                    record.reason,
                    record.end,
                    record.error,
                )
            ),
            _cut(record.message or "", _LONGEST_MESSAGE) or None,
            _label(connection, record.answered_by),
            _json([[each.agent, each.error] for each in record.failures]),
            record.first_token,
            moment(record.duration),
            _json(record.tools),
            record.failed_tool_calls,
            record.cost,
            record.cause,
        ),
    )
    return added.lastrowid if added.rowcount else None


def _store_request(connection: sqlite3.Connection, turn: int, number: int, request: RequestRecord) -> None:
    named = (
        request.agent,
        request.provider,
        request.model,
        request.purpose,
        request.end,
        request.error,
        request.finish,
    )
    usage = request.usage
    tokens = usage and (
        usage.input,
        usage.cached,
        usage.output,
        usage.cache_written,
        usage.reasoning,
        usage.cleared,
    )
    connection.execute(
        """
        INSERT INTO request_record (
            turn, number, agent, provider, model, purpose, outcome, error, finish, parameters,
            prompt, tools, called, began, duration, first_token, usage
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            turn,
            number,
            *(_label(connection, each) for each in named),
            request.parameters,
            *(each and bytes.fromhex(each) for each in (request.prompt, request.tools)),
            _json(request.called),
            moment(request.began),
            moment(request.duration),
            request.first_token,
            tokens and json.dumps([min(max(each, 0), _MOST_TOKENS) for each in tokens]),
        ),
    )


def _store_words(connection: sqlite3.Connection, turn: int, words: TurnWords) -> None:
    calls = [
        [each.name, _cut(each.arguments, _LONGEST_CALL), each.result and _cut(each.result, _LONGEST_CALL)]
        for each in words.calls
    ]
    connection.execute(
        "INSERT INTO record_words VALUES (?, ?, ?, ?)",
        (turn, _cut(words.said, _LONGEST_SAID), _cut(words.answer, _LONGEST_SAID), _json(calls) or "[]"),
    )


def _store_sent(connection: sqlite3.Connection, place: tuple[int, int], sent: Sent, contents: Contents) -> None:
    rows = [_content(connection, each, contents) for each in (sent.system, sent.tools, *sent.messages)]
    connection.execute(
        "INSERT INTO record_sent VALUES (?, ?, ?, ?, ?)",
        (*place, *rows[:2], _json(rows[2:]) or "[]"),
    )


def _content(connection: sqlite3.Connection, text: str, contents: Contents) -> int:
    """Return the row of a text, a new one if it has none."""
    if text not in contents:
        contents[text] = _stored_content(connection, text)
    return contents[text]


def _stored_content(connection: sqlite3.Connection, text: str) -> int:
    mark = bytes.fromhex(fingerprint(text))
    found = connection.execute("SELECT id FROM record_content WHERE fingerprint = ?", (mark,)).fetchone()
    if found:
        row: int = found[0]
        return row
    added = connection.execute(
        "INSERT INTO record_content (fingerprint, text) VALUES (?, ?)", (mark, _cut(text, _LONGEST_CONTENT))
    ).lastrowid
    assert added is not None
    return added


def _label(connection: sqlite3.Connection, text: str | None) -> int | None:
    """Return the number of a name, of as much of it as a name may have."""
    if not text:
        return None
    return label(connection, text.encode(errors="replace")[:NAME_LENGTH].decode(errors="ignore"))


def _cut(text: str, length: int) -> str:
    sound = text.encode(errors="replace").decode()
    return sound if len(sound) <= length else sound[: length - len(_CUT)] + _CUT


def _json(values: Iterable[object]) -> str | None:
    """Return a list as JSON, or None if it is empty."""
    listed = list(values)
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":")) if listed else None
