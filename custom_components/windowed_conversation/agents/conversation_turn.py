"""A turn in Home Assistant as one object, and the question for the model that is built from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
import logging
import time
from typing import Any
from uuid import uuid7

from homeassistant.components.conversation import ChatLog, ConversationInput
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import TemplateError
from homeassistant.helpers import area_registry as ar, device_registry as dr, llm
from homeassistant.helpers.template import Template
from homeassistant.util import dt as dt_util

from ..bridge.chat_log import ChatLogReply
from ..bridge.errors import async_done_phrase
from ..bridge.home_tools import home_tools
from ..bridge.local_intents import LocalIntents
from ..bridge.memory_answers import Forget, MemoryAnswers
from ..bridge.memory_tools import memory_tools
from ..bridge.tools import SafeAPIInstance, async_get_tools
from ..const import DOMAIN, RecordLevel
from ..memory import Memory
from ..providers import tools_tokens
from ..turn.context import ContextPlacement, Stamp, plain_name
from ..turn.errors import PromptFailed
from ..turn.forgetting import without_forgetting
from ..turn.home import HINT
from ..turn.model import Model, PromptFingerprints, Question
from ..turn.recall import with_profile
from ..turn.remember_requests import MemoryDialog, MemoryReply
from ..turn.speaker import Speaker
from ..turn.state import Turn
from ..window import Window, WindowStats
from .agent import Agent
from .forgetting import async_forget_by
from .live_context import TurnContext
from .lookup import async_fallback_agents, async_find_agent
from .store import async_store

_LOGGER = logging.getLogger(__name__)


@dataclass(slots=True)
class ConversationTurn:
    """One turn, with its window and its chat log, and later its result.

    `id` is the turn's id in the record, which sorts by time; `record_id` is the same, or None if the turn is not
    recorded. `at` is the start, in seconds since the epoch. `state` holds the progress and the outcome. `before` and
    `after` are the statistics of the window at the start and after the turn. `local` is set once a local answer was
    tried. If a model was asked, `prompt` holds the fingerprints of the system prompt, and `context` the live context.
    `attributes` name the agent that answered and earlier failures, see `answer_attributes`.
    """

    agent: Agent
    entity_id: str
    key: str
    user_input: ConversationInput
    speaker: Speaker
    chat_log: ChatLog
    window: Window
    id: str = field(init=False)
    record_id: str | None = field(init=False)
    at: float = field(default_factory=time.time)
    reply: ChatLogReply = field(init=False)
    dialog: MemoryDialog = field(init=False)
    before: WindowStats = field(init=False)
    after: WindowStats = field(init=False)
    state: Turn = field(init=False)
    local: LocalIntents | None = None
    context: TurnContext | None = None
    prompt: PromptFingerprints | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id = str(uuid7())
        self.record_id = None if self.agent.config.record is RecordLevel.OFF else self.id
        self.reply = ChatLogReply(self.chat_log, self.entity_id)
        self.dialog = MemoryDialog(self.agent.last_answers, self.key, self.speaker)
        self.before = self.after = self.window.stats()

    @property
    def current_agent(self) -> Agent:
        """The turn's agent, or its successor if the account was reloaded during the turn."""
        return async_find_agent(self.agent.hass, self.agent.id) or self.agent


def memory_answers(turn: ConversationTurn) -> MemoryAnswers | None:
    """Return the answers of memory to a turn's input, or None without a store. Forgetting works without memory."""
    store = async_store(turn.agent.hass)
    if store is None:
        return None
    forget, has_memory = partial(async_forget_by, turn.agent.hass), turn.agent.config.memory
    return MemoryAnswers(turn.agent.hass, store, turn.speaker, forget, turn.dialog, has_memory=has_memory)


def turn_memory_tools(turn: ConversationTurn) -> tuple[llm.Tool, ...]:
    """Return the memory tools for a turn, or none if the agent has no memory."""

    async def forget(work: Callable[[Memory], MemoryReply]) -> MemoryReply:
        done: MemoryReply | None = None
        try:
            done = await async_forget_by(turn.agent.hass, work)
        finally:
            # an exchange that asks for a confirmation has to stay in the window until the user confirms
            if done is None or done.then is None:
                turn.agent.windows.rewrite_after_turn(turn.key, without_forgetting)
        return done

    return _memory_tools(turn.agent, turn.speaker, forget, turn.dialog)


def _memory_tools(agent: Agent, speaker: Speaker, forget: Forget, dialog: MemoryDialog) -> tuple[llm.Tool, ...]:
    """Return the memory tools, only for an agent with other tools, because not every model supports tools."""
    store = async_store(agent.hass)
    if not agent.config.memory or store is None or not agent.config.llm_apis:
        return ()
    return memory_tools(store, speaker, forget, dialog)


