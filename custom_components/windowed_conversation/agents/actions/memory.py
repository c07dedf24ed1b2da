"""The actions on memory: remember, recall, list, forget, export, import."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sized
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from itertools import islice
import json
import math
from typing import Any

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import config_validation as cv
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ...bridge.errors import refusal, translated_error
from ...memory import (
    FACT_LENGTH,
    KINDS,
    BadLine,
    Forgotten,
    Kind,
    Listing,
    Loaded,
    Memory,
    MemoryFull,
    MemoryUnavailable,
    Recalled,
    fact_text,
)
from ...turn.recall import key_of
from ...turn.remember_requests import Phrase, StatedFact, remember_fact
from ...turn.speaker import Speaker, speaks_of_oneself
from ..forgetting import async_forget_everywhere
from ..store import AgentStore, async_store
from . import access
from .memory_files import checked_path, json_lines, lines_with_owner, read_lines, write_lines

_MOST_SHOWN = 20
_MOST_RECALLED, _MOST_LISTED, _MOST_EXPORTED, _MOST_IMPORTED = 50, 100, 1_000, 10_000
_MOST_IDS = 1_000
_QUERY_LENGTH = 1_000

_QUERY = probatio.All(cv.string, probatio.Length(min=1, max=_QUERY_LENGTH))
_MEMORIES = probatio.All(cv.ensure_list, probatio.Length(max=_MOST_IMPORTED), [probatio.Any(dict, str)])
_EVERYONE_FIELD = {probatio.Optional(access.ATTR_EVERYONE, default=False): cv.boolean}
_OFFSET_FIELD = {probatio.Optional("offset", default=0): access.natural_number}
_FILENAME_FIELD = {probatio.Optional(access.ATTR_FILENAME): access.FILENAME}
_EXPORT = {**_EVERYONE_FIELD, **access.limit_field(_MOST_EXPORTED, _MOST_EXPORTED), **_OFFSET_FIELD, **_FILENAME_FIELD}
_IMPORT = {probatio.Optional("memories"): _MEMORIES, **_FILENAME_FIELD}


async def _async_remember(call: ServiceCall) -> ServiceResponse:
    """Store a fact about a person or the home, and return its id."""
    target = await access.async_person_target(call, POLICY_CONTROL)
    text, language = call.data["text"], call.hass.config.language
    is_own = speaks_of_oneself(text, language)
    private = call.data.get("private", is_own)
    is_the_homes = not (target.is_named or is_own or private)
    if not is_the_homes and target.person is None:
        raise refusal("memory_no_person")
    speaker = Speaker(text, language, target.person, target.name, is_alone=target.is_own)
    fact = StatedFact(text, "", "action", None if is_the_homes else target.person, private)
    async with usable_memory(call.hass) as memory:
        done = await memory.async_change(lambda opened: remember_fact(opened, speaker, fact))
    if done.phrase is Phrase.FULL or done.stored is None:
        raise refusal("memory_full")
    replaced = next((old.facts[0] for old in done.rest), None)
    return {"id": key_of("fact", done.stored), "text": done.facts[0], "replaced": replaced}


async def _async_recall(call: ServiceCall) -> ServiceResponse:
    """Return the memories that match a query, best first."""
    target = await access.async_person_target(call, POLICY_READ)
    data = call.data
    async with usable_memory(call.hass) as memory:
        search = partial(
            Memory.recall,
            query=data["query"],
            person=target.person,
            speaker=target.name,
            kinds=tuple(data["kinds"]),
            limit=data[access.ATTR_LIMIT],
            since=data.get(access.ATTR_SINCE),
            until=data.get(access.ATTR_UNTIL),
            private=target.is_own,
        )
        found = await memory.async_read(search, list[Recalled]())
    return {"memories": _memories(found, target)}


async def _async_list_memories(call: ServiceCall) -> ServiceResponse:
    """Return a page of the memories, newest first."""
    target = await access.async_person_target(call, POLICY_READ)
    data = call.data
    most, offset = data[access.ATTR_LIMIT], data["offset"]
    listing = Listing(
        target.person,
        target.is_own,
        tuple(data["kinds"]),
        data.get(access.ATTR_SINCE, -math.inf),
        data.get(access.ATTR_UNTIL, math.inf),
        most + 1,
        offset,
    )
    async with usable_memory(call.hass) as memory:
        found = await memory.async_read(lambda opened: opened.newest(listing), list[Recalled]())
    return {"memories": _memories(found[:most], target), **_next(found, most, offset)}


async def _async_forget_memories(call: ServiceCall) -> ServiceResponse:
    """Forget the memories that match all conditions, or all memories. Return how many of each kind were forgotten."""
    target = await access.async_person_target(call, POLICY_CONTROL)
    conditions = _conditions(call.data, target)
    async with usable_memory(call.hass) as memory:
        if call.data["dry_run"]:
            chosen, seen = await memory.async_change(partial(_would_forget, conditions, target))
            return {**_counts(chosen), "memories": _memories(seen, target)}
        forgotten = await async_forget_everywhere(call.hass, **conditions)
    return {**_counts(forgotten), "erased": forgotten.erased}


async def _async_export_memories(call: ServiceCall) -> ServiceResponse:
    """Return a page of the caller's memories, or write memories of the caller, a person or everyone to a file."""
    target = await access.async_person_target(call, POLICY_READ)
    data = call.data
    person = None if data[access.ATTR_EVERYONE] else target.person
    if person is None and not data[access.ATTR_EVERYONE]:
        raise refusal("memory_no_person")
    async with usable_memory(call.hass) as memory:
        if access.ATTR_FILENAME in data:
            path = await call.hass.async_add_executor_job(checked_path, call.hass, data[access.ATTR_FILENAME])
            return {"written": await memory.async_read(lambda opened: write_lines(path, opened.export(person)), 0)}
        if person is None or not target.is_own:
            raise refusal("memory_file_needed")
        most, offset = data[access.ATTR_LIMIT], data["offset"]

        def page(opened: Memory) -> list[JsonValueType]:
            return [json.loads(line) for line in islice(opened.export(person), offset, offset + most + 1)]

        found = await memory.async_read(page, list[JsonValueType]())
    return {"memories": found[:most], **_next(found, most, offset)}


