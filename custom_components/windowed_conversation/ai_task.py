"""The AI task entity: answers tasks of automations and of the frontend with data, and has no conversations."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
import json
import re
from typing import Any, override

from homeassistant.components import ai_task
from homeassistant.components.ai_task import AITaskEntity, AITaskEntityFeature, GenDataTask, GenDataTaskResult
from homeassistant.components.conversation import (
    AssistantContent,
    Attachment as TaskFile,
    ChatLog,
    ConversationInput,
    SystemContent,
)
from homeassistant.config_entries import ConfigSubentry
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import llm
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.selector import ActionSelector, ChooseSelector, SelectSelector, TriggerSelector
import probatio

from .agents.agent import AccountConfigEntry, AccountData, Agent
from .agents.background.evaluation import SYSTEM_PROMPT, build_evaluation_demand, format_state, read_evaluation
from .agents.background.tasks import DataDemand, Task
from .agents.record import TurnText, record_background
from .bridge.chat_log import format_tool_result
from .bridge.errors import build_translated_error, describe_error
from .bridge.openings import async_find_tool_openings
from .bridge.pictures import MAX_FILE_BYTES, PDF_TYPE, UnreadableFile, async_read_file
from .bridge.tool_search import defer_tools
from .bridge.tools import SafeAPIInstance, make_task_tools
from .entity import AgentEntity
from .providers import AnswerSchema, ProviderError, count_tools_tokens
from .turn.errors import TurnError
from .turn.limits import BACKGROUND_TIMEOUT
from .turn.model import Question
from .window import Attachment, Message, ToolCall

# the account's limit of requests applies
PARALLEL_UPDATES = 0

# The names that OpenAI accepts: https://platform.openai.com/docs/api-reference/responses/create
_INVALID_NAME_CHAR_PATTERN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
_DEFAULT_NAME = "data"
_MAX_PROBLEMS = 10
_REFUSAL_TEXT = "A task may not do this, because nobody can be asked first."
# Home Assistant's schema declares their values as text, which its own check refuses.
_FREE_SELECTORS = (ActionSelector, ChooseSelector, TriggerSelector)


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
        # since 2026.11
        evaluates = getattr(AITaskEntityFeature, "EVALUATE", AITaskEntityFeature(0))
        self._attr_supported_features = AITaskEntityFeature.GENERATE_DATA | evaluates
        if agent.model is not None and agent.model.profile.images:
            self._attr_supported_features |= AITaskEntityFeature.SUPPORT_ATTACHMENTS

    @override
    async def _async_generate_data(self, task: GenDataTask, chat_log: ChatLog) -> GenDataTaskResult:
        """Return the data. Raises `HomeAssistantError` with a translated message."""
        system = "".join([each.content for each in chat_log.content if isinstance(each, SystemContent)])
        demand = None if task.structure is None else build_data_demand(task.name, task.structure)
        with self._translate_errors():
            data = await self._async_answer(system, task.instructions, task.attachments, demand, chat_log)
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        chat_log.async_add_assistant_content_without_tools(AssistantContent(agent_id=self.entity_id, content=text))
        return GenDataTaskResult(conversation_id=chat_log.conversation_id, data=data)

    async def _async_evaluate(self, task: Any) -> Any:
        """Return the answers to the questions of a task. Raises `HomeAssistantError`, translated.

        Home Assistant calls this since 2026.11.
        """
        demand = build_evaluation_demand(_clean_name(task.name), task.questions)
        state = format_state(task.state)
        with self._translate_errors():
            data = await self._async_answer(SYSTEM_PROMPT, state, task.attachments, demand, None)
        types: Any = ai_task
        kinds = {"noul": types.NoulAnswer, "choice": types.ChoiceAnswer, "score": types.ScoreAnswer}
        answers = read_evaluation(task.questions, data)
        return types.EvaluationTaskResult(
            {name: kinds[task.questions[name]["type"]](**answer) for name, answer in answers.items()}
        )

    def _prepare_tools(self, chat_log: ChatLog | None) -> SafeAPIInstance | None:
        """Return the tools of a task, or None without any. They may open nothing, because nobody can be asked."""
        agent = self.agent
        if chat_log is None or chat_log.llm_api is None or agent.model is None:
            return None
        api = make_task_tools(chat_log.llm_api)
        api.withhold = self._async_refuse_openings
        defer_tools(api, agent.tool_schemas.convert_tools(api), agent.model.planned_budget.context_tokens)
        return api

    async def _async_refuse_openings(self, api: SafeAPIInstance, call: llm.ToolInput) -> llm.ToolResult | None:
        context, language = self._context or Context(), self.hass.config.language
        user_input = ConversationInput("", context, None, None, None, language, self.entity_id)
        if not await async_find_tool_openings(api, call, user_input):
            return None
        return llm.ToolResult(data={"done": False, "error": "not_allowed", "error_text": _REFUSAL_TEXT}, error=True)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise the errors of a request as `HomeAssistantError`, translated."""
        account: AccountData = self.agent.entry.runtime_data
        assert account.server is not None
        try:
            yield
        except UnreadableFile as err:
            raise build_translated_error(err.key, HomeAssistantError) from err
        except (ProviderError, TurnError) as err:
            if isinstance(err, ProviderError):
                account.server.on_failed(err, self.agent.model, has_begun=False)
            failure = describe_error(err)
            raise build_translated_error(failure.key, HomeAssistantError, **failure.placeholders) from err

    async def _async_answer(
        self,
        system: str,
        instructions: str,
        attachments: Iterable[TaskFile] | None,
        demand: DataDemand | None,
        chat_log: ChatLog | None,
    ) -> Any:
        """Return the model's answer as text or, with a demand, as data."""
        agent, model = self.agent, self.agent.model
        assert model is not None
        # a compatible server has no common form for PDF files
        files = await async_read_files(
            self.hass, attachments or (), images=model.profile.images, pdf=agent.vendor is not None
        )
        messages = (Message.system(system), Message.user(instructions, attachments=files))
        # an automation acts for no user, but somebody may wait for the description of a picture
        is_background = not files and (self._context is None or self._context.user_id is None)
        api = self._prepare_tools(chat_log)
        tools = agent.tool_schemas.convert_tools(api)
        model = model.with_budget(schema_tokens=count_tools_tokens(tools))
        deferred = () if api is None else tuple(api.deferred.values())
        run_call = None if api is None else partial(_async_run_call, api)
        question = Question(model, "", "", tools, "", deferred_tools=deferred, is_background=is_background)
        conversation = None if chat_log is None else chat_log.conversation_id
        person = self._context.user_id if self._context else None
        with record_background(
            agent, route="task", conversation_id=conversation, person=person, entity_id=self.entity_id
        ) as requests:
            requests.text = TurnText(instructions, "")
            run = Task(question, BACKGROUND_TIMEOUT, requests.attempts.append, run_call)
            answer = await (run.ask_for_text(messages) if demand is None else run.ask_for_data(messages, demand))
            requests.text = TurnText(instructions, json.dumps(answer, ensure_ascii=False))
            return answer


