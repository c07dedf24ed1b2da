"""The file of the store as another program sees it, and the issues about it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
import sqlite3
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir

from custom_components.windowed_conversation.const import DOMAIN
from custom_components.windowed_conversation.turn.routing import WindowKey


@dataclass(frozen=True)
class Disk:
    """The file of the store, seen by another program."""

    path: Path

    def __call__[Result](self, look: Callable[[Path], Result]) -> Result:
        """Return the result of a call in a thread of its own: the detector watches this one."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(look, self.path).result()

    @property
    def said(self) -> list[str] | None:
        """The first sentences of the turns in the file, or None if there is no file."""
        return [row[0] for row in self.rows("SELECT said FROM turn ORDER BY id")] if self(Path.exists) else None

    @property
    def conversations(self) -> list[str]:
        """The ids of the stored conversations, the least recently used one first."""
        return [WindowKey.parse(key).conversation for (key,) in self.rows("SELECT key FROM conversation ORDER BY used")]

    @property
    def exchanges(self) -> str:
        """All that is said in the stored conversations."""
        return "\n".join(text for (text,) in self.rows("SELECT text FROM exchange ORDER BY id"))

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that a statement finds, after it has made its changes."""

        def query(path: Path) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(path)) as connection, connection:
                return connection.execute(sql, values).fetchall()

        return self(query)

    def rot(self, text: str, *, byte: int = 0xFF) -> None:
        """Have the first byte of each copy of a text in the closed file be another one."""
        before = text.encode()

        def rot(path: Path) -> None:
            content = path.read_bytes()
            assert before in content
            path.write_bytes(content.replace(before, bytes([byte]) + before[1:]))

        self(rot)

    def files(self) -> list[str]:
        """Return the names of the file and of all that is beside it."""
        return self(lambda path: sorted(each.name for each in path.parent.iterdir()))

    def lock(self) -> sqlite3.Connection:
        """Keep the file locked until the returned connection is closed."""

        def lock(path: Path) -> sqlite3.Connection:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("BEGIN EXCLUSIVE")
            return connection

        return self(lock)


def issues(home: HomeAssistant) -> set[str | None]:
    """Return the keys of our issues."""
    return {issue.translation_key for issue in ir.async_get(home).issues.values() if issue.domain == DOMAIN}


def placeholders(home: HomeAssistant) -> dict[str | None, dict[str, str] | None]:
    """Return the placeholders of our issues, by translation key."""
    ours = [issue for issue in ir.async_get(home).issues.values() if issue.domain == DOMAIN]
    return {issue.translation_key: issue.translation_placeholders for issue in ours}
