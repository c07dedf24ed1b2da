"""The writer: nothing is lost that was put while there was room, whatever becomes of the file meanwhile."""

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
import os
from pathlib import Path
import signal
import sqlite3
import subprocess
import sys
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from custom_components.windowed_conversation.memory import (
    LateRecord,
    Memory,
    MemoryUnavailable,
    TurnCost,
    file,
    transfer,
    writer as module,
)
from custom_components.windowed_conversation.memory.writer import Writer

from .content import indexed, stored, turn
from .recorded import record, whole

_LANGUAGES = ("en", "de")
_FOLDER = Path(file.__file__).parents[1]
# far longer than anything here takes
_ENOUGH = 60


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch) -> None:
    """Have failed tries repeated at once, and a locked file say so at once."""
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.001)
    monkeypatch.setattr(file, "_BUSY_SECONDS", 0.0)


@pytest.fixture
def states():
    return []


@pytest.fixture
def make(path, states):
    """Return what makes a writer that is not started; each is closed in the end."""
    made = []

    def make(**more):
        made.append(Writer(path, _LANGUAGES, on_state=states.append, **more))
        return made[-1]

    yield make
    for each in made:
        if each._thread.is_alive():
            assert each.close(_ENOUGH)


@pytest.fixture
def writer(make):
    writer = make()
    writer.start()
    return writer


def said(path):
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT said FROM turn ORDER BY id")]
    finally:
        connection.close()


def recorded(path) -> int:
    """Return how many turns the record has."""
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM turn_record").fetchone()[0])
    finally:
        connection.close()


def test_what_was_put_is_in_the_file_in_order(writer, path) -> None:
    for number in range(500):
        writer.put(turn(f"bread {number}"))

    assert writer.drain(_ENOUGH)
    assert said(path) == [f"bread {number}" for number in range(500)]
    assert (writer.counts.queued, writer.counts.written, writer.counts.dropped) == (0, 500, 0)


def test_what_has_queued_up_is_one_commit(make, monkeypatch) -> None:
    commits, add = list[int](), Memory.add

    def counted(memory: Memory, records: Sequence[Any]) -> None:
        commits.append(len(records))
        add(memory, records)

    monkeypatch.setattr(Memory, "add", counted)
    writer = make()
    for number in range(50):
        writer.put(turn(f"bread {number}"))

    writer.start()

    assert writer.drain(_ENOUGH)
    assert commits == [50]


def test_what_there_is_no_room_for_is_counted_and_what_waits_is_kept(make, path) -> None:
    writer = make(most_waiting=3)
    for number in range(5):
        writer.put(turn(f"bread {number}"))

    assert (writer.counts.queued, writer.counts.dropped) == (3, 2)
    writer.start()
    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread 0", "bread 1", "bread 2"]


def test_what_cannot_be_stored_is_counted_and_stops_nothing_else(make, path) -> None:
    writer = make()
    writer.put(turn("bread"))
    writer.put(turn(""))
    writer.put(turn("butter", conversation="c" * 1_000))
    writer.put(turn("jam"))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread", "jam"]
    assert (writer.counts.written, writer.counts.refused, writer.counts.error) == (2, 2, "ValueError")


def test_no_file_is_made_until_something_is_put(writer, path) -> None:
    assert writer.drain(_ENOUGH)
    writer.close(_ENOUGH)

    assert not path.exists()


def test_a_file_that_is_there_is_opened_at_the_start(make, path) -> None:
    Memory(path, _LANGUAGES).close()
    opened = Event()

    make(daily=lambda memory: opened.set()).start()

    assert opened.wait(_ENOUGH)


def test_a_locked_file_is_tried_again_until_it_is_free(make, path, states) -> None:
    Memory(path, _LANGUAGES).close()
    beside = sqlite3.connect(path, isolation_level=None)
    beside.execute("BEGIN EXCLUSIVE")
    writer = make()
    writer.put(turn("bread"))
    writer.start()
    assert not writer.drain(_ENOUGH)
    assert states[-1].reason == "locked"

    beside.close()
    refused = writer.call(lambda memory: None)

    refused.exception(_ENOUGH)
    writer.close(_ENOUGH)
    assert said(path) == ["bread"]
    assert states[-1].reason is None
    assert writer.counts.failures > 0


def test_a_call_is_done_after_what_was_put_before_in_the_thread_that_writes(writer) -> None:
    writer.put(turn("bread"))

    found, thread = writer.call(lambda memory: (memory.figures().turns, current_thread())).result(_ENOUGH)

    assert found == 1
    assert thread is not main_thread()


