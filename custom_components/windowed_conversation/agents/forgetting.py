"""Forgetting everywhere: in memory, in the windows of all agents, and in their files."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from homeassistant.auth import EVENT_USER_REMOVED
from homeassistant.core import Event, HomeAssistant, callback

from ..bridge.storage import async_rewrite_files
from ..memory import Forgotten, Memory, MemoryUnavailable
from ..turn.forgetting import Erasure, Search, without_forgotten
from ..turn.scope import WindowKey
from ..window import Snapshot, WindowRegistry
from .issues import async_raise_or_clear_damage
from .kept import Kept, async_all_kept
from .lookup import async_agents
from .memory import AgentMemory, async_memory


async def async_forget_everywhere(hass: HomeAssistant, **conditions: Any) -> Forgotten:
    """Forget what meets the conditions, see `Memory.forget`, in memory, windows and files. Raises `MemoryUnavailable`.

    With `dry_run` it only returns what would be forgotten.
    """
    return await async_forget_by(hass, lambda memory: memory.forget(**conditions), lambda forgotten: forgotten)


async def async_forget_by[Result](
    hass: HomeAssistant, work: Callable[[Memory], Result], forgotten_of: Callable[[Result], Forgotten | None]
) -> Result:
    """Run work on memory, remove what it forgot from windows and files, and return its result.

    A window in use follows when its turn ends. Raises `MemoryUnavailable`.
    """
    memory = async_memory(hass)
    if memory is None:
        raise MemoryUnavailable("closed")
    # continues even if the caller is cancelled
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


async def async_without_forgotten(hass: HomeAssistant, key: str, snapshot: Snapshot) -> Snapshot:
    """Return what may stay of an older copy of a window, see `without_forgotten`; raises MemoryUnavailable."""
    memory = async_memory(hass)
    tombstones = await memory.async_tombstones() if memory is not None else ()
    return await hass.async_add_executor_job(without_forgotten, key, snapshot, tombstones)


@callback
def async_follow_users(hass: HomeAssistant) -> None:
    """Forget from now on what is of a person whose user is removed."""

    @callback
    def on_removed(event: Event) -> None:
        hass.async_create_background_task(_async_forget_person(hass, str(event.data["user_id"])), "forget a person")

    hass.bus.async_listen(EVENT_USER_REMOVED, on_removed)


async def _async_forget_person(hass: HomeAssistant, person: str) -> None:
    """Forget a person's conversations now, and the rest as soon as memory can be used."""

    def rest(key: str, snapshot: Snapshot) -> Snapshot:
        return Snapshot(snapshot.conversation_id) if WindowKey.parse(key).user == person else snapshot

    memory = async_memory(hass)
    future = memory.writer.call(partial(Memory.forget, person=person), patient=True) if memory is not None else None
    kept = async_all_kept(hass)
    for each in kept.values():
        each.windows.rewrite(rest)
    await async_rewrite_files(hass, kept.keys(), rest)
    await _async_follow(hass, kept)
    if memory is None or future is None:
        return
    forgotten = await asyncio.wrap_future(future)
    if forgotten.has_any:
        with memory.forgetting():
            await _async_take_along(hass, forgotten)


async def _async_take_along(hass: HomeAssistant, forgotten: Forgotten) -> None:
    """Take what was forgotten out of windows and files."""
    erasure = Erasure.of(forgotten)
    kept = async_all_kept(hass)
    for each in kept.values():
        each.windows.rewrite(erasure.rest)
    languages = (hass.config.language, "en")
    search = await hass.async_add_executor_job(Search, erasure, languages, forgotten.told)
    await async_rewrite_files(hass, kept.keys(), search.rest)
    # other agents may have been set up meanwhile, from files that were not changed yet
    kept = async_all_kept(hass)
    for each in kept.values():
        found = await hass.async_add_executor_job(search.repeated, _snapshots(each.windows))
        each.windows.rewrite(replace(erasure, repeated=found).rest)
    await _async_follow(hass, kept)


async def _async_follow(hass: HomeAssistant, agents: dict[str, Kept]) -> None:
    """Have the files and the sensors follow the windows; a damaged file is no longer there."""
    for agent_id, kept in agents.items():
        async_raise_or_clear_damage(hass, agent_id, "", None)
        kept.store.save_soon()
        await kept.store.async_save()
    for agent in async_agents(hass):
        agent.tell_soon()


def _snapshots(windows: WindowRegistry[str]) -> dict[str, Snapshot]:
    return {key: window.snapshot() for key in windows.keys_newest_first() if (window := windows.peek(key))}
