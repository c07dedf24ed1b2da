"""Commands that a model carried out: how often, for how much, and Home Assistant's own sentence for the same.

The record of turns has the figures. Text that it does not have comes from open conversations and memory, as far as the
caller may read these with the actions.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
import json
import time
from typing import Any

from hassil.expression import Group
from hassil.intents import IntentData, Intents, SlotList, TextSlotList, TextSlotValue
from hassil.sample import sample_expression
from homeassistant.components import conversation
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, State
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import intent
from homeassistant.util.json import JsonObjectType
import probatio

from ..agents.actions import access
from ..agents.actions.memory import open_usable_store
from ..agents.actions.turns import async_get_permissions
from ..agents.match_checker import QUESTION_INTENT_PARTS
from ..memory.core import Memory
from ..record import RecordedTurns, TurnListQuery, TurnRecord
from ..turn.names import clean_name
from ..turn.routing import MAX_COMMAND_CHARS, Route, RouteReason, has_no_required_word
from .turn_texts import TurnTexts, TurnWords, async_read_memory, async_read_windows

_DAYS = 28
_MAX_TURNS, _MAX_GROUPS, _MAX_SAMPLES = 1_000, 50, 12
# The arguments that select entities; all others are values.
_TARGET_SLOTS = {"name", "area", "floor", "domain", "device_class", "preferred_area_id", "preferred_floor_id"}


@dataclass(slots=True)
class _Command:
    """A command: its newest sentence, the tool, its arguments or None if they are unknown, and the figures."""

    said: str
    last: float
    tool: str
    arguments: Mapping[str, Any] | None
    count: int = 0
    # In US dollars, or None if no cost is known.
    cost: float | None = None


async def async_read_model_commands(call: ServiceCall) -> ServiceResponse:
    """Return the commands of the last weeks that a model carried out, the most frequent ones first."""
    since = time.time() - _DAYS * 24 * 60 * 60
    turns = await _async_read_turns(call, since)
    readable = TurnTexts(await async_read_windows(call, since), await async_read_memory(call, since))
    texts = readable.find(turns)
    acting = [each.intent_type for each in intent.async_get(call.hass)]
    acting = [name for name in acting if not any(part in name for part in QUESTION_INTENT_PARTS)]
    found: dict[tuple[str, str], _Command] = {}
    for turn in turns:
        if (text := texts.get(turn["turn_id"])) is not None:
            _count_turn(found, turn, text, frozenset(acting))
    frequent = sorted(found.values(), key=lambda each: (each.count, each.last), reverse=True)[:_MAX_GROUPS]
    load = getattr(async_get_agent(call.hass), "async_get_or_load_intents", None)
    loaded = await load(call.hass.config.language) if frequent and load else None
    return {"groups": [await _async_format(call.hass, each, loaded and loaded.intents) for each in frequent]}


async def _async_read_turns(call: ServiceCall, since: float) -> list[TurnRecord]:
    """Return the turns that a model answered and whose text the caller may read, with that text if it is recorded."""
    rights = await async_get_permissions(call)
    query = TurnListQuery(
        since=since,
        people=rights.readable_people,
        agents=rights.visible_agent_ids,
        routes=frozenset({Route.MODEL}),
        limit=_MAX_TURNS,
    )

    def read(memory: Memory) -> list[TurnRecord]:
        return [each for each in RecordedTurns(memory.database).list_newest(query, with_text=True) if each["tools"]]

    turns: list[TurnRecord] = []
    with suppress(HomeAssistantError):
        async with open_usable_store(call.hass) as store:
            turns = await store.async_read(read, turns)
    return [each for each in turns if each["reason"] != RouteReason.MODEL_ONLY]


def _count_turn(
    found: dict[tuple[str, str], _Command], turn: TurnRecord, text: TurnWords, acting: frozenset[str]
) -> None:
    """Add a turn to its command if a tool acted on the home. The newest turn comes first."""
    tools = [tool for each in turn["tools"] if (tool := _remove_namespace(each)) in acting]
    said = clean_name(text.said[:MAX_COMMAND_CHARS])
    if not tools or not any(char.isalnum() for char in said):
        return
    done = [dict(arguments) for name, arguments in text.calls if _remove_namespace(name) == tools[0]]
    # no sentence of Home Assistant's own does several things
    is_single = len(tools) == 1 and not turn["failed_tool_calls"] and all(each == done[0] for each in done)
    arguments = done[0] if done and is_single else None
    words = " ".join("".join(char if char.isalnum() else " " for char in said.casefold()).split())
    key = words if arguments is None else json.dumps(arguments, sort_keys=True).casefold()
    command = found.setdefault((tools[0], key), _Command(said, turn["time"], tools[0], arguments))
    command.count += 1
    if turn["cost"] is not None:
        command.cost = (command.cost or 0.0) + float(turn["cost"])


def _remove_namespace(tool: str) -> str:
    return tool.rpartition("__")[2]


async def _async_format(hass: HomeAssistant, command: _Command, intents: Intents | None) -> JsonObjectType:
    """Return the response for a command, with a sentence of these intents if there is one."""
    arguments = command.arguments or {}
    state, sentence = _find_entity(hass, arguments), None
    if intents is not None and command.arguments is not None and (state is not None or not arguments.get("name")):
        sentence = await hass.async_add_executor_job(partial(_sample_sentence, intents, command, state))
    return {
        "said": command.said,
        "count": command.count,
        "cost": command.cost,
        "last": access.format_iso_time(command.last),
        "tool": command.tool,
        "target": None if state is None else {"entity_id": state.entity_id, "name": state.name},
        "sentence": sentence,
    }


def _find_entity(hass: HomeAssistant, arguments: Mapping[str, Any]) -> State | None:
    """Return the exposed entity that a tool call names, or None."""
    named = {slot: value for slot, value in arguments.items() if isinstance(value, str) and value}
    if "name" not in named:
        return None
    constraints = intent.MatchTargetsConstraints(
        name=named["name"], area_name=named.get("area"), floor_name=named.get("floor"), assistant=conversation.DOMAIN
    )
    found = intent.async_match_targets(hass, constraints)
    return found.states[0] if found.is_match and len(found.states) == 1 else None


def _sample_sentence(intents: Intents, command: _Command, state: State | None) -> str | None:
    """Return the sentence for the same call that shares the most words with the user's, or None."""
    arguments, found = command.arguments or {}, intents.intents.get(command.tool)
    places = {"name": state.name} if state else {each: arguments.get(each) for each in ("name", "area", "floor")}
    values = {name: value for name, value in arguments.items() if name not in _TARGET_SLOTS}
    texts = {name: str(value) for name, value in {**places, **values}.items() if value not in (None, "")}
    sentences = {
        " ".join(each.split())
        for data in (found.data if found else ())
        if _fits(data, arguments, state)
        for each in _iter_samples(intents, data, texts)
    }
    words = set(command.said.casefold().split())

    def rank(sentence: str) -> tuple[int, bool, int, str]:
        """A whole sentence is better than a name with a word after it."""
        shared = words & set(sentence.casefold().split())
        return -len(shared), sentence.startswith(texts.get("name", "\n")), len(sentence), sentence

    return min(sentences, key=rank, default=None)


