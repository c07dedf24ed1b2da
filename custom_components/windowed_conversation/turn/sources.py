"""The port for what is added to a turn's context: sources, fetched together, none of which a turn waits for long."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
import logging
import time
from typing import Protocol

_LOGGER = logging.getLogger(__name__)

# How long a turn waits for its sources, in seconds.
DEADLINE = 0.05


@dataclass(frozen=True, slots=True)
class Addition:
    """What a source adds: whole lines, best first, their tokens in total, and the ids of their sources."""

    lines: tuple[str, ...]
    tokens: int
    sources: tuple[str, ...] = ()


class Source(Protocol):
    """Something that may add to the context of one turn."""

    @property
    def name(self) -> str:
        """The name of the source in reports."""
        ...

    async def fetch(self) -> Addition | None:
        """Return what to add, or None. After an error, the turn continues without this source."""
        ...


@dataclass(frozen=True, slots=True)
class Fetched:
    """What sources have added, by name, the names of those that failed or were late, and the seconds it took."""

    additions: dict[str, Addition]
    failed: tuple[str, ...]
    seconds: float


async def fetch(sources: Iterable[Source], deadline: float | None = None) -> Fetched:
    """Fetch from all sources at once, and leave out those that fail or are not there by the deadline."""
    began = time.monotonic()
    tasks = {source.name: asyncio.create_task(source.fetch(), name=f"source {source.name}") for source in sources}
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=DEADLINE if deadline is None else deadline)
    finally:
        late = {name for name, task in tasks.items() if task.cancel()}
        for task in tasks.values():
            task.add_done_callback(_failure)
    reasons = {name: "late" if name in late else _failure(task) for name, task in tasks.items()}
    failed = {name: reason for name, reason in reasons.items() if reason is not None}
    for name, reason in failed.items():
        _LOGGER.debug("A turn continues without the source %s: %s", name, reason)
    results = {name: task.result() for name, task in tasks.items() if name not in failed}
    additions = {name: added for name, added in results.items() if added is not None}
    return Fetched(additions, tuple(failed), time.monotonic() - began)


def _failure(task: asyncio.Task[Addition | None]) -> str | None:
    """Return why a task that is done has no result; asyncio does not log an error that was asked for."""
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return None if error is None else type(error).__name__
