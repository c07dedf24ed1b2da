"""The actions on memory: remember, recall, forget, export, import."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from itertools import islice
import json
import math
import time
from typing import Any

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import config_validation as cv
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ...bridge.errors import build_refusal, build_translated_error
from ...memory.core import (
    KINDS,
    MAX_FACT_CHARS,
    BadLine,
    FactStatement,
    LoadCounts,
    LostRows,
    Memory,
    MemoryFull,
    MemoryKind,
    MemoryUnavailable,
    RecallHit,
    clean_fact,
)
from ...memory.turn.recall import format_source_id
from ...memory.turn.remember_requests import ReplyKey, remember_fact
from ...memory.turn.speaker import Speaker, is_about_speaker
from ..forgetting import async_forget_everywhere
from ..local_intents import async_load_requests
from ..store import AgentStore, async_get_store
from . import access
from .memory_files import assign_line_owners, iter_json_lines, read_lines, resolve_allowed_path, write_lines

_MAX_PREVIEWED = 20
_MAX_RECALL_LIMIT, _EXPORT_PAGE_SIZE, _MAX_IMPORTED = 100, 1_000, 10_000
_MAX_FORGET_IDS = 1_000
_MAX_QUERY_CHARS = 1_000

_QUERY_VALIDATOR = probatio.All(cv.string, probatio.Length(min=1, max=_MAX_QUERY_CHARS))
_MEMORIES_VALIDATOR = probatio.All(cv.ensure_list, probatio.Length(max=_MAX_IMPORTED), [probatio.Any(dict, str)])
_EVERYONE_FIELD = {probatio.Optional(access.ATTR_EVERYONE, default=False): cv.boolean}
_FILENAME_FIELD = {probatio.Optional(access.ATTR_FILENAME): access.FILENAME_VALIDATOR}
_EXPORT_FIELDS = {
    **_EVERYONE_FIELD,
    probatio.Optional("offset", default=0): access.validate_natural_number,
    **_FILENAME_FIELD,
}
_IMPORT_FIELDS = {probatio.Optional("memories"): _MEMORIES_VALIDATOR, **_FILENAME_FIELD}


async def _async_remember(call: ServiceCall) -> ServiceResponse:
    target = await access.async_resolve_person(call, POLICY_CONTROL)
    text, language = call.data["text"], call.hass.config.language
    await async_load_requests(call.hass, language)
    is_own = is_about_speaker(text, language)
    private = call.data.get("private", is_own)
    is_the_homes = not (target.is_named or is_own or private)
    if not is_the_homes and target.person is None:
        raise build_refusal("memory_no_person")
    speaker = Speaker(text, language, target.person, target.name, is_alone=target.can_see_private)
    now = time.time()
    fact = FactStatement(text, None if is_the_homes else target.person, private, "action", "", now, now)
    async with open_usable_store(call.hass) as memory:
        done = await memory.async_change(remember_fact, speaker, fact)
    if done.phrase is ReplyKey.MEMORY_FULL:
        raise build_refusal("memory_full")
    return {
        "id": format_source_id("fact", done.named_fact_ids[0]),
        "text": done.fact_texts[0],
        "person": None if is_the_homes else target.name or target.person,
        "private": private,
        "replaced": next((old.fact_texts[0] for old in done.others), None),
    }


async def _async_recall(call: ServiceCall) -> ServiceResponse:
    """Return matching or the newest memories, and the number of suggestions, also for automations."""
    target, data = await access.async_resolve_person(call, POLICY_READ), call.data
    conditions: dict[str, Any] = {
        "person": target.person,
        "private": target.can_see_private,
        "kinds": tuple(data["kinds"]),
        "since": data.get(access.ATTR_SINCE, -math.inf),
        "until": data.get(access.ATTR_UNTIL, math.inf),
        "limit": data[access.ATTR_LIMIT],
    }
    find = partial(Memory.recall, query=data.get("query"), speaker=target.name, **conditions)
    everything = {"private": True, "kinds": ("fact",), "limit": _MAX_RECALL_LIMIT}
    list_facts = partial(Memory.recall, **{**conditions, **everything})
    async with open_usable_store(call.hass) as memory:
        memories = await memory.async_read(find, list[RecallHit]())
        facts = await memory.async_read(list_facts, list[RecallHit]())
    return {
        "memories": [_format_memory(each, target.name) for each in memories],
        "suggestions": sum(fact.is_suggestion for fact in facts),
    }


async def _async_forget_memories(call: ServiceCall) -> ServiceResponse:
    target = await access.async_resolve_person(call, POLICY_CONTROL)
    conditions = _build_conditions(call.data, target)
    async with open_usable_store(call.hass) as memory:
        if call.data["dry_run"]:
            chosen, seen = await memory.async_change(_preview_forgetting, conditions, target)
            return {**_count_by_kind(chosen), "memories": [_format_memory(each, target.name) for each in seen]}
        forgotten = await async_forget_everywhere(call.hass, **conditions)
    return {**_count_by_kind(forgotten), "erased": forgotten.is_erased}


async def _async_export_memories(call: ServiceCall) -> ServiceResponse:
    target = await access.async_resolve_person(call, POLICY_READ)
    data = call.data
    person = None if data[access.ATTR_EVERYONE] else target.person
    if person is None and not data[access.ATTR_EVERYONE]:
        raise build_refusal("memory_no_person")
    async with open_usable_store(call.hass) as memory:
        if access.ATTR_FILENAME in data:
            path = await call.hass.async_add_executor_job(resolve_allowed_path, call.hass, data[access.ATTR_FILENAME])
            line_count = await memory.async_read(lambda opened: write_lines(path, opened.export(person)), 0)
            return {"filename": str(path), "written": line_count}
        if person is None or not target.can_see_private:
            raise build_refusal("memory_file_needed")
        start, end = data["offset"], data["offset"] + _EXPORT_PAGE_SIZE
        lines = await memory.async_read(lambda opened: [*islice(opened.export(person), start, end + 1)], list[str]())
    found: list[JsonValueType] = [json.loads(line) for line in lines[:_EXPORT_PAGE_SIZE]]
    return {"memories": found, "next_offset": end if len(lines) > _EXPORT_PAGE_SIZE else None}


async def _async_import_memories(call: ServiceCall) -> ServiceResponse:
    target = await access.async_resolve_person(call, POLICY_CONTROL, needs_admin=True)
    if (access.ATTR_FILENAME in call.data) == ("memories" in call.data):
        raise build_refusal("memory_import_nothing")
    person = target.person if target.is_named else None
    people = {user.id for user in await call.hass.auth.async_get_users()}
    async with open_usable_store(call.hass) as memory:
        open_source = await _async_get_source_opener(call)

        def load_lines(opened: Memory) -> LoadCounts:
            with open_source() as lines:
                return opened.load_lines(assign_line_owners(lines, people, person))

        loaded = await memory.async_change(load_lines)
    return {"added": loaded.added_count, "known": loaded.duplicate_count, "refused": loaded.refused_count}


@asynccontextmanager
async def open_usable_store(hass: HomeAssistant) -> AsyncIterator[AgentStore]:
    """Yield the store, and convert errors of memory into translated errors of an action."""
    if (memory := async_get_store(hass)) is None:
        raise build_translated_error("memory_unavailable", HomeAssistantError)
    try:
        yield memory
    except MemoryUnavailable as err:
        if err.reason == "backup":
            raise build_translated_error("memory_backup", HomeAssistantError) from err
        raise build_translated_error("memory_unavailable", HomeAssistantError) from err
    except MemoryFull as err:
        raise build_refusal("memory_full") from err
    except BadLine as err:
        raise build_refusal("memory_import_malformed", line=str(err.line_number)) from err
    except OSError as err:
        error = err.strerror or type(err).__name__
        raise build_translated_error("file_failed", HomeAssistantError, error=error) from err


async def _async_get_source_opener(call: ServiceCall) -> Callable[[], AbstractContextManager[Iterable[str]]]:
    if access.ATTR_FILENAME not in call.data:
        return lambda: nullcontext(iter_json_lines(call.data["memories"]))
    path = await call.hass.async_add_executor_job(resolve_allowed_path, call.hass, call.data[access.ATTR_FILENAME])
    return partial(read_lines, path)


def _build_conditions(data: Mapping[str, Any], target: access.PersonTarget) -> dict[str, Any]:
    """Return the arguments for `Memory.forget`. Raises `ServiceValidationError` for missing or excess conditions."""
    named = {name: data[name] for name in ("ids", "query") if name in data}
    span = {name: data[name] for name in (access.ATTR_SINCE,) if name in data}
    if access.ATTR_UNTIL in data:
        # memory excludes the end of the span, unlike the action
        span["before"] = math.nextafter(data[access.ATTR_UNTIL], math.inf)
    if data["everything"] == bool(named or span):
        raise build_refusal("memory_no_condition")
    if data[access.ATTR_EVERYONE]:
        if named:
            raise build_refusal("memory_everyone_by_time")
        return {access.ATTR_SINCE: -math.inf, **span}
    if target.person is None and not named:
        raise build_refusal("memory_no_person")
    return {"person": target.person, "private": target.can_see_private, **named, **span}


def _preview_forgetting(
    memory: Memory, conditions: dict[str, Any], target: access.PersonTarget
) -> tuple[LostRows, list[RecallHit]]:
    chosen = memory.forget(**conditions, dry_run=True)
    ids: list[tuple[MemoryKind, int]] = [("fact", row) for row in chosen.facts]
    ids += [("turn", row) for row in chosen.turns]
    ids += [("summary", row) for row in chosen.summaries]
    return chosen, memory.recall(person=target.person, private=target.can_see_private, limit=_MAX_PREVIEWED, ids=ids)


def _format_memory(found: RecallHit, name: str | None) -> JsonObjectType:
    response: JsonObjectType = {
        "id": format_source_id(found.kind, found.id),
        "kind": found.kind,
        "text": found.text,
        "time": access.format_iso_time(found.time),
        "person": None if found.person is None else name or found.person,
        "private": found.private,
    }
    return response if found.conversation is None else {**response, "conversation_id": found.conversation}


def _count_by_kind(forgotten: LostRows) -> JsonObjectType:
    """Return the numbers of memories that were or would be forgotten, and of exchanges in open conversations."""
    counts = {"facts": forgotten.facts, "turns": forgotten.turns, "summaries": forgotten.summaries}
    return {**{kind: len(rows) for kind, rows in counts.items()}, "exchanges": forgotten.exchange_count}


def parse_memory_id(value: object) -> tuple[MemoryKind, int]:
    """Return the kind and the row number from a memory's id. Raises `probatio.Invalid`."""
    for kind in KINDS:
        start, colon, row = str(value).partition(":")
        if start == kind and colon and row.isascii() and row.isdigit() and len(row) <= len(str(2**53)):
            return kind, int(row)
    raise probatio.Invalid(f"expected an id such as {format_source_id('fact', 7)}")


