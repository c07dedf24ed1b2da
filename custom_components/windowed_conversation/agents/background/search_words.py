"""Search words for the facts that have none: requests to the model of an agent, in the background, once it is idle."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
import logging
import time
from uuid import uuid7
from weakref import WeakKeyDictionary

from homeassistant.core import HassJob, callback
from homeassistant.helpers.event import async_call_later

from ...bridge.errors import log_fault
from ...memory.bridge.tools import async_get_home_languages
from ...memory.core import Fact, MemoryUnavailable, base_language
from ...providers import ProviderError
from ...record import EMPTY_TURN, TurnRecord
from ...turn.attempts import Attempt
from ...turn.errors import TurnError
from ...turn.model import Model, Question
from ...turn.routing import RoutingMode
from ..agent import Agent, async_find_agent
from ..conversation_turn import ConversationTurn
from ..record import async_record_background
from ..store import AgentStore, async_get_store
from .requests import ask_for_search_words

_LOGGER = logging.getLogger(__name__)

# In seconds. An agent is idle if no turn follows for this long.
_IDLE_SECONDS = 10.0
_MAX_FACTS = 20
_MAX_SPOKEN_LANGUAGES = 4


@dataclass(slots=True)
class _Backlog:
    """The work that an agent has left: the people whose facts may have no search words."""

    people: set[str | None] = field(default_factory=set)
    # By person, the number of changes of memory up to which every fact was looked at.
    changes_by_person: dict[str | None, int] = field(default_factory=dict)
    # In seconds on the monotonic clock, the time from which the agent is idle.
    idle_at: float = 0.0
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
    backlog.people.add(person)
    backlog.idle_at = time.monotonic() + _IDLE_SECONDS
    if not backlog.is_scheduled:
        backlog.is_scheduled = True
        _request_when_idle(agent, agent.model, store)


@callback
def _request_when_idle(agent: Agent, model: Model, store: AgentStore, _now: datetime | None = None) -> None:
    """Request the missing search words once the agent is idle, if it is still set up then."""
    seconds = _backlogs[agent].idle_at - time.monotonic()
    if seconds > 0:
        work = partial(_request_when_idle, agent, model, store)
        async_call_later(agent.hass, seconds, HassJob(work, "search words", cancel_on_shutdown=True))
    elif async_find_agent(agent.hass, agent.id) is agent:
        request = _async_request_for_people(agent, model, store)
        agent.entry.async_create_background_task(agent.hass, request, "search words")


async def _async_request_for_people(agent: Agent, model: Model, store: AgentStore) -> None:
    """Request the missing search words for the people who have talked to the agent, one request at a time."""
    backlog = _backlogs[agent]
    try:
        while backlog.people and not model.pause.remaining_seconds:
            person = backlog.people.pop()
            backlog.changes_by_person[person] = store.changes
            if await _async_request_for_facts(agent, model, store, person):
                backlog.changes_by_person[person] = store.changes
    finally:
        backlog.is_scheduled = False


async def _async_request_for_facts(agent: Agent, model: Model, store: AgentStore, person: str | None) -> bool:
    """Request search words for a person's facts. Return whether none is left that was not asked about."""
    try:
        everything = await store.async_read(lambda memory: memory.get_facts(person), list[Fact]())
        facts = [fact for fact in everything if fact.search_words is None][:_MAX_FACTS]
        if facts:
            texts = [fact.text for fact in facts]
            words = await _async_request(
                agent, Question(model, "", "", (), "", is_background=True), texts, store.spoken_languages
            )
            # a fact without an answer gets no words, so that no later request repeats it
            words_by_row = {fact.id: words.get(place, "") for place, fact in enumerate(facts)}
            await store.async_change(lambda memory: memory.set_search_words(words_by_row))
        return len(facts) < _MAX_FACTS
    except (MemoryUnavailable, ProviderError, TurnError) as err:
        _LOGGER.info("No search words from %s: %s", agent.config.name, type(err).__name__)
    except Exception as err:  # noqa: BLE001 - a fault costs nothing but the search words
        log_fault(_LOGGER, "A request for search words failed in an unexpected way", err)
    return False


async def _async_request(agent: Agent, question: Question, facts: list[str], spoken: tuple[str, ...]) -> dict[int, str]:
    """Return the search words that the model wrote, by the places of the facts. Count, price and record the request."""
    attempts, at, started = list[Attempt](), time.time(), time.monotonic()
    languages = async_get_home_languages(agent.hass, spoken)
    try:
        return await ask_for_search_words(question, facts, languages, agent.config.limits, attempts.append)
    finally:
        statistics: TurnRecord = {**EMPTY_TURN, "turn_id": str(uuid7()), "time": at, "route": "search_words"}
        async_record_background(agent, statistics, attempts, started)
