"""The one memory of all agents: opened in the background, written by its own thread, closed at the end."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
import logging
import math
from pathlib import Path
import time
from typing import Any

from homeassistant.const import EVENT_HOMEASSISTANT_CLOSE, EVENT_HOMEASSISTANT_FINAL_WRITE
from homeassistant.core import CALLBACK_TYPE, Event, HomeAssistant, callback
from homeassistant.helpers.storage import STORAGE_DIR
from homeassistant.util.hass_dict import HassKey

from ..const import CONF_MEMORY_DAYS, DOMAIN
from ..memory import (
    Memory,
    MemoryUnavailable,
    Reason,
    Recalled,
    State,
    Tombstone,
    Writer,
    delete_file,
    forgotten,
    read_tombstones,
)
from .config import DEFAULT_MEMORY_DAYS
from .issues import async_raise_or_clear_memory

_LOGGER = logging.getLogger(__name__)

# In seconds: how long the end of Home Assistant waits for what is not written yet, and for the file to be closed,
# how long a change is waited for, and a backup waits.
_DRAIN = 20.0
_CLOSE = 1.0
_CHANGE = 30.0
_HOLD = 10.0

_SECONDS_PER_DAY = 86_400
# For how long the record keeps words.
_WHOLE_DAYS = 7


class AgentMemory:
    """The memory of all agents. Its methods raise `MemoryUnavailable` while the file cannot be used.

    Turns are given to `writer`, which never blocks. Reads run in the executor; changes run in the writing thread, after
    everything queued before.
    """

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._listeners: list[Callable[[], None]] = []
        self._unsubscribe: tuple[CALLBACK_TYPE, ...] = ()
        self._reason: Reason | None = None
        # When something was last forgotten, in seconds since the epoch, and how many deletions are in progress.
        self._forgotten_at = -math.inf
        self._forgetting = 0
        # For how many days turns are kept, by agent; another thread reads it.
        self._days: Mapping[str, int] = {}
        self.writer = Writer(
            Path(hass.config.path(STORAGE_DIR, f"{DOMAIN}.memory.db")),
            (hass.config.language, "en"),
            daily=self._expire,
            on_state=self._on_state,
        )

    @callback
    def async_start(self) -> None:
        """Open the file in the background, and close it when Home Assistant ends."""
        bus = self._hass.bus
        self._unsubscribe = (
            bus.async_listen(EVENT_HOMEASSISTANT_FINAL_WRITE, self._async_drain),
            bus.async_listen(EVENT_HOMEASSISTANT_CLOSE, self._async_close),
        )
        self.writer.start()

    @callback
    def async_make(self) -> None:
        """Create the file in the background if it is missing, so that no turn has to wait for it."""
        self.writer.call(lambda memory: None)

    @callback
    def async_keep(self) -> None:
        """Take over for how long each account keeps turns, also one that is not set up now."""
        days = {
            agent_id: int(entry.options.get(CONF_MEMORY_DAYS, DEFAULT_MEMORY_DAYS))
            for entry in self._hass.config_entries.async_entries(DOMAIN)
            for agent_id in entry.subentries
        }
        if days != self._days:
            self._days = days
            self.writer.check(repeat_daily=True)

    @callback
    def async_forget_agents(self, agents: Iterable[str]) -> None:
        """Forget the turns of agents in the background, now or when the file can be used."""
        for agent in agents:
            self.writer.call(partial(Memory.forget, agent=agent), patient=True)

    async def async_remove(self) -> None:
        """Close the file for good and delete it."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._hass.async_add_executor_job(self.writer.close, _DRAIN)
        await self._hass.async_add_executor_job(delete_file, self.writer.path)
        async_raise_or_clear_memory(self._hass, self.writer.path, State())

    @callback
    def async_listen(self, listener: Callable[[], None]) -> CALLBACK_TYPE:
        """Call the listener when the memory's state has changed; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def async_recall(self, query: str, **conditions: Any) -> list[Recalled]:
        """Return what is found, best first; see `Memory.recall` for the conditions."""
        return await self.async_read(lambda memory: memory.recall(query, **conditions), [])

    async def async_tombstones(self) -> frozenset[Tombstone]:
        """Return what was forgotten on request; it is known without the memory."""
        try:
            return await self._hass.async_add_executor_job(read_tombstones, forgotten(self.writer.path))
        except OSError as err:
            raise MemoryUnavailable("away") from err

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Take in no turn meanwhile, and none that has begun by then: it may repeat what is forgotten."""
        self._forgetting += 1
        try:
            yield
        finally:
            self._forgetting -= 1
            self._forgotten_at = time.time()

    def is_from_before(self, began: float) -> bool:
        """Return whether what began at a time may contain what is being forgotten, or was forgotten after that time."""
        return self._forgetting > 0 or began <= self._forgotten_at

    async def async_hold(self) -> None:
        """Have everything in the one file, for a copy, and write nothing until `writer.release`."""
        if not await self._hass.async_add_executor_job(self.writer.hold, _HOLD):
            _LOGGER.warning("The backup may lack what was remembered last")

    async def async_read[Result](self, read: Callable[[Memory], Result], nothing: Result) -> Result:
        """Return what the work reads in the executor, or `nothing` if there is no file yet."""
        memory, reason = self.writer.memory, self.writer.state.reason
        if memory is None and reason is None:
            # not opened yet, or there is nothing to open
            exists = await self._hass.async_add_executor_job(self.writer.path.exists)
            return await self.async_change(read) if exists else nothing
        if memory is None or reason == "damaged":
            raise MemoryUnavailable(reason or "closed")
        try:
            return await self._hass.async_add_executor_job(read, memory)
        except MemoryUnavailable:
            self.writer.check()
            raise

    async def async_change[Result](self, work: Callable[[Memory], Result]) -> Result:
        """Return what the work returns when its change is on disk; the thread that writes does it."""
        future = self.writer.call(work)
        done = asyncio.wrap_future(future)
        try:
            await asyncio.wait([done], timeout=_CHANGE)
        except asyncio.CancelledError:
            done.cancel()
            raise
        # wait for a change that has begun, so that nobody believes that it was not made
        if not done.done() and future.cancel():
            raise MemoryUnavailable(self.writer.state.reason or "locked")
        return await done

    def _expire(self, memory: Memory) -> None:
        """Forget the turns that are old enough; those of an unknown agent are kept as long as any."""
        now, days = time.time(), self._days
        before = {agent: now - each * _SECONDS_PER_DAY for agent, each in days.items()}
        others = min(before.values(), default=now - DEFAULT_MEMORY_DAYS * _SECONDS_PER_DAY)
        memory.expire(before, others, now - _WHOLE_DAYS * _SECONDS_PER_DAY)

    async def _async_drain(self, _event: Event) -> None:
        if not await self._hass.async_add_executor_job(self.writer.drain, _DRAIN):
            _LOGGER.warning("%d records of turns could not be written", self.writer.counts.queued)

    async def _async_close(self, _event: Event) -> None:
        await self._hass.async_add_executor_job(self.writer.close, _CLOSE)

    def _on_state(self, state: State) -> None:
        """Have the event loop follow the thread that writes."""
        if not self._hass.loop.is_closed():
            self._hass.loop.call_soon_threadsafe(self._follow, state)

    @callback
    def _follow(self, state: State) -> None:
        if self._hass.is_stopping:
            return
        if state.reason != self._reason:
            self._reason = state.reason
            if state.reason is None:
                _LOGGER.info("Memory works again")
            else:
                _LOGGER.warning("Memory is off: %s", state.reason)
        async_raise_or_clear_memory(self._hass, self.writer.path, state)
        for listener in tuple(self._listeners):
            listener()


_MEMORY: HassKey[AgentMemory] = HassKey(f"{DOMAIN}_memory")


@callback
def async_memory(hass: HomeAssistant) -> AgentMemory | None:
    """Return the memory of all agents, or None if no account was set up yet."""
    return hass.data.get(_MEMORY)


@callback
def async_start_memory(hass: HomeAssistant) -> AgentMemory:
    """Return the memory of all agents, which begins to open its file if it is new."""
    if _MEMORY not in hass.data:
        hass.data[_MEMORY] = AgentMemory(hass)
        hass.data[_MEMORY].async_keep()
        hass.data[_MEMORY].async_start()
    return hass.data[_MEMORY]


async def async_remove_memory(hass: HomeAssistant) -> None:
    """Delete all that was remembered, also if no account was set up since the start."""
    memory = hass.data.pop(_MEMORY, None) or AgentMemory(hass)
    await memory.async_remove()
