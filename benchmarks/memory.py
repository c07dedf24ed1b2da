"""Compare memory's hits with those of plain FTS5, and measure the cost of a query as the number of turns grows.

    .venv/test/bin/python -m benchmarks.memory            (--quick: without 100,000 turns)

The household set has facts that two people tell a home over 200 days, and later questions about them. Each fact is
stored as the home's or a person's, together with the id of the fact that it replaces; plain FTS5 has the same facts,
the same access rights, and the same stop words. Search words of the facts are read from a file: a capable model wrote
them without seeing the questions, and a sloppy one. The dialogues are those of the tests.

The time of a query is the CPU time of its thread for what a turn recalls: relevant memories of all kinds. Python's part
is the time outside SQLite. The memory is the growth of a process after it opened the file and ran all queries. SQLite
and the code that reads package metadata are loaded before, as in Home Assistant, and are not counted. Bytes are the
size of the file without the texts themselves.
"""

from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice
import json
from pathlib import Path
import random
import sqlite3
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

from benchmarks.household import (
    HOUSEHOLD,
    SEARCH_WORDS,
    START_TIMESTAMP,
    create_fts_search,
    index_facts,
    index_turns,
    load_facts,
    load_turns,
    score_search,
)
from tests.memory.dialogues import found_in_tokens, found_in_turns, questions, utterances

if TYPE_CHECKING:
    from custom_components.windowed_conversation.memory.core import Memory, PastTurn, RecallQuery
else:
    # Importing the integration's package would import Home Assistant.
    from memory.core import Memory, PastTurn, RecallQuery

_INTEGRATION_FOLDER = Path(__file__).parent.parent / "custom_components" / "windowed_conversation"
_TURN_COUNTS = (1_000, 10_000, 100_000)
_FACT_COUNT = 1_000


def build_memory_file(
    path: Path,
    turns: int,
    languages: tuple[str, ...] = ("en", "de"),
    *,
    begin: float = START_TIMESTAMP,
    every: float = 900.0,
    people: tuple[str | None, ...] = (None, "anna", "ben"),
    facts: int = 0,
) -> float:
    """Store turns of these people, one every `every` seconds, and facts with search words.

    Return the bytes per turn besides its text, without the facts.
    """
    memory = Memory(path, languages)
    memory.load_lines(islice(_iter_export_lines(begin, every, people), turns))
    while memory.reindex():
        pass
    memory.checkpoint()
    file_size = path.stat().st_size
    for text, search_words in islice(_iter_facts(), facts):
        memory.add_fact(text, search_words=search_words, at=begin)
    memory.checkpoint()
    memory.close()
    beside = sqlite3.connect(path)
    text_size: int = beside.execute("SELECT sum(octet_length(said) + octet_length(answer)) FROM turn").fetchone()[0]
    beside.close()
    return (file_size - text_size) / turns


class _TimedConnection:
    """A connection that records the CPU time spent in SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.sqlite_nanoseconds = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, *arguments: Any) -> _FetchedRows:
        """Execute a statement and fetch all of its rows."""
        start = thread_time_ns()
        rows = _FetchedRows(self._connection.execute(*arguments).fetchall())
        self.sqlite_nanoseconds += thread_time_ns() - start
        return rows


class _FetchedRows(list[Any]):
    """Fetched rows, with the methods of a cursor."""

    def fetchone(self) -> Any:
        """Return the first row, or None if there is none."""
        return self[0] if self else None

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self


def measure_queries(path: Path) -> dict[str, float]:
    """Run all queries in this process, and return percentiles of their times in milliseconds."""
    memory = Memory(path, ("en", "de"))
    timed = _TimedConnection(memory.database._read_connection)  # noqa: SLF001 - nothing else tells SQLite's time from ours
    memory.database._read_connection = timed  # type: ignore[assignment]  # noqa: SLF001
    taken, python = [], []
    for question in _list_questions() * 2:
        timed.sqlite_nanoseconds = 0
        start = thread_time_ns()
        memory.recall_relevant(RecallQuery(question, "anna", "Anna", limit=20))
        taken.append((thread_time_ns() - start) / 1e6)
        python.append(taken[-1] - timed.sqlite_nanoseconds / 1e6)
    return {
        "p50": _find_percentile(taken, 0.5),
        "p95": _find_percentile(taken, 0.95),
        "python": _find_percentile(python, 0.95),
    }


def _iter_export_lines(begin: float, every: float, people: tuple[str | None, ...]) -> Iterator[str]:
    """Yield turns endlessly as lines of an export: commands and talk, each followed by a rare word."""
    chance = random.Random(14)
    talk = [said.text for said in utterances()]
    conversation = 0
    for row in range(1, sys.maxsize):
        conversation += chance.random() < 0.4
        said, answer = chance.choice(HOUSEHOLD["commands"])
        rare = "".join(chance.choice("bdfglmnrst") + chance.choice("aeiou") for _ in range(chance.randint(2, 4)))
        turn = {
            "said": f"{said if chance.random() < 0.5 else chance.choice(talk)} {rare}",
            "answer": f"{answer} {chance.choice(talk)}",
            "conversation": f"01JD{conversation:022d}",
            "agent": "01JCAGENT00000000000000000",
            "device": chance.choice(("d1", "d2", "d3")) * 16,
        }
        if person := chance.choice(people):
            turn["person"] = person
        yield json.dumps({"kind": "turn", "id": row, "at": begin + row * every, **turn})


def _iter_facts() -> Iterator[tuple[str, str]]:
    """Yield facts endlessly, each with a number and with the search words of a fact of the household."""
    known = [(told["fact"], SEARCH_WORDS["memory_household"]["capable"][told["id"]]) for told in HOUSEHOLD["told"]]
    for number in range(sys.maxsize):
        text, search_words = known[number % len(known)]
        yield f"{text}, number {number}", search_words


def _list_questions() -> list[str]:
    return [question["q"] for question in HOUSEHOLD["questions"]] + [question for question, _ in questions()]


def _find_percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


# Measured in a child process, because this process has already imported memory.
_CHILD_PROGRAM = """
import importlib.metadata, json, sqlite3, sys
from pathlib import Path
importlib.metadata.version("snowballstemmer")
sqlite3.connect(":memory:").execute("SELECT 1")
import os, random, re, subprocess, tempfile
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
before = resident()
sys.path.insert(0, sys.argv[1])
from memory.core import Memory, RecallQuery
memory = Memory(sys.argv[2], ("en", "de"))
for question in json.loads(sys.argv[3]):
    memory.recall_relevant(RecallQuery(question, "anna", "Anna", limit=20))
