"""The actions on memory: remember, recall, list, forget, export and import."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from itertools import islice
import json
import math
from typing import Any

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.util.json import JsonObjectType, JsonValueType

from ..bridge.action_schemas import ATTR_LIMIT, ATTR_TEXT
from ..bridge.memory_action_schemas import (
    ATTR_BEFORE,
    ATTR_DRY_RUN,
    ATTR_EVERYONE,
    ATTR_EVERYTHING,
    ATTR_FILENAME,
    ATTR_IDS,
    ATTR_KINDS,
    ATTR_MEMORIES,
    ATTR_OFFSET,
    ATTR_PRIVATE,
    ATTR_QUERY,
    ATTR_SINCE,
    ATTR_UNTIL,
    memory_id,
)
from ..bridge.memory_files import checked_path, own_lines, read_lines, write_lines, written_lines
from ..bridge.window_response import iso_time
from ..const import DOMAIN
from ..memory import BadLine, Forgotten, Kind, Listing, Loaded, Memory, MemoryFull, MemoryUnavailable, Recalled
from ..turn.first_person import speaks_of_oneself
from ..turn.remember_requests import MemoryReply, NewFact, Phrase, remember_fact
from ..turn.speaker import Speaker
from .forgetting import async_forget_everywhere
from .memory_rights import Whose, async_whose, memory_error
from .store import AgentStore, async_store

_SOURCE = "action"
_MOST_SHOWN = 20


async def async_remember(call: ServiceCall) -> ServiceResponse:
    """Remember a fact of a person or of the home, and return its id."""
    whose = await async_whose(call, POLICY_CONTROL)
    text, language = call.data[ATTR_TEXT], call.hass.config.language
    is_own = speaks_of_oneself(text, language)
    private = call.data.get(ATTR_PRIVATE, is_own)
    is_the_homes = not (whose.is_named or is_own or private)
    if not is_the_homes and whose.person is None:
        raise memory_error("memory_no_person")
    speaker = Speaker(text, language, whose.person, whose.name, is_alone=whose.is_own)
    fact = NewFact(text, "", _SOURCE, None if is_the_homes else whose.person, private)
    async with usable_memory(call.hass) as memory:
        done = await memory.async_change(lambda opened: remember_fact(opened, speaker, fact))
    return _remembered(done)


async def async_recall(call: ServiceCall) -> ServiceResponse:
    """Return the memories that match a query, best first."""
    whose = await async_whose(call, POLICY_READ)
    asked = call.data
    async with usable_memory(call.hass) as memory:
        found = await memory.async_recall(
            asked[ATTR_QUERY],
            person=whose.person,
            speaker=whose.name,
            kinds=tuple(asked[ATTR_KINDS]),
            limit=asked[ATTR_LIMIT],
            since=asked.get(ATTR_SINCE),
            until=asked.get(ATTR_UNTIL),
            private=whose.is_own,
        )
    return {"memories": _shown(found, whose)}


async def async_list_memories(call: ServiceCall) -> ServiceResponse:
    """Return a page of the memories, newest first."""
    whose = await async_whose(call, POLICY_READ)
    asked = call.data
    most, offset = asked[ATTR_LIMIT], asked[ATTR_OFFSET]
    listing = Listing(
        whose.person,
        whose.is_own,
        tuple(asked[ATTR_KINDS]),
        asked.get(ATTR_SINCE, -math.inf),
        asked.get(ATTR_UNTIL, math.inf),
        most + 1,
        offset,
    )
    async with usable_memory(call.hass) as memory:
        found = await memory.async_read(lambda opened: opened.newest(listing), list[Recalled]())
    return {"memories": _shown(found[:most], whose), **_next(found, most, offset)}


async def async_forget_memories(call: ServiceCall) -> ServiceResponse:
    """Forget what meets all of the conditions, or everything, and return how much that is."""
    whose = await async_whose(call, POLICY_CONTROL)
    conditions = _conditions(call.data, whose)
    async with usable_memory(call.hass) as memory:
        if call.data[ATTR_DRY_RUN]:
            chosen, seen = await memory.async_change(partial(_would_forget, conditions, whose))
            return {**_counts(chosen), "memories": _shown(seen, whose)}
        forgotten = await async_forget_everywhere(call.hass, **conditions)
    return {**_counts(forgotten), "erased": forgotten.erased}


async def async_export_memories(call: ServiceCall) -> ServiceResponse:
    """Return a page of what the caller may see, or write it, another person's or everyone's to a file."""
    whose = await async_whose(call, POLICY_READ)
    asked = call.data
    person = None if asked[ATTR_EVERYONE] else whose.person
    if person is None and not asked[ATTR_EVERYONE]:
        raise memory_error("memory_no_person")
    async with usable_memory(call.hass) as memory:
        if ATTR_FILENAME in asked:
            path = await call.hass.async_add_executor_job(checked_path, call.hass, asked[ATTR_FILENAME])
            return {"written": await memory.async_read(lambda opened: write_lines(path, opened.export(person)), 0)}
        if person is None or not whose.is_own:
            raise memory_error("memory_file_needed")
        most, offset = asked[ATTR_LIMIT], asked[ATTR_OFFSET]
        found = await memory.async_read(
            lambda opened: _page(opened.export(person), most + 1, offset), list[JsonValueType]()
        )
    return {"memories": found[:most], **_next(found, most, offset)}


async def async_import_memories(call: ServiceCall) -> ServiceResponse:
    """Import exported memories, all of them or none, and return how many were added, known and refused."""
    whose = await async_whose(call, POLICY_CONTROL, is_for_trusted=True)
    if (ATTR_FILENAME in call.data) == (ATTR_MEMORIES in call.data):
        raise memory_error("memory_import_nothing")
    person = whose.person if whose.is_named else None
    people = {user.id for user in await call.hass.auth.async_get_users()}
    async with usable_memory(call.hass) as memory:
        source = await _async_source(call)

        def load(opened: Memory) -> Loaded:
            with source() as lines:
                return opened.load(own_lines(lines, people, person))

        loaded = await memory.async_change(load)
    return {"added": loaded.added, "known": loaded.known, "refused": loaded.refused}


@asynccontextmanager
async def usable_memory(hass: HomeAssistant) -> AsyncIterator[AgentStore]:
    """Hold the memory, and raise its errors as translated errors of an action."""
    if (memory := async_store(hass)) is None:
        raise HomeAssistantError(translation_domain=DOMAIN, translation_key="memory_unavailable")
    try:
        yield memory
    except MemoryUnavailable as err:
        if err.reason == "backup":
            raise HomeAssistantError(translation_domain=DOMAIN, translation_key="memory_backup") from err
        raise HomeAssistantError(translation_domain=DOMAIN, translation_key="memory_unavailable") from err
    except MemoryFull as err:
        raise memory_error("memory_full") from err
    except BadLine as err:
        raise memory_error("memory_import_malformed", line=str(err.line)) from err
    except OSError as err:
        raise HomeAssistantError(
            translation_domain=DOMAIN,
            translation_key="memory_file_failed",
            translation_placeholders={"error": err.strerror or type(err).__name__},
        ) from err


async def _async_source(call: ServiceCall) -> Callable[[], AbstractContextManager[Iterable[str]]]:
    """Return the function that opens the lines of an import."""
    if ATTR_FILENAME not in call.data:
        return lambda: nullcontext(written_lines(call.data[ATTR_MEMORIES]))
    path = await call.hass.async_add_executor_job(checked_path, call.hass, call.data[ATTR_FILENAME])
    return partial(read_lines, path)


def _conditions(asked: Mapping[str, Any], whose: Whose) -> dict[str, Any]:
    """Return the conditions on what is forgotten; raises `ServiceValidationError` if they are none, or too many."""
    named = {name: asked[name] for name in (ATTR_IDS, ATTR_QUERY) if name in asked}
    span = {name: asked[name] for name in (ATTR_SINCE, ATTR_BEFORE) if name in asked}
    if asked[ATTR_EVERYTHING] == bool(named or span):
        raise memory_error("memory_no_condition")
    if asked[ATTR_EVERYONE]:
        if named:
            raise memory_error("memory_everyone_by_time")
        return {ATTR_SINCE: -math.inf, **span}
    if whose.person is None and not named:
        raise memory_error("memory_no_person")
    return {"person": whose.person, "private": whose.is_own, **named, **span}


def _would_forget(conditions: dict[str, Any], whose: Whose, memory: Memory) -> tuple[Forgotten, list[Recalled]]:
    """Return the memories that would be forgotten, and the newest of them that the caller may see."""
    chosen = memory.forget(**conditions, dry_run=True)
    ids: list[tuple[Kind, int]] = [("fact", row) for row in chosen.facts]
    ids += [("turn", row) for row in chosen.turns]
    ids += [("episode", row) for row in chosen.episodes]
    return chosen, memory.newest(Listing(whose.person, whose.is_own, limit=_MOST_SHOWN, ids=tuple(ids)))


def _page(lines: Iterator[str], most: int, offset: int) -> list[JsonValueType]:
    return [json.loads(line) for line in islice(lines, offset, offset + most)]


def _next(found: Sized, most: int, offset: int) -> JsonObjectType:
    """Return the offset of the next page, None after the last one."""
    return {"next_offset": offset + most if len(found) > most else None}


def _shown(found: Iterable[Recalled], whose: Whose) -> list[JsonValueType]:
    return [_memory(each, whose.name) for each in found]


def _memory(found: Recalled, name: str | None) -> JsonObjectType:
    """Return a memory of the home, or of a person of this name."""
    response: JsonObjectType = {
        "id": memory_id(found.kind, found.id),
        "kind": found.kind,
        "text": found.text,
        "time": iso_time(found.at),
        "person": None if found.person is None else name or found.person,
        "private": found.private,
    }
    return response if found.conversation is None else {**response, "conversation_id": found.conversation}


def _counts(forgotten: Forgotten) -> JsonObjectType:
    """Return the numbers of memories that were or would be forgotten; `exchanges` are those of open conversations."""
    counts = {"facts": forgotten.facts, "turns": forgotten.turns, "episodes": forgotten.episodes}
    return {**{kind: len(rows) for kind, rows in counts.items()}, "exchanges": forgotten.exchanges}


def _remembered(done: MemoryReply) -> JsonObjectType:
    if done.phrase is Phrase.FULL or done.stored is None:
        raise memory_error("memory_full")
    replaced = next((old.facts[0] for old in done.rest), None)
    return {"id": memory_id("fact", done.stored), "text": done.facts[0], "replaced": replaced}