async def _async_import_memories(call: ServiceCall) -> ServiceResponse:
    """Import exported memories, all or none. Return the numbers of added, already known and refused memories."""
    target = await access.async_person_target(call, POLICY_CONTROL, needs_admin=True)
    if (access.ATTR_FILENAME in call.data) == ("memories" in call.data):
        raise refusal("memory_import_nothing")
    person = target.person if target.is_named else None
    people = {user.id for user in await call.hass.auth.async_get_users()}
    async with usable_memory(call.hass) as memory:
        source = await _async_source(call)

        def load(opened: Memory) -> Loaded:
            with source() as lines:
                return opened.load(lines_with_owner(lines, people, person))

        loaded = await memory.async_change(load)
    return {"added": loaded.added, "known": loaded.duplicates, "refused": loaded.refused}


@asynccontextmanager
async def usable_memory(hass: HomeAssistant) -> AsyncIterator[AgentStore]:
    """Yield the store, and convert errors of memory into translated errors of an action."""
    if (memory := async_store(hass)) is None:
        raise translated_error("memory_unavailable", HomeAssistantError)
    try:
        yield memory
    except MemoryUnavailable as err:
        if err.reason == "backup":
            raise translated_error("memory_backup", HomeAssistantError) from err
        raise translated_error("memory_unavailable", HomeAssistantError) from err
    except MemoryFull as err:
        raise refusal("memory_full") from err
    except BadLine as err:
        raise refusal("memory_import_malformed", line=str(err.line)) from err
    except OSError as err:
        error = err.strerror or type(err).__name__
        raise translated_error("memory_file_failed", HomeAssistantError, error=error) from err


async def _async_source(call: ServiceCall) -> Callable[[], AbstractContextManager[Iterable[str]]]:
    """Return a function that opens the lines to import, from a file or from the action's data."""
    if access.ATTR_FILENAME not in call.data:
        return lambda: nullcontext(json_lines(call.data["memories"]))
    path = await call.hass.async_add_executor_job(checked_path, call.hass, call.data[access.ATTR_FILENAME])
    return partial(read_lines, path)


def _conditions(data: Mapping[str, Any], target: access.PersonTarget) -> dict[str, Any]:
    """Return the arguments for `Memory.forget`. Raises `ServiceValidationError` for missing or excess conditions."""
    named = {name: data[name] for name in ("ids", "query") if name in data}
    span = {name: data[name] for name in (access.ATTR_SINCE, "before") if name in data}
    if data["everything"] == bool(named or span):
        raise refusal("memory_no_condition")
    if data[access.ATTR_EVERYONE]:
        if named:
            raise refusal("memory_everyone_by_time")
        return {access.ATTR_SINCE: -math.inf, **span}
    if target.person is None and not named:
        raise refusal("memory_no_person")
    return {"person": target.person, "private": target.is_own, **named, **span}


