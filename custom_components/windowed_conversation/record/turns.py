"""The recorded turns: lists of them, single ones with their text, an export, and the sums of a day."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
import json
import math
import sqlite3
from typing import Any, NamedTuple

from ..store import Database
from .fields import SentRequest, ToolCallText, TurnRecord, decode_json, decode_statistics, encode_json
from .tables import IN_LIST_CONDITION

_MAX_LIST_LIMIT = 1_000
_MAX_SPEAKER_TURNS = 2_000
# How many turns an export reads at a time.
_EXPORT_PAGE_SIZE = 100

# Home Assistant adds a namespace to the names of some tools ("intent__HassTurnOn").
_TOOL_CONDITION = """
    EXISTS (
        SELECT 1 FROM json_each(figures, '$.tools')
        WHERE value = :tool OR substr(value, -length('__' || :tool)) = '__' || :tool
    )
"""
# The SQL condition for each field of a `TurnListQuery`.
_CONDITION_BY_FIELD = {
    "since": "at >= :since",
    "until": "at <= :until",
    **{each: f"figures ->> '{each}' = :{each}" for each in ("outcome", "conversation_id")},
    "routes": IN_LIST_CONDITION.format("figures ->> 'route'", ":routes"),
    "people": IN_LIST_CONDITION.format("coalesce(figures ->> 'person', '')", ":people"),
    "agents": IN_LIST_CONDITION.format("figures ->> 'agent'", ":agents"),
    "tool": _TOOL_CONDITION,
    "after": "id < :after",
}

# In seconds. The offset of every time zone is a multiple of this, and so is every change of an offset.
_SLOT_SECONDS = 900
# The excluded routes are an agent's own work, which is recorded like a turn.
_SELECT_SUMS = """
    SELECT CAST(at / :slot_seconds AS INTEGER) AS slot, figures ->> 'agent' AS agent, figures ->> 'person' AS person,
    figures ->> '$.attempts[#-1].model' AS model, figures ->> 'route' AS route,
    count(*) FILTER (WHERE figures ->> 'route' NOT IN ('summary', 'search_words')), total(figures ->> 'requests'),
    total(figures ->> '$.usage.input'), total(figures ->> '$.usage.cached'), total(figures ->> '$.usage.output'),
    total(figures ->> 'cost'), count(*) FILTER (WHERE figures ->> 'cost' IS NULL AND figures ->> 'requests' > 0)
    FROM turn_record WHERE {conditions} GROUP BY slot, agent, person, model, route
