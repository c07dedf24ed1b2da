"""Tests for writing JSON Lines files: a file is written completely or not at all, and no temporary copy remains."""

from collections.abc import Iterator
import errno
from multiprocessing import get_context
import os
from pathlib import Path
import signal
from threading import Thread

import pytest

from custom_components.windowed_conversation.agents.actions.memory_files import write_lines

LINES = ("the first line", "the second line")


def killed() -> Iterator[str]:
    """Yield the first line, then kill the process."""
    yield LINES[0]
    os.kill(os.getpid(), signal.SIGKILL)


def unreadable() -> Iterator[str]:
    """Yield the first line, then raise OSError."""
    yield LINES[0]
    raise OSError(errno.EIO, "cannot be read")


def read_folder(folder: Path) -> dict[str, str]:
    """Return the text of each file in a folder, by file name."""
    return {file.name: file.read_text() for file in folder.iterdir()}


def test_export_deletes_what_a_kill_has_left_of_another(tmp_path: Path) -> None:
    process = get_context("fork").Process(target=lambda: write_lines(tmp_path / "yesterday.jsonl", killed()))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(read_folder(tmp_path)) == 1

    assert write_lines(tmp_path / "today.jsonl", LINES) == len(LINES)

    assert read_folder(tmp_path) == {"today.jsonl": "the first line\nthe second line\n"}


def test_export_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "today.jsonl"
    write_lines(file, LINES)

    with pytest.raises(OSError, match="cannot be read"):
        write_lines(file, unreadable())

    assert read_folder(tmp_path) == {"today.jsonl": "the first line\nthe second line\n"}


def test_exports_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    other = Thread(target=lambda: write_lines(tmp_path / "other.jsonl", LINES))

    def slow() -> Iterator[str]:
        yield LINES[0]
        other.start()
        other.join(0.1)
        yield LINES[1]

    write_lines(tmp_path / "today.jsonl", slow())
    other.join()

    assert read_folder(tmp_path) == dict.fromkeys(("other.jsonl", "today.jsonl"), "the first line\nthe second line\n")
