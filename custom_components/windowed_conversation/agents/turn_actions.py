"""The actions on the record of turns: list, look into one, export; and whose figures and words their caller gets."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
import json
import math
from typing import Any

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers import entity_registry as er
from homeassistant.util.json import JsonObjectType

from ..bridge.action_schemas import ATTR_CONVERSATION_ID, ATTR_LIMIT
from ..bridge.errors import ERROR_KEYS
from ..bridge.memory_action_schemas import ATTR_FILENAME, ATTR_SINCE, ATTR_UNTIL
from ..bridge.memory_files import checked_path, write_lines
from ..bridge.turn_action_schemas import (
    ATTR_AFTER,
    ATTR_ERROR,
    ATTR_OUTCOME,
    ATTR_REQUEST,
    ATTR_ROUTE,
    ATTR_TOOL,
    ATTR_TURN_ID,
)
from ..bridge.turn_response import async_names, attempts_response, sent_response, turn_response, words_response
from ..const import DOMAIN
from ..memory import Memory, TurnListing, TurnRecord
from ..window import is_in_turn
from .access import async_caller, async_readable_agent
from .lookup import async_agent_ids
from .memory_actions import usable_memory
from .memory_rights import async_whose, memory_error

_ERRORS = {key: name for name, key in ERROR_KEYS.items()}


@dataclass(frozen=True, slots=True)
class _Reader:
    """The caller of an action on the record.

    They see the figures of the turns of `people`, None among them for unknown speakers, with `agents`; None stands for
    all. They read the words in the turns of `readable`, with None for unknown speakers.
    """

    readable: frozenset[str | None]
    people: frozenset[str | None] | None
    agents: frozenset[str] | None

    def sees(self, turn: TurnRecord) -> bool:
        """Return whether they see the figures of a turn."""
        is_theirs = self.people is None or turn.person in self.people
        return is_theirs and (self.agents is None or turn.agent in self.agents)

    def reads(self, turn: TurnRecord) -> bool:
        """Return whether they also read its words."""
        return self.sees(turn) and turn.person in self.readable


async def async_list_turns(call: ServiceCall) -> ServiceResponse:
    """Return the figures of turns, newest first, a page of them."""
    reader = await _async_reader(call)
    most = call.data[ATTR_LIMIT]
    listing = _listing(call.data, reader)._replace(limit=most + 1, after=call.data.get(ATTR_AFTER))
    async with usable_memory(call.hass) as memory:
        found = await memory.async_read(lambda opened: opened.record.newest(listing), list[TurnRecord]())
    shown, names = found[:most], await async_names(call.hass, found[:most])
    return {
        "turns": [turn_response(call.hass, turn, names) for turn in shown],
        "next_after": shown[-1].id if len(found) > most else None,
    }


async def async_get_turn(call: ServiceCall) -> ServiceResponse:
    """Return one turn: its figures, those of its requests, and its words if they are kept and the caller's to read."""
    reader, wanted = await _async_reader(call), call.data[ATTR_TURN_ID]
    async with usable_memory(call.hass) as memory:
        turn = await memory.async_read(lambda opened: opened.record.get(wanted), None)
    if turn is None or not reader.sees(turn):
        raise memory_error("unknown_turn", turn=wanted)
    names = await async_names(call.hass, [turn])
    return {
        **turn_response(call.hass, turn, names),
        "message": turn.message,
        "attempts": [*attempts_response(call.hass, turn)],
        **_words(turn, reader, call.data.get(ATTR_REQUEST)),
    }


async def async_export_turns(call: ServiceCall) -> ServiceResponse:
    """Write turns to a file, with all of their words, and return how many."""
    listing = _listing(call.data, await _async_reader(call, is_for_trusted=True))
    async with usable_memory(call.hass) as memory:
        path = await call.hass.async_add_executor_job(checked_path, call.hass, call.data[ATTR_FILENAME])

        def export(opened: Memory) -> int:
            written = list[bool]()
            write_lines(path, _counted(opened.record.export(listing), written))
            return len(written)

        return {"written": await memory.async_read(export, 0)}


async def _async_reader(call: ServiceCall, *, is_for_trusted: bool = False) -> _Reader:
    """Return the reader whose rights limit an action; raises `Unauthorized` and `ServiceValidationError`.

    People see their own turns and those of unknown speakers, administrators and automations everybody's. An action
    that a model has started as a tool sees nobody else's figures, and no words: people may share the window of its
    response.
    """
    whose = await async_whose(call, POLICY_READ, is_for_trusted=is_for_trusted)
    user, own = await async_caller(call, POLICY_READ), call.context.user_id
    is_free = not is_in_turn()
    if whose.is_named and whose.person != own and not is_free:
        raise Unauthorized(context=call.context, permission=POLICY_READ)
    theirs: frozenset[str | None] = frozenset({own, None})
    people: frozenset[str | None] | None = theirs
    if whose.is_named:
        people = frozenset({whose.person})
    elif is_free and (user is None or user.is_admin):
        people = None
    return _Reader(theirs if is_free else frozenset(), people, await _async_agents(call, user))


async def _async_agents(call: ServiceCall, user: User | None) -> frozenset[str] | None:
    """Return the agent that the action names, or those that its caller may read, None for all of them."""
    if ATTR_ENTITY_ID in call.data:
        return frozenset({(await async_readable_agent(call)).id})
    if user is None or user.is_admin:
        return None
    return frozenset(each for each in async_agent_ids(call.hass) if _may_read(call.hass, user, each))


def _may_read(hass: HomeAssistant, user: User, agent: str) -> bool:
    entity_id = er.async_get(hass).async_get_entity_id(CONVERSATION_DOMAIN, DOMAIN, agent)
    return entity_id is not None and user.permissions.check_entity(entity_id, POLICY_READ)


def _listing(asked: Mapping[str, Any], reader: _Reader) -> TurnListing:
    """Return the listing of the turns that the caller sees and that meet all of the conditions."""
    return TurnListing(
        since=asked.get(ATTR_SINCE, -math.inf),
        until=asked.get(ATTR_UNTIL, math.inf),
        people=reader.people,
        agents=reader.agents,
        route=asked.get(ATTR_ROUTE),
        end=asked.get(ATTR_OUTCOME),
        error=_ERRORS[asked[ATTR_ERROR]] if ATTR_ERROR in asked else None,
        tool=asked.get(ATTR_TOOL),
        conversation=asked.get(ATTR_CONVERSATION_ID),
    )


def _words(turn: TurnRecord, reader: _Reader, number: int | None) -> JsonObjectType:
    """Return the words of a turn, and a request as it was sent if its number is given; why there are none if not."""
    if turn.words is None:
        return {"words": "not_kept"}
    if not reader.reads(turn):
        return {"words": "private"}
    words: JsonObjectType = {"words": "shown", **words_response(turn.words)}
    if number is None:
        return words
    if number > len(turn.requests):
        raise memory_error("unknown_request", turn=turn.id, number=str(number))
    sent = turn.requests[number - 1].sent
    return {**words, "sent": None if sent is None else sent_response(sent)}


def _counted(lines: Iterable[str], turns: list[bool]) -> Iterator[str]:
    """Yield lines, and note each that is a turn."""
    for line in lines:
        if json.loads(line)["kind"] == "turn_record":
            turns.append(True)
        yield line
