"""A file that nobody uses: until when it is kept."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
import json
from pathlib import Path
import sqlite3

from .database import Database
from .file import connect, delete_file
from .values import OF_THE_FILE, read_value, write_value

_NAME = "left"


@dataclass(frozen=True, slots=True)
class Left:
    """Until when a file is kept that nobody uses, in seconds since the epoch, or None if it is kept for good.

    `days` is for how many days the turns of agents are kept that were removed with the last account.
    """

    until: float | None = None
    days: Mapping[str, int] = field(default_factory=dict)


def leave(database: Database, until: float, days: Mapping[str, int]) -> None:
    """Have the file deleted at a time if nobody uses it before. Raises `StoreUnavailable`."""
    with database.write() as connection:
        _write(connection, Left(until, {**_read(connection).days, **days}))


def come_back(database: Database) -> Mapping[str, int]:
    """Keep the file for good, and return the days of the agents that are gone. Raises `StoreUnavailable`."""
    with database.write() as connection:
        return _keep(connection).days


def keep_left(path: Path) -> None:
    """Keep a closed file for good. Raises `sqlite3.Error`."""
    if path.exists():
        with closing(connect(path)) as connection:
            _keep(connection)


def delete_overdue(path: Path, now: float) -> bool:
    """Delete a closed file that is not to be kept any longer, and what was set aside. Return whether it is deleted."""
    if not path.exists():
        return False
    try:
        with closing(connect(path)) as connection:
            until = _read(connection).until
    except sqlite3.Error:
        return False
    if until is None or until > now:
        return False
    delete_file(path)
    return True


def _keep(connection: sqlite3.Connection) -> Left:
    left = _read(connection)
    if left.until is not None:
        _write(connection, replace(left, until=None))
    return left


def _read(connection: sqlite3.Connection) -> Left:
    match read_value(connection, OF_THE_FILE, _NAME):
        case {"until": float() | None as until, "days": dict() as days}:
            return Left(until, days)
    return Left()


def _write(connection: sqlite3.Connection, left: Left) -> None:
    write_value(connection, OF_THE_FILE, _NAME, json.dumps(asdict(left)))