print(resident() - before)
"""


def _measure_memory_megabytes(path: Path) -> float:
    ran = subprocess.run(
        [sys.executable, "-c", _CHILD_PROGRAM, str(_INTEGRATION_FOLDER), str(path), json.dumps(_list_questions())],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(ran.stdout)


def _print_household(folder: Path) -> None:
    memory, ask_facts = load_facts(folder)
    capable, ask_capable = load_facts(folder, "capable")
    sloppy, ask_sloppy = load_facts(folder, "sloppy")
    archive, ask_turns = load_turns(folder)
    print(f"{'household set':32}{'hit@1':>8}{'hit@5':>8}{'Chinese':>10}{'stale first':>13}{'private, deleted':>18}")
    for name, ask in (
        ("facts, plain FTS5, porter", index_facts("porter")),
        ("facts, plain FTS5, trigram", index_facts("trigram")),
        ("facts, memory", ask_facts),
        ("the same, search words", ask_capable),
        ("the same, sloppy search words", ask_sloppy),
        ("turns, plain FTS5, porter", index_turns("porter")),
        ("turns, plain FTS5, trigram", index_turns("trigram")),
        ("turns, memory", ask_turns),
    ):
        of = score_search(ask)
        print(
            f"{name:32}{of.first_share:8.1%}{of.top_five_share:8.1%}{of.chinese_hits:>10}{of.stale_first_count:13}{of.forbidden_count:18}"
        )
    for opened in (memory, capable, sloppy, archive):
        opened.close()


def _print_dialogues(folder: Path) -> None:
    memory = Memory(folder / "dialogues.db", ("en",))
    for said in utterances():
        memory.add_turn(PastTurn(said.session_day, said.at, said.text, ""))
    texts = [(said.text, said.text) for said in utterances()]
    print(f"\n{'dialogues':32}{'5 turns':>10}{'10 turns':>10}{'20 turns':>10}{'300 tokens':>12}")
    for name, search in (
        ("plain FTS5, porter", create_fts_search("porter", texts)),
        ("plain FTS5, trigram", create_fts_search("trigram", texts)),
        ("memory", lambda asked: [found.text for found in memory.recall(asked, kinds=("turn",), limit=60)]),
        (
            "memory, relevant turns",
            lambda asked: [found.text for found in memory.recall_relevant(RecallQuery(asked, limit=60))[1]],
        ),
    ):
        turns = [found_in_turns(search, most) for most in (5, 10, 20)]
        print(f"{name:32}" + "".join(f"{share:10.1%}" for share in turns) + f"{found_in_tokens(search, 300):12.1%}")
    memory.close()


def _print_costs(folder: Path, sizes: tuple[int, ...]) -> None:
    print(f"\n{'turns':>8}{'p50 ms':>10}{'p95 ms':>10}{'Python p95':>12}{'bytes a turn':>14}{'memory MB':>11}")
    for turns in sizes:
        path = folder / f"{turns}.db"
        size = build_memory_file(path, turns, facts=_FACT_COUNT)
        of = measure_queries(path)
        print(
            f"{turns:8,}{of['p50']:10.1f}{of['p95']:10.1f}{of['python']:12.1f}{size:14.0f}{_measure_memory_megabytes(path):11.1f}",
            flush=True,
        )


def main() -> None:
    """Run the benchmark and print the results."""
    print(f"SQLite {sqlite3.sqlite_version}, snowballstemmer {version('snowballstemmer')}\n")
    with TemporaryDirectory() as name:
        _print_household(Path(name))
        _print_dialogues(Path(name))
        _print_costs(Path(name), _TURN_COUNTS[: 2 if "--quick" in sys.argv[1:] else None])


if __name__ == "__main__":
    main()
