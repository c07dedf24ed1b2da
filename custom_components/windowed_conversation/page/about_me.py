"""The caller's facts and suggestions, the caller's satellites, and the times for which agents keep data."""

from collections.abc import Callable
from functools import partial
import math
from typing import Any

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ..agents.actions import access
from ..agents.actions.memory import open_usable_store, parse_memory_id, validate_fact
from ..agents.actions.turns import find_device_name
from ..agents.agent import Agent
from ..agents.config import get_memory_days
from ..agents.store import RECORD_TEXT_DAYS
from ..bridge.errors import build_refusal
from ..bridge.persons import async_get_device_owners
from ..const import RecordLevel
from ..memory.core import Memory
from ..memory.turn.recall import format_source_id
from ..memory.turn.speaker import Speaker
from ..memory.turn.suggestions import Decision, decide_suggestions, find_told_facts, list_suggestions

# The most facts of the home. Callers get all of their own facts.
_MAX_HOME_FACTS = 500

# The newest suggestions. The others follow once these are decided.
_MAX_SUGGESTIONS = 30


async def _async_read_about_me(call: ServiceCall) -> ServiceResponse:
    """Return the caller's facts and suggestions, the home's facts, the caller's satellites, and agents' retention.

    An automation and a turn get nothing that is private.
    """
    target = await access.async_resolve_person(call, POLICY_READ)
    agents = await access.async_resolve_agents(call, POLICY_READ)
    async with open_usable_store(call.hass) as memory:
        facts, home_count = await memory.async_read(partial(_read_facts, target), (list[dict[str, Any]](), 0))
        read = partial(_read_suggestions, _build_speaker(call.hass, target))
        suggestions = await memory.async_read(read, list[JsonValueType]())
    last_uses = _find_last_uses(agents, call)
    in_profile = {
        source
        for agent in agents.values()
        for (owner, _, _), (_, profile) in agent.profiles.items()
        if owner in {None, target.person}
        for source in profile.source_ids
    }
    return {
        "person": None if target.person is None else {"id": target.person, "name": target.name},
        "suggestions": suggestions,
        "facts": [
            {**fact, "last_used": last_uses.get(fact["id"]), "in_profile": fact["id"] in in_profile} for fact in facts
        ],
        "home_facts_total": home_count,
        "devices": [
            {"id": device, "name": find_device_name(call.hass, device)}
            for device, owner in async_get_device_owners(call.hass).items()
            if owner == target.person and target.can_see_private
        ],
        "retention": [_format_retention(entity_id, agent) for entity_id, agent in agents.items()],
    }


def _read_facts(target: access.PersonTarget, memory: Memory) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of the facts that the caller may see, their own first, and the number of the home's facts."""
    may_see = target.can_see_private
    facts = memory.get_facts(target.person, private=may_see)
    homes = [fact for fact in facts if fact.person is None]
    own = [fact for fact in facts if fact.person is not None and fact.turn is None]
    quotable = memory.get_unshared_facts(target.person) if may_see else frozenset()
    replacements = memory.get_replacements(target.person, private=may_see)
    replaced_texts = {each.id: each.replaced_text for each in reversed(replacements)}
    rows = [
        {
            "id": format_source_id("fact", fact.id),
            "text": fact.text,
            "time": access.format_iso_time(fact.at),
            "person": None if fact.person is None else target.name or fact.person,
            "private": fact.private,
            "confirmed": access.format_iso_time(fact.confirmed),
            "tellings": fact.tellings,
            "source": fact.source,
            # not the words of another person who told a fact of the home
            "quote": fact.quote if may_see and (fact.person is not None or fact.id in quotable) else "",
            "replaced": replaced_texts.get(fact.id, ""),
        }
        for fact in (*own, *homes[:_MAX_HOME_FACTS])
    ]
    return rows, len(homes)


def _build_speaker(hass: HomeAssistant, target: access.PersonTarget) -> Speaker:
    """Return the caller as a speaker: an unknown one in a turn or an automation, which get no suggestions."""
    person = target.person if target.can_see_private else None
    return Speaker("", hass.config.language, person, target.name, is_alone=True)