def test_a_call_has_the_error_of_its_own_work(writer) -> None:
    with pytest.raises(ValueError, match="words"):
        writer.call(lambda memory: memory.add_fact("...")).result(_ENOUGH)
    assert writer.state.reason is None


def test_a_call_fails_at_once_while_the_memory_is_off_and_patient_work_waits(make, path) -> None:
    Memory(path, _LANGUAGES).close()
    beside = sqlite3.connect(path, isolation_level=None)
    beside.execute("BEGIN EXCLUSIVE")
    writer = make()
    writer.start()
    patient: Future[int] = writer.call(lambda memory: memory.add_fact("Tea at five"), patient=True)
    with pytest.raises(MemoryUnavailable) as refused:
        writer.call(lambda memory: memory.facts()).result(_ENOUGH)
    assert refused.value.reason == "locked"

    beside.close()

    assert patient.result(_ENOUGH) == 1


def test_patient_work_makes_no_file(writer, path) -> None:
    forgotten = writer.call(lambda memory: memory.forget(agent="a1"), patient=True)

    assert writer.drain(_ENOUGH)
    assert forgotten.cancelled()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"no database at all" * 1_000, b"SQLite format 3\x00" + b"\xff" * 8_000])
def test_a_damaged_file_is_set_aside_and_what_was_put_is_in_a_new_one(make, path, states, content) -> None:
    path.write_bytes(content)
    writer = make()
    writer.put(turn("bread"))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread"]
    assert {state.reason for state in states} == {None}
    assert states[-1].set_aside.read_bytes() == content


def test_a_file_that_is_deleted_while_it_is_used_is_made_again(writer, path) -> None:
    writer.put(turn("bread"))
    assert writer.drain(_ENOUGH)
    path.unlink()

    writer.put(turn("butter"))
    writer.drain(_ENOUGH)
    assert writer.drain(_ENOUGH)
    assert said(path) == ["butter"]


def test_a_reader_that_finds_damage_has_the_file_made_anew(writer, path) -> None:
    for number in range(200):
        writer.put(turn(f"bread {number}"))
    # the writer may find the damage first, in its upkeep
    memory = writer.call(lambda memory: memory.checkpoint() and memory).result(_ENOUGH)
    with path.open("r+b") as damaged:
        damaged.seek(4_096)
        damaged.write(b"\xff" * (path.stat().st_size - 4_096))
    with pytest.raises(MemoryUnavailable):
        list(memory.export())

    writer.check()
    writer.put(turn("butter"))

    assert writer.drain(_ENOUGH)
    assert said(path) == ["butter"]
    assert writer.call(lambda memory: memory.facts()).result(_ENOUGH) == []


def test_a_newer_file_is_left_alone(make, path, states) -> None:
    Memory(path, _LANGUAGES).close()
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 1000")
    newer.close()
    content = path.read_bytes()
    writer = make()
    writer.put(turn("bread"))
    writer.start()

    assert not writer.drain(_ENOUGH)
    assert states[-1].reason == "newer"
    assert writer.close(_ENOUGH)
    assert path.read_bytes() == content


def test_nothing_is_written_while_it_is_held_and_all_of_it_afterwards(writer, path) -> None:
    writer.put(turn("bread"))
    assert writer.hold(_ENOUGH)
    content = path.read_bytes()

    writer.put(turn("butter"))
    with pytest.raises(MemoryUnavailable) as refused:
        writer.call(lambda memory: memory.facts()).result(_ENOUGH)

    assert refused.value.reason == "locked"
    assert path.read_bytes() == content
    assert writer.counts.queued == 1
    writer.release()
    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread", "butter"]


def test_a_queue_that_is_half_full_ends_what_holds_it(make, path) -> None:
    writer = make(most_waiting=4)
    writer.put(turn("bread"))
    writer.start()
    assert writer.drain(_ENOUGH)
    assert writer.hold(_ENOUGH)
    written = writer.call(lambda memory: None, patient=True)
    writer.put(turn("butter"))

    written.result(_ENOUGH)


def test_what_waits_is_written_before_it_is_closed_and_nothing_afterwards(make, path) -> None:
    writer = make()
    for number in range(300):
        writer.put(turn(f"bread {number}"))
    writer.start()

    assert writer.close(_ENOUGH)
    writer.put(turn("too late"))

    assert len(said(path)) == 300
    assert writer.counts.dropped == 1
    assert not Path(f"{path}-wal").exists()
    with pytest.raises(MemoryUnavailable):
        writer.call(lambda memory: None).result(_ENOUGH)


