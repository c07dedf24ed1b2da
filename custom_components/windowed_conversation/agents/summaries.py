"""Summaries of evicted exchanges: the requests, the event, the record, and the copy in memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
import logging
import sys
import time
from typing import Any, NamedTuple
from uuid import uuid7

from homeassistant.helpers import llm

from ..bridge.errors import log_fault
from ..bridge.persons import async_person
from ..bridge.turn_report import async_fire_summarized
from ..memory import Summary, TurnRecord
from ..providers import ProviderError, Usage
from ..turn.attempts import Attempt, result_of
from ..turn.context import said_in
from ..turn.errors import TurnError
from ..turn.model import Question
from ..turn.routing import Route, Scope, WindowKey
from ..turn.speaker import speaks_of_oneself
from ..turn.state import Turn
from ..turn.summary import ask_for_summary, compact, compaction_messages
from ..window import (
    INCOMPLETE,
    QUESTION,
    Exchange,
    Message,
    Native,
    Role,
    SummaryInput,
    Window,
    join_summary_inputs,
    older_summary_input,
    plain_text,
    summary_text,
)
from .agent import Agent
from .conversation_turn import async_question_without_input
from .costs import async_price_summary, log_requests
from .recording import async_record_cost, async_store_record
from .store import async_store

_LOGGER = logging.getLogger(__name__)

# Turns with these tags are not stored in memory.
_NOT_IN_MEMORY = frozenset({f"route:{Route.LOCAL}", INCOMPLETE})


class ConversationDropped(Exception):
    """The conversation was forgotten or replaced while its summary was being written."""


class Cause(NamedTuple):
    """The turn that led to a summary: its id in the record, and the person who spoke."""

    turn: str
    person: str | None


def is_due(agent: Agent, window: Window, outcome: Turn) -> bool:
    """Return whether a summary should be written after a turn.

    The turn must have asked the model, because text of local turns is not sent anywhere. The summary must also fit in
    the window beside the newest exchange, because it would otherwise be evicted next.
    """
    passage = window.pending_summary
    if passage is None or not outcome.attempts or outcome.error is not None or outcome.fault is not None:
        return False
    policy, exchanges = window.policy, window.exchanges()
    has_room = exchanges[-1].tokens + policy.summary_tokens <= policy.history_tokens
    return has_room and bool(passage.earlier or passage.shown(agent.config.excluded_tags))


def older_than(window: Window, keep: int, excluded_tags: frozenset[str]) -> SummaryInput | None:
    """Return the input for a summary of all but the newest `keep` exchanges, or None if there is nothing to summarize.

    The input includes exchanges that earlier trims have evicted.
    """
    older = older_summary_input(_system(window), window.exchanges(), keep, excluded_tags)
    return join_summary_inputs(window.pending_summary, older, window.policy.history_tokens)


def _system(window: Window) -> Message | None:
    return next((message for message in window.messages()[:1] if message.role is Role.SYSTEM), None)


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Summarizes one conversation of an agent. `context` is the LLM context for the tools in the request.

    `cause` is the turn that evicted exchanges, or None if an action requested the summary.
    """

    agent: Agent
    window: Window
    context: llm.LLMContext
    entity_id: str
    cause: Cause | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether a summary of the conversation is being written."""
        return self.window in self.agent.summarizing

    async def async_summarize_evicted(self) -> None:
        """Summarize the exchanges that trims have evicted. A failure only means that there is no summary."""
        passage = self.window.pending_summary
        if passage is None or self.is_at_work:
            return
        try:
            await self.async_summarize(passage)
        except ConversationDropped:
            _LOGGER.debug("A conversation with %s was dropped before its summary came", self.entity_id)
        except (ProviderError, TurnError) as err:
            self.window.fail_to_summarize(passage)
            _LOGGER.info("No summary from %s: %s (%s)", self.entity_id, type(err).__name__, err)
        except Exception as err:  # noqa: BLE001 - a fault costs nothing but the summary
            self.window.fail_to_summarize(passage)
            log_fault(_LOGGER, "A summary failed in an unexpected way", err)

    async def async_summarize(self, passage: SummaryInput) -> dict[str, Any]:
        """Replace a passage with its summary, and return the data of the fired event.

        Turns do not wait while the model writes. Raises `ProviderError`, `TurnError`, `ConversationDropped`, and
        `WindowBusy` if called inside a turn of the conversation. After an error, the window is unchanged.
        """
        agent, window, evicted, text = self.agent, self.window, 0, ""
        attempts, at, started = list[Attempt](), time.time(), time.monotonic()
        agent.summarizing.add(window)
        try:
            question = await async_question_without_input(agent, self.context)
            passage = passage._replace(
                system=passage.system or _system(window),
                earlier=summary_text(window.exchanges()) or passage.earlier,
            )
            text, native = await self._summary(question, passage, attempts)
            async with agent.windows.between_turns(window) as is_there:
                if not is_there:
                    raise ConversationDropped("the conversation was forgotten or replaced")
                before, key = window.stats(), agent.windows.key_of(window)
                summary = window.summarize(passage, text, native)
                stats = window.stats()
            evicted = stats.evicted_messages - before.evicted_messages
            if native is None and key is not None:
                language = self.context.language or agent.hass.config.language
                await _async_store(agent, key, passage, summary.messages[-1].content, language)
        finally:
            agent.summarizing.discard(window)
            usage = self._on_end(attempts, text, at=at, started=started, evicted=evicted)
        who = {"entity_id": self.entity_id, "conversation_id": window.conversation_id}
        counts = {"exchanges": len(passage.numbers), "summary_tokens": summary.tokens}
        return async_fire_summarized(agent.hass, who, counts, usage, (before, stats))

    def _on_end(self, attempts: list[Attempt], text: str, *, at: float, started: float, evicted: int) -> Usage:
        """Count, price and record a summary, even one that an exception is ending. Return its usage.

        `at` is its start in seconds since the epoch, `started` the same on the monotonic clock.
        """
        agent, cause, error = self.agent, self.cause, sys.exception()
        billed = [each.billed for each in attempts if each.billed is not None]
        usage = sum((each.usage for each in billed), Usage())
        agent.statistics.on_summary(len(attempts), usage, evicted)
        record = TurnRecord(
            id=str(uuid7()),
            at=at,
            agent=agent.id,
            route="summary",
            end=result_of(error).value,
            reason="trim" if cause else "action",
            conversation=self.window.conversation_id,
            person=cause.person if cause else None,
            entity_id=self.entity_id,
            error=type(error).__name__ if error else None,
            answered_by=None if error else agent.id,
            duration=time.monotonic() - started,
            cause=cause.turn if cause else None,
        )
        log_requests(record.id, attempts)
        async_store_record(agent, record, attempts, started, ("", text))
        async_price_summary(agent, billed, partial(async_record_cost, agent, record.id))
        agent.notify_listeners()
        return usage

    async def _summary(
        self, question: Question, passage: SummaryInput, attempts: list[Attempt]
    ) -> tuple[str, Native | None]:
        """Return the text of a summary, and the provider's compaction that replaces it for the same model, if any.

        A compaction contains all of the user's text and may not fit. Then the model is asked for a summary instead.
        """
        agent, policy, limits = self.agent, self.window.policy, self.agent.config.limits
        messages = compaction_messages(passage, self.window.exchanges(), question.excluded_tags)
        native = await compact(question, messages, agent.counter, limits, attempts.append)
        if native is not None and native.tokens <= policy.compaction_tokens:
            return plain_text(passage, question.excluded_tags, policy, agent.counter), native

        def on_attempt(each: Attempt) -> None:
            attempts.append(each)
            if each.billed is not None:
                agent.learn(each.billed)

        return await ask_for_summary(question, passage, policy.summary_tokens, limits, on_attempt), None


async def _async_store(agent: Agent, key: str, passage: SummaryInput, text: str, language: str) -> None:
    """Pass the summary of a passage to memory, which stores it only if it has stored the summarized turns.

    This prevents text that was forgotten, or spoken while memory was off, from returning in other words. The home's
    summaries contain nothing that unknown speakers said about themselves, and nothing from a window that everybody
    shares, because its speakers are unknown.
    """
    store = async_store(agent.hass)
    if not agent.config.memory or store is None or agent.config.scope is Scope.AGENT:
        return
    window = WindowKey.parse(key)
    person = await async_person(agent.hass, window.user)
    shown = [each for each in passage.shown(agent.config.excluded_tags) if each.messages[0].content != QUESTION]
    if not shown or (person is None and _speaks_of_speakers(shown, {language, agent.hass.config.language})):
        return
    store.async_put(
        Summary(
            conversation=window.conversation,
            since=min(each.messages[0].created or 0.0 for each in shown),
            until=max(each.messages[-1].created or 0.0 for each in shown),
            said=tuple(_user_text(each) for each in shown if _NOT_IN_MEMORY.isdisjoint(each.tags)),
            text=text,
            earlier=passage.earlier,
            agent=agent.id,
            person=person and person.id,
        )
    )


def _speaks_of_speakers(exchanges: Iterable[Exchange], languages: Iterable[str]) -> bool:
    """Return whether a user spoke of themselves. Turns that are stored in memory were checked earlier."""
    said = [_user_text(each) for each in exchanges if not _NOT_IN_MEMORY.isdisjoint(each.tags)]
    return any(speaks_of_oneself(each, language) for each in said for language in languages)


def _user_text(exchange: Exchange) -> str:
    return said_in(exchange.messages[0].content)
