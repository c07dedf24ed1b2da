"""The actions on the record of turns (list or export, get), with the permissions of the caller and the responses.

Responses are plain JSON, with times in ISO 8601 and the names of people, devices and agents.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import math
from typing import Any

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.const import ATTR_FRIENDLY_NAME
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers import config_validation as cv, device_registry as dr
from homeassistant.util.json import JsonObjectType
import probatio

from ...bridge.errors import build_refusal
from ...bridge.persons import async_find_person
from ...bridge.turn_report import NO_USAGE, find_agent_entity_id, name_asked_agents
from ...record import (
    EMPTY_TURN,
    RecordedTurns,
    SentRequest,
    ToolCallText,
    TurnListQuery,
    TurnRecord,
    encode_json,
)
from ...turn.routing import Route
from ...window import is_in_turn
from ..account import RecentTurn, async_find_recent_turns
from ..agent import async_agent_ids
from . import access
from .memory import open_usable_store
from .memory_files import resolve_allowed_path, write_lines

TURN_ROUTES = (*map(str, Route), "summary", "search_words", "task")
TURN_OUTCOMES = ("answered", "error", "cancelled")

_MAX_LIMIT, _DEFAULT_LIMIT = 100, 20
# In characters, for each argument or result of a tool, and for a request. Only the export has longer texts in full.
_MAX_TEXT_CHARS = 10_000
_MAX_REQUEST_CHARS = 1_000_000
_MAX_TOOL_CALLS = 100
_ELLIPSIS = "…"
# The fields of a record that are not those of a single turn only, and are not text.
_SHOWN_FIELDS = EMPTY_TURN.keys() - {"agent", "message", "waterfall", "attempts"}

_TURN_ID_VALIDATOR = probatio.All(cv.string, probatio.Length(min=1, max=64))
_LIST_SCHEMA = probatio.Schema(
    {
        **access.TARGET_FIELDS,
        **access.PERSON_FIELD,
        **access.SPAN_FIELDS,
        probatio.Optional("route"): probatio.In(TURN_ROUTES),
        probatio.Optional("outcome"): probatio.In(TURN_OUTCOMES),
        probatio.Optional("tool"): access.NAME_VALIDATOR,
        probatio.Optional(ATTR_CONVERSATION_ID): access.NAME_VALIDATOR,
        **access.build_limit_field(_MAX_LIMIT, _DEFAULT_LIMIT),
        probatio.Optional("after"): _TURN_ID_VALIDATOR,
        probatio.Optional(access.ATTR_FILENAME): access.FILENAME_VALIDATOR,
    }
)
_GET_SCHEMA = probatio.Schema(
    {
        probatio.Required("turn_id"): _TURN_ID_VALIDATOR,
        probatio.Optional("request"): probatio.All(access.validate_natural_number, probatio.Range(min=1, max=1_000)),
    }
)


@dataclass(frozen=True, slots=True)
class CallerPermissions:
    """The people and agents whose turns a caller may list, and the people whose text they may read.

    Among people, None stands for unknown speakers.
    """

    readable_people: frozenset[str | None]
    # None means all.
    visible_people: frozenset[str | None] | None
    # None means all.
    visible_agent_ids: frozenset[str] | None

    def can_see(self, turn: TurnRecord) -> bool:
        """Return whether the turn may be listed."""
        is_theirs = self.visible_people is None or turn["person"] in self.visible_people
        return is_theirs and (self.visible_agent_ids is None or turn["agent"] in self.visible_agent_ids)


async def _async_list_turns(call: ServiceCall) -> ServiceResponse:
    if access.ATTR_FILENAME in call.data:
        return await _async_export_turns(call)
    rights = await async_get_permissions(call)
    most = call.data[access.ATTR_LIMIT]
    listing = build_list_query(call.data, rights)._replace(limit=most + 1, after=call.data.get("after"))
    async with open_usable_store(call.hass) as memory:
        found = await memory.async_read(
            lambda opened: RecordedTurns(opened.database).list_newest(listing), list[TurnRecord]()
        )
    shown, names = found[:most], await async_find_person_names(call.hass, [turn["person"] for turn in found[:most]])
    return {
        "turns": [format_turn(call.hass, turn, names) for turn in shown],
        "next_after": shown[-1]["turn_id"] if len(found) > most else None,
    }


async def _async_get_turn(call: ServiceCall) -> ServiceResponse:
    """Return a turn, with its text if the caller may read it: in working memory, always if they have spoken."""
    rights, wanted = await async_get_permissions(call), call.data["turn_id"]
    recent = next((each for each in list_recent_turns(call.hass, rights) if each.record["turn_id"] == wanted), None)
    turn = await _async_read_turn(call.hass, wanted, recent)
    if turn is None or not rights.can_see(turn):
        raise build_refusal("unknown_turn", turn=wanted)
    number = call.data.get("request")
    if number is not None and number > len(turn["attempts"]):
        raise build_refusal("unknown_request", turn=wanted, number=str(number))
    names = await async_find_person_names(call.hass, [turn["person"]])
    planned = _list_planned_tokens(turn, recent)
    return {
        **format_turn(call.hass, turn, names),
        "message": turn["message"],
        "waterfall": list[Any](turn["waterfall"]),
        "attempts": [
            {
                **{name: value for name, value in attempt.items() if name not in {"agent", "sent"}},
                "entity_id": find_agent_entity_id(call.hass, attempt["agent"]),
                "planned_tokens": tokens,
            }
            for attempt, tokens in zip(turn["attempts"], planned, strict=True)
        ],
        **_format_turn_text(turn, rights, number),
        "context": None if recent is None else _format_context(recent),
    }


def list_recent_turns(hass: HomeAssistant, rights: CallerPermissions) -> list[RecentTurn]:
    """Return the turns in working memory that the caller took part in, newest first."""
    return [
        each
        for each in async_find_recent_turns(hass)
        if each.record["person"] in rights.readable_people and rights.can_see(each.record)
    ]


def add_cost(turn: TurnRecord, recent: RecentTurn) -> TurnRecord:
    """Return the record of a turn in working memory, with its cost as far as that is known."""
    return turn if recent.cost is None else {**turn, "cost": recent.cost}


async def _async_read_turn(hass: HomeAssistant, turn_id: str, recent: RecentTurn | None) -> TurnRecord | None:
    if recent is not None:
        return add_cost(await hass.async_add_executor_job(recent.complete), recent)
    async with open_usable_store(hass) as memory:
        return await memory.async_read(lambda opened: RecordedTurns(opened.database).get_turn(turn_id), None)


def _list_planned_tokens(turn: TurnRecord, recent: RecentTurn | None) -> Sequence[int | None]:
    """Return the planned size of each request of a turn in tokens, or None if the request is not kept."""
    if recent is None or not recent.attempts:
        return (None,) * len(turn["attempts"])
    return [
        sum(each.tokens or 0 for each in attempt.request.messages) + attempt.model.budget.schema_tokens
        for attempt in recent.attempts
    ]


def _format_context(recent: RecentTurn) -> JsonObjectType:
    speaker, added = recent.speaker, recent.context
    return {
        "speaker": speaker.name,
        "language": speaker.language,
        "facts": added.facts.text if added.facts else "",
        "recalled": [*added.recalled.lines],
        "states": added.states,
    }


async def _async_export_turns(call: ServiceCall) -> ServiceResponse:
    listing = build_list_query(call.data, await async_get_permissions(call, needs_admin=True))
    async with open_usable_store(call.hass) as memory:
        path = await call.hass.async_add_executor_job(resolve_allowed_path, call.hass, call.data[access.ATTR_FILENAME])
        line_count = await memory.async_read(
            lambda opened: write_lines(path, RecordedTurns(opened.database).export(listing)), 0
        )
        return {"filename": str(path), "written": line_count}


async def async_get_permissions(call: ServiceCall, *, needs_admin: bool = False) -> CallerPermissions:
    """Return the permissions of an action's caller. Raises `Unauthorized` and `ServiceValidationError`.

    Users see their own turns and those of unknown speakers; administrators and automations see all turns. An action
    that a model calls as a tool sees only turns of the current user and of unknown speakers, without text, because
    several people may share the window that receives its response.
    """
    target = await access.async_resolve_person(call, POLICY_READ, needs_admin=needs_admin)
    user, own = await access.async_get_caller(call, POLICY_READ), call.context.user_id
    is_free = not is_in_turn()
    if target.is_named and target.person != own and not is_free:
        raise Unauthorized(context=call.context, permission=POLICY_READ)
    theirs: frozenset[str | None] = frozenset({own, None})
    people: frozenset[str | None] | None = theirs
    if target.is_named:
        people = frozenset({target.person})
    elif is_free and (user is None or user.is_admin):
        people = None
    return CallerPermissions(theirs if is_free else frozenset(), people, await _async_find_visible_agents(call, user))


async def _async_find_visible_agents(call: ServiceCall, user: User | None) -> frozenset[str] | None:
    """Return the ids of the agents that are the target, or of those that the caller may read, or None for all."""
    if access.has_target(call):
        return frozenset(agent.id for agent in (await access.async_resolve_agents(call, POLICY_READ)).values())
    if user is None or user.is_admin:
        return None
    return frozenset(
        each for each in async_agent_ids(call.hass) if access.find_permitted_entity(call.hass, user, each, POLICY_READ)
    )


def build_list_query(data: Mapping[str, Any], rights: CallerPermissions) -> TurnListQuery:
    """Return the query for the turns that the caller may see and that match all conditions of the action."""
    return TurnListQuery(
        since=data.get(access.ATTR_SINCE, -math.inf),
        until=data.get(access.ATTR_UNTIL, math.inf),
        people=rights.visible_people,
        agents=rights.visible_agent_ids,
        routes=frozenset({data["route"]}) if "route" in data else None,
        outcome=data.get("outcome"),
        tool=data.get("tool"),
        conversation_id=data.get(ATTR_CONVERSATION_ID),
    )


def _format_turn_text(turn: TurnRecord, rights: CallerPermissions, number: int | None) -> JsonObjectType:
    """Return the text of a turn, and the body of the request with this number, or the reason why there is no text."""
    if not turn["has_text"]:
        return {"text": "not_kept"}
    if turn["person"] not in rights.readable_people:
        return {"text": "private"}
    text: JsonObjectType = {
        "text": "shown",
        "said": turn["said"],
        "answer": turn["answer"],
        "tool_calls": [_format_tool_call(each) for each in turn["tool_calls"][:_MAX_TOOL_CALLS]],
    }
    if number is None:
        return text
    sent = turn["attempts"][number - 1].get("sent")
    return {**text, "sent": None if sent is None else _format_sent_request(sent)}


async def async_find_person_names(hass: HomeAssistant, user_ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of these users who have one, by user id."""
    people = [await async_find_person(hass, user_id) for user_id in set(user_ids)]
    return {person.id: person.name for person in people if person is not None and person.name}


