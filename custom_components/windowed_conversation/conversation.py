"""The conversation entity: an input of Home Assistant's becomes a turn, its outcome a result."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
import logging
from typing import Literal, override

from homeassistant.components import conversation
from homeassistant.components.conversation import (
    ChatLog,
    ConversationEntityFeature,
    ConversationInput,
    ConversationResult,
)
from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import MATCH_ALL
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers.chat_session import ChatSession
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.intent import IntentResponse, IntentResponseType

from .agents.after_turn import after_turn
from .agents.agent import AccountConfigEntry, Agent
from .agents.ended_turn import EndedTurn
from .agents.lookup import async_find_agent, async_learn
from .agents.question import ModelQuestion
from .bridge.chat_log import BUSY_ERRORS, async_open_session, handled_by_pipeline
from .bridge.errors import async_error_phrase, error_key, failure_of, log_fault, sentence_after
from .bridge.local_intents import LocalIntents
from .bridge.reply import ChatLogReply
from .bridge.sentences import async_keep_prepared, async_prepare_sentences
from .bridge.turn_report import answer_attributes, async_trace_turn
from .const import SUBENTRY_CONVERSATION
from .entity import AgentEntity
from .turn.context import readable
from .turn.errors import Busy, IdTooLong
from .turn.routing import Route, Routing
from .turn.scope import check_id, window_key
from .turn.turn import Outcome, Ways, run_turn
from .window import Window, WindowBusy, WindowError, WindowStats

_LOGGER = logging.getLogger(__name__)

PARALLEL_UPDATES = 0

# How long to wait before looking again whether a pipeline is done with the chat log, in seconds.
_LOOK_AGAIN = 0.05

_FAULT = "A turn failed in an unexpected way"


async def async_setup_entry(
    hass: HomeAssistant, entry: AccountConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add an entity for each agent."""
    for subentry in entry.get_subentries_of_type(SUBENTRY_CONVERSATION):
        agent = entry.runtime_data.agents[subentry.subentry_id]
        async_add_entities(
            [WindowedConversationEntity(entry, subentry, agent)],
            config_subentry_id=subentry.subentry_id,
        )


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn that has come: its input, its chat log, its window, and the figures of that one before it.

    `later` is given what the answer need not wait for.
    """

    user_input: ConversationInput
    chat_log: ChatLog
    reply: ChatLogReply
    window: Window
    before: WindowStats
    later: Callable[[Callable[[], None]], None]


class WindowedConversationEntity(AgentEntity, conversation.ConversationEntity):
    """An agent that people and automations talk to."""

    _attr_name = None
    _attr_supports_streaming = True

    def __init__(self, entry: AccountConfigEntry, subentry: ConfigSubentry, agent: Agent) -> None:
        super().__init__(agent, subentry)
        self._entry = entry
        self._attr_unique_id = subentry.subentry_id
        if agent.config.llm_apis or agent.config.routing is Routing.LOCAL_ONLY:
            self._attr_supported_features = ConversationEntityFeature.CONTROL

    @property
    @override
    def supported_languages(self) -> list[str] | Literal["*"]:
        return MATCH_ALL

    @override
    async def async_prepare(self, language: str | None = None) -> None:
        """Load Home Assistant's sentences before the first input needs them."""
        if self.agent.config.routing is not Routing.LLM_ONLY:
            await async_prepare_sentences(self.hass, language)

    @override
    async def async_added_to_hass(self) -> None:
        """Keep what the sentences are matched with ready while there is an agent that answers locally."""
        await super().async_added_to_hass()
        if self.agent.config.routing is not Routing.LLM_ONLY:
            self.async_on_remove(async_keep_prepared(self.hass))

    @override
    async def async_process(self, user_input: ConversationInput) -> ConversationResult:
        """Answer an input after the earlier ones of its conversation.

        The chat log is opened when the turn has come: Home Assistant lets one turn at a time have it.
        """
        try:
            check_id(user_input.conversation_id or "")
            with async_open_session(self.hass, user_input) as session:
                user_input = replace(user_input, conversation_id=session.conversation_id)
                return await self._process_in_order(user_input, session)
        except IdTooLong as err:
            return await self._failed(replace(user_input, conversation_id=None), err)
        except Unauthorized as err:
            return await self._failed(user_input, err)
        except WindowBusy as err:
            return await self._failed(user_input, Busy(str(err)))

    async def _process_in_order(self, user_input: ConversationInput, session: ChatSession) -> ConversationResult:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self.agent.config.limits.turn
        key = self._window_key(user_input, session)
        while True:
            async with self.agent.windows.turn(key, timeout=ends_at - loop.time()) as window:
                with ExitStack() as stack:
                    try:
                        opened = conversation.async_get_chat_log(self.hass, session, user_input)
                        chat_log = stack.enter_context(opened)
                    except BUSY_ERRORS:
                        pass
                    else:
                        later = partial(self._later, key)
                        reply = ChatLogReply(chat_log, self.entity_id)
                        turn = _Turn(user_input, chat_log, reply, window, window.stats(), later)
                        return await self._process_in_turn(turn)
            if loop.time() >= ends_at:
                raise WindowBusy("another agent's turn has the chat log")
            await asyncio.sleep(_LOOK_AGAIN)

    def _window_key(self, user_input: ConversationInput, session: ChatSession) -> str:
        device = user_input.satellite_id or user_input.device_id
        user = user_input.context.user_id
        return str(window_key(self.agent.config.scope, session.conversation_id, device=device, user=user))

    def _later(self, key: str, work: Callable[[], None]) -> None:
        self._agent_now.later(key, work)

    @property
    def _agent_now(self) -> Agent:
        """The agent, or the one that a reload during the turn has made of what is kept."""
        return async_find_agent(self.hass, self.agent.id) or self.agent

    async def _process_in_turn(self, turn: _Turn) -> ConversationResult:
        """Run the turn; a fault of ours is spoken, too."""
        llm_api = turn.chat_log.llm_api
        try:
            return await self._answer(turn)
        except Exception as err:  # noqa: BLE001 - whatever it is, it is not answered with silence
            log_fault(_LOGGER, _FAULT, err)
            return await self._failed(turn.user_input, err, turn, turn.reply.said)
        finally:
            # the log is other agents', too: leave it with the tools that it had
            turn.chat_log.llm_api = llm_api

    async def _answer(self, turn: _Turn) -> ConversationResult:
        config, user_input, chat_log, window = self.agent.config, turn.user_input, turn.chat_log, turn.window
        _take_over(window, chat_log, self.entity_id)
        local = LocalIntents(
            self.hass,
            user_input,
            chat_log,
            model_is_next=config.routing is not Routing.LOCAL_ONLY,
            model_has_tools=bool(config.llm_apis),
        )
        question = ModelQuestion(self.agent, self.entity_id, user_input, chat_log)
        on_end = partial(self._on_end, turn, question)
        on_billed = partial(async_learn, self.hass)
        ways = Ways(local, question, turn.reply, later=turn.later, on_billed=on_billed, on_end=on_end)
        outcome = await run_turn(window, readable(user_input.text), config.routing, ways, config.limits)
        if outcome.decision.route is Route.LOCAL and local.response is not None:
            return ConversationResult(local.response, chat_log.conversation_id)
        if outcome.error is not None:
            return await self._failed(user_input, outcome.error, turn, outcome.spoken)
        return conversation.async_get_result_from_chat_log(user_input, chat_log)

    def _on_end(self, turn: _Turn, question: ModelQuestion, outcome: Outcome) -> None:
        """Trace a turn that ended, and leave what follows it for when its answer is on its way."""
        answer = answer_attributes(self.hass, outcome)
        async_trace_turn(outcome, answer, turn.window.stats())

        def follow() -> None:
            user_input, window, before = turn.user_input, turn.window, turn.before
            ended = EndedTurn(
                self.entity_id, user_input, window, before, window.stats(), outcome, answer, question.prompt
            )
            after_turn(self._agent_now, ended)

        turn.later(follow)

    async def _failed(
        self,
        user_input: ConversationInput,
        error: Exception,
        turn: _Turn | None = None,
        spoken: str = "",
    ) -> ConversationResult:
        """Tell the user what went wrong, after what was said already.

        An error response in a pipeline is shown beside the words that were streamed, and said by no text-to-speech that
        streams. So there the failure is a part of the answer, and the response one.
        """
        failure = failure_of(error)
        phrase = await async_error_phrase(self.hass, user_input.language, failure.key, failure.placeholders)
        response = IntentResponse(user_input.language)
        if turn is None:
            response.async_set_error(failure.code, phrase)
            return ConversationResult(response, user_input.conversation_id)
        turn.later(partial(self._agent_now.statistics.on_failure, error_key(error), phrase))
        if not spoken.strip():
            turn.reply.leave(phrase)
            response.async_set_error(failure.code, phrase)
        else:
            last_message = await turn.reply.break_off(phrase)
            response.async_set_error(failure.code, f"{spoken}{sentence_after(spoken, phrase)}")
            if turn.reply.is_heard:
                # not "action done", which would be a claim
                response.response_type = IntentResponseType.QUERY_ANSWER
                response.async_set_speech(last_message)
        return ConversationResult(response, user_input.conversation_id)


def _take_over(window: Window, chat_log: ChatLog, agent_id: str) -> None:
    """Take in what the pipeline answered in this conversation since our last turn."""
    for exchange in handled_by_pipeline(chat_log, agent_id, window.messages()):
        try:
            window.record(exchange, tags={f"route:{Route.LOCAL}"})
        except WindowError as err:
            _LOGGER.debug("An exchange of the pipeline is not whole: %s", type(err).__name__)
