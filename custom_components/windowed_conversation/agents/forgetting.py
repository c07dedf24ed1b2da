"""Forgetting in one transaction of the store, followed by the windows in working memory."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from functools import partial
import logging
from typing import Any

from homeassistant.auth import EVENT_USER_REMOVED
from homeassistant.core import Event, HomeAssistant, callback

from ..bridge.turn_report import EVENT_FORGOTTEN, async_fire_agent_event
from ..const import DOMAIN
from ..memory.core import ExchangeOwner, LostRows, Memory, MemoryUnavailable, Tombstone
from ..memory.turn.forgetting import ForgottenExchanges, RemovedOwners, find_removed_owners, remove_forgotten
from ..turn.routing import WindowKey
from ..window import Snapshot
from .account import RecentTurn, async_agent_states, async_find_recent_turns, async_run_deferred_work
from .agent import async_loaded_agents
from .reminders import async_get_reminders
from .store import AgentStore, async_get_store

_LOGGER = logging.getLogger(__name__)

# In seconds, between attempts to forget the data of a removed person or agent.
_RETRY_SECONDS = 60.0


async def async_forget_everywhere(hass: HomeAssistant, **conditions: Any) -> LostRows:
    """Forget everything that matches the conditions of `Memory.forget`. Raises `MemoryUnavailable`."""
    return await async_run_deletion(hass, lambda memory: memory.forget(**conditions))


async def async_run_deletion[Result](hass: HomeAssistant, work: Callable[[Memory], Result]) -> Result:
    """Run a deletion in memory, then remove the forgotten exchanges from loaded windows. Return its result.

    A window in use is changed when its turn ends. Raises `MemoryUnavailable` if nothing was forgotten.
    """
    store = async_get_store(hass)
    if store is None:
        raise MemoryUnavailable("closed")
    # the deletion continues even if the caller is cancelled
    task = hass.async_create_task(_async_forget(hass, store, work), "forget")
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def _async_forget[Result](hass: HomeAssistant, store: AgentStore, work: Callable[[Memory], Result]) -> Result:
    # the deferred steps of ended turns may store the text as well
    async_run_deferred_work(hass)
    with store.pause_for_deletion():
        live = {
            (agent_id, key): snapshot
            for agent_id, each in async_agent_states(hass).items()
            for key, snapshot in each.windows.snapshots().items()
        }

        def delete_and_collect(memory: Memory) -> tuple[Result, list[ForgottenExchanges]]:
            with store.conversations.include_live(live) as losses:
                return work(memory), losses

        result, losses = await store.async_change(delete_and_collect)
        for each in losses:
            _forget_exchanges(hass, each)
        await _async_forget_recent_turns(hass, losses)
        await async_get_reminders(hass).async_read()
        for agent in async_loaded_agents(hass):
            agent.profiles.clear()
    if losses:
        for account in async_agent_states(hass).values():
            await account.conversations.async_refresh_listing()
        for agent in async_loaded_agents(hass):
            agent.schedule_notify()
    return result


async def _async_forget_recent_turns(hass: HomeAssistant, losses: Collection[ForgottenExchanges]) -> None:
    turns = async_find_recent_turns(hass)
    forgotten = await hass.async_add_executor_job(_find_forgotten_turns, losses, turns)
    for account in async_agent_states(hass).values():
        for turn in forgotten.intersection(account.recent_turns):
            account.recent_turns.remove(turn)


def _find_forgotten_turns(losses: Collection[ForgottenExchanges], turns: Collection[RecentTurn]) -> set[RecentTurn]:
    """Return the turns whose text is forgotten. The others that may have received it lose their requests."""
    forgotten = {turn for turn in turns if any(each.forgets_turn(*_describe_text(turn)) for each in losses)}
    conversations = {turn.record["conversation_id"] for turn in forgotten}
    for turn in set(turns) - forgotten:
        person, conversation = turn.record["person"], turn.record["conversation_id"]
        if conversation in conversations or any(each.may_have_reached(person, conversation) for each in losses):
            turn.drop_requests()
    return forgotten


def _describe_text(turn: RecentTurn) -> tuple[ExchangeOwner, tuple[str, str], tuple[float, float], Collection[str]]:
    record, context = turn.record, turn.context
    owner = ExchangeOwner(record["agent"], record["person"], record["conversation_id"] or "")
    span = record["time"], record["time"] + record["duration"]
    sources = (*(context.facts.source_ids if context.facts else ()), *context.recalled.source_ids)
    return owner, (turn.speaker.text, turn.answer), span, sources


def _forget_exchanges(hass: HomeAssistant, losses: ForgottenExchanges) -> None:
    """Rewrite the windows, also of agents that were set up in the meantime, and fire the events for the logbook."""
    for agent_id, account in async_agent_states(hass).items():
        account.windows.rewrite_windows(partial(_remove_lost_exchanges, losses, agent_id))
    for (agent_id, key), exchanges in losses.lost_count_by_window.items():
        if exchanges and agent_id != losses.erasure.conditions.agent:
            conversation = WindowKey.parse(key).conversation
            async_fire_agent_event(hass, EVENT_FORGOTTEN, agent_id, conversation_id=conversation, exchanges=exchanges)


def _remove_lost_exchanges(losses: ForgottenExchanges, agent_id: str, key: str, snapshot: Snapshot) -> Snapshot:
    return losses.remove_lost((agent_id, key), snapshot)


async def async_remove_forgotten(hass: HomeAssistant, snapshot: Snapshot) -> Snapshot:
    """Return an older copy of a window without forgotten exchanges. Raises `MemoryUnavailable`."""
    store = async_get_store(hass)
    tombstones = await store.async_read(Memory.get_tombstones, frozenset[Tombstone]()) if store is not None else ()
    return await hass.async_add_executor_job(remove_forgotten, snapshot, tombstones)


async def async_forget_removed_owners(hass: HomeAssistant, removed: Collection[str] = ()) -> None:
    """Forget all data of people, agents and accounts that no longer exist. `removed` are ids of removed agents.

    This includes those that were removed while no account was set up. Waits until the store is available.
    """
    people = {user.id for user in await hass.auth.async_get_users()}
    entries = hass.config_entries.async_entries(DOMAIN)
    owners = {entry.entry_id for entry in entries}.union(*(entry.subentries for entry in entries))
    find = partial(find_removed_owners, people=people, owners=owners, removed=removed)

    async def forget_owners(store: AgentStore) -> None:
        if (gone := await store.async_read(find, RemovedOwners())) != RemovedOwners():
            await async_run_deletion(hass, gone.forget)

    await _async_retry(hass, forget_owners)


@callback
def async_track_user_removal(hass: HomeAssistant) -> None:
    """Whenever a user is removed, forget all data of that person."""

    @callback
    def on_user_removed(event: Event) -> None:
        work = partial(Memory.forget, person=str(event.data["user_id"]))
        forgetting = _async_retry(hass, lambda _store: async_run_deletion(hass, work))
        hass.async_create_background_task(forgetting, "forget a person")

    hass.bus.async_listen(EVENT_USER_REMOVED, on_user_removed)


async def _async_retry(hass: HomeAssistant, forget: Callable[[AgentStore], Coroutine[Any, Any, object]]) -> None:
    """Forget as soon as the store is available. If Home Assistant stops first, the next start does this instead."""
    while (store := async_get_store(hass)) is not None:
        try:
            await forget(store)
        except MemoryUnavailable as err:
            _LOGGER.debug("Forgetting waits for the store: %s", err.reason)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return