"""


class TurnListQuery(NamedTuple):
    """The conditions for a list of turns, all of which must be met. The newest turns come first."""

    since: float = -math.inf
    until: float = math.inf
    # The owners whose turns are listed, with None for unknown speakers. If the set itself is None, all turns are
    # listed.
    people: frozenset[str | None] | None = None
    # Without them, turns of all routes are listed.
    routes: frozenset[str] | None = None
    outcome: str | None = None
    # The name of a tool, with or without its namespace.
    tool: str | None = None
    conversation_id: str | None = None
    # The id of the last turn on the previous page.
    after: str | None = None
    limit: int = 50
    # The ids of the agents whose turns are listed. Without it, the turns of all agents are listed.
    agents: frozenset[str] | None = None


@dataclass(slots=True)
class DailyUsage:
    """The sums over the recorded turns of one agent, person, model and route on one day, or in one month."""

    # The first day of a month.
    day: date
    agent: str
    person: str | None
    # The model that was asked last, or None if none was asked.
    model: str | None
    route: str
    turns: int = 0
    # The requests and their tokens include summaries and other work of the agent, which are not counted as `turns`.
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    # The sum of all known costs in US dollars.
    cost: float = 0.0
    # The number of turns that sent requests of unknown cost.
    without_price: int = 0


class _StoredTurn(NamedTuple):
    row_id: int
    turn: TurnRecord


class RecordedTurns:
    """The record of turns in an open file, without damaged turns. Every method raises `StoreUnavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_newest(self, query: TurnListQuery, *, with_text: bool = False) -> list[TurnRecord]:
        """Return turns with their statistics, newest first, at most 1,000.

        With `with_text`, they include their text if it is stored, but not the text of their requests.
        """
        with self._database.read_transaction() as connection:
            listed = _select_listed_turns(connection, query)
            return [_add_text(connection, each) if with_text else each.turn for each in listed]

    def get_turn(self, turn_id: str) -> TurnRecord | None:
        """Return one turn, with its text if that is stored, or None if there is no such turn."""
        with self._database.read_transaction() as connection:
            found = _read_turns(connection, "WHERE id = ?", (turn_id,))
            return _add_whole_text(connection, found[0]) if found else None

    def list_speakers(self, people: Collection[str | None]) -> dict[str, tuple[str | None, str | None]]:
        """Return the device and the automation of the newest turn of each conversation, in the newest 2,000 turns.

        Only turns of these people count. None stands for unknown speakers.
        """
        query = """
            SELECT figures ->> 'conversation_id', figures ->> 'person', figures ->> 'device', figures ->> 'automation'
            FROM turn_record ORDER BY id DESC LIMIT ?
        """
        speakers: dict[str, tuple[str | None, str | None]] = {}
        with self._database.read_transaction() as connection:
            for conversation, person, device, automation in connection.execute(query, (_MAX_SPEAKER_TURNS,)):
                if conversation is not None and person in people:
                    speakers.setdefault(conversation, (device, automation))
        return speakers

    def sum_usage(self, query: TurnListQuery, zone: tzinfo, *, by_month: bool = False) -> list[DailyUsage]:
        """Return the sums of all turns that meet the conditions, by local day or month, newest first."""
        conditions, values = _build_conditions(query)
        sums: dict[tuple[str, ...], DailyUsage] = {}
        with self._database.read_transaction() as connection:
            statement = _SELECT_SUMS.format(conditions=conditions)
            for row in connection.execute(statement, {**values, "slot_seconds": _SLOT_SECONDS}):
                _add_usage(sums, zone, row, by_month=by_month)
        return [sums[key] for key in sorted(sums, reverse=True)]

    def export(self, query: TurnListQuery) -> Iterator[str]:
        """Yield the turns that meet the conditions as JSON lines with their text, newest first, without a limit."""
        after = query.after
        while True:
            with self._database.read_transaction() as connection:
                page = _select_listed_turns(connection, query._replace(after=after, limit=_EXPORT_PAGE_SIZE))
                turns = [_add_whole_text(connection, each) for each in page]
            for turn in turns:
                # the time has the format of the actions
                yield encode_json({**turn, "time": datetime.fromtimestamp(turn["time"], UTC).isoformat()})
            if not page:
                return
            after = page[-1].turn["turn_id"]


def _add_usage(sums: dict[tuple[str, ...], DailyUsage], zone: tzinfo, row: tuple[Any, ...], *, by_month: bool) -> None:
    """Add the sums of a quarter of an hour to those of its day or its month."""
    slot, agent, person, model, route, *sums_in_slot = row
    turns, requests, input_tokens, cached_tokens, output_tokens, cost, without_price = sums_in_slot
    day = datetime.fromtimestamp(slot * _SLOT_SECONDS, zone).date()
    day = day.replace(day=1) if by_month else day
    key = (day.isoformat(), agent, person or "", model or "", route)
    usage = sums.setdefault(key, DailyUsage(day, agent, person, model, route))
    usage.turns += turns
    usage.requests += int(requests)
    usage.input_tokens += int(input_tokens)
    usage.cached_tokens += int(cached_tokens)
    usage.output_tokens += int(output_tokens)
    usage.cost += cost
    usage.without_price += without_price


def _select_listed_turns(connection: sqlite3.Connection, query: TurnListQuery) -> list[_StoredTurn]:
    conditions, values = _build_conditions(query)
    values["limit"] = min(max(query.limit, 0), _MAX_LIST_LIMIT)
    return _read_turns(connection, f"WHERE {conditions} ORDER BY id DESC LIMIT :limit", values)


def _build_conditions(query: TurnListQuery) -> tuple[str, dict[str, Any]]:
    """Return the SQL conditions of a query, and their values."""
    values = {name: each for name, each in query._asdict().items() if each is not None}
    conditions = " AND ".join(_CONDITION_BY_FIELD[name] for name in values if name in _CONDITION_BY_FIELD)
    values |= {
        name: json.dumps([each or "" for each in owners])
        for name, owners in values.items()
        if isinstance(owners, frozenset)
    }
    return conditions, values


def _read_turns(connection: sqlite3.Connection, where: str, values: Any) -> list[_StoredTurn]:
    """Return the turns that meet a condition, without those whose statistics are damaged."""
    rows = connection.execute(
        f"""
        SELECT row, id, at, figures, EXISTS (SELECT 1 FROM record_words WHERE record_words.turn = turn_record.row)
        FROM turn_record {where}
        """,
        values,
    )
    return [
        _StoredTurn(row, turn)
        for row, turn_id, at, text, has_text in rows
        if (turn := decode_statistics(text, turn_id, at, has_text=bool(has_text))) is not None
    ]


def _add_text(connection: sqlite3.Connection, found: _StoredTurn) -> TurnRecord:
    """Return a turn with its text if it has any, but without that of its requests."""
    if not found.turn["has_text"]:
        return found.turn
    query = "SELECT said, answer, calls FROM record_words WHERE turn = ?"
    said, answer, calls = connection.execute(query, (found.row_id,)).fetchone()
    tool_calls: list[ToolCallText] = [
        {"name": name, "arguments": arguments, "result": result} for name, arguments, result in json.loads(calls)
    ]
    return {**found.turn, "said": said, "answer": answer, "tool_calls": tool_calls}


def _add_whole_text(connection: sqlite3.Connection, found: _StoredTurn) -> TurnRecord:
    """Return a turn with its text and that of its requests, if it has any."""
    turn = _add_text(connection, found)
    query = "SELECT number, system, tools, messages FROM record_sent WHERE turn = ?"
    for number, *parts in connection.execute(query, (found.row_id,)).fetchall():
        if number < len(turn["attempts"]):
            turn["attempts"][number]["sent"] = _read_sent_request(connection, *parts)
    return turn


def _read_sent_request(connection: sqlite3.Connection, system: int, tools: int, messages: str) -> SentRequest:
    """Return the content of a request, without the messages that were lost because they were damaged."""
    rows = decode_json(messages)
    if not isinstance(rows, list):
        rows = []
    query = f"SELECT id, text FROM record_content WHERE {IN_LIST_CONDITION.format('id', '?')}"
    texts = dict(connection.execute(query, (json.dumps([system, tools, *rows]),)).fetchall())
    return {
        "system": texts.get(system, ""),
        "tools": decode_json(texts.get(tools, "[]")),
        "messages": [decode_json(texts[row]) for row in rows if row in texts],
    }
