"""Tests for a failing memory file: turns are still answered, one issue is raised, and memory recovers by itself."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
import errno
import os
from pathlib import Path
from typing import Any

from homeassistant.const import EVENT_HOMEASSISTANT_CLOSE
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.const import DOMAIN
from custom_components.windowed_conversation.memory.core import Memory

from .conftest import SayFn, flush_store, get_speech, until
from .remembered import memory_of
from .store_file import Disk, issues

type Fault = Callable[[Disk, Memory], AbstractContextManager[None]]

_AFTER_OPEN = 4_096


@contextmanager
def lock_file(disk: Disk, memory: Memory) -> Iterator[None]:
    """Lock the file as another program would."""
    lock = disk.lock()
    yield
    disk(lambda path: lock.close())


@contextmanager
def full(disk: Disk, memory: Memory) -> Iterator[None]:
    """Limit the database to its current number of pages."""
    writer = memory.database._write_connection

    def set_limit(pages: int | None) -> None:
        with memory.database._write_lock:
            used: int = writer.execute("PRAGMA page_count").fetchone()[0]
            writer.execute(f"PRAGMA max_page_count = {pages or used}")

    disk(lambda path: set_limit(None))
    yield
    disk(lambda path: set_limit(1_000_000))


@contextmanager
def read_only(disk: Disk, memory: Memory) -> Iterator[None]:
    """Make the open database refuse writes, and refuse to open the file for writing."""
    as_it_is = os.open

    def refuse(path: Any, flags: int, *args: Any, **named: Any) -> int:
        if Path(path) == disk.path and flags & os.O_RDWR:
            raise OSError(errno.EROFS, "read-only")
        return as_it_is(path, flags, *args, **named)

    def refuse_writing(path: Path) -> None:
        with memory.database._write_lock:
            memory.database._write_connection.execute("PRAGMA query_only = ON")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refuse)
        disk(refuse_writing)
        yield


def _delete(files: Iterable[Path]) -> None:
    for each in files:
        each.unlink()


@contextmanager
def deleted(disk: Disk, memory: Memory) -> Iterator[None]:
    """Delete all files of the store."""
    disk(lambda path: _delete(path.parent.iterdir()))
    yield


@contextmanager
def damaged(disk: Disk, memory: Memory) -> Iterator[None]:
    """Overwrite all pages but the first, and at the end delete the damaged file that was set aside, as a user would."""
    disk(lambda path: memory.checkpoint())

    def overwrite(path: Path) -> None:
        with path.open("r+b") as opened:
            opened.seek(_AFTER_OPEN)
            opened.write(b"\xff" * (path.stat().st_size - _AFTER_OPEN))

    disk(overwrite)
    yield
    disk(lambda path: _delete(path.parent.glob("*.damaged*")))


@pytest.fixture
def raised(home: HomeAssistant) -> list[str]:
    """Return a list to which the ids of newly raised issues are appended."""
    raised: list[str] = []

    @callback
    def on_issue(event: Event[Any]) -> None:
        if event.data["domain"] == DOMAIN and event.data["action"] == "create":
            raised.append(event.data["issue_id"].removesuffix("_all"))

    home.bus.async_listen(ir.EVENT_REPAIRS_ISSUE_REGISTRY_UPDATED, on_issue)
    return raised


_FAULTS = pytest.mark.parametrize(
    ("fault", "issue", "said_before"),
    [
        (lock_file, "memory_locked", ["hello there"]),
        (full, "memory_full", ["hello there"]),
        (read_only, "memory_read_only", ["hello there"]),
        (deleted, "memory_away", []),
        (damaged, "memory_damaged", []),
    ],
)


@_FAULTS
async def test_fault_of_the_file_costs_no_turn_is_one_issue_and_heals(
    home: HomeAssistant,
    entry,
    say: SayFn,
    *,
    disk: Disk,
    raised: list[str],
    fault: Fault,
    issue: str,
    said_before: list[str],
) -> None:
    await say("hello there")
    await flush_store(home)
    memory = memory_of(home).writer.open_store
    assert memory is not None
    told = [f"hello {number} " + "again and again " * 300 for number in range(3)]
    with fault(disk, memory):
        answers = [get_speech(await say(text)) for text in told]
        await until(lambda: raised == [issue])
    answers.append(get_speech(await say("hello pelican")))
    await flush_store(home)
    await until(lambda: issues(home) == set())

    assert all(answers)
    assert raised == [issue]
    assert [" ".join(said.split()[:2]) for said in disk.said or ()] == [
        *said_before,
        "hello 0",
        "hello 1",
        "hello 2",
        "hello pelican",
    ]
    assert disk.execute("PRAGMA integrity_check") == [("ok",)]
    assert disk.execute("SELECT count(*) FROM turn_record") == [(len(said_before) + 4,)]
    assert memory_of(home).writer.counts.dropped == 0
    found = await memory_of(home).async_change(lambda memory: memory.recall("pelican"))
    assert found[0].text.startswith("hello pelican")


async def test_memory_that_recovers_as_its_file_is_closed_changes_no_issue(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, raised: list[str]
) -> None:
    # The registries have been written for the last time by then.
    await say("hello there")
    await flush_store(home)
    memory = memory_of(home).writer.open_store
    assert memory is not None
    with read_only(disk, memory):
        await say("hello again")
        await until(lambda: raised == ["memory_read_only"])

    home.bus.async_fire(EVENT_HOMEASSISTANT_CLOSE)
    await home.async_block_till_done()

    assert disk.said == ["hello there", "hello again"]
    assert issues(home) == {"memory_read_only"}