def test_five_thousand_records_that_wait_are_written_before_it_is_closed(make, path) -> None:
    writer = make()
    for number in range(5_000):
        writer.put(LateRecord(partial(whole, number, f"Hello {number % 7}")))
        writer.put(TurnCost(f"turn-{number:04}", "0.25"))

    writer.start()

    assert writer.close(_ENOUGH)
    assert (recorded(path), writer.counts.queued, writer.counts.dropped) == (5_000, 0, 0)
    memory = Memory(path, _LANGUAGES)
    assert memory.record.get("turn-4999") == whole(4_999, f"Hello {4_999 % 7}", cost="0.25")
    memory.close()


def test_a_record_that_cannot_be_made_is_counted_and_stops_nothing_else(make, path) -> None:
    writer = make()
    writer.put(LateRecord(partial(record, 1)))
    writer.put(LateRecord(partial(record, 2, at="never")))
    writer.put(LateRecord(partial(record, 4, nothing=0)))
    writer.put(LateRecord(partial(record, 3)))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert (recorded(path), writer.counts.refused, writer.counts.error) == (2, 2, "TypeError")


def test_a_state_tells_how_much_there_is(path) -> None:
    told = Event()
    writer = Writer(path, _LANGUAGES, on_state=lambda state: told.set() if _turns(state) == 2 else None)
    writer.put(turn("bread"))
    writer.put(turn("butter"))
    writer.start()

    assert told.wait(_ENOUGH)
    assert writer.close(_ENOUGH)


def _turns(state):
    return state.figures and state.figures.turns


def test_what_was_loaded_at_once_is_found_a_little_later(make, path, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(transfer, "_MANY", 2)
    other = Memory(tmp_path / "other.db", _LANGUAGES)
    other.add(turn(f"bread {number}") for number in range(5))
    lines = list(other.export())
    other.close()
    found = Event()
    writer = Writer(path, _LANGUAGES, on_state=lambda state: found.set() if _is_indexed(state, 5) else None)
    writer.start()

    writer.call(lambda memory: memory.load(lines)).result(_ENOUGH)

    assert found.wait(_ENOUGH)
    assert writer.memory is not None
    assert len(writer.memory.recall("bread")) == 5
    assert writer.close(_ENOUGH)


def _is_indexed(state, turns):
    return _turns(state) == turns and state.figures.unindexed == 0


def test_a_fault_of_the_daily_work_stops_nothing(make, path) -> None:
    def fail(memory: Memory) -> None:
        raise RuntimeError("bread")

    Memory(path, _LANGUAGES).close()
    writer = make(daily=fail)
    writer.start()
    writer.put(turn("bread"))

    assert writer.drain(_ENOUGH) or writer.drain(_ENOUGH)
    assert said(path) == ["bread"]


_WRITES = """
import sys

sys.path.insert(0, sys.argv[1])

from pathlib import Path
from memory import PastTurn, TurnRecord
from memory.writer import Writer

writer = Writer(Path(sys.argv[2]), ("en", "de"))
writer.start()
for number in range(1_000_000):
    writer.put(PastTurn("c1", float(number), f"bread number {number}", "butter " * 20))
    writer.put(TurnRecord(id=f"{number:07}{sys.argv[3]}", at=float(number), agent="a1", route="llm", end="answered"))
    # what a turn takes at least: until the next one comes, this one is written
    assert writer.drain(60)
    print(number, flush=True)
"""


# what one leaves is what the next begins with
_KILLS = 20


@pytest.mark.long
def test_kills_lose_at_most_the_turn_in_progress_and_leave_a_whole_file(path) -> None:
    kept = 0
    for kill in range(_KILLS):
        finished = written_until_killed(path, 3 + kill * 2, kill)
        memory = Memory(path, _LANGUAGES)

        assert kept + finished + 1 <= memory.figures().turns <= kept + finished + 2
        assert kept + finished + 1 <= recorded(path) <= kept + finished + 2
        assert memory._database._writer.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert indexed(path) == stored(path, _LANGUAGES)
        kept = memory.figures().turns
        memory.close()


def written_until_killed(path, turns, kill) -> int:
    """Have a process write, and kill it after at least this many turns; return the last that it finished."""
    command = [sys.executable, "-c", _WRITES, _FOLDER, path, str(kill)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = [next(process.stdout) for _ in range(turns)][-1]
        os.kill(process.pid, signal.SIGKILL)
        return int([last, *process.stdout][-1])
