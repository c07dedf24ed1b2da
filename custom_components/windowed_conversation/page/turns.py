"""The turns on the page: the sentence, the answer, the agent and the reason of each, as far as a caller may know."""

from contextlib import suppress
from typing import Any

from homeassistant.core import ServiceCall, ServiceResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.util.json import JsonObjectType
import probatio

from ..agents.account import RecentTurn
from ..agents.actions import access
from ..agents.actions.memory import open_usable_store
from ..agents.actions.turns import (
    TURN_OUTCOMES,
    TURN_ROUTES,
    CallerPermissions,
    add_cost,
    async_find_person_names,
    async_get_permissions,
    build_list_query,
    format_turn,
    list_recent_turns,
)
from ..memory.core import Memory
from ..record import RecordedTurns, TurnListQuery, TurnRecord
from ..turn.routing import Route, RouteReason
from .turn_texts import TurnTexts, TurnWords, async_read_memory, async_read_windows

_MAX_LIMIT, _DEFAULT_LIMIT = 100, 50
# In characters, for each text in the list.
_MAX_EXCERPT_CHARS = 300


async def async_read_turns(call: ServiceCall) -> ServiceResponse:
    """Return a page of the turns that the caller may list, newest first, or a single one of them.

    A person's own texts come from the record, working memory, their conversations, and memory.
    """
    rights, most = await async_get_permissions(call), call.data[access.ATTR_LIMIT]
    routes = TURN_ROUTES if call.data["background"] else tuple(map(str, Route))
    query = build_list_query(call.data, rights)._replace(
        limit=most + 1, after=call.data.get("after"), routes=frozenset(routes)
    )
    recent = {each.record["turn_id"]: each for each in list_recent_turns(call.hass, rights)}
    recorded: list[TurnRecord] = []
    # without the store, the turns in working memory are listed
    with suppress(HomeAssistantError):
        async with open_usable_store(call.hass) as store:
            recorded = await store.async_read(_read_turns, recorded, query, call.data.get("turn_id"))
    found = {turn["turn_id"]: turn for turn in recorded if rights.can_see(turn)}
    for turn_id, each in recent.items():
        if _matches(each.record, query, call.data.get("turn_id")):
            found.setdefault(turn_id, add_cost(each.record, each))
    listed = [found[turn_id] for turn_id in sorted(found, reverse=True)]
    shown = [turn for turn in listed if turn["reason"] != RouteReason.ECHO][:most]
    names = await async_find_person_names(call.hass, [turn["person"] for turn in shown])
    texts = await _async_find_texts(call, [turn for turn in shown if turn["person"] in rights.readable_people], recent)
    return {
        "turns": [
            {**format_turn(call.hass, turn, names), **_format_text(turn, rights, texts.get(turn["turn_id"]))}
            for turn in shown
        ],
        "next_after": shown[-1]["turn_id"] if shown and len(listed) > most else None,
    }


def _read_turns(memory: Memory, query: TurnListQuery, turn_id: str | None) -> list[TurnRecord]:
    """Return the listed turns, or the single one, with the texts that the record has."""
    recorded = RecordedTurns(memory.database)
    if turn_id is not None:
        found = recorded.get_turn(turn_id)
        return [] if found is None else [found]
    return recorded.list_newest(query, with_text=True)


def _matches(turn: TurnRecord, query: TurnListQuery, turn_id: str | None) -> bool:
    """Return whether a turn in working memory matches the query, or has the id if one is given."""
    if turn_id is not None:
        return turn["turn_id"] == turn_id
    is_in_time = query.since <= turn["time"] <= query.until and (not query.after or turn["turn_id"] < query.after)
    return is_in_time and query.outcome in {None, turn["outcome"]}


async def _async_find_texts(
    call: ServiceCall, turns: list[TurnRecord], recent: dict[str, RecentTurn]
) -> dict[str, TurnWords]:
    """Return the known texts of turns that the caller may read, by turn id."""
    texts = TurnTexts().find(turns)
    for turn in turns:
        if (latest := recent.get(turn["turn_id"])) is not None:
            texts[turn["turn_id"]] = TurnWords(turn["time"], latest.speaker.text, latest.answer)
    for reads_windows in (False, True):
        missing = [turn for turn in turns if turn["turn_id"] not in texts and turn["conversation_id"] is not None]
        if not missing:
            break
        since = min(turn["time"] for turn in missing)
        if reads_windows:
            conversations = {turn["conversation_id"] for turn in missing}
            readable = TurnTexts(opened=await async_read_windows(call, since, conversations=conversations))
        else:
            readable = TurnTexts(past=await async_read_memory(call, since))
        texts = {**readable.find(turns), **texts}
    return texts


def _format_text(turn: TurnRecord, rights: CallerPermissions, text: TurnWords | None) -> JsonObjectType:
    if turn["person"] not in rights.readable_people:
        return {"text": "private"}
    if text is None:
        return {"text": "not_kept"}
    return {"text": "shown", "said": text.said[:_MAX_EXCERPT_CHARS], "answer": text.answer[:_MAX_EXCERPT_CHARS]}


_SCHEMA = probatio.Schema(
    {
        **access.TARGET_FIELDS,
        **access.SPAN_FIELDS,
        probatio.Optional("outcome"): probatio.In(TURN_OUTCOMES),
        probatio.Optional("background", default=False): bool,
        **access.build_limit_field(_MAX_LIMIT, _DEFAULT_LIMIT),
        probatio.Optional("after"): access.NAME_VALIDATOR,
        probatio.Optional("turn_id"): access.NAME_VALIDATOR,
    }
)

COMMANDS: tuple[tuple[str, Any, probatio.Schema], ...] = (("turns", async_read_turns, _SCHEMA),)
