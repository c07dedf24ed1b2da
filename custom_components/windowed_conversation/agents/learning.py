"""Learning from conversations that have ended: one request for each, one at a time, in the background.

The model returns a summary and quotes. `memory.learning` proves the quotes; the model's own words never become a fact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
import logging
import math
import time
from typing import Any
from uuid import uuid7

from homeassistant.core import callback

from ..bridge.errors import log_fault
from ..bridge.persons import async_find_person
from ..bridge.turn_report import async_fire_learned_event
from ..const import Learning
from ..memory import LEARNED_SOURCE, Memory, MemoryUnavailable, PastTurn, Summary, TurnRecord, base_language, join_lines
from ..memory.learning import MAX_QUOTES, prove_quotes
from ..providers import AnswerSchema, ProviderError
from ..turn.attempts import Attempt, Purpose
from ..turn.errors import TurnError
from ..turn.model import Model, Question
from ..turn.remember_requests import build_stated_fact, remember_fact
from ..turn.routing import Scope
from ..turn.speaker import Speaker, is_supported_by
from ..turn.summary import DataDemand, ask_for_data
from ..window import Message
from .agent import Agent
from .recording import async_record_background
from .store import AgentStore, async_get_store

_LOGGER = logging.getLogger(__name__)

# In seconds. A conversation has ended if nothing was said in it for this long.
QUIET_SECONDS = 600.0
_CHECK_SECONDS = 60.0
_MAX_TURNS = 30
_MAX_TURN_CHARS = 600
_MAX_SUMMARY_CHARS = 400
_MAX_ANSWER_TOKENS = 800

_SUMMARY_INSTRUCTION = (
    "This conversation between a person and their voice assistant has ended. `summary`: at most two sentences about "
    "it, in its language and its words."
)
_FACTS_INSTRUCTION = (
    " `facts`: at most {most} things that the person said of themselves, their family, pets and home, and that will "
    "still be true in a year. Usually there are none. Leave out commands, questions, states of the home, plans, jokes, "
    "games, guesses, and reports of others. `quote`: the exact words of the person in the line with this `number`. If "
    "they begin with a pronoun, `subject` is the person's words for whom it stands. `words`: five other words by which "
    "somebody may ask for the fact."
)
_TEXT_SCHEMA = {"type": "string"}
_FACT_SCHEMA = {"number": {"type": "integer"}, "quote": _TEXT_SCHEMA, "subject": _TEXT_SCHEMA, "words": _TEXT_SCHEMA}


@dataclass(eq=False, slots=True)
class Learner:
    """Reads the ended conversations of an agent. Each is read once, or never if the request fails.

    The turns that are still to be read are marked in the store, so that a restart neither loses nor repeats them.
    """

    agent: Agent
    _next_check_at: float = 0.0

    @callback
    def async_check(self) -> None:
        """Read the conversations that have ended. The agent calls this after its changes and every few minutes."""
        now = time.monotonic()
        if now >= self._next_check_at:
            self._next_check_at = math.inf
            self.agent.entry.async_create_background_task(self.agent.hass, self._async_read_ended(), "learning")

    async def _async_read_ended(self) -> None:
        wait = _CHECK_SECONDS
        try:
            while (model := self.agent.model) is not None and not (wait := model.pause.remaining_seconds):
                if not await self._async_read_next(model):
                    break
        except MemoryUnavailable as err:
            _LOGGER.debug("Learning waits for the store: %s", err.reason)
        finally:
            self._next_check_at = time.monotonic() + max(wait, _CHECK_SECONDS)

    async def _async_read_next(self, model: Model) -> bool:
        """Read the conversation that ended first. Return whether there was one. Raises `MemoryUnavailable`."""
        agent, store, began = self.agent, async_get_store(self.agent.hass), time.time()
        if store is None:
            return False
        turns = await store.async_change(lambda memory: memory.take_ended_turns(agent.id, began - QUIET_SECONDS))
        try:
            if turns:
                await self._async_learn(store, model, turns[-_MAX_TURNS:], began)
        except (ProviderError, TurnError) as err:
            _LOGGER.info("Nothing learned by %s: %s", agent.config.name, type(err).__name__)
        except MemoryUnavailable:
            raise
        except Exception as err:  # noqa: BLE001 - a fault costs nothing but one reading
            log_fault(_LOGGER, "Learning failed in an unexpected way", err)
        return bool(turns)

    async def _async_learn(self, store: AgentStore, model: Model, turns: Sequence[PastTurn], began: float) -> None:
        agent, last = self.agent, turns[-1]
        person = await async_find_person(agent.hass, last.person)
        if last.person is not None and person is None:
            return
        data = await _async_request(agent, model, turns)
        # the data may repeat a text that was forgotten since
        if store.predates_forgetting(began):
            return
        language, name = last.unread_language or "", person and person.name
        speaker = Speaker("", language, last.person, name, is_alone=True, conversation=last.conversation)
        if last.person is None and agent.config.scope is Scope.AGENT:
            data["summary"] = ""
        if agent.config.learning is not Learning.FACTS:
            data["facts"] = []
        learned, has_summary = await store.async_change(partial(_store_data, speaker, turns, data))
        if learned:
            store.learned_facts |= learned
            ids = {"conversation_id": last.conversation, "person": last.person}
            async_fire_learned_event(agent.hass, agent.id, {**ids, "facts": [*learned], "summary": has_summary})
        if learned or has_summary:
            agent.schedule_notify()


async def _async_request(agent: Agent, model: Model, turns: Sequence[PastTurn]) -> dict[str, Any]:
    """Return the data that a model extracts from the newest turns that fit in the agent's window.

    The request is counted, priced and recorded. Raises `ProviderError` and `TurnError`.
    """
    attempts, at, started = list[Attempt](), time.time(), time.monotonic()
    lines = [_format_turn(number, turn) for number, turn in enumerate(turns, 1)]
    while len(lines) > 1 and agent.counter.count("\n".join(lines)) > agent.config.policy.history_tokens:
        del lines[0]
    properties, instruction = dict[str, Any](summary=_TEXT_SCHEMA), _SUMMARY_INSTRUCTION
    if agent.config.learning is Learning.FACTS:
        properties |= {"facts": {"type": "array", "items": _build_object_schema(_FACT_SCHEMA)}}
        instruction += _FACTS_INSTRUCTION.format(most=MAX_QUOTES)
    # people's words are nothing to search the web for
    settings = replace(model.settings, web_search=None, max_answer_tokens=_MAX_ANSWER_TOKENS)
    question = Question(replace(model, settings=settings), "", "", (), "", is_background=True)
    messages = (Message.system(instruction), Message.user("\n".join(lines)))
    schema = AnswerSchema("extraction", _build_object_schema(properties))
    demand = DataDemand(schema, lambda data: None if isinstance(data, dict) else "it is no object")
    try:
        data: dict[str, Any] = await ask_for_data(question, messages, demand, agent.config.limits, attempts.append)
        return data
    finally:
        last = turns[-1]
        record = TurnRecord(str(uuid7()), at, agent.id, "learning", "answered", None, last.conversation, last.person)
        async_record_background(agent, record, [replace(each, purpose=Purpose.LEARNING) for each in attempts], started)


def _build_object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _format_turn(number: int, turn: PastTurn) -> str:
    answer = f"\n   Assistant: {turn.answer[:_MAX_TURN_CHARS]}" if turn.answer else ""
    return f"{number}. Person: {turn.said[:_MAX_TURN_CHARS]}{answer}"


def _store_data(
    speaker: Speaker, turns: Sequence[PastTurn], data: Mapping[str, Any], memory: Memory
) -> tuple[dict[int, tuple[str, str]], bool]:
    """Store the data that is proved. Return the owners and texts of new facts by id, and whether a summary was stored.

    At least half of the words of a summary must have been said in the conversation.
    """
    known_ids = {fact.id for fact in memory.get_facts(speaker.person)}
    said = [turn.said for turn in turns]
    for proved in prove_quotes(data.get("facts"), said, base_language(speaker.language)):
        fact = build_stated_fact(speaker, proved.text, proved.clause, LEARNED_SOURCE)
        if fact is not None:
            fact = replace(fact, at=turns[proved.turn].at, search_words=proved.search_words or None)
            remember_fact(memory, speaker, fact)
    summary = join_lines(text if isinstance(text := data.get("summary"), str) else "", _MAX_SUMMARY_CHARS)
    everything = " ".join([f"{turn.said} {turn.answer}" for turn in turns])
    has_summary = bool(summary) and is_supported_by(summary, everything, speaker.name, speaker.build_words())
    if has_summary:
        first, last = turns[0], turns[-1]
        span = (last.conversation, first.at, last.at)
        memory.add([Summary(*span, tuple(said), summary, agent=last.agent, person=last.person)])
    new = [fact for fact in memory.get_facts(speaker.person) if fact.id not in known_ids]
    return {fact.id: (speaker.name or "" if fact.person else "", fact.text) for fact in new}, has_summary
