"""Search words for facts, and earlier facts that new ones replace: requests to a model in the background."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
import logging
import time
from weakref import WeakKeyDictionary

from homeassistant.core import HassJob, callback
from homeassistant.helpers.event import async_call_later

from ...bridge.errors import log_fault
from ...bridge.turn_report import EVENT_REPLACED, async_fire_agent_event
from ...memory.bridge.tools import async_get_home_languages
from ...memory.core import Fact, Memory, MemoryUnavailable, base_language
from ...memory.turn.recall import format_source_id
from ...memory.turn.remember_requests import find_earlier_facts
from ...providers import ProviderError
from ...turn.errors import TurnError
from ...turn.model import Model, Question
from ...turn.routing import RoutingMode
from ..agent import Agent, async_find_agent
from ..conversation_turn import ConversationTurn
from ..record import record_background
from ..store import AgentStore, async_get_store
from .requests import FactNotes, OpenFact, ask_for_search_words

_LOGGER = logging.getLogger(__name__)

# In seconds. An agent is idle if no turn follows for this long.
_IDLE_SECONDS = 10.0
_MAX_FACTS = 20
_MAX_SPOKEN_LANGUAGES = 4
# In seconds. Facts that are older replace nothing, because that could not be undone.
_MAX_AGE_SECONDS = 86_400.0


@dataclass(slots=True)
class _Backlog:
    """The work that an agent has left: the people whose facts may have no search words, with their languages."""

    people: dict[str | None, str] = field(default_factory=dict)
    # By person, the number of changes of memory up to which every fact was looked at.
    changes_by_person: dict[str | None, int] = field(default_factory=dict)
    # In seconds on the monotonic clock, the time from which the agent is idle.
    idle_at: float = 0.0
    # The ids of the facts that were compared with earlier ones.
    compared_ids: set[int] = field(default_factory=set)
    # Whether a timer or a request is running, which then takes all people.
    is_scheduled: bool = False


_backlogs: WeakKeyDictionary[Agent, _Backlog] = WeakKeyDictionary()


def schedule_search_words(agent: Agent, turn: ConversationTurn) -> None:
    """Ask the agent's model for missing search words once it is idle, if facts may have been added."""
    store = async_get_store(agent.hass)
    if store is None or agent.model is None or agent.config.routing is RoutingMode.LOCAL_ONLY:
        return
    spoken = (*store.spoken_languages, base_language(turn.speaker.language))
    store.spoken_languages = tuple(dict.fromkeys(spoken))[:_MAX_SPOKEN_LANGUAGES]
    if not agent.config.memory:
        return
    # a private fact is sent only to a model that its owner talks to
    backlog, person = _backlogs.setdefault(agent, _Backlog()), turn.speaker.person
    if backlog.changes_by_person.get(person) == store.changes:
        return
    backlog.people[person] = turn.speaker.language
    backlog.idle_at = time.monotonic() + _IDLE_SECONDS
    if not backlog.is_scheduled:
        backlog.is_scheduled = True
        _request_when_idle(agent, agent.model, store)


@callback
def _request_when_idle(agent: Agent, model: Model, store: AgentStore, _now: datetime | None = None) -> None:
    seconds = _backlogs[agent].idle_at - time.monotonic()
    if seconds > 0:
        work = partial(_request_when_idle, agent, model, store)
        async_call_later(agent.hass, seconds, HassJob(work, "search words", cancel_on_shutdown=True))
    elif async_find_agent(agent.hass, agent.id) is agent:
        request = _async_request_for_people(agent, model, store)
        agent.entry.async_create_background_task(agent.hass, request, "search words")


async def _async_request_for_people(agent: Agent, model: Model, store: AgentStore) -> None:
    backlog = _backlogs[agent]
    try:
        while backlog.people and not model.pause.remaining_seconds:
            person, language = backlog.people.popitem()
            backlog.changes_by_person[person] = store.changes
            if await _async_request_for_facts(agent, model, store, person, language):
                backlog.changes_by_person[person] = store.changes
    finally:
        backlog.is_scheduled = False


async def _async_request_for_facts(
    agent: Agent, model: Model, store: AgentStore, person: str | None, language: str
) -> bool:
    """Request search words for a person's facts. Return whether none is left that was not asked about."""
    compared = _backlogs[agent].compared_ids
    find = partial(_find_open_facts, person=person, language=language, compared=frozenset(compared))
    try:
        facts = await store.async_read(find, dict[Fact, OpenFact]())
        if facts:
            question = Question(model, "", "", (), "", is_background=True)
            languages = async_get_home_languages(agent.hass, store.spoken_languages)
            with record_background(agent, route="search_words") as requests:
                notes = await ask_for_search_words(
                    question, [*facts.values()], languages, agent.config.turn_timeout, requests.attempts.append
                )
            # a fact without an answer gets no words, so that no later request repeats it
            notes_by_fact = {fact: notes.get(place, FactNotes()) for place, fact in enumerate(facts)}
            compared.update(fact.id for fact in facts)
            for row in await store.async_change(partial(_store_notes, notes_by_fact)):
                async_fire_agent_event(agent.hass, EVENT_REPLACED, agent.id, fact=format_source_id("fact", row))
        return len(facts) < _MAX_FACTS
    except (MemoryUnavailable, ProviderError, TurnError) as err:
        _LOGGER.info("No search words from %s: %s", agent.config.name, type(err).__name__)
    except Exception as err:  # noqa: BLE001 - a fault costs nothing but the search words
        log_fault(_LOGGER, "A request for search words failed in an unexpected way", err)
    return False


def _find_open_facts(
    memory: Memory, person: str | None, language: str, compared: Collection[int]
) -> dict[Fact, OpenFact]:
    """Return facts without search words, and new ones that may replace an earlier fact of the same owner."""
    found: dict[Fact, OpenFact] = {}
    since = time.time() - _MAX_AGE_SECONDS
    for fact in memory.get_facts(person):
        is_new = fact.at > since and fact.id not in compared and (fact.search_words is None or fact.source == "tool")
        earlier = find_earlier_facts(memory, fact, language) if is_new else ()
        if fact.search_words is None or earlier:
            found[fact] = OpenFact(fact.text, {each.id: each.text for each in earlier})
        if len(found) == _MAX_FACTS:
            break
    return found


def _store_notes(notes_by_fact: Mapping[Fact, FactNotes], memory: Memory) -> list[int]:
    """Store the search words of facts that had none. Return the ids of the facts that replaced another one."""
    memory.set_search_words(
        {fact.id: notes.search_words for fact, notes in notes_by_fact.items() if fact.search_words is None}
    )
    return [
        fact.id
        for fact, notes in notes_by_fact.items()
        if notes.replaced_id is not None and memory.replace_fact(notes.replaced_id, fact.id)
    ]
