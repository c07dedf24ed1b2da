"""The AI task entity: answers tasks of automations and of the frontend with data, and has no conversations."""

import json
import time
from typing import Any, override
from uuid import uuid7

from homeassistant.components.ai_task import AITaskEntity, AITaskEntityFeature, GenDataTask, GenDataTaskResult
from homeassistant.components.conversation import AssistantContent, ChatLog, SystemContent
from homeassistant.config_entries import ConfigSubentry
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

from .agents.agent import AccountConfigEntry, AccountData, Agent
from .agents.recording import async_record_background
from .bridge.errors import build_translated_error, describe_error
from .bridge.pictures import UnreadableFile
from .bridge.task_data import async_read_files, build_data_demand
from .entity import AgentEntity
from .memory import TurnRecord, TurnText
from .providers import ProviderError
from .turn.attempts import Attempt
from .turn.errors import TurnError
from .turn.limits import TASK_LIMITS
from .turn.model import Question
from .turn.summary import ask_for_data, ask_for_text
from .window import Message

# the account's limit of requests applies
PARALLEL_UPDATES = 0


async def async_setup_entry(
    hass: HomeAssistant, entry: AccountConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add an entity for each AI task of the account."""
    for subentry_id, agent in entry.runtime_data.tasks.items():
        entity = WindowedTaskEntity(agent, entry.subentries[subentry_id])
        async_add_entities([entity], config_subentry_id=subentry_id)


class WindowedTaskEntity(AgentEntity, AITaskEntity):
    """The entity of an AI task, which sends the instructions and the files of a task and nothing else."""

    _attr_name = None

    def __init__(self, agent: Agent, subentry: ConfigSubentry) -> None:
        super().__init__(agent, subentry)
        self._attr_unique_id = subentry.subentry_id
        self._attr_supported_features = AITaskEntityFeature.GENERATE_DATA
        if agent.model is not None and agent.model.profile.images:
            self._attr_supported_features |= AITaskEntityFeature.SUPPORT_ATTACHMENTS

    @override
    async def _async_generate_data(self, task: GenDataTask, chat_log: ChatLog) -> GenDataTaskResult:
        """Return the data. Raises `HomeAssistantError` with a translated message."""
        if task.llm_api is not None:
            raise build_translated_error("no_tools_in_tasks", HomeAssistantError)
        account: AccountData = self.agent.entry.runtime_data
        assert account.server is not None
        try:
            data = await self._async_answer(task, chat_log)
            account.server.on_answered()
        except UnreadableFile as err:
            raise build_translated_error(err.key, HomeAssistantError) from err
        except (ProviderError, TurnError) as err:
            if isinstance(err, ProviderError):
                account.server.on_failed(err, has_begun=False)
            failure = describe_error(err)
            raise build_translated_error(failure.key, HomeAssistantError, **failure.placeholders or {}) from err
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        chat_log.async_add_assistant_content_without_tools(AssistantContent(agent_id=self.entity_id, content=text))
        return GenDataTaskResult(conversation_id=chat_log.conversation_id, data=data)

    async def _async_answer(self, task: GenDataTask, chat_log: ChatLog) -> Any:
        agent, model = self.agent, self.agent.model
        assert model is not None
        # a compatible server has no common form for PDF files
        files = await async_read_files(
            self.hass, task.attachments or (), images=model.profile.images, pdf=agent.vendor is not None
        )
        system = [each.content for each in chat_log.content if isinstance(each, SystemContent)]
        messages = (Message.system("".join(system)), Message.user(task.instructions, attachments=files))
        demand = None if task.structure is None else build_data_demand(task.name, task.structure)
        question, attempts, at, started = (
            Question(model, "", "", (), ""),
            list[Attempt](),
            time.time(),
            time.monotonic(),
        )
        answer = None
        try:
            if demand is None:
                answer = await ask_for_text(question, messages, TASK_LIMITS, attempts.append)
            else:
                answer = await ask_for_data(question, messages, demand, TASK_LIMITS, attempts.append)
            return answer
        finally:
            record = TurnRecord(
                id=str(uuid7()),
                at=at,
                agent=agent.id,
                route="task",
                end="answered",
                conversation=chat_log.conversation_id,
                person=self._context.user_id if self._context else None,
                entity_id=self.entity_id,
            )
            words = TurnText(task.instructions, "" if answer is None else json.dumps(answer, ensure_ascii=False))
            async_record_background(agent, record, attempts, started, words=words)
