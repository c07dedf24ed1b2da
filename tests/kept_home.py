"""The homes that released versions have left in `kept`, each a part of a config folder: copies, contents, and a visit.

`scripts/make_kept_home.py` makes the home of a version. What is here has to fit the homes of all versions.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
import json
from pathlib import Path
import shutil
import sqlite3
import time
from typing import Any, Protocol
import zlib

Json = dict[str, Any]

KEPT = Path(__file__).parent / "kept"
VERSIONS = sorted(each.name for each in KEPT.glob("*"))
DOMAIN = "windowed_conversation"
DATABASE = Path(".storage") / f"{DOMAIN}.db"

# The agents: one that has a window for each person, one of the same account, one of OpenAI, and one without a model.
AGENTS = HOUSE, STUDY, CLERK, ATTIC = tuple(f"conversation.{name}" for name in ("house", "study", "clerk", "attic"))
TASK = "ai_task.scripted_ai_task"
SATELLITE = "assist_satellite.satellite"
# The people, by their user names: the first one owns the satellite.
OWNER, GUEST = "demo", "ben"

# The conversations of the owner: one with a tagged exchange, a fact and the results of a tool, one that was summarized,
# and one with the residue of OpenAI's model.
DIARY, CELLAR, LETTERS = "diary", "cellar", "letters"
NAME = "Ada"
TAG = "pinned"
# Each fact in the words of whoever said it, and words by which it is found that are not in it.
OWNERS_FACT, GUESTS_FACT = "my locker is number 7", "my bike is in the shed"
REPLACED_FACT, HOMES_FACT = "the bins go out on Thursday", "the bins go out on Friday"
WORDED_FACT, WORDED_BY = "the fuse box hangs behind the coat rack", "blackout, breaker, electricity"
# A fact that was forgotten before the home was stopped.
FORGOTTEN_FACT = "the spare key is in the drawer"
# Each person with a private fact, and with one of the other person.
FACTS_BY_PERSON = ((OWNER, OWNERS_FACT, GUESTS_FACT), (GUEST, GUESTS_FACT, OWNERS_FACT))
# The summary of the cellar.
SUMMARY = "You told me: remember that the wine is on the left."

# Seconds between the last moment of a kept home and its copy's start.
_ABSENCE = 3600.0


@dataclass(frozen=True, slots=True)
class KeptHome:
    """The content of a home that a version has left, and the folder that it was read from.

    The exports are that of the diary, and the lines of those of all memories and turns.
    """

    folder: Path
    # The user ids by user name.
    people: dict[str, str]
    # The address of the model server.
    model: str
    # The time at which the home was stopped, in seconds since the epoch.
    kept_at: float
    # Home Assistant's own files by name.
    storage: dict[str, Json]
    # The responses of actions and the data of events, by their names, of a visit with the version's own code.
    responses: dict[str, dict[str, list[Any]]]
    conversation: Json
    memories: list[str]
    turns: list[Json]

    @property
    def database(self) -> Path:
        """The path of the store's file."""
        return self.folder / DATABASE

    @property
    def entity_ids(self) -> list[str]:
        """The ids of the integration's enabled entities."""
        entities = self.storage["core.entity_registry"]["data"]["entities"]
        return [each["entity_id"] for each in entities if each["platform"] == DOMAIN and each["disabled_by"] is None]

    @property
    def account_ids(self) -> list[str]:
        """The ids of the integration's config entries."""
        entries = self.storage["core.config_entries"]["data"]["entries"]
        return [each["entry_id"] for each in entries if each["domain"] == DOMAIN]


def read_home(folder: Path) -> KeptHome:
    """Return the home in a folder, which is not running."""
    exports, storage = folder / "exports", folder / ".storage"
    return KeptHome(
        folder,
        **_read_json(folder / "home.json"),
        storage={each.name: _read_json(each) for each in storage.iterdir() if each.suffix != DATABASE.suffix},
        responses=_read_json(folder / "responses.json"),
        conversation=_read_json(exports / "conversation.json"),
        memories=_read_lines(exports / "memories.jsonl"),
        turns=[json.loads(line) for line in _read_lines(exports / "turns.jsonl")],
    )


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def copy_home(version: str, folder: Path, model: str) -> KeptHome:
    """Copy a home to a new folder, as if it had been stopped an hour ago, with the address of its model server."""
    shutil.copytree(KEPT / version, folder)
    about, entries = _read_json(folder / "home.json"), folder / ".storage" / "core.config_entries"
    entries.write_text(entries.read_text(encoding="utf-8").replace(about["model"], model), encoding="utf-8")
    move_times(folder / DATABASE, time.time() - _ABSENCE - about["kept_at"])
    return read_home(folder)


