"""An input as the model gets it: the stable system prompt, the tools, the stamp and the live context of this turn."""

from collections.abc import Callable
from dataclasses import replace
import logging

from homeassistant.components.conversation import ChatLog, ConversationInput
from homeassistant.exceptions import TemplateError
from homeassistant.helpers import area_registry as ar, device_registry as dr, llm
from homeassistant.helpers.template import Template
from homeassistant.util import dt as dt_util

from ..bridge.errors import async_done_phrase
from ..bridge.tools import async_get_tools
from ..const import DOMAIN
from ..providers import ToolSchema, Unavailable, tools_tokens
from ..turn.context import ContextPlacement, Stamp, plain_name
from ..turn.errors import PromptFailed
from ..turn.home import HINT
from ..turn.ports import Model, PromptFingerprints, Question
from ..turn.profile import with_profile
from ..turn.speaker import Speaker
from ..window import Window
from .agent import Agent
from .live_context import TurnContext, tools_of_home
from .lookup import async_fallback_agents
from .memory_use import counted_tools

_LOGGER = logging.getLogger(__name__)


async def async_question_without_input(agent: Agent, llm_context: llm.LLMContext) -> Question:
    """Return a question without an input: the system prompt is the one that was sent before.

    Raises `ToolsUnavailable`, and `Unavailable` if the account has no model.
    """
    model = _model(agent)
    own = (*counted_tools(agent), *tools_of_home(agent))
    knows_states = agent.config.states is not None
    api = await async_get_tools(agent.hass, agent.config.llm_apis, llm_context, own, knows_states=knows_states)
    return Question(
        model=model,
        system="",
        prefix="",
        tools=agent.schemas.of(api),
        done="",
        excluded_tags=agent.config.excluded_tags,
    )


def _model(agent: Agent) -> Model:
    if agent.model is None:
        raise Unavailable("the account has no model")
    return agent.model


class ModelQuestion:
    """Implements `ModelAccess` for one turn: gives the chat log the tools, and builds the question for the model.

    `entity_id` is the agent's entity. The tools that `own_tools` makes are offered in addition to those of the LLM
    APIs. `prompt` has the fingerprints of the system prompt that was sent, or None if no model was asked, and `context`
    what its requests said of memory and the home.
    """

    prompt: PromptFingerprints | None = None
    context: TurnContext | None = None

    def __init__(
        self,
        agent: Agent,
        entity_id: str,
        user_input: ConversationInput,
        chat_log: ChatLog,
        *,
        window: Window,
        speaker: Speaker,
        own_tools: Callable[[], tuple[llm.Tool, ...]],
    ) -> None:
        self._hass = agent.hass
        self._agent = agent
        self._entity_id = entity_id
        self._user_input = user_input
        self._chat_log = chat_log
        self._window = window
        self._speaker = speaker
        self._own_tools = own_tools

    async def question(self) -> Question:
        """Return the question for the model: prompt, context, tools and fallback agents. Raises `TurnError`."""
        model, config = _model(self._agent), self._agent.config
        fallback = async_fallback_agents(self._hass, config.fallback_agents, self._entity_id, self._user_input)
        llm_context = self._user_input.as_llm_context(DOMAIN)
        stamp = Stamp(dt_util.now(), self._speaker.stamp_name, *self._device_and_area())
        language = self._user_input.language
        context = self.context = TurnContext(self._agent, self._window, self._speaker, stamp, language)
        await context.async_read()
        own = (*self._own_tools(), *tools_of_home(self._agent))
        knows_states = config.states is not None
        api = await async_get_tools(self._hass, config.llm_apis, llm_context, own, knows_states=knows_states)
        self._chat_log.llm_api = api
        self._chat_log.llm_input_provided_index = len(self._chat_log.content)
        tools = self._agent.schemas.of(api)
        in_system = config.context_placement is ContextPlacement.SYSTEM
        question = Question(
            model=self._planned(model, tools),
            system=with_profile(self._system_prompt(llm_context, api, volatile=in_system), context.profile),
            prefix="" if in_system else stamp.prefix(),
            tools=tools,
            done=await async_done_phrase(self._hass, self._user_input.language),
            excluded_tags=config.excluded_tags,
            fallback_agents=tuple(
                self._planned(asked, tools) if isinstance(asked, Model) else asked for asked in fallback
            ),
            live=context.live,
        )
        if self._agent.head_start is not None and self.prompt is not None:
            key = self._agent.windows.key_of(self._window)
            self._agent.head_start.on_question(question, self.prompt, key)
        return question

    def _planned(self, model: Model, tools: tuple[ToolSchema, ...]) -> Model:
        """Return the model with the sizes of the tools, which learned sizes include, and of the live context."""
        schema_tokens = tools_tokens(tools, self._agent.counter)
        live_tokens = self.context.tokens if self.context else 0
        return replace(model, budget=replace(model.budget, schema_tokens=schema_tokens, live_tokens=live_tokens))

    def _system_prompt(self, llm_context: llm.LLMContext, api: llm.APIInstance | None, *, volatile: bool) -> str:
        extra = self._user_input.extra_system_prompt or self._chat_log.extra_system_prompt
        self._chat_log.extra_system_prompt = extra
        instructions, entities = self._instructions(llm_context), api.api_prompt if api else ""
        hint = HINT if self._agent.config.states is not None and api else ""
        parts = (instructions, entities, hint, extra or "")
        self.prompt = PromptFingerprints(hash((instructions, extra)), hash(entities), volatile)
        return "\n".join(part.strip() for part in parts if part.strip())

    def _instructions(self, llm_context: llm.LLMContext) -> str:
        """Render the instructions with the variables that core's agents provide."""
        variables = {
            "ha_name": plain_name(self._hass.config.location_name),
            "user_name": self._speaker.user_name,
            "llm_context": llm_context,
        }
        try:
            rendered = Template(self._agent.config.instructions, self._hass).async_render(variables, parse_result=False)
        except TemplateError as err:
            _LOGGER.warning("The instructions of the agent cannot be rendered: %s", err)
            raise PromptFailed("the instructions cannot be rendered") from err
        return str(rendered)

    def _device_and_area(self) -> tuple[str | None, str | None]:
        device_id = self._user_input.device_id
        device = dr.async_get(self._hass).async_get(device_id) if device_id else None
        if device is None:
            return None, None
        area_id = dr.async_get_effective_area_id(self._hass, device)
        area = ar.async_get(self._hass).async_get_area(area_id) if area_id else None
        return device.name_by_user or device.name, area.name if area else None