def _fits(data: IntentData, arguments: Mapping[str, Any], state: State | None) -> bool:
    """Return whether sentences are about the domain of the entity, or else about the same kind of entities."""
    if state is not None:
        domains = _list_texts(data.requires_context.get("domain"))
        return not domains or state.domain in domains
    kinds = ("domain", "device_class")
    return all(_list_texts(data.slots.get(kind)) == _list_texts(arguments.get(kind)) for kind in kinds)


def _list_texts(value: object) -> set[str]:
    """Return the texts in a value that is a text or a list of texts."""
    values = value if isinstance(value, list | tuple) else [value]
    return {each for each in values if isinstance(each, str)}


def _iter_samples(intents: Intents, data: IntentData, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences from the templates that contain exactly the given slots, and nothing optional."""
    rules = {**intents.expansion_rules, **data.expansion_rules}
    slot_lists = {**intents.slot_lists, **data.slot_lists}
    for template in data.sentences:
        if not isinstance(template.expression, Group) or has_no_required_word(template.text or ""):
            continue
        references = list(template.expression.list_references(rules))
        if {each.slot_name for each in references} | (data.slots.keys() - _TARGET_SLOTS) != texts.keys():
            continue
        lists = {
            each.list_name: _list_one(slot_lists.get(each.list_name), texts[each.slot_name]) for each in references
        }
        samples = sample_expression(template.expression, lists, rules, intents.language, skip_optionals=True)
        yield from islice(samples, _MAX_SAMPLES)


def _list_one(slot_list: SlotList | None, value: str) -> SlotList:
    """Return a list with nothing but the words for one value."""
    values = slot_list.values if isinstance(slot_list, TextSlotList) else []
    words = [each for each in values if str(each.value_out).strip().casefold() == value.strip().casefold()]
    return TextSlotList(None, words[:1] or [TextSlotValue.from_tuple((value, value), allow_template=False)])


COMMANDS = (("model_commands", async_read_model_commands, probatio.Schema({})),)