def _read_suggestions(speaker: Speaker, memory: Memory) -> list[JsonValueType]:
    return [
        {
            "id": format_source_id("fact", fact.id),
            "text": fact.text,
            "time": access.format_iso_time(fact.at),
            "quote": fact.quote,
            "replaces": next((old.text for old in find_told_facts(memory, speaker, fact)), ""),
        }
        for fact in list_suggestions(memory, speaker)[:_MAX_SUGGESTIONS]
    ]


def _find_last_uses(agents: dict[str, Agent], call: ServiceCall) -> dict[str, str | None]:
    """Return when each memory was last sent in a conversation that the caller may see, by its source id.

    Conversations that are not in memory are not read from disk for this.
    """
    last_uses: dict[str, float] = {}
    for _, _, agent, key, _ in access.list_visible_windows(agents, call):
        window = agent.windows.get_loaded(key)
        for exchange in window.exchanges() if window is not None else ():
            for source in exchange.sources:
                last_uses[source] = max(last_uses.get(source, -math.inf), exchange.messages[0].created or -math.inf)
    return {source: access.format_iso_time(at) for source, at in last_uses.items()}


def _format_retention(entity_id: str, agent: Agent) -> JsonObjectType:
    """Return the days for which an agent keeps each kind of data: 0 for data that is not recorded."""
    config, days = agent.config, get_memory_days(agent.entry)
    return {
        "entity_id": entity_id,
        "name": config.name,
        "memory": config.memory,
        "memory_days": days,
        "record": config.record,
        "record_text_days": min(RECORD_TEXT_DAYS, days) if config.record is RecordLevel.FULL else 0,
        "record_days": 0 if config.record is RecordLevel.OFF else days,
        "persistence": config.persistence,
    }


type _Change = Callable[[access.PersonTarget, int, ServiceCall, Memory], int | None]


async def _async_change_fact(change: _Change, call: ServiceCall) -> ServiceResponse:
    """Change the fact that the caller names, and return the id of the result. Refuses if they may not see it."""
    target = await access.async_resolve_person(call, POLICY_CONTROL)
    _, row = call.data["fact"]
    async with open_usable_store(call.hass) as memory:
        changed = await memory.async_change(partial(change, target, row, call))
    if changed is None:
        raise build_refusal("unknown_fact", id=format_source_id("fact", row))
    return {"id": format_source_id("fact", changed)}


def _replace_text(target: access.PersonTarget, row: int, call: ServiceCall, memory: Memory) -> int | None:
    """Replace the text of a fact. Its owner and its listeners stay the same. The old text is no longer found."""
    for fact in memory.get_facts(target.person, private=target.can_see_private):
        if fact.id == row:
            text, owner, teller = call.data["text"], fact.person, target.person
            return memory.add_fact(
                text, person=owner, private=fact.private, source="action", replaces=row, teller=teller
            )
    return None


def _bring_back(target: access.PersonTarget, row: int, _call: ServiceCall, memory: Memory) -> int | None:
    """Bring back the fact that this one replaced in the last day."""
    for each in memory.get_replacements(target.person, private=target.can_see_private):
        if each.id == row:
            return each.replaced_id if memory.undo_replacement(each) else None
    return None


def _decide(target: access.PersonTarget, row: int, call: ServiceCall, memory: Memory) -> int | None:
    """Keep a suggestion of the caller's, for them or for everybody, or delete it."""
    decided = decide_suggestions(memory, _build_speaker(call.hass, target), (row,), Decision(call.data["decision"]))
    return None if decided is None else row


_FACT_FIELD = {probatio.Required("fact"): parse_memory_id}

_TEXT_FIELD = {probatio.Required("text"): validate_fact}
_DECISION_FIELD = {probatio.Required("decision"): probatio.In([*Decision])}

COMMANDS = (
    ("about_me", _async_read_about_me, probatio.Schema({})),
    ("correct_fact", partial(_async_change_fact, _replace_text), probatio.Schema(_FACT_FIELD | _TEXT_FIELD)),
    ("bring_back_fact", partial(_async_change_fact, _bring_back), probatio.Schema(_FACT_FIELD)),
    ("decide_suggestion", partial(_async_change_fact, _decide), probatio.Schema(_FACT_FIELD | _DECISION_FIELD)),
)