async def _async_run_call(api: SafeAPIInstance, call: ToolCall) -> str:
    tool_input = llm.ToolInput(id=call.id, tool_name=call.name, tool_args=dict(call.arguments))
    return format_tool_result(await api.async_call_tool(tool_input))


def build_data_demand(name: str, structure: probatio.Schema) -> DataDemand:
    """Return the demand for data of this structure, for the task with this name."""
    schema = probatio.to_openapi(structure, custom_serializer=_serialize, openapi_version="3.1.0")
    return DataDemand(AnswerSchema(_clean_name(name), schema), partial(_find_problem, structure))


def _clean_name(name: str) -> str:
    return _INVALID_NAME_CHAR_PATTERN.sub("_", name)[:_MAX_NAME_CHARS] or _DEFAULT_NAME


def _serialize(selector: Any) -> Any:
    if isinstance(selector, _FREE_SELECTORS):
        return {}
    schema = llm.selector_serializer(selector)
    if isinstance(selector, SelectSelector) and selector.config.get("custom_value"):
        # Home Assistant's schema allows the options only, its check any text
        for each in (schema, schema.get("items", {})):
            if "enum" in each:
                del each["enum"]
    return schema


def _find_problem(structure: probatio.Schema, data: Any) -> str | None:
    """Return the problems of the data as text for the model, or None. The check changes data, so it gets a copy."""
    try:
        structure(deepcopy(data))
    except probatio.MultipleInvalid as err:
        return "; ".join(map(str, err.errors[:_MAX_PROBLEMS]))
    except (probatio.Invalid, TypeError, ValueError, AttributeError) as err:
        return str(err)
    return None


async def async_read_files(
    hass: HomeAssistant, files: Iterable[TaskFile], *, images: bool, pdf: bool
) -> tuple[Attachment, ...]:
    """Return the files of a task. `images`, `pdf`: whether the model reads these types. Raises `UnreadableFile`."""
    attachments, size = list[Attachment](), 0
    for file in files:
        attachment = await async_read_file(hass, file.path)
        if not (pdf if attachment.mime_type == PDF_TYPE else images):
            raise UnreadableFile("file_not_readable")
        if (size := size + len(attachment.data)) > MAX_FILE_BYTES:
            raise UnreadableFile("file_too_large")
        attachments.append(attachment)
    return tuple(attachments)
