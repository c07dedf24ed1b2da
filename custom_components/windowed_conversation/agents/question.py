"""The question of a turn for the model: the stable system prompt, the tools, the stamp and the live context."""

from dataclasses import replace
import logging

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import TemplateError
from homeassistant.helpers import area_registry as ar, device_registry as dr, llm
from homeassistant.helpers.template import Template
from homeassistant.util import dt as dt_util

from ..bridge.errors import async_done_phrase
from ..bridge.tools import SafeAPIInstance, async_get_tools
from ..const import DOMAIN
from ..providers import Unavailable, tools_tokens
from ..turn.context import ContextPlacement, Stamp, plain_name
from ..turn.errors import PromptFailed
from ..turn.home import HINT
from ..turn.ports import Model, PromptFingerprints, Question
from ..turn.profile import with_profile
from .agent import Agent
from .conversation_turn import ConversationTurn
from .live_context import TurnContext, tools_of_home
from .lookup import async_fallback_agents
from .memory_use import counted_memory_tools, turn_memory_tools

_LOGGER = logging.getLogger(__name__)


async def async_question_without_input(agent: Agent, llm_context: llm.LLMContext) -> Question:
    """Return a question without an input: the system prompt is the one that was sent before.

    Raises `ToolsUnavailable`, and `Unavailable` if the account has no model.
    """
    model, api = _model(agent), await _async_tools(agent, llm_context, counted_memory_tools(agent))
    return Question(model, "", "", agent.schemas.convert(api), "", excluded_tags=agent.config.excluded_tags)


def _model(agent: Agent) -> Model:
    if agent.model is None:
        raise Unavailable("the account has no model")
    return agent.model


async def _async_tools(
    agent: Agent, llm_context: llm.LLMContext, memory_tools: tuple[llm.Tool, ...]
) -> SafeAPIInstance | None:
    own, knows_states = (*memory_tools, *tools_of_home(agent)), agent.config.states is not None
    return await async_get_tools(agent.hass, agent.config.llm_apis, llm_context, own, knows_states=knows_states)


async def async_build_question(turn: ConversationTurn) -> Question:
    """Return the question of a turn, and give its chat log the tools. Raises `TurnError`."""
    hass, agent, user_input, chat_log = turn.agent.hass, turn.agent, turn.user_input, turn.chat_log
    model, config = _model(agent), agent.config
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
        """Return a model with the sizes of the tools, which learned sizes include, and of the live context."""
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
    """Return the system prompt without the profile of facts, and its fingerprints."""
    extra = turn.user_input.extra_system_prompt or turn.chat_log.extra_system_prompt
    turn.chat_log.extra_system_prompt = extra
    instructions, entities = _instructions(turn, llm_context), api.api_prompt if api else ""
    hint = HINT if turn.agent.config.states is not None and api else ""
    parts = [part.strip() for part in (instructions, entities, hint, extra or "")]
    fingerprints = PromptFingerprints(hash((instructions, extra)), hash(entities), volatile)
    return fingerprints, "\n".join(filter(None, parts))


def _instructions(turn: ConversationTurn, llm_context: llm.LLMContext) -> str:
    """Render the instructions with the variables that core's agents provide."""
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
