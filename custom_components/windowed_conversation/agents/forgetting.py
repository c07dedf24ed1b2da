"""Forgetting everywhere: in memory, in the windows of all agents, and in their files."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from homeassistant.core import HomeAssistant

from ..memory import Forgotten, Memory, MemoryUnavailable
from ..memory.told import Repetitions
from ..turn.forgetting import Erasure
from ..window.restore import Snapshot
from .kept import Kept, async_all_kept
from .lookup import async_agents
from .memory import AgentMemory, async_memory


async def async_forget_everywhere(hass: HomeAssistant, **conditions: Any) -> Forgotten:
    """Forget what meets the conditions, see `Memory.forget`, wherever it is; raises MemoryUnavailable.

    With `dry_run` it only returns what would be forgotten.
    """
    return await async_forget_by(hass, lambda memory: memory.forget(**conditions), lambda forgotten: forgotten)


async def async_forget_by[Result](
    hass: HomeAssistant, work: Callable[[Memory], Result], forgotten_of: Callable[[Result], Forgotten | None]
) -> Result:
    """Return what the work on memory returns, after what it has forgotten is out of windows and files, too.

    A window that a turn has follows when the turn ends. Raises MemoryUnavailable.
    """
    memory = async_memory(hass)
    if memory is None:
        raise MemoryUnavailable("closed")
    # goes on where the caller is interrupted
    task = hass.async_create_task(_async_forget(hass, memory, work, forgotten_of), "forget")
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def _async_forget[Result](
    hass: HomeAssistant,
    memory: AgentMemory,
    work: Callable[[Memory], Result],
    forgotten_of: Callable[[Result], Forgotten | None],
) -> Result:
    with memory.forgetting():
        result = await memory.async_change(work)
        forgotten = forgotten_of(result)
        if forgotten is not None and forgotten.has_any:
            await _async_take_along(hass, forgotten)
    return result


async def _async_take_along(hass: HomeAssistant, forgotten: Forgotten) -> None:
    """Take what was forgotten out of windows and files."""
    erasure = Erasure.of(forgotten)
    kept = async_all_kept(hass)
    for each in kept.values():
        each.windows.rewrite(erasure.rest)
    # others may have been set up meanwhile, of files as they were
    kept = async_all_kept(hass)
    for each in kept.values():
        await _async_take_out(hass, each, erasure, forgotten.told)
    for agent in async_agents(hass):
        agent.tell_soon()


async def _async_take_out(hass: HomeAssistant, kept: Kept, erasure: Erasure, told: tuple[str, ...]) -> None:
    """Take it out of the windows of an agent, and of their file."""
    windows = kept.windows
    found = {key: window.snapshot() for key in windows.keys_newest_first() if (window := windows.peek(key))}
    languages = (hass.config.language, "en")
    repeated = await hass.async_add_executor_job(_repeated, found, erasure, languages, told)
    windows.rewrite(replace(erasure, repeated=repeated).rest)
    kept.store.save_soon()
    await kept.store.async_save()


def _repeated(
    found: dict[str, Snapshot], erasure: Erasure, languages: tuple[str, ...], told: tuple[str, ...]
) -> dict[str, float]:
    """Return when each of the windows first had a text that repeats what was told, if it has any."""
    repetitions = Repetitions(languages, told)
    times = {key: erasure.repeated_at(key, snapshot, repetitions.are_in) for key, snapshot in found.items()}
    return {key: at for key, at in times.items() if at is not None}
