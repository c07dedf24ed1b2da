"""Tests for the writer: every accepted record is written, even if the file is damaged or locked meanwhile."""

from collections.abc import Sequence
from contextlib import closing
from functools import partial
import os
from pathlib import Path
from queue import SimpleQueue
import signal
import sqlite3
import subprocess
import sys
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.record import RecordedTurns, store_turn_cost
from custom_components.windowed_conversation.store import (
    StoreState,
    StoreUnavailable,
    StoreWriter,
    WriteJob,
    file,
    queue,
    writer as module,
)
from tests.memory.content import indexed, read_all_files, stored, turn
from tests.record.recorded import record, whole, write

from .files import LANGUAGES, opened, replace_bytes

_FOLDER = Path(__file__).parents[2]
_SAID = "bread"
# Timeout in seconds, far longer than any operation here takes.
_ENOUGH = 60


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch) -> None:
    """Retry failed operations immediately, and report a locked file immediately."""
    monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(module, "_MAX_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_SECONDS", 0.0)


@pytest.fixture
def states():
    return []


@pytest.fixture
def make(path, states):
    """Return a function that creates a writer without starting it. All writers are closed after the test."""
    made = []

    def make(**more):
        made.append(StoreWriter(path, opened, **{"on_state": states.append} | more))
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


def until(told, is_met):
    """Wait for a state in the queue that meets the condition."""
    next(filter(is_met, iter(partial(told.get, timeout=_ENOUGH), None)))


def said(path):
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT said FROM turn ORDER BY id")]


