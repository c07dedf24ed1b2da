"""A test integration that measures how long the event loop was blocked, and lists the tasks.

Home Assistant loads it from its configuration folder. Its actions are `start` and `report`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
import gc
import time
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant, ServiceCall, SupportsResponse

DOMAIN = "event_loop_probe"

# Seconds between two ticks of the event loop.
_TICK_SECONDS = 0.005
# The garbage collector's oldest generation, whose collection includes all objects.
_WHOLE = 2


@dataclass(slots=True)
class TickGap:
    """The delay of a tick, and the CPU times of the loop's thread and of all threads since the tick before.

    A thread that holds the interpreter lock also blocks the loop, and on a busy machine there are delays in which this
    process does nothing. The loop is therefore taken to be blocked for the duration of the delay, but at most for the
    CPU time that this process used. A collection of all of Home Assistant's hundreds of thousands of objects takes a
    third of a second at an unpredictable time, so it is not counted.
    """

    seconds: float = 0.0
    of_the_loop: float = 0.0
    of_all: float = 0.0
    collecting: float = 0.0

    @property
    def blocked(self) -> float:
        return min(self.seconds, self.of_all - self.collecting)


@dataclass(slots=True)
class Ticker:
    """Ticks in the event loop, and records the longest delay of a tick."""

    loop: asyncio.AbstractEventLoop
    worst: TickGap = field(default_factory=TickGap)
    _last: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    _collected: float = 0.0
    _collection_began: float | None = None
    _next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self.stop()
        self.worst, self._last = TickGap(), self._now()
        self._next = self.loop.call_later(_TICK_SECONDS, self._tick)

    def stop(self) -> None:
        if self._next:
            self._next.cancel()

    def _tick(self) -> None:
        now = self._now()
        seconds, *used = (after - before for after, before in zip(now, self._last, strict=True))
        self.worst = max(self.worst, TickGap(seconds - _TICK_SECONDS, *used), key=lambda gap: gap.blocked)
        self._last = now
        self._next = self.loop.call_later(_TICK_SECONDS, self._tick)

    def on_collection(self, phase: str, details: Mapping[str, int]) -> None:
        """Measure the duration of a full garbage collection; see `gc.callbacks`."""
        if details["generation"] < _WHOLE:
            return
        if phase == "start":
            self._collection_began = time.process_time()
        else:
            self._collected, self._collection_began = self._collecting(), None

    def _now(self) -> tuple[float, float, float, float]:
        return time.monotonic(), time.thread_time(), time.process_time(), self._collecting()

    def _collecting(self) -> float:
        """Return the seconds spent in collections, including one that is still running in another thread."""
        began = self._collection_began
        return self._collected if began is None else self._collected + time.process_time() - began


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    """Register the actions of the probe."""
    ticker = Ticker(hass.loop)
    gc.callbacks.append(ticker.on_collection)
    entry.async_on_unload(lambda: gc.callbacks.remove(ticker.on_collection))

    async def begin(_call: ServiceCall) -> None:
        ticker.start()

    async def report(_call: ServiceCall) -> dict[str, Any]:
        worst = ticker.worst
        return {
            "blocked": worst.blocked,
            "seconds": worst.seconds,
            "collecting": worst.collecting,
            "of_the_loop": worst.of_the_loop,
            "of_all": worst.of_all,
            "tasks": sorted(_name(task) for task in asyncio.all_tasks()),
        }

    hass.services.async_register(DOMAIN, "begin", begin)
    hass.services.async_register(DOMAIN, "report", report, supports_response=SupportsResponse.ONLY)
    entry.async_on_unload(ticker.stop)
    return True


def _name(task: asyncio.Task[Any]) -> str:
    """Return the qualified name of a task's coroutine."""
    return getattr(task.get_coro(), "__qualname__", task.get_name())