async def async_question_without_input(agent: Agent, llm_context: llm.LLMContext) -> Question:
    """Return a question without user input, for requests that reuse the system prompt that was sent before.

    The agent has a model. Raises `ToolsUnavailable`.
    """
    # the memory tools are sent and counted, but never called
    nobody = Speaker("", agent.hass.config.language)
    own = _memory_tools(agent, nobody, partial(async_forget_by, agent.hass), MemoryDialog({}, "", nobody))
    assert agent.model is not None
    model, api = agent.model, await _async_tools(agent, llm_context, own)
    return Question(model, "", "", agent.schemas.convert(api), "", excluded_tags=agent.config.excluded_tags)


async def _async_tools(
    agent: Agent, llm_context: llm.LLMContext, memory_tools: tuple[llm.Tool, ...]
) -> SafeAPIInstance | None:
    domains = agent.config.states
    own = memory_tools if domains is None else (*memory_tools, *home_tools(agent.counter.count, domains))
    return await async_get_tools(agent.hass, agent.config.llm_apis, llm_context, own, knows_states=domains is not None)


async def async_build_question(turn: ConversationTurn) -> Question:
    """Return the question of a turn, and add the tools to its chat log. Raises `TurnError`."""
    hass, agent, user_input, chat_log = turn.agent.hass, turn.agent, turn.user_input, turn.chat_log
    model, config = agent.model, agent.config
    # an agent without a model only answers locally
    assert model is not None
    fallback = async_fallback_agents(hass, config.fallback_agents, turn.entity_id, user_input)
    llm_context = user_input.as_llm_context(DOMAIN)
    stamp = Stamp(dt_util.now(), turn.speaker.stamp_name, *_device_and_area(hass, user_input.device_id))
    context = turn.context = TurnContext(agent, turn.window, turn.speaker, stamp, user_input.language)
    await context.async_read()
    api = await _async_tools(agent, llm_context, turn_memory_tools(turn))
    chat_log.llm_api = api
    chat_log.llm_input_provided_index = len(chat_log.content)
    tools = agent.schemas.convert(api)

    def sized(model: Model) -> Model:
        """Return a model whose budget includes the sizes of the tools and of the live context."""
        schema_tokens = tools_tokens(tools, agent.counter)
        return replace(model, budget=replace(model.budget, schema_tokens=schema_tokens, live_tokens=context.tokens))

    in_system = config.context_placement is ContextPlacement.SYSTEM
    prompt, system = _system_prompt(turn, llm_context, api, volatile=in_system)
    question = Question(
        model=sized(model),
        system=with_profile(system, context.profile),
        prefix="" if in_system else stamp.prefix(),
        tools=tools,
        done=await async_done_phrase(hass, user_input.language),
        excluded_tags=config.excluded_tags,
        fallback_agents=tuple([sized(each) if isinstance(each, Model) else each for each in fallback]),
        live=context.live,
    )
    turn.prompt = prompt
    if agent.head_start is not None:
        agent.head_start.on_question(question, prompt, turn.key)
    return question


def _system_prompt(
    turn: ConversationTurn, llm_context: llm.LLMContext, api: llm.APIInstance | None, *, volatile: bool
) -> tuple[PromptFingerprints, str]:
    """Return the fingerprints of the system prompt, and its text without the profile of facts."""
    extra = turn.user_input.extra_system_prompt or turn.chat_log.extra_system_prompt
    turn.chat_log.extra_system_prompt = extra
    instructions, entities = _instructions(turn, llm_context), api.api_prompt if api else ""
    hint = HINT if turn.agent.config.states is not None and api else ""
    parts = [part.strip() for part in (instructions, entities, hint, extra or "")]
    fingerprints = PromptFingerprints(hash((instructions, extra)), hash(entities), volatile)
    return fingerprints, "\n".join(filter(None, parts))


def _instructions(turn: ConversationTurn, llm_context: llm.LLMContext) -> str:
    """Render the instructions template with the same variables as core's agents."""
    hass = turn.agent.hass
    variables = {
        "ha_name": plain_name(hass.config.location_name),
        "user_name": turn.speaker.user_name,
        "llm_context": llm_context,
    }
    try:
        return str(Template(turn.agent.config.instructions, hass).async_render(variables, parse_result=False))
    except TemplateError as err:
        _LOGGER.warning("The instructions of the agent cannot be rendered: %s", err)
        raise PromptFailed("the instructions cannot be rendered") from err


def _device_and_area(hass: HomeAssistant, device_id: str | None) -> tuple[str | None, str | None]:
    device = dr.async_get(hass).async_get(device_id) if device_id else None
    if device is None:
        return None, None
    area_id = dr.async_get_effective_area_id(hass, device)
    area = ar.async_get(hass).async_get_area(area_id) if area_id else None
    return device.name_by_user or device.name, area.name if area else None