def recorded(path) -> int:
    """Return the number of turns in the record."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM turn_record").fetchone()[0])


def test_what_was_put_is_in_the_file_in_order(writer, path) -> None:
    for number in range(500):
        writer.put(turn(f"bread {number}"))

    assert writer.drain(_ENOUGH)
    assert said(path) == [f"bread {number}" for number in range(500)]
    assert (writer.counts.queued, writer.counts.rows_written, writer.counts.dropped) == (0, 500, 0)


@pytest.mark.parametrize(
    ("together", "commits"),
    [([1] * 50, [50]), ([1] * 99 + [5, 3], [104, 3]), ([250], [250])],
    ids=["queued up", "put together", "put together and more than is written at once"],
)
def test_one_commit_has_what_has_queued_up_and_all_that_was_put_together(make, monkeypatch, together, commits) -> None:
    seen, add = list[int](), Memory.add

    def counted(memory: Memory, records: Sequence[Any]) -> None:
        seen.append(len(records))
        add(memory, records)

    monkeypatch.setattr(Memory, "add", counted)
    writer = make()
    for number in together:
        writer.put(*(turn("bread") for _ in range(number)))

    writer.start()

    assert writer.drain(_ENOUGH)
    assert seen == commits


def test_nothing_of_what_was_put_together_is_written_without_the_rest(make, path) -> None:
    failures = [StoreUnavailable("full")]

    def fail(connection: sqlite3.Connection) -> None:
        for failure in failures:
            raise failure

    writer = make()
    writer.put(turn("bread"), WriteJob(fail), turn("butter"))
    writer.start()

    assert not writer.drain(_ENOUGH)
    failures.clear()
    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread", "butter"]


def test_what_there_is_no_room_for_is_counted_and_what_waits_is_kept(make, path) -> None:
    writer = make(most_waiting=3)
    writer.put(turn("bread 0"), turn("bread 1"))
    writer.put(turn("too much"), turn("too much"))
    writer.put(turn("bread 2"))
    with pytest.raises(StoreUnavailable) as refused:
        writer.submit(Memory.get_facts).result(_ENOUGH)

    assert refused.value.reason == "locked"
    assert (writer.counts.queued, writer.counts.dropped) == (3, 2)
    writer.start()
    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread 0", "bread 1", "bread 2"]


def test_what_is_written_by_a_function_is_told_after_the_commit_and_not_if_it_was_refused(writer, path) -> None:
    seen: list[object] = []
    writer.put(turn("bread"), WriteJob(lambda connection: None, lambda: seen.extend(said(path))))
    assert writer.drain(_ENOUGH)

    writer.put(WriteJob(lambda connection: int("bread"), lambda: seen.append("refused")))

    assert writer.drain(_ENOUGH)
    assert (seen, writer.counts.refused) == (["bread"], 1)


def test_what_was_written_is_not_written_again_for_what_cannot_be_read_then(make, path) -> None:
    writer = make()
    writer.put(turn("bread"), WriteJob(lambda connection: connection.execute("DROP TABLE set_aside")))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread"]


def test_what_cannot_be_stored_is_counted_and_stops_nothing_else(make, path) -> None:
    writer = make()
    writer.put(turn("bread"))
    writer.put(turn(""))
    writer.put(turn("butter", conversation="c" * 1_000))
    writer.put(turn("jam"))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread", "jam"]
    assert (writer.counts.rows_written, writer.counts.refused, writer.counts.error) == (2, 2, "ValueError")


def test_where_no_file_may_be_created_what_is_put_is_dropped_and_told_so(writer, path) -> None:
    writer.may_create = False
    done = Event()

    writer.put(turn("bread"), WriteJob(lambda connection: None, done.set))

    assert done.wait(_ENOUGH)
    assert writer.counts.rows_written == 0
    assert not path.exists()


def fail(memory: Memory) -> None:
    raise StoreUnavailable("full")


@pytest.mark.parametrize("work", [Memory.get_facts, fail])
def test_where_no_file_may_be_created_a_call_leaves_none(writer, path, work) -> None:
    writer.may_create = False

    writer.submit(work).exception(_ENOUGH)

    writer.drain(_ENOUGH)
    assert list(path.parent.iterdir()) == []


def test_each_opening_is_told_and_whether_the_file_is_new(make, path) -> None:
    opened(path).close()
    seen: list[bool] = []
    writer = make(on_opened=lambda memory: seen.append(memory.database.is_new))
    writer.start()
    writer.submit(Memory.get_facts).result(_ENOUGH)
    path.unlink()
    writer.put(turn("bread"))
    writer.drain(_ENOUGH)

    assert writer.drain(_ENOUGH)
    assert seen == [False, True]


def test_no_file_is_made_until_something_is_put(writer, path) -> None:
    assert writer.drain(_ENOUGH)
    writer.close(_ENOUGH)

    assert not path.exists()


def test_a_locked_file_is_tried_again_until_it_is_free(make, path, states) -> None:
    opened(path).close()
    beside = sqlite3.connect(path, isolation_level=None)
    beside.execute("BEGIN EXCLUSIVE")
    writer = make()
    writer.put(turn("bread"))
    writer.start()
    assert not writer.drain(_ENOUGH)
    assert states[-1].reason == "locked"

    beside.close()
    refused = writer.submit(lambda memory: None)

    refused.exception(_ENOUGH)
    writer.close(_ENOUGH)
    assert said(path) == ["bread"]
    assert states[-1].reason is None
    assert writer.counts.failures > 0


def test_a_call_is_done_after_what_was_put_before_in_the_thread_that_writes(writer) -> None:
    writer.put(turn("bread"))

    found, thread = writer.submit(lambda memory: (memory.statistics().turns, current_thread())).result(_ENOUGH)

    assert found == 1
    assert thread is not main_thread()


def test_a_call_has_the_error_of_its_own_work(writer) -> None:
    with pytest.raises(ValueError, match="words"):
        writer.submit(lambda memory: memory.add_fact("...")).result(_ENOUGH)
    assert writer.state.reason is None


@pytest.mark.parametrize("content", [b"no database at all" * 1_000, b"SQLite format 3\x00" + b"\xff" * 8_000])
def test_a_damaged_file_is_set_aside_and_what_was_put_is_in_a_new_one(make, path, states, content) -> None:
    path.write_bytes(content)
    writer = make()
    writer.put(turn("bread"))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread"]
    assert {state.reason for state in states} == {None}
    assert states[-1].damaged_path.read_bytes() == content


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
    # the upkeep of the writer thread may find the damage first
    memory = writer.submit(lambda memory: memory.checkpoint() and memory).result(_ENOUGH)
    with path.open("r+b") as damaged:
        damaged.seek(4_096)
        damaged.write(b"\xff" * (path.stat().st_size - 4_096))
    with pytest.raises(StoreUnavailable):
        list(memory.export())

    writer.request_upkeep()
    writer.put(turn("butter"))

    assert writer.drain(_ENOUGH)
    assert said(path) == ["butter"]
    assert writer.submit(lambda memory: memory.get_facts()).result(_ENOUGH) == []


def test_a_newer_file_is_left_alone(make, path, states) -> None:
    opened(path).close()
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
    assert writer.pause_writing(_ENOUGH)
    content = path.read_bytes()

    writer.put(turn("butter"))
    with pytest.raises(StoreUnavailable) as refused:
        writer.submit(lambda memory: memory.facts()).result(_ENOUGH)

    assert refused.value.reason == "backup"
    assert not writer.pause_writing(_ENOUGH)
    assert path.read_bytes() == content
    assert writer.counts.queued == 1
    writer.resume_writing()
    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread", "butter"]


def test_a_queue_that_is_half_full_ends_what_holds_it(make, path) -> None:
    writer = make(most_waiting=4)
    writer.put(turn("bread"))
    writer.start()
    assert writer.drain(_ENOUGH)
    assert writer.pause_writing(_ENOUGH)
    written = Event()

    writer.put(turn("butter"), WriteJob(lambda connection: None, written.set))

    assert written.wait(_ENOUGH)


def test_what_is_not_in_the_one_file_in_time_is_not_held(make, path) -> None:
    opened(path).close()

    assert not make().pause_writing(0)


def test_nothing_is_written_to_a_new_file_while_it_is_held(writer, path) -> None:
    assert writer.pause_writing(_ENOUGH)
    writer.put(turn("bread"))

    assert not path.exists()
    writer.resume_writing()
    assert writer.drain(_ENOUGH)
    assert said(path) == ["bread"]


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
    with pytest.raises(StoreUnavailable):
        writer.submit(lambda memory: None).result(_ENOUGH)


def test_a_call_that_is_cancelled_while_it_waits_is_not_made(make, path) -> None:
    writer = make()
    cancelled = writer.submit(lambda memory: memory.add_turn(turn("bread")))
    made = writer.submit(lambda memory: memory.add_turn(turn("butter")))
    assert cancelled.cancel()
    writer.start()

    made.result(_ENOUGH)

    assert said(path) == ["butter"]


def test_a_call_fails_where_the_file_turns_out_to_be_damaged_at_the_end(make, path) -> None:
    path.write_bytes(b"no database at all" * 1_000)
    writer = make()
    writer.submit(Memory.get_facts).cancel()
    refused = writer.submit(Memory.get_facts)
    assert writer.close(0)

    writer.start()

    assert str(refused.exception(_ENOUGH)) == "closed"


def test_five_thousand_records_that_wait_are_written_before_it_is_closed(make, path) -> None:
    writer = make()
    for number in range(5_000):
        writer.put(write(partial(whole, number, f"Hello {number % 7}")))
        writer.put(WriteJob(partial(store_turn_cost, turn_id=f"turn-{number:04}", cost="0.25")))

    writer.start()

    assert writer.close(_ENOUGH)
    assert (recorded(path), writer.counts.queued, writer.counts.dropped) == (5_000, 0, 0)
    memory = opened(path)
    assert RecordedTurns(memory.database).get_turn("turn-4999") == whole(4_999, f"Hello {4_999 % 7}", cost="0.25")
    memory.close()


def test_a_record_that_cannot_be_made_is_counted_and_stops_nothing_else(make, path) -> None:
    writer = make()
    writer.put(write(partial(record, 1)))
    writer.put(write(partial(record, 2, time="never")))
    writer.put(write(partial(record)))
    writer.put(write(partial(record, 3)))
    writer.start()

    assert writer.drain(_ENOUGH)
    assert (recorded(path), writer.counts.refused, writer.counts.error) == (2, 2, "TypeError")


def _turns(state):
    return state.statistics and state.statistics.turns


@pytest.fixture
def telling(make):
    """Return a started writer, and a queue of the states that it publishes."""
    told = SimpleQueue[StoreState]()
    writer = make(on_state=told.put)
    writer.start()
    return writer, told


def test_a_state_tells_how_much_there_is(telling) -> None:
    writer, told = telling

    writer.put(turn("bread"), turn("butter"))

    until(told, lambda state: _turns(state) == 2)


def test_a_state_tells_how_many_rows_were_damaged_until_they_are_forgotten(make, path) -> None:
    memory = opened(path)
    memory.add([turn("BREAD"), turn("BUTTER")])
    memory.close()
    replace_bytes(path, b"BREAD", b"BREAK")
    told = SimpleQueue[StoreState]()
    writer = make(on_state=told.put)
    writer.start()
    until(told, lambda state: state.rows_set_aside == 1 and _turns(state) == 1)

    writer.submit(lambda memory: memory.forget(query="bread")).result(_ENOUGH)

    until(told, lambda state: state.rows_set_aside == 0)


def test_what_could_not_be_erased_is_erased_later(telling, path, monkeypatch) -> None:
    monkeypatch.setattr(queue, "_ERASE_RETRY_SECONDS", 0.0)
    writer, told = telling
    writer.put(turn("QUOKKA"))
    assert writer.drain(_ENOUGH)
    with closing(sqlite3.connect(path, isolation_level=None)) as beside:
        beside.execute("BEGIN")
        beside.execute("SELECT said FROM turn").fetchall()
        assert not writer.submit(lambda memory: memory.forget(query="quokka")).result(_ENOUGH).is_erased
        until(told, lambda state: state.statistics and state.statistics.unerased)

    until(told, lambda state: not state.statistics.unerased)

    assert b"QUOKKA" not in read_all_files(path)


def test_the_daily_work_is_repeated_when_that_is_asked_for_or_when_it_failed(make, path) -> None:
    opened(path).close()
    done, failures = SimpleQueue[Memory](), iter([StoreUnavailable("full")])

    def work(memory: Memory) -> None:
        for failure in failures:
            raise failure
        done.put(memory)

    writer = make(daily=work)
    writer.start()
    done.get(timeout=_ENOUGH)

    writer.request_upkeep(repeat_daily=True)

    done.get(timeout=_ENOUGH)


def test_a_fault_of_the_daily_work_stops_nothing_and_says_nothing_of_what_was_said(make, path, caplog) -> None:
    def fail(memory: Memory) -> None:
        raise RuntimeError(_SAID)

    opened(path).close()
    told = SimpleQueue[StoreState]()
    writer = make(daily=fail, on_state=told.put)
    writer.start()
    until(told, lambda state: state.reason == "fault")

    writer.put(turn(_SAID))

    assert writer.drain(_ENOUGH)
    assert said(path) == [_SAID]
    assert "The store failed" in caplog.text
    assert _SAID not in caplog.text


# Forks a process for each number that it reads, which writes turns until it is killed. Python and all modules are
# loaded once.
_WRITES = """
import os
import sys