def validate_fact(value: object) -> str:
    """Validate and return the text of a fact. Raises `probatio.Invalid`."""
    text = cv.string(value)
    if len(text) > MAX_FACT_CHARS:
        raise probatio.Invalid(f"expected at most {MAX_FACT_CHARS} characters")
    try:
        return clean_fact(text)
    except ValueError as err:
        raise probatio.Invalid("expected words") from err


_IDS_VALIDATOR = probatio.All(cv.ensure_list, probatio.Length(min=1, max=_MAX_FORGET_IDS), [parse_memory_id])

_REMEMBER_FIELDS = {probatio.Required("text"): validate_fact, probatio.Optional("private"): cv.boolean}
_RECALL_FIELDS = {
    probatio.Optional("query"): _QUERY_VALIDATOR,
    probatio.Optional("kinds", default=list(KINDS)): probatio.All(cv.ensure_list, [probatio.In(KINDS)]),
    **access.build_limit_field(_MAX_RECALL_LIMIT, 10),
    **access.SPAN_FIELDS,
}
_FORGET_FIELDS = {
    **_EVERYONE_FIELD,
    probatio.Optional("ids"): _IDS_VALIDATOR,
    probatio.Optional("query"): _QUERY_VALIDATOR,
    **access.SPAN_FIELDS,
    probatio.Optional("everything", default=False): cv.boolean,
    probatio.Optional("dry_run", default=False): cv.boolean,
}


def _build_schema(fields: dict[Any, Any]) -> probatio.Schema:
    return probatio.Schema({**access.PERSON_FIELD, **fields})


ACTIONS = (
    ("remember", _async_remember, _build_schema(_REMEMBER_FIELDS), SupportsResponse.OPTIONAL),
    ("recall", _async_recall, _build_schema(_RECALL_FIELDS), SupportsResponse.ONLY),
    ("forget", _async_forget_memories, _build_schema(_FORGET_FIELDS), SupportsResponse.OPTIONAL),
    ("export_memories", _async_export_memories, _build_schema(_EXPORT_FIELDS), SupportsResponse.OPTIONAL),
    ("import_memories", _async_import_memories, _build_schema(_IMPORT_FIELDS), SupportsResponse.OPTIONAL),
)
