"""Learning from conversations that have ended: one request for each person, one at a time, in the background.

The model returns a summary and quotes. `memory.turn.suggestions` proves the quotes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
import logging
import math
import time
from typing import Any

from homeassistant.core import callback

from ...bridge.errors import log_fault
from ...bridge.persons import async_find_person
from ...const import MemoryMode
from ...memory.core import MemoryUnavailable, PastTurn, take_ended_turns
from ...memory.turn.speaker import Speaker
from ...memory.turn.suggestions import MAX_QUOTES, QUIET_SECONDS, store_reading
from ...providers import AnswerSchema, ProviderError
from ...turn.attempts import Purpose
from ...turn.errors import TurnError
from ...turn.model import Model, Question
from ...turn.routing import Scope
from ...window import Message
from ..agent import Agent
from ..record import record_background
from ..store import AgentStore, async_get_store
from .tasks import DataDemand, Task

_LOGGER = logging.getLogger(__name__)

# In seconds.
_CHECK_SECONDS = 60.0
_MAX_TURNS = 30
_MAX_TURN_CHARS = 600
_MAX_ANSWER_TOKENS = 800

_SUMMARY_INSTRUCTION = (
    "This conversation between a person and their voice assistant has ended. `summary`: at most two sentences about "
    "it, in its language and its words."
)
_FACTS_INSTRUCTION = (
    " `facts`: at most {most} things that the person said of themselves, their family, pets and home. Usually there "
    "are none. Leave out commands, questions, states of the home, plans, jokes, games, guesses, reports of others, "
    "passwords, and what was said in confidence. `quote`: the exact words of the person in the line with this "
    "`number`. If they have a pronoun, `subject` is the person's words for whom it stands. `words`: five other words "
    "by which somebody may ask for the fact. `lasts`: whether it will still be true in a year."
)
_TEXT_SCHEMA = {"type": "string"}
_FACT_SCHEMA = {
    "number": {"type": "integer"},
    "quote": _TEXT_SCHEMA,
    "subject": _TEXT_SCHEMA,
    "words": _TEXT_SCHEMA,
    "lasts": {"type": "boolean"},
}


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
        agent, store, began = self.agent, async_get_store(self.agent.hass), time.time()
        if store is None:
            return False
        turns = await store.async_change(lambda memory: take_ended_turns(memory, agent.id, began - QUIET_SECONDS))
        try:
            if turns:
                await self._async_learn(store, model, dict([*turns.items()][-_MAX_TURNS:]), began)
        except (ProviderError, TurnError) as err:
            _LOGGER.info("Nothing learned by %s: %s", agent.config.name, type(err).__name__)
        except MemoryUnavailable:
            raise
        except Exception as err:  # noqa: BLE001 - a fault costs nothing but one reading
            log_fault(_LOGGER, "Learning failed in an unexpected way", err)
        return bool(turns)

    async def _async_learn(self, store: AgentStore, model: Model, turns: Mapping[int, PastTurn], began: float) -> None:
        agent, last = self.agent, [*turns.values()][-1]
        person = await async_find_person(agent.hass, last.person)
        # of a window that everybody shares, nothing that an unknown speaker said is kept
        if (person is None and agent.config.scope is Scope.AGENT) or (person is None) is not (last.person is None):
            return
        has_facts = person is not None and agent.config.memory_mode is MemoryMode.SUGGESTIONS
        data = await _async_request(agent, model, [*turns.values()], has_facts=has_facts)
        # the data may repeat a text that was forgotten since
        if store.predates_forgetting(began):
            return
        speaker = Speaker(
            "",
            last.unread_language or agent.hass.config.language,
            person=person and person.id,
            name=person and person.name,
            is_alone=True,
            conversation=last.conversation,
        )
        found = data if has_facts else {**data, "facts": []}
        await store.async_change(lambda memory: store_reading(memory, speaker, turns, found))


async def _async_request(agent: Agent, model: Model, turns: list[PastTurn], *, has_facts: bool) -> dict[str, Any]:
    """Return the data that a model extracts from the newest turns that fit in the agent's window."""
    lines = [_format_turn(number, turn) for number, turn in enumerate(turns, 1)]
    while len(lines) > 1 and agent.counter.count("\n".join(lines)) > agent.config.policy.history_tokens:
        del lines[0]
    properties, instruction = dict[str, Any](summary=_TEXT_SCHEMA), _SUMMARY_INSTRUCTION
    if has_facts:
        properties |= {"facts": {"type": "array", "items": _build_object_schema(_FACT_SCHEMA)}}
        instruction += _FACTS_INSTRUCTION.format(most=MAX_QUOTES)
    # people's words are nothing to search the web for
    settings = replace(model.settings, web_search=None, max_answer_tokens=_MAX_ANSWER_TOKENS)
    question = Question(replace(model, settings=settings), "", "", (), "", is_background=True)
    messages = (Message.system(instruction), Message.user("\n".join(lines)))
    schema = AnswerSchema("extraction", _build_object_schema(properties))
    demand = DataDemand(schema, lambda data: None if isinstance(data, dict) else "it is no object")
    conversation, person = turns[-1].conversation, turns[-1].person
    with record_background(
        agent, route="summary", reason="ended", conversation_id=conversation, person=person
    ) as requests:
        task = Task(question, agent.config.turn_timeout, requests.attempts.append, purpose=Purpose.SUMMARY)
        data: dict[str, Any] = await task.ask_for_data(messages, demand)
        return data


def _build_object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _format_turn(number: int, turn: PastTurn) -> str:
    answer = f"\n   Assistant: {turn.answer[:_MAX_TURN_CHARS]}" if turn.answer else ""
    return f"{number}. Person: {turn.said[:_MAX_TURN_CHARS]}{answer}"
