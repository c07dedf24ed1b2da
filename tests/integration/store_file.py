"""Access to the store's file from outside the integration, and to the repair issues of the integration."""

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
    """The store's file, accessed as another program would."""

    path: Path

    def __call__[Result](self, look: Callable[[Path], Result]) -> Result:
        """Return the result of `look(path)`, called in another thread because blocking calls are reported here."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(look, self.path).result()

    @property
    def said(self) -> list[str] | None:
        """The user's text of each turn in the file, oldest first, or None if the file does not exist."""
        return [row[0] for row in self.execute("SELECT said FROM turn ORDER BY id")] if self(Path.exists) else None

    @property
    def conversation_ids(self) -> list[str]:
        """The ids of the stored conversations, starting with the least recently used."""
        return [
            WindowKey.parse(key).conversation for (key,) in self.execute("SELECT key FROM conversation ORDER BY used")
        ]

    @property
    def exchange_text(self) -> str:
        """The text of all exchanges in the stored conversations."""
        return "\n".join(text for (text,) in self.execute("SELECT text FROM exchange ORDER BY id"))

    def execute(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute an SQL statement, commit its changes, and return the resulting rows."""

        def run_query(path: Path) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(path)) as connection, connection:
                return connection.execute(sql, values).fetchall()

        return self(run_query)

    def corrupt(self, text: str, *, byte: int = 0xFF) -> None:
        """Replace the first byte of each occurrence of a text in the file, which must be closed."""
        before = text.encode()

        def rot(path: Path) -> None:
            content = path.read_bytes()
            assert before in content
            path.write_bytes(content.replace(before, bytes([byte]) + before[1:]))

        self(rot)

    def files(self) -> list[str]:
        """Return the names of all files in the store's folder."""
        return self(lambda path: sorted(each.name for each in path.parent.iterdir()))

    def lock(self) -> sqlite3.Connection:
        """Lock the file until the returned connection is closed."""

        def lock(path: Path) -> sqlite3.Connection:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("BEGIN EXCLUSIVE")
            return connection

        return self(lock)


def issues(home: HomeAssistant) -> set[str | None]:
    """Return the translation keys of the integration's repair issues."""
    return {issue.translation_key for issue in ir.async_get(home).issues.values() if issue.domain == DOMAIN}


def placeholders(home: HomeAssistant) -> dict[str | None, dict[str, str] | None]:
    """Return the placeholders of the integration's repair issues by translation key."""
    ours = [issue for issue in ir.async_get(home).issues.values() if issue.domain == DOMAIN]
    return {issue.translation_key: issue.translation_placeholders for issue in ours}