def move_times(database: Path, seconds: float) -> None:
    """Add seconds to every time in the store's file, which must be closed: it then seems to be that much younger."""
    with closing(connect(database)) as connection, connection:
        for table, column in _list_time_columns(connection):
            connection.execute(f"UPDATE {table} SET {column} = {column} + ?", (seconds,))
        for row, text in connection.execute("SELECT id, text FROM exchange").fetchall():
            exchange = json.loads(text)
            for message in exchange["messages"]:
                message["created"] += seconds
            connection.execute("UPDATE exchange SET text = ? WHERE id = ?", (json.dumps(exchange), row))


def connect(database: Path) -> sqlite3.Connection:
    """Return a connection to a store's file, with the function that computes the checksums of its rows."""
    connection = sqlite3.connect(database)
    connection.create_function("text_sum", -1, _sum_texts, deterministic=True)
    return connection


def _list_time_columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the tables and columns with times, which are all that have real numbers."""
    return connection.execute("""
        SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND columns.type = 'REAL'
    """).fetchall()


def _sum_texts(*texts: bytes | None) -> int:
    return zlib.crc32(b"\0".join([text or b"" for text in texts]))


class Visited(Protocol):
    """A running home, which people talk to and whose actions they call."""

    async def say(self, person: str, agent: str, text: str, conversation_id: str) -> str:
        """Return the answer to a text."""

    async def act(self, person: str, action: str, **data: Any) -> Json:
        """Return the response of an action."""


async def visit(home: Visited) -> dict[str, list[Json]]:
    """Talk, call each action, and forget. Return the responses of the actions by their names.

    Each event is fired at least once: that of a lost answer at the start.
    """
    responses: defaultdict[str, list[Json]] = defaultdict(list)

    async def act(action: str, **data: Any) -> Json:
        response = await home.act(OWNER, action, **data)
        responses[action].append(response)
        return response

    await home.say(OWNER, HOUSE, "what do you know about me?", "visit")
    await home.say(OWNER, CLERK, "what is my name?", LETTERS)
    for number in range(4):
        await home.say(OWNER, STUDY, f"tell me a story about door {number} in 120 words", "stories")
    await _import_conversation(home, act)
    await _call_actions_on_conversations(act)
    await _call_actions_on_memory(act)
    await _call_actions_on_turns(act)
    await act("forget", query=OWNERS_FACT)
    return dict(responses)


async def _import_conversation(home: Visited, act: Any) -> None:
    response = await act("get_conversation", entity_id=STUDY, conversation_id=DIARY, content="export")
    for name in ("imported", "copy"):
        await act("import_conversation", entity_id=STUDY, conversation_id=name, export=response["export"])
    # a summary is asked for with the system prompt of the last turn
    await home.say(OWNER, STUDY, "what is my name?", "imported")


async def _call_actions_on_conversations(act: Any) -> None:
    diary = {"entity_id": STUDY, "conversation_id": DIARY}
    await act("list_conversations")
    await act("get_conversation", **diary, content="messages")
    await act("get_conversation", **diary, content="statistics")
    await act("get_conversation", entity_id=CLERK, conversation_id=LETTERS, content="token_count")
    await act("tag_exchange", **diary, add=["visited"])
    await act("summarize_conversation", entity_id=STUDY, conversation_id="imported", keep=1)
    await act("delete_conversation", entity_id=STUDY, conversation_id="copy")


async def _call_actions_on_memory(act: Any) -> None:
    for day in ("Monday", "Tuesday"):
        await act("remember", text=f"The paper goes out on {day}")
    await act("recall", query="bins")
    await act("recall")
    await act("export_memories")
    await act("export_memories", everyone=True, filename="media/visit.jsonl")
    await act("import_memories", filename="media/visit.jsonl")
    for query in (OWNERS_FACT, WORDED_FACT):
        await act("forget", query=query, dry_run=True)


async def _call_actions_on_turns(act: Any) -> None:
    turns = (await act("list_turns", entity_id=HOUSE, until=_find_visit_start()))["turns"]
    # turns without a model name an intent as their tool, and have no request
    kept = [each for each in turns if each["route"] != "local"]
    newest = (await act("list_turns", route="model", limit=1))["turns"]
    for trait in ("tools", "failures"):
        await act("get_turn", turn_id=next(each["turn_id"] for each in kept if each[trait]), request=1)
    await act("get_turn", turn_id=newest[0]["turn_id"])
    await act("list_turns", filename="media/turns.jsonl")


def _find_visit_start() -> str:
    """Return a time between the end of a kept home and the start of its copy."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - _ABSENCE / 2))


def list_shapes(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each value in a JSON value, with its type; the items of a list have the same path."""
    yield path, _name_type(value)
    if isinstance(value, list):
        for item in value:
            yield from list_shapes(item, f"{path}[]")
    if isinstance(value, dict):
        for key, each in value.items():
            yield from list_shapes(each, f"{path}.{key}")


def _name_type(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__
