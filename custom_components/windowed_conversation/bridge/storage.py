"""Conversations and totals on disk: a file for each agent, taken over at the start, written in time, and removed."""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import lru_cache
import logging
from pathlib import Path
from typing import Any, Protocol

from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers.storage import STORAGE_DIR
from homeassistant.util.ulid import ulid_to_bytes

from ..const import DOMAIN, Persistence
from ..turn.errors import IdTooLong
from ..turn.scope import WindowKey, check_id
from ..window import Snapshot, WindowRegistry
from . import window_file
from .timely_store import StoreUnavailable, TimelyStore
from .window_file import Contents, Conversation, Damage, Damaged, Encoder, Found

_LOGGER = logging.getLogger(__name__)

_PREFIX = f"{DOMAIN}.windows."


class Totals(Protocol):
    """The sums of an agent that are kept beside its conversations."""

    def as_dict(self) -> dict[str, Any]:
        """Return the sums of now as JSON has them."""
        ...

    def restore(self, kept: object) -> None:
        """Restore the totals from what `as_dict` returned before the restart, as far as it is valid."""
        ...

    def on_written(self, kept: dict[str, Any]) -> None:
        """Take note of what is on disk."""
        ...

    def when_changed(self, call: Callable[[], None]) -> None:
        """Have `call` called after each change of a sum."""
        ...


class WindowStore:
    """The file with the conversations and totals of one agent; it outlives a reload of the agent's account."""

    def __init__(
        self,
        hass: HomeAssistant,
        agent_id: str,
        windows: WindowRegistry[str],
        totals: Totals,
        persistence: Persistence,
    ) -> None:
        self._hass = hass
        self._windows = windows
        self._totals = totals
        self._persistence = persistence
        # Where the file should be, if it cannot be opened.
        self.unavailable: Path | None = None
        self._file = TimelyStore(
            hass,
            window_file.VERSION,
            f"{_PREFIX}{agent_id}",
            state=self._contents,
            encode=Encoder(windows.now).encode,
            on_written=lambda contents: totals.on_written(contents.totals),
        )

    async def async_start(self) -> None:
        """Restore the stored conversations. A file with unreadable parts is set aside and written anew."""
        try:
            data = await self._file.async_load(window_file.check)
            found = await self._hass.async_add_executor_job(window_file.read, data) if data is not None else None
        except StoreUnavailable as err:
            self.unavailable = err.path
            _LOGGER.error("%s: conversations and totals are not kept", err)  # noqa: TRY400 - no fault of ours
        except Damaged:
            await self._async_set_aside()
        else:
            await self._async_take_over(found or Found([], 0, None))
        self._totals.when_changed(self._file.save_soon)

    async def async_damage(self) -> Damage | None:
        """Return what is known of the newest file that was set aside, or None if there is none."""
        return await self._hass.async_add_executor_job(window_file.damage, self._file.path)

    @callback
    def configure(self, persistence: Persistence) -> None:
        """Change which conversations are stored. If none are any more, delete the file at once."""
        if persistence is self._persistence:
            return
        self._persistence = persistence
        if persistence is Persistence.OFF:
            self._file.save_now()
        else:
            self._file.save_soon()

    @callback
    def save_soon(self) -> None:
        """Write what has changed, if anything has."""
        self._file.save_soon()

    async def async_save(self) -> None:
        """Write what has changed; returns when it is on disk."""
        await self._file.async_save()

    async def async_remove(self) -> None:
        """Delete the file, and write no other."""
        await self._file.async_remove()

    async def _async_take_over(self, found: Found) -> None:
        self._totals.restore(found.totals)
        if self._persistence is Persistence.OFF:
            if found.conversations or found.unreadable:
                self._file.save_now()
                return
        else:
            for key, snapshot, idle in found.conversations:
                # ids that were stored before there was a limit may be too long
                with suppress(IdTooLong):
                    check_id(WindowKey.parse(key).conversation)
                    self._windows.restore(key, snapshot, idle_seconds=idle)
            self._windows.expire()
            if found.unreadable:
                await self._async_set_aside()
                return
        if len(self._contents().conversations) == len(found.conversations):
            self._file.is_on_disk()
        else:
            # the file still has conversations that are no longer stored
            self._file.save_soon()

    async def _async_set_aside(self) -> None:
        """Set the damaged file aside, unless conversations are no longer stored, and write what could be read of it."""
        if self._persistence is not Persistence.OFF:
            await self._hass.async_add_executor_job(window_file.set_aside, self._file.path)
        self._file.save_now()

    def _contents(self) -> Contents:
        """Return what is to be kept, the conversations by their keys: whose they are is part of these."""
        self._windows.finish_turns()
        conversations = () if self._persistence is Persistence.OFF else tuple(self._conversations())
        return Contents(conversations, self._totals.as_dict())

    def _conversations(self) -> Iterator[Conversation]:
        """Yield what is to be kept, the least recently used one first; one in its first turn holds nothing yet."""
        for key in reversed(self._windows.keys_newest_first()):
            window = self._windows.peek(key)
            if window is not None and window.snapshot().exchanges and self._is_kept(window.conversation_id):
                yield Conversation(key, window.snapshot(), self._windows.last_used(key))

    def _is_kept(self, conversation_id: str) -> bool:
        return self._persistence is Persistence.ALL or not _is_ulid(conversation_id)


async def async_open_store(
    hass: HomeAssistant, agent_id: str, windows: WindowRegistry[str], totals: Totals, persistence: Persistence
) -> WindowStore:
    """Return an agent's store, with the stored conversations restored."""
    store = WindowStore(hass, agent_id, windows, totals, persistence)
    await store.async_start()
    return store


async def async_remove_files(hass: HomeAssistant, agents: Collection[str]) -> None:
    """Delete the files of all agents except these, also of agents that were not set up since the start."""
    await hass.async_add_executor_job(_remove_files, Path(hass.config.path(STORAGE_DIR)), agents)


async def async_rewrite_files(
    hass: HomeAssistant, others: Collection[str], change: Callable[[str, Snapshot], Snapshot]
) -> None:
    """Apply a change to each conversation, by its key, in the files of all agents except these.

    Unreadable parts are deleted, for all agents, because nobody can tell what they contain.
    """
    await hass.async_add_executor_job(_rewrite_files, Path(hass.config.path(STORAGE_DIR)), others, change)


@lru_cache(maxsize=1024)
def _is_ulid(conversation_id: str) -> bool:
    """Return whether Home Assistant made the id, by its own rule: what is no ULID is the user's own and is kept.

    It is asked before every write, of every window.
    """
    try:
        ulid_to_bytes(conversation_id)
    except ValueError:
        return False
    return True


def _remove_files(folder: Path, agents: Collection[str]) -> None:
    for path in folder.glob(f"{_PREFIX}*"):
        agent_id, _, _ = path.name.removeprefix(_PREFIX).partition(".")
        if agent_id not in agents:
            try:
                path.unlink(missing_ok=True)
            except OSError as err:
                _LOGGER.warning("%s cannot be removed: %s", path, err.strerror)


def _rewrite_files(folder: Path, others: Collection[str], change: Callable[[str, Snapshot], Snapshot]) -> None:
    for path in folder.glob(f"{_PREFIX}*"):
        agent_id, _, aside = path.name.removeprefix(_PREFIX).partition(".")
        try:
            if aside:
                path.unlink(missing_ok=True)
            elif agent_id not in others:
                window_file.rewrite(path, change)
        except OSError as err:
            _LOGGER.error("%s may hold what was forgotten: %s", path, err.strerror)  # noqa: TRY400 - no fault of ours
