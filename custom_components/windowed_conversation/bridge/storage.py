"""Conversations on disk: a file for each agent in Home Assistant's Store, written late, and checked when it is read.

How a conversation is written down is decided in the window's codecs, which ones there are by the registry.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache, partial
import logging
from pathlib import Path
import time
from typing import Any

from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers.json import json_bytes, json_fragment
from homeassistant.helpers.storage import STORAGE_DIR, Store
from homeassistant.util.json import json_loads
from homeassistant.util.ulid import ulid_to_bytes

from ..const import DOMAIN, Persistence
from ..window import WindowRegistry
from ..window.codecs import CodecError, dump_snapshot, load_snapshot
from ..window.restore import Snapshot

_LOGGER = logging.getLogger(__name__)

_VERSION = 1
_CONVERSATIONS = "conversations"
_KEY = "key"
_WINDOW = "window"
_PREFIX = f"{DOMAIN}.windows."
_DAMAGED = ".damaged"

# Seconds after the last turn in which nothing is written: people say several things in a row.
_SAVE_DELAY = 10


class _Damaged(Exception):
    """The file is not what we wrote."""


class WindowStore:
    """The file with the conversations of one agent; it outlives a reload of the agent's account, like the windows."""

    def __init__(
        self, hass: HomeAssistant, agent_id: str, windows: WindowRegistry[str], persistence: Persistence
    ) -> None:
        self._hass = hass
        self._windows = windows
        self._persistence = persistence
        self._store: Store[dict[str, Any]] = Store(
            hass,
            _VERSION,
            f"{_PREFIX}{agent_id}",
            private=True,
            atomic_writes=True,
            serialize_in_event_loop=False,
        )

    async def async_start(self) -> None:
        """Take over what was kept; a file that is damaged is set aside, and one that is not wanted any more goes."""
        if self._persistence is Persistence.OFF:
            await self._store.async_remove()
            return
        try:
            snapshots = await self._async_read()
        except _Damaged:
            await self._hass.async_add_executor_job(_set_aside, Path(self._store.path))
            return
        now = time.time()
        for key, snapshot in sorted(snapshots, key=lambda each: _last_used(each[1])):
            idle = max(0.0, now - _last_used(snapshot))
            self._windows.restore(key, snapshot, idle_seconds=idle)
        self._windows.expire()

    async def async_damaged_file(self) -> Path | None:
        """Return the newest file that was set aside, None where there is none."""
        return await self._hass.async_add_executor_job(_damaged_file, Path(self._store.path))

    @callback
    def configure(self, persistence: Persistence) -> None:
        """Change what is kept, at once for what is no longer to be kept at all."""
        if persistence is self._persistence:
            return
        self._persistence = persistence
        if persistence is Persistence.OFF:
            self._hass.async_create_task(self._store.async_remove(), eager_start=False)
        else:
            self.save_soon()

    @callback
    def save_soon(self) -> None:
        """Write what the windows hold now, in a while or when Home Assistant stops; another call begins the wait anew.

        What is taken here is immutable, so that turning it into JSON is another thread's work.
        """
        if self._persistence is not Persistence.OFF:
            self._store.async_delay_save(partial(_written, list(self._snapshots())), _SAVE_DELAY)

    async def async_remove(self) -> None:
        """Remove the file, and write no other."""
        self._persistence = Persistence.OFF
        await self._store.async_remove()

    def _snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the conversations that are kept, by their keys: whose they are is part of these."""
        for key in reversed(self._windows.keys_newest_first()):
            window = self._windows.peek(key)
            if window is not None and self._is_kept(window.conversation_id):
                yield key, window.snapshot()

    def _is_kept(self, conversation_id: str) -> bool:
        return self._persistence is Persistence.ALL or not _is_ulid(conversation_id)

    async def _async_read(self) -> list[tuple[str, Snapshot]]:
        # before the Store, which calls some of what can be wrong an error and is silent about the rest
        await self._hass.async_add_executor_job(_check, Path(self._store.path))
        data = await self._store.async_load()
        return [] if data is None else await self._hass.async_add_executor_job(_read, data)


async def async_open_store(
    hass: HomeAssistant, agent_id: str, windows: WindowRegistry[str], persistence: Persistence
) -> WindowStore:
    """Return an agent's store; the conversations in its file are restored into the windows."""
    store = WindowStore(hass, agent_id, windows, persistence)
    await store.async_start()
    return store


async def async_remove_files(hass: HomeAssistant, agents: Collection[str]) -> None:
    """Remove the files of all agents but these, also of those that were not set up since the start."""
    await hass.async_add_executor_job(_remove_files, Path(hass.config.path(STORAGE_DIR)), agents)


@lru_cache(maxsize=1024)
def _is_ulid(conversation_id: str) -> bool:
    """Return whether Home Assistant made the id, by its own rule: what is no ULID is the user's own and is kept.

    It is asked after every turn, of every window.
    """
    try:
        ulid_to_bytes(conversation_id)
    except ValueError:
        return False
    return True


def _last_used(snapshot: Snapshot) -> float:
    """Return when the newest message was made, in seconds since the epoch; 0 where there is none."""
    newest = snapshot.exchanges[-1].messages[-1] if snapshot.exchanges else None
    return (newest and newest.created) or 0.0


def _written(snapshots: Iterable[tuple[str, Snapshot]]) -> dict[str, Any]:
    conversations = []
    for key, snapshot in snapshots:
        try:
            conversations.append(json_fragment(json_bytes({_KEY: key, _WINDOW: dump_snapshot(snapshot)})))
        except TypeError:
            # the Store would log what was said, and write none of the conversations
            _LOGGER.warning("A conversation is not kept: it holds what is no valid text")
    return {_CONVERSATIONS: conversations}


def _check(path: Path) -> None:
    """Raise `_Damaged` unless there is no file, or one that the Store can read."""
    try:
        content = json_loads(path.read_bytes())
    except FileNotFoundError:
        return
    except ValueError as err:
        raise _Damaged from err
    if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
        raise _Damaged
    version = content.get("version")
    if not isinstance(version, int) or not 1 <= version <= _VERSION:
        raise _Damaged


def _read(data: dict[str, Any]) -> list[tuple[str, Snapshot]]:
    conversations = data.get(_CONVERSATIONS)
    if not isinstance(conversations, list):
        raise _Damaged
    return [_read_conversation(each) for each in conversations]


def _read_conversation(data: object) -> tuple[str, Snapshot]:
    if not isinstance(data, dict) or not isinstance(data.get(_KEY), str):
        raise _Damaged
    try:
        return data[_KEY], load_snapshot(data.get(_WINDOW))
    except CodecError as err:
        _LOGGER.debug("A conversation cannot be read: %s", err)
        raise _Damaged from err


def _set_aside(path: Path) -> None:
    """Rename a file, without replacing another one that was set aside before."""
    aside = path.with_name(f"{path.name}{_DAMAGED}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}{_DAMAGED}.{number}")
    path.rename(aside)
    _LOGGER.error("The conversations in %s cannot be read; the file is kept as %s", path, aside)


def _damaged_file(path: Path) -> Path | None:
    found = path.parent.glob(f"{path.name}{_DAMAGED}*")
    return max(found, key=lambda each: each.stat().st_ctime, default=None)


def _remove_files(folder: Path, agents: Collection[str]) -> None:
    for path in folder.glob(f"{_PREFIX}*"):
        agent_id, _, _ = path.name.removeprefix(_PREFIX).partition(".")
        if agent_id not in agents:
            path.unlink(missing_ok=True)