sys.path.insert(0, sys.argv[1])

import tests.without_home_assistant

tests.without_home_assistant.pytest_configure()

from functools import partial
from pathlib import Path
from custom_components.windowed_conversation.memory.core import PastTurn
from custom_components.windowed_conversation.store import StoreWriter
from tests.record.recorded import record, writes
from tests.store.files import opened


def write(kill):
    print(os.getpid(), flush=True)
    writer = StoreWriter(Path(sys.argv[2]), opened)
    writer.start()
    for number in range(1_000_000):
        turn = PastTurn("c1", float(number), f"bread number {number}", "butter " * 20)
        writer.put(turn, *writes(record(number, turn_id=f"{number:07}{kill}")))
        # what a turn takes at least: until the next one comes, this one is written
        assert writer.drain(60)
        print(number, flush=True)


for line in sys.stdin:
    process = os.fork()
    if not process:
        write(int(line))
    os.waitpid(process, 0)
    print("killed", flush=True)
"""


# Number of killed processes. Each process continues with the file of the previous one.
_KILLS = 20


@pytest.mark.long
def test_kills_lose_at_most_the_turn_in_progress_and_leave_a_whole_file(path, writes) -> None:
    kept = 0
    for kill in range(_KILLS):
        finished = kill_during_writes(writes, 3 + kill * 2, kill)
        memory = opened(path)

        assert kept + finished + 1 <= memory.statistics().turns <= kept + finished + 2
        assert recorded(path) == memory.statistics().turns
        assert memory.database._write_connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert indexed(path) == stored(path, LANGUAGES)
        kept = memory.statistics().turns
        memory.close()


@pytest.fixture
def writes(path):
    """Return the process that runs `_WRITES`."""
    command = [sys.executable, "-c", _WRITES, _FOLDER, path]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        # also the process that writes, if the test has failed before the kill
        os.killpg(process.pid, signal.SIGKILL)


def kill_during_writes(writes, turns, kill) -> int:
    """Have a process write turns, and kill it after at least this many. Return the last finished one."""
    print(kill, file=writes.stdin, flush=True)
    process = int(next(writes.stdout))
    last = [next(writes.stdout) for _ in range(turns)][-1]
    os.kill(process, signal.SIGKILL)
    return int([last, *iter(partial(next, writes.stdout), "killed\n")][-1])
