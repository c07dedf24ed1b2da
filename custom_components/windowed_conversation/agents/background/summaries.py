"""Summaries of evicted exchanges: the requests, the event, the record, and the copy in memory."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
import logging
from typing import Any

from homeassistant.helpers import llm

from ...bridge.errors import log_fault
from ...bridge.persons import async_find_person
from ...bridge.turn_report import async_fire_summary_event
from ...memory.core import Summary
from ...memory.turn.speaker import is_about_speaker
from ...providers import ProviderError
from ...turn.attempts import Attempt
from ...turn.context import extract_user_text
from ...turn.errors import TurnError
from ...turn.model import Question
from ...turn.routing import Route, Scope, WindowKey
from ...turn.state import Turn
from ...window import (
    INCOMPLETE_TAG,
    QUESTION,
    Exchange,
    Message,
    NativeData,
    Role,
    SummaryInput,
    Window,
    build_older_summary_input,
    count_replaced_tokens,
    find_summary_text,
    format_plain_summary,
    join_summary_inputs,
)
from ..agent import Agent
from ..conversation_turn import ConversationTurn, async_build_inputless_question
from ..local_intents import async_load_requests
from ..record import TurnText, record_background
from ..store import async_get_store
from .requests import ask_for_compaction, ask_for_summary, collect_compaction_messages

_LOGGER = logging.getLogger(__name__)

# Turns with these tags are not stored in memory.
_TAGS_NOT_IN_MEMORY = frozenset({f"route:{Route.LOCAL}", INCOMPLETE_TAG})

# A provider's compaction that is larger than this share of the replaced exchanges would soon be due again.
_MAX_COMPACTED_SHARE = 0.9


class ConversationDropped(Exception):
    """The conversation was forgotten or replaced while its summary was being written."""


def is_summary_due(agent: Agent, window: Window, outcome: Turn) -> bool:
    """Return whether a summary should be written after a turn.

    The turn must have asked the model, because text of local turns is not sent anywhere. The summary must also fit in
    the window beside the newest exchange, because it would otherwise be evicted next.
    """
    passage = window.pending_summary
    if passage is None or not outcome.attempts or outcome.error is not None or outcome.interruption is not None:
        return False
    policy, exchanges = window.policy, window.exchanges()
    has_room = exchanges[-1].tokens + policy.summary_tokens <= policy.history_tokens
    return has_room and bool(passage.earlier_summary or passage.exchanges)


def build_summary_input(window: Window, keep: int) -> SummaryInput | None:
    """Return the input for a summary of all but the newest `keep` exchanges, or None if there is nothing to summarize.

    The input includes exchanges that earlier trims have evicted.
    """
    older = build_older_summary_input(_find_system_message(window), window.exchanges(), keep)
    return join_summary_inputs(window.pending_summary, older, window.policy.history_tokens)


def _find_system_message(window: Window) -> Message | None:
    return next((message for message in window.messages()[:1] if message.role is Role.SYSTEM), None)


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Summarizes one conversation of an agent."""

    agent: Agent
    window: Window
    # The context for the tools in the request.
    llm_context: llm.LLMContext
    entity_id: str
    # Who may read its record, or None for everybody.
    person: str | None
    # The turn that evicted exchanges, or None if an action requested the summary.
    cause: ConversationTurn | None = None

    @property
    def is_running(self) -> bool:
        """Whether a summary of the conversation is being written."""
        return self.window in self.agent.summarizing_windows

    async def async_summarize_evicted(self) -> None:
        """Summarize the exchanges that trims have evicted. A failure only means that there is no summary."""
        passage = self.window.pending_summary
        if passage is None or self.is_running:
            return
        try:
            await self.async_summarize(passage)
        except ConversationDropped:
            _LOGGER.debug("A conversation with %s was dropped before its summary came", self.entity_id)
        except (ProviderError, TurnError) as err:
            self.window.record_summary_failure(passage)
            _LOGGER.info("No summary from %s: %s (%s)", self.entity_id, type(err).__name__, err)
        except Exception as err:  # noqa: BLE001 - a fault costs nothing but the summary
            self.window.record_summary_failure(passage)
            log_fault(_LOGGER, "A summary failed in an unexpected way", err)

    async def async_summarize(self, passage: SummaryInput) -> dict[str, Any]:
        """Replace a passage with its summary, and return the data of the fired event.

        Turns do not wait while the model writes. Raises `ProviderError`, `TurnError`, `ConversationDropped`, and
        `WindowBusy` if called inside a turn of the conversation. After an error, the window is unchanged.
        """
        agent, window, cause, conversation = self.agent, self.window, self.cause, self.window.conversation_id
        fields: dict[str, Any] = {"route": "summary", "conversation_id": conversation, "entity_id": self.entity_id}
        fields |= {"person": self.person, "reason": "trim" if cause else "action"}
        fields |= {"summarizes_turn": cause.id} if cause else {}
        with record_background(agent, **fields) as requests, ExitStack() as stack:
            agent.summarizing_windows.add(window)
            stack.callback(agent.summarizing_windows.discard, window)
            requests.text = TurnText("", "")
            question = await async_build_inputless_question(agent, self.llm_context)
            # an action waits for the summary that it has requested
            question = replace(question, is_background=cause is not None)
            passage = passage._replace(
                system=passage.system or _find_system_message(window),
                earlier_summary=find_summary_text(window.exchanges()) or passage.earlier_summary,
            )
            text, native = await self._async_request_summary(question, passage, requests.attempts)
            requests.text = TurnText("", text)
            async with agent.windows.hold_between_turns(window) as key:
                if key is None:
                    raise ConversationDropped("the conversation was forgotten or replaced")
                before = window.stats()
                summary = window.insert_summary(passage, text, native)
                stats = window.stats()
            if native is None:
                language = self.llm_context.language or agent.hass.config.language
                await _async_store_summary(agent, key, passage, summary.messages[-1].content, language)
        who = {"entity_id": self.entity_id, "conversation_id": conversation}
        counts = {"exchanges": len(passage.numbers), "summary_tokens": summary.tokens}
        return async_fire_summary_event(agent.hass, who, counts, requests.usage, (before, stats))

    async def _async_request_summary(
        self, question: Question, passage: SummaryInput, attempts: list[Attempt]
    ) -> tuple[str, NativeData | None]:
        """Return the text of a summary, and the provider's compaction that replaces it for the same model, if any.

        A compaction contains all of the user's text. It may not fit, or hardly be smaller than the exchanges. Then
        the model is asked for a summary instead.
        """
        agent, policy, timeout = self.agent, self.window.policy, self.agent.config.turn_timeout
        exchanges = self.window.exchanges()
        messages = collect_compaction_messages(passage, exchanges)
        native = await ask_for_compaction(question, messages, agent.counter, timeout, attempts.append)
        worthwhile = _MAX_COMPACTED_SHARE * count_replaced_tokens(passage, exchanges)
        if native is not None and native.tokens <= min(policy.compaction_tokens, worthwhile):
            return format_plain_summary(passage, policy, agent.counter), native

        def on_attempt(each: Attempt) -> None:
            attempts.append(each)
            if each.billed_request is not None:
                agent.learn_usage(each.request, each.billed_request.usage)

        return await ask_for_summary(question, passage, policy.summary_tokens, timeout, on_attempt), None