def format_turn(hass: HomeAssistant, turn: TurnRecord, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the response for a turn, without its text. `names` are the names of people by user id."""
    return {
        **{name: value for name, value in turn.items() if name in _SHOWN_FIELDS},
        "time": access.format_iso_time(turn["time"]),
        "entity_id": find_agent_entity_id(hass, turn["agent"]),
        "person": names.get(turn["person"] or "", turn["person"]),
        "device": find_device_name(hass, turn["device"]),
        "automation": find_automation_name(hass, turn["automation"]),
        **name_asked_agents(hass, turn),
        "usage": {**NO_USAGE, **turn["usage"]},
        "cost": None if turn["cost"] is None else float(turn["cost"]),
    }


def _format_sent_request(sent: SentRequest) -> dict[str, Any]:
    """Return a request as it was sent: system prompt, tools, and as many of the newest messages as fit."""
    room = _MAX_REQUEST_CHARS - len(sent["system"]) - len(encode_json(sent["tools"]))
    messages: list[Any] = []
    for message in reversed(sent["messages"]):
        room -= len(encode_json(message))
        if room < 0:
            break
        messages.insert(0, message)
    return {**sent, "messages": messages, "omitted_messages": len(sent["messages"]) - len(messages)}


def _format_tool_call(call: ToolCallText) -> dict[str, Any]:
    text = encode_json(call["arguments"])
    arguments = call["arguments"] if len(text) <= _MAX_TEXT_CHARS else _truncate(text)
    return {**call, "arguments": arguments, "result": call["result"] and _truncate(call["result"])}


def find_device_name(hass: HomeAssistant, device: str | None) -> str | None:
    """Return the name of a device or of a satellite entity, or the id if it does not exist any more."""
    if device is None:
        return None
    if (state := hass.states.get(device)) is not None:
        return str(state.attributes.get(ATTR_FRIENDLY_NAME, device))
    found = dr.async_get(hass).async_get(device)
    return (found and (found.name_by_user or found.name)) or device


def find_automation_name(hass: HomeAssistant, entity_id: str | None) -> str | None:
    """Return the name of an automation or a script, or its entity id if it does not exist any more."""
    state = hass.states.get(entity_id) if entity_id else None
    return state.name if state is not None else entity_id


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + _ELLIPSIS


ACTIONS = (
    ("list_turns", _async_list_turns, _LIST_SCHEMA, SupportsResponse.OPTIONAL),
    ("get_turn", _async_get_turn, _GET_SCHEMA, SupportsResponse.ONLY),
)
