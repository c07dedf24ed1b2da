"""The caller's facts and suggestions, the caller's satellites, and the times for which agents keep data."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
import math

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
from ..memory.core import Fact, FactTelling, Memory, Replacement
from ..memory.turn.recall import format_source_id
from ..memory.turn.speaker import Speaker
from ..memory.turn.suggestions import Decision, decide_suggestions, find_told_facts, list_suggestions

# The most facts of the home. Callers get all of their own facts.
_MAX_HOME_FACTS = 500

# The newest suggestions. The others follow once these are decided.
_MAX_SUGGESTIONS = 30

_UNTOLD = FactTelling(is_shared=True, conversation=None)


async def async_read_about_me(call: ServiceCall) -> ServiceResponse:
    """Return the caller's facts and suggestions, the home's facts, the caller's satellites, and agents' retention.

    An automation and a turn get nothing that is private.
    """
    target = await access.async_resolve_person(call, POLICY_READ)
    agents = await access.async_resolve_agents(call, POLICY_READ)
    async with open_usable_store(call.hass) as memory:
        nothing = list[Fact](), dict[int, FactTelling](), list[Replacement]()
        facts, tellings, replacements = await memory.async_read(partial(_read_facts, target), nothing)
        read = partial(_read_suggestions, _build_speaker(call.hass, target))
        suggestions = await memory.async_read(read, list[JsonValueType]())
    formatter = _FactFormatter(
        target,
        tellings,
        _find_last_uses(agents, call),
        _collect_profile_sources(agents, target.person),
        {each.id: each.replaced_text for each in reversed(replacements)},
    )
    homes = [fact for fact in facts if fact.person is None]
    own = [fact for fact in facts if fact.person is not None and fact.turn is None]
    return {
        "person": None if target.person is None else {"id": target.person, "name": target.name},
        "suggestions": suggestions,
        "facts": [formatter.format_fact(fact) for fact in (*own, *homes[:_MAX_HOME_FACTS])],
        "home_facts_total": len(homes),
        "devices": _list_devices(call.hass, target.person) if target.can_see_private else [],
        "retention": [_format_retention(entity_id, agent) for entity_id, agent in agents.items()],
    }


def _read_facts(
    target: access.PersonTarget, memory: Memory
) -> tuple[list[Fact], dict[int, FactTelling], list[Replacement]]:
    """Return the facts that the caller may see, their tellings if the caller may see them, and their replacements."""
    facts = memory.get_facts(target.person, private=target.can_see_private)
    tellings = memory.get_tellings(target.person) if target.can_see_private else {}
    return facts, tellings, memory.get_replacements(target.person, private=target.can_see_private)


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


def _find_last_uses(agents: dict[str, Agent], call: ServiceCall) -> dict[str, float]:
    """Return when each memory was last sent in a conversation that the caller may see, by its source id.

    Conversations that are not in memory are not read from disk for this.
    """
    last_uses: dict[str, float] = {}
    for _, _, agent, key, _ in access.list_visible_windows(agents, call):
        window = agent.windows.get_loaded(key)
        for exchange in window.exchanges() if window is not None else ():
            for source in exchange.sources:
                last_uses[source] = max(last_uses.get(source, -math.inf), exchange.messages[0].created or -math.inf)
    return last_uses


def _collect_profile_sources(agents: dict[str, Agent], person: str | None) -> frozenset[str]:
    """Return the source ids of the facts in the profiles that agents send to this person or to everybody."""
    return frozenset(
        source
        for agent in agents.values()
        for (owner, _, _), (_, profile) in agent.profiles.items()
        if owner in {None, person}
        for source in profile.source_ids
    )


@dataclass(frozen=True, slots=True)
class _FactFormatter:
    """Formats facts for a caller, with their tellings by id, the times of their last uses, and the profiles' facts.

    `replaced_texts` are the texts that can be brought back, by the ids of the facts that replaced them.
    """

    target: access.PersonTarget
    tellings: Mapping[int, FactTelling]
    last_uses: Mapping[str, float]
    profile_sources: frozenset[str]
    replaced_texts: Mapping[int, str]

    def format_fact(self, fact: Fact) -> JsonObjectType:
        """Return the response for a fact. The words of another person who told a fact of the home are left out."""
        source_id, telling = format_source_id("fact", fact.id), self.tellings.get(fact.id, _UNTOLD)
        may_quote = self.target.can_see_private and (fact.person is not None or not telling.is_shared)
        last_use = self.last_uses.get(source_id)
        return {
            "id": source_id,
            "text": fact.text,
            "time": access.format_iso_time(fact.at),
            "person": None if fact.person is None else self.target.name or fact.person,
            "private": fact.private,
            "confirmed": access.format_iso_time(fact.confirmed),
            "tellings": fact.tellings,
            "source": fact.source,
            "quote": fact.quote if may_quote else "",
            "conversation_id": telling.conversation,
            "last_used": None if last_use is None else access.format_iso_time(last_use),
            "in_profile": source_id in self.profile_sources,
            "replaced": self.replaced_texts.get(fact.id, ""),
        }


def _list_devices(hass: HomeAssistant, person: str | None) -> list[JsonValueType]:
    owned = [device for device, owner in async_get_device_owners(hass).items() if owner == person]
    return [{"id": device, "name": find_device_name(hass, device)} for device in owned]


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


async def async_correct_fact(call: ServiceCall) -> ServiceResponse:
    """Replace the text of a fact that the caller may see, and return the id of the new fact.

    Its owner and its listeners stay the same. The old text is no longer found, as after a correction by voice.
    """
    target = await access.async_resolve_person(call, POLICY_CONTROL)
    _, row = call.data["fact"]
    async with open_usable_store(call.hass) as memory:
        corrected = await memory.async_change(partial(_replace_text, target, row, call.data["text"]))
    if corrected is None:
        raise build_refusal("unknown_fact", id=format_source_id("fact", row))
    return {"id": format_source_id("fact", corrected)}


def _replace_text(target: access.PersonTarget, row: int, text: str, memory: Memory) -> int | None:
    """Return the id of the fact with the new text, or None if the caller may not see the old one."""
    for fact in memory.get_facts(target.person, private=target.can_see_private):
        if fact.id == row:
            return memory.add_fact(
                text, person=fact.person, private=fact.private, source="action", replaces=row, teller=target.person
            )
    return None


async def async_bring_back_fact(call: ServiceCall) -> ServiceResponse:
    """Make the fact current again that a fact which the caller may see replaced in the last day. Return its id."""
    target = await access.async_resolve_person(call, POLICY_CONTROL)
    _, row = call.data["fact"]
    async with open_usable_store(call.hass) as memory:
        restored = await memory.async_change(partial(_undo_replacement, target, row))
    if restored is None:
        raise build_refusal("unknown_fact", id=format_source_id("fact", row))
    return {"id": format_source_id("fact", restored)}


def _undo_replacement(target: access.PersonTarget, row: int, memory: Memory) -> int | None:
    for each in memory.get_replacements(target.person, private=target.can_see_private):
        if each.id == row:
            return each.replaced_id if memory.undo_replacement(each) else None
    return None


async def async_decide_suggestion(call: ServiceCall) -> ServiceResponse:
    """Keep a suggestion of the caller's, for them or for everybody, or delete it."""
    target = await access.async_resolve_person(call, POLICY_CONTROL)
    _, row = call.data["fact"]
    decide = partial(decide_suggestions, rows=(row,), decision=Decision(call.data["decision"]))
    speaker = _build_speaker(call.hass, target)
    async with open_usable_store(call.hass) as memory:
        decided = await memory.async_change(lambda opened: decide(opened, speaker))
    if decided is None:
        raise build_refusal("unknown_fact", id=format_source_id("fact", row))
    return {}


_CORRECT_SCHEMA = probatio.Schema(
    {probatio.Required("fact"): parse_memory_id, probatio.Required("text"): validate_fact}
)

COMMANDS = (
    ("about_me", async_read_about_me, probatio.Schema({})),
    ("correct_fact", async_correct_fact, _CORRECT_SCHEMA),
    ("bring_back_fact", async_bring_back_fact, probatio.Schema({probatio.Required("fact"): parse_memory_id})),
    (
        "decide_suggestion",
        async_decide_suggestion,
        probatio.Schema(
            {probatio.Required("fact"): parse_memory_id, probatio.Required("decision"): probatio.In([*Decision])}
        ),
    ),
)