async def _async_store_summary(agent: Agent, key: str, passage: SummaryInput, text: str, language: str) -> None:
    """Pass the summary of a passage to memory, which stores it only if it has stored the summarized turns.

    This prevents text that was forgotten, or spoken while memory was off, from returning in other words. The home's
    summaries contain nothing that unknown speakers said about themselves, and nothing from a window that everybody
    shares, because its speakers are unknown.
    """
    store = async_get_store(agent.hass)
    if not agent.config.memory or store is None or agent.config.scope is Scope.AGENT:
        return
    window = WindowKey.parse(key)
    person = await async_find_person(agent.hass, window.user)
    shown = [each for each in passage.exchanges if each.messages[0].content != QUESTION]
    languages = {language, agent.hass.config.language}
    for each in languages:
        await async_load_requests(agent.hass, each)
    if not shown or (person is None and _mentions_speaker(shown, languages)):
        return
    store.async_queue_record(
        Summary(
            conversation=window.conversation,
            since=min(each.messages[0].created or 0.0 for each in shown),
            at=max(each.messages[-1].created or 0.0 for each in shown),
            user_texts=tuple(_user_text(each) for each in shown if _TAGS_NOT_IN_MEMORY.isdisjoint(each.tags)),
            text=text,
            earlier_text=passage.earlier_summary,
            agent=agent.id,
            person=person and person.id,
        )
    )


def _mentions_speaker(exchanges: Iterable[Exchange], languages: Iterable[str]) -> bool:
    """Return whether a user spoke of themselves. Turns that are stored in memory were checked earlier."""
    said = [_user_text(each) for each in exchanges if not _TAGS_NOT_IN_MEMORY.isdisjoint(each.tags)]
    return any(is_about_speaker(each, language) for each in said for language in languages)


def _user_text(exchange: Exchange) -> str:
    return extract_user_text(exchange.messages[0].content)
