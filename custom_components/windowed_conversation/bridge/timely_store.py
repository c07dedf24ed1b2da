"""A file in Home Assistant's storage that is written soon after a change, but not too often."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
import logging
from pathlib import Path
from typing import Any, override

from homeassistant.const import EVENT_HOMEASSISTANT_FINAL_WRITE
from homeassistant.core import CALLBACK_TYPE, CoreState, Event, HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.json import json_fragment
from homeassistant.helpers.storage import Store

_LOGGER = logging.getLogger(__name__)

# All in seconds. After a quiet time a change waits for what belongs to it, such as the cost of its turn.
_SETTLE = 0.2
# From one write to the next: SD cards wear, so a large file is written less often, 50 kB a second on average.
_SHORTEST_INTERVAL = 5.0
_LONGEST_INTERVAL = 30.0
_BYTES_PER_SECOND = 50_000
# After a write that failed; doubled with each further one.
_FIRST_RETRY = 5.0
_LONGEST_RETRY = 60.0


class StoreUnavailable(Exception):
    """The file cannot be opened; `path` is its path."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} cannot be opened")
        self.path = path


class _Store(Store[Any]):
    """Home Assistant's Store, which only logs a failed write; this one also records it."""

    failed = False

    @override
    async def _async_write_data(self, data: dict[str, Any]) -> None:
        self.failed = False
        try:
            await super()._async_write_data(data)
        except BaseException:
            self.failed = True
            raise


class TimelyStore[State]:
    """One file with what `state` returns.

    The first change after a quiet time is written at once. Further changes are written together 5 seconds after that
    write, or up to 30 seconds for files over 250 kB. Pending changes are written when Home Assistant stops. A failed
    write is repeated. `state` returns an immutable value; a state equal to the one on disk is not written. `encode`
    turns it into JSON in another thread. `on_written` is called with each state that is on disk.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        version: int,
        key: str,
        *,
        state: Callable[[], State],
        encode: Callable[[State], bytes],
        on_written: Callable[[State], None] | None = None,
    ) -> None:
        self._hass = hass
        self._store = _Store(hass, version, key, private=True, atomic_writes=True, serialize_in_event_loop=False)
        self._state = state
        self._encode = encode
        self._on_written = on_written or (lambda _state: None)
        self._on_disk: State | None = None
        self._is_open = True
        self._is_removed = False
        self._is_due = False
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._end_final_write: CALLBACK_TYPE | None = None
        # By the event loop's clock.
        self._not_before = 0.0
        self._retry = _FIRST_RETRY

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self._store.path)

    async def async_load(self, check: Callable[[Path], None] | None = None) -> Any:
        """Return the contents of the file, or None if there is none; `check` is called first, in another thread.

        Raises `StoreUnavailable` if the file cannot be opened, after which nothing is ever written, and the errors of
        `check` and the Store if it can.
        """
        try:
            await self._hass.async_add_executor_job(check or _open, self.path)
            return await self._store.async_load()
        except OSError as err:
            raise self._unavailable() from err
        except HomeAssistantError as err:
            if isinstance(err.__cause__, OSError):
                raise self._unavailable() from err
            raise

    @callback
    def is_on_disk(self) -> None:
        """Consider the current state as written."""
        self._on_disk = self._state()

    @callback
    def save_soon(self) -> None:
        """Write what has changed, if anything. A state that can never be written counts as written."""
        if self._is_removed:
            return
        if not self._is_open:
            self._on_written(self._state())
            return
        self._is_due = True
        if self._end_final_write is None:
            bus = self._hass.bus
            self._end_final_write = bus.async_listen_once(EVENT_HOMEASSISTANT_FINAL_WRITE, self._async_final_write)
        if self._timer is None and not self._lock.locked():
            self._start_timer()

    @callback
    def save_now(self) -> None:
        """Write what has changed without waiting."""
        self.save_soon()
        self._begin_write()

    async def async_save(self) -> None:
        """Write what has changed; returns when it is on disk or the write has failed."""
        async with self._lock:
            self._stop_timer()
            # while Home Assistant stops its final write is near
            if self._is_due and not self._is_removed and self._hass.state is not CoreState.stopping:
                state = self._state()
                self._is_due = False
                if state != self._on_disk:
                    await self._write(state)
        if self._is_due and not self._is_removed:
            self._start_timer()

    async def async_remove(self) -> None:
        """Remove the file and write no other."""
        self._is_removed = True
        self._stop_timer()
        if self._end_final_write is not None:
            self._end_final_write()
            self._end_final_write = None
        # a write in progress would bring the file back
        async with self._lock:
            try:
                await self._store.async_remove()
            except OSError as err:
                _LOGGER.warning("%s cannot be removed: %s", self.path, err.strerror)

    async def _write(self, state: State) -> None:
        loop = self._hass.loop
        began = loop.time()
        try:
            content = await self._hass.async_add_executor_job(self._encode, state)
            await self._store.async_save(json_fragment(content))
            failed = self._store.failed
        except OSError as err:
            _LOGGER.error("%s cannot be written: %s", self.path, err.strerror)  # noqa: TRY400 - no fault of ours
            failed = True
        except (RecursionError, TypeError, ValueError) as err:
            # without its message, which may repeat what was said; the same state would fail again
            _LOGGER.error("%s cannot be written: %s", self.path, type(err).__name__)  # noqa: TRY400 - as above
            return
        if failed:
            self._is_due = True
            self._not_before = loop.time() + self._retry
            self._retry = min(2 * self._retry, _LONGEST_RETRY)
            return
        self._retry = _FIRST_RETRY
        self._not_before = began + interval(len(content))
        self._on_disk = state
        self._on_written(state)

    @callback
    def _start_timer(self) -> None:
        if not self._hass.is_stopping:
            loop = self._hass.loop
            self._timer = loop.call_at(max(loop.time() + _SETTLE, self._not_before), self._begin_write)

    @callback
    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @callback
    def _begin_write(self) -> None:
        self._stop_timer()
        self._hass.async_create_task(self.async_save(), f"write {self._store.key}")

    async def _async_final_write(self, _event: Event) -> None:
        self._end_final_write = None
        await self.async_save()

    def _unavailable(self) -> StoreUnavailable:
        self._is_open = False
        return StoreUnavailable(self.path)


def interval(size: int) -> float:
    """Return the seconds between two writes of a file of this many bytes."""
    return min(max(size / _BYTES_PER_SECOND, _SHORTEST_INTERVAL), _LONGEST_INTERVAL)


def _open(path: Path) -> None:
    """Raise OSError if there is a file that cannot be opened."""
    with suppress(FileNotFoundError):
        path.open("rb").close()
