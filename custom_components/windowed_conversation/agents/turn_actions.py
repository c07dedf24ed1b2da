"""The actions on the record of turns: list, look into one, export."""

from collections.abc import Iterable, Iterator, Mapping
import json
import math
from typing import Any

from homeassistant.core import ServiceCall, ServiceResponse
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
from ..bridge.turn_response import (
    async_names,
    attempts_response,
    sent_response,
    turn_response,
    words_response,
)
from ..memory import Memory, TurnListing, TurnRecord
from .memory_actions import usable_memory
from .memory_rights import memory_error
from .turn_rights import Reader, async_reader

_ERRORS = {key: name for name, key in ERROR_KEYS.items()}


async def async_list_turns(call: ServiceCall) -> ServiceResponse:
    """Return the figures of turns, newest first, a page of them."""
    reader = await async_reader(call)
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
    reader, wanted = await async_reader(call), call.data[ATTR_TURN_ID]
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
    listing = _listing(call.data, await async_reader(call, is_for_trusted=True))
    async with usable_memory(call.hass) as memory:
        path = await call.hass.async_add_executor_job(checked_path, call.hass, call.data[ATTR_FILENAME])

        def export(opened: Memory) -> int:
            written = list[bool]()
            write_lines(path, _counted(opened.record.export(listing), written))
            return len(written)

        return {"written": await memory.async_read(export, 0)}


def _listing(asked: Mapping[str, Any], reader: Reader) -> TurnListing:
    """Return which turns are meant: of those that the caller sees, those that meet all of the conditions."""
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


def _words(turn: TurnRecord, reader: Reader, number: int | None) -> JsonObjectType:
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