def _would_forget(
    conditions: dict[str, Any], target: access.PersonTarget, memory: Memory
) -> tuple[Forgotten, list[Recalled]]:
    """Return the memories that `Memory.forget` would delete, and the newest of them that the caller may see."""
    chosen = memory.forget(**conditions, dry_run=True)
    ids: list[tuple[Kind, int]] = [("fact", row) for row in chosen.facts]
    ids += [("turn", row) for row in chosen.turns]
    ids += [("episode", row) for row in chosen.episodes]
    return chosen, memory.newest(Listing(target.person, target.is_own, limit=_MOST_SHOWN, ids=tuple(ids)))


def _next(found: Sized, most: int, offset: int) -> JsonObjectType:
    """Return the response field with the offset of the next page, which is None after the last page."""
    return {"next_offset": offset + most if len(found) > most else None}


def _memories(found: Iterable[Recalled], target: access.PersonTarget) -> list[JsonValueType]:
    return [_memory(each, target.name) for each in found]


def _memory(found: Recalled, name: str | None) -> JsonObjectType:
    """Return the response for a memory of the home, or of the person with this name."""
    response: JsonObjectType = {
        "id": key_of(found.kind, found.id),
        "kind": found.kind,
        "text": found.text,
        "time": access.iso_time(found.at),
        "person": None if found.person is None else name or found.person,
        "private": found.private,
    }
    return response if found.conversation is None else {**response, "conversation_id": found.conversation}


def _counts(forgotten: Forgotten) -> JsonObjectType:
    """Return the numbers of memories that were or would be forgotten, and of exchanges in open conversations."""
    counts = {"facts": forgotten.facts, "turns": forgotten.turns, "episodes": forgotten.episodes}
    return {**{kind: len(rows) for kind, rows in counts.items()}, "exchanges": forgotten.exchanges}


def _kind_and_row(value: object) -> tuple[Kind, int]:
    """Return the kind and the row number from a memory's id. Raises `probatio.Invalid`."""
    for kind in KINDS:
        start, colon, row = str(value).partition(":")
        if start == kind and colon and row.isascii() and row.isdigit() and len(row) <= len(str(2**53)):
            return kind, int(row)
    raise probatio.Invalid(f"expected an id such as {key_of('fact', 7)}")


def _fact(value: object) -> str:
    """Validate and return the text of a fact. Raises `probatio.Invalid`."""
    text = cv.string(value)
    if len(text) > FACT_LENGTH:
        raise probatio.Invalid(f"expected at most {FACT_LENGTH} characters")
    try:
        return fact_text(text)
    except ValueError as err:
        raise probatio.Invalid("expected words") from err


def _kinds(default: tuple[Kind, ...]) -> dict[Any, Any]:
    return {probatio.Optional("kinds", default=list(default)): probatio.All(cv.ensure_list, [probatio.In(KINDS)])}


_IDS = probatio.All(cv.ensure_list, probatio.Length(min=1, max=_MOST_IDS), [_kind_and_row])

_REMEMBER = {probatio.Required("text"): _fact, probatio.Optional("private"): cv.boolean}
_RECALL = {
    probatio.Required("query"): _QUERY,
    **_kinds(KINDS),
    **access.limit_field(_MOST_RECALLED, 10),
    **access.span_fields(access.ATTR_UNTIL),
}
_FORGET = {
    **_EVERYONE_FIELD,
    probatio.Optional("ids"): _IDS,
    probatio.Optional("query"): _QUERY,
    **access.span_fields("before"),
    probatio.Optional("everything", default=False): cv.boolean,
    probatio.Optional("dry_run", default=False): cv.boolean,
}
_LIST = {
    **_kinds(("fact",)),
    **access.limit_field(_MOST_LISTED, 20),
    **_OFFSET_FIELD,
    **access.span_fields(access.ATTR_UNTIL),
}


def _schema(fields: dict[Any, Any]) -> probatio.Schema:
    return probatio.Schema({**access.PERSON_FIELD, **fields})


ACTIONS = (
    ("remember", _async_remember, _schema(_REMEMBER), SupportsResponse.OPTIONAL),
    ("recall", _async_recall, _schema(_RECALL), SupportsResponse.ONLY),
    ("forget", _async_forget_memories, _schema(_FORGET), SupportsResponse.OPTIONAL),
    ("list_memories", _async_list_memories, _schema(_LIST), SupportsResponse.ONLY),
    ("export_memories", _async_export_memories, _schema(_EXPORT), SupportsResponse.OPTIONAL),
    ("import_memories", _async_import_memories, _schema(_IMPORT), SupportsResponse.OPTIONAL),
)
