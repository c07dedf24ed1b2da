"""The subentry flows of an agent and of an AI task.

Rarely changed settings are in a section, which is collapsed until there is a mistake in the form.
The URL and the key of the agent's model belong to the account.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, fields as dataclass_fields
import re
from types import MappingProxyType
from typing import Any

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.config_entries import (
    SOURCE_RECONFIGURE,
    SOURCE_USER,
    ConfigEntryState,
    ConfigSubentryFlow,
    SubentryFlowResult,
)
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, Platform, UnitOfTime
from homeassistant.core import Context
from homeassistant.helpers import entity_registry as er, llm
from homeassistant.helpers.selector import (
    EntitySelector,
    EntitySelectorConfig,
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TemplateSelector,
    TextSelector,
    TextSelectorConfig,
    TextSelectorType,
)
import probatio

from .. import const
from ..agents.agent import AccountData, Agent
from ..agents.config import (
    DEFAULT_ASK_BEFORE_OPENING,
    DEFAULT_CAMERAS,
    DEFAULT_COMPACTION,
    DEFAULT_CONTEXT_PLACEMENT,
    DEFAULT_EXACT_COUNTING,
    DEFAULT_INSTRUCTIONS,
    DEFAULT_RECORD,
    DEFAULT_ROUTING,
    DEFAULT_SCOPE,
    DEFAULT_STATES,
    DEFAULT_TASK_ANSWER_TOKENS,
    DEFAULT_WEB_SEARCH,
    default_memory,
    default_temperature,
)
from ..agents.conversation_turn import async_weigh_request
from ..bridge.account import can_search, can_shorten, get_vendor
from ..bridge.errors import async_get_spoken_text, format_count
from ..bridge.spoken_code import MASK, hash_code, is_code
from ..providers import DEFAULT_SETTINGS, SELECTABLE_EFFORTS, UNKNOWN_MODEL, ListedModel, Vendor, find_profile
from ..turn.context import ContextPlacement
from ..turn.errors import TurnError
from ..turn.limits import DEFAULT_TURN_TIMEOUT, RequestWeight
from ..turn.routing import RoutingMode, Scope
from .fields import (
    TASK_SUFFIX,
    FormFields,
    FormSection,
    async_build_model_fields,
    async_reads_images,
    async_set_limit_errors,
    build_choice,
    choose_agent_name,
    flatten_sections,
    get_model_field,
    has_deployments,
    list_models,
    nest_in_sections,
    number_field,
    pop_model_names,
    suggest_agent_name,
    suggest_model,
    switch_field,
    token_field,
)

_PRIVACY_PAGE = "https://github.com/windowed-conversation/windowed-conversation/blob/main/docs/privacy.md"

_NEW_AGENT_SETTINGS: dict[str, Any] = {
    CONF_PROMPT: DEFAULT_INSTRUCTIONS,
    CONF_LLM_HASS_API: [llm.LLM_API_ASSIST],
    const.CONF_ROUTING: DEFAULT_ROUTING,
}

# The section of the form. The stored data of an agent has no sections.
_ADVANCED_SECTION = "advanced"

# Matches the calls that make a template change with the minute.
_CHANGING_PATTERN = re.compile(r"\{[{%][^}]*\b(?:(?:utc)?now\(|states[(.\[])")

# In seconds. The form waits no longer for the tools of other integrations.
_WEIGHT_TIMEOUT = 0.5
_UNKNOWN = "?"


class AgentFlow(ConfigSubentryFlow):
    """The subentry flow that adds or reconfigures an agent."""

    _step_id = "agent"
    _new_settings: Mapping[str, Any] = _NEW_AGENT_SETTINGS
    _suggested_name = ""
    # The instructions that the form has already warned of, because they change often.
    _warned_instructions = ""

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Add a new agent, or reconfigure an existing one."""
        return await self.async_step_agent()

    async_step_reconfigure = async_step_user

    async def async_step_agent(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Ask for the settings of an agent."""
        if self._get_entry().state is not ConfigEntryState.LOADED:
            return self.async_abort(reason="entry_not_loaded")
        errors: dict[str, str] = {}
        if user_input is not None:
            errors = self._find_input_errors(user_input) or self._warn_of_changing_instructions(user_input)
            if not errors:
                return await self._async_store_agent(user_input)
        models = await self._async_list_models()
        suggested = self._suggest_data(models)
        images = await self._async_build_image_field(user_input or suggested, models)
        sections = self._build_sections(images)
        data = nest_in_sections(suggested, sections)
        if user_input is None:
            errors = self._warn_of_changing_instructions(data)
            if self._must_type_model(models):
                errors[CONF_MODEL] = "no_models"
        form = probatio.Schema(
            {
                **await self._async_build_fields(models, images),
                **{
                    probatio.Required(name): FormSection(fields, collapsed=user_input is None)
                    for name, fields in sections.items()
                },
            }
        )
        await async_set_limit_errors(self.hass, form, "config_subentries")
        return self.async_show_form(
            step_id=self._step_id,
            data_schema=self.add_suggested_values_to_schema(form, user_input or data),
            errors=errors,
            description_placeholders={
                "privacy_page": _PRIVACY_PAGE,
                "request_weight": await self._async_describe_weight(),
            },
        )

    async def _async_describe_weight(self) -> str:
        """Return the text on the weight of a saved agent's requests, or an empty text if that is unknown."""
        if self.source == SOURCE_USER:
            return ""
        account: AccountData = self._get_entry().runtime_data
        agent = account.agents.get(self._get_reconfigure_subentry().subentry_id)
        return "" if agent is None else await _async_describe_weight(agent)

    def _suggest_data(self, models: list[ListedModel]) -> dict[str, Any]:
        if self.source == SOURCE_USER:
            self._suggested_name = self._suggest_name(suggest_model(self._get_entry().data, models))
            return {CONF_NAME: self._suggested_name, **self._new_settings}
        subentry = self._get_reconfigure_subentry()
        data = {CONF_NAME: subentry.title, CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT, **subentry.data}
        if CONF_MODEL in data:
            data[get_model_field(self._get_entry().data)] = data.pop(CONF_MODEL)
        if const.CONF_OPENING_CODE in data:
            data[const.CONF_OPENING_CODE] = MASK
        # the form would refuse its own suggestion if it included an API that does not exist any more
        there = {api.id for api in self._list_apis()}
        data[CONF_LLM_HASS_API] = [api for api in data.get(CONF_LLM_HASS_API, ()) if api in there]
        return data

    def _suggest_name(self, model: str) -> str:
        return suggest_agent_name(self.hass, self._get_entry().data, model)

    def _must_type_model(self, models: list[ListedModel]) -> bool:
        """Return whether the name of a new agent's model must be typed because the server lists none."""
        account, is_new = self._get_entry().data, self.source == SOURCE_USER
        return self._has_model and is_new and not has_deployments(account) and not list_models(account, models)

    def _find_input_errors(self, user_input: dict[str, Any]) -> dict[str, str]:
        errors: dict[str, str] = {}
        if self.source == SOURCE_RECONFIGURE and not user_input[CONF_NAME].strip():
            errors[CONF_NAME] = "name_missing"
        field = get_model_field(self._get_entry().data)
        if self._has_model and not user_input[field].strip():
            errors[field] = "model_missing"
        code = user_input.get(_ADVANCED_SECTION, {}).get(const.CONF_OPENING_CODE, "")
        if code not in ("", MASK) and not is_code(code):
            errors["base"] = "code_invalid"
        return errors

    def _warn_of_changing_instructions(self, data: Mapping[str, Any]) -> dict[str, str]:
        """Return an error, only once for each text, if the instructions change too often for a prompt cache."""
        instructions = data.get(CONF_PROMPT, "")
        if instructions == self._warned_instructions or not _CHANGING_PATTERN.search(instructions):
            return {}
        self._warned_instructions = instructions
        return {CONF_PROMPT: "instructions_change"}

    async def _async_store_agent(self, user_input: dict[str, Any]) -> SubentryFlowResult:
        data = flatten_sections(user_input, (_ADVANCED_SECTION,))
        entered = data.pop(CONF_NAME, "")
        data |= await self._async_hash_code(data.pop(const.CONF_OPENING_CODE, ""))
        if self._has_model:
            data |= pop_model_names(self._get_entry().data, data)
            data |= await self._async_find_images(data)
        if self.source == SOURCE_USER:
            model = data.get(CONF_MODEL, "")
            name = choose_agent_name(entered, self._suggested_name, self._suggest_name(model))
            return self.async_create_entry(title=name, data=data)
        # the account's update listener applies the change
        entry, subentry = self._get_entry(), self._get_reconfigure_subentry()
        return self.async_update_and_abort(entry, subentry, title=entered.strip(), data=data)

    async def _async_hash_code(self, entered: str) -> dict[str, str]:
        """Return the field with the spoken code: a hash of a new code, the stored one if it is unchanged, or none."""
        if entered == MASK:
            return {const.CONF_OPENING_CODE: self._get_reconfigure_subentry().data[const.CONF_OPENING_CODE]}
        if not entered:
            return {}
        return {const.CONF_OPENING_CODE: await self.hass.async_add_executor_job(hash_code, entered)}

    async def _async_reads_images(self, model: str) -> bool | None:
        entry = self._get_entry()
        account: AccountData = entry.runtime_data
        return None if account.server is None else await async_reads_images(entry.data, account.server.provider, model)

    async def _async_build_image_field(self, data: Mapping[str, Any], models: list[ListedModel]) -> FormFields:
        """Return the switch for pictures, or no field if the model's name or its server says whether it reads them."""
        account = self._get_entry().data
        if has_deployments(account):
            is_unknown = find_profile(Vendor.AZURE, data.get(const.CONF_FAMILY, "")) is UNKNOWN_MODEL
        else:
            model = data.get(CONF_MODEL) or suggest_model(account, models)
            is_compatible = self._has_model and get_vendor(account) is None
            is_unknown = is_compatible and await self._async_reads_images(model) is None
        return switch_field(const.CONF_IMAGES, default=False) if is_unknown else {}

    async def _async_find_images(self, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return whether the model reads pictures, as its server says or has said before, or else nothing."""
        model = data.get(CONF_MODEL, "")
        reads_images = await self._async_reads_images(model)
        has_entered = const.CONF_IMAGES in data or has_deployments(self._get_entry().data)
        if reads_images is None and self.source == SOURCE_RECONFIGURE and not has_entered:
            before = self._get_reconfigure_subentry().data
            reads_images = before.get(const.CONF_IMAGES) if before.get(CONF_MODEL) == model else None
        return {} if reads_images is None else {const.CONF_IMAGES: reads_images}

    @property
    def _has_model(self) -> bool:
        return bool(self._get_entry().data[const.CONF_PROVIDER] != const.PROVIDER_NONE)

    async def _async_build_fields(self, models: list[ListedModel], images: FormFields) -> FormFields:
        """Return the fields outside of sections. `images` is the switch for pictures, if the form has it."""
        account, fields = self._get_entry().data, self._build_name_field()
        if self._has_model:
            apis = [SelectOptionDict(label=api.name, value=api.id) for api in self._list_apis()]
            fields |= {
                **await async_build_model_fields(self.hass, account, models),
                probatio.Optional(CONF_PROMPT): TemplateSelector(),
                probatio.Optional(CONF_LLM_HASS_API, default=list): SelectSelector(
                    SelectSelectorConfig(options=apis, multiple=True)
                ),
                **build_permission_fields(account),
                **build_choice(const.CONF_ROUTING, RoutingMode, DEFAULT_ROUTING),
                probatio.Optional(const.CONF_FALLBACK_AGENTS): self._build_fallback_selector(),
            }
        return fields | build_memory_field(account)

    def _build_name_field(self) -> FormFields:
        # a browser does not submit a form with an empty required field
        may_be_empty = self.source == SOURCE_USER and not self._suggested_name
        return {(probatio.Optional if may_be_empty else probatio.Required)(CONF_NAME): str}

    def _build_sections(self, images: FormFields) -> dict[str, FormFields]:
        return {_ADVANCED_SECTION: build_advanced_fields(self._get_entry().data, images)}

    def _build_fallback_selector(self) -> EntitySelector:
        """Return a selector of all conversation entities except the agent's own."""
        config = EntitySelectorConfig(domain=Platform.CONVERSATION, multiple=True)
        if self.source == SOURCE_RECONFIGURE:
            agent_id = self._get_reconfigure_subentry().subentry_id
            own = er.async_get(self.hass).async_get_entity_id(Platform.CONVERSATION, const.DOMAIN, agent_id)
            config["exclude_entities"] = [own] if own else []
        return EntitySelector(config)

    def _list_apis(self) -> list[llm.API]:
        """Return the LLM APIs to choose from: all except the memory API, because our agents have memory tools."""
        return [api for api in llm.async_get_apis(self.hass) if api.id != const.MEMORY_API_ID]

    async def _async_list_models(self) -> list[ListedModel]:
        """Return the models that the server lists, or listed last if it is away. The user can type any other name."""
        entry = self._get_entry()
        account: AccountData = entry.runtime_data
        if account.server is None or has_deployments(entry.data):
            return []
        return await account.server.async_list_models()


class TaskFlow(AgentFlow):
    """The subentry flow that adds or reconfigures an AI task."""

    _step_id = "task"
    _new_settings = MappingProxyType({})

    async_step_task = AgentFlow.async_step_agent

    def _suggest_name(self, model: str) -> str:
        return suggest_agent_name(self.hass, self._get_entry().data, model, suffix=TASK_SUFFIX)

    def _build_sections(self, images: FormFields) -> dict[str, FormFields]:
        return {}

    async def _async_build_fields(self, models: list[ListedModel], images: FormFields) -> FormFields:
        return {
            **self._build_name_field(),
            **await async_build_model_fields(self.hass, self._get_entry().data, models),
            **images,
            probatio.Optional(const.CONF_EFFORT): _build_effort_selector(),
            **token_field(const.CONF_MAX_ANSWER_TOKENS, DEFAULT_TASK_ANSWER_TOKENS),
            **build_choice(const.CONF_RECORD, const.RecordLevel, DEFAULT_RECORD),
        }


def build_permission_fields(account: Mapping[str, Any]) -> FormFields:
    """Return the permissions in an agent's form: web search and cameras."""
    search = switch_field(const.CONF_WEB_SEARCH, default=DEFAULT_WEB_SEARCH) if can_search(account) else {}
    return search | switch_field(const.CONF_CAMERAS, default=DEFAULT_CAMERAS)


def build_memory_field(account: Mapping[str, Any]) -> FormFields:
    """Return the field for the content of memory in an agent's form."""
    is_local = account[const.CONF_PROVIDER] == const.PROVIDER_NONE
    modes = (const.MemoryMode.OFF, const.MemoryMode.ON) if is_local else const.MemoryMode
    return build_choice(const.CONF_MEMORY, modes, default_memory(account))


def build_advanced_fields(account: Mapping[str, Any], images: FormFields) -> FormFields:
    """Return the fields of the section in an agent's form. `images` is the switch for pictures, if the form has it."""
    scope = build_choice(const.CONF_SCOPE, Scope, DEFAULT_SCOPE)
    record = build_choice(const.CONF_RECORD, const.RecordLevel, DEFAULT_RECORD)
    gate = {
        **build_choice(const.CONF_ASK_BEFORE_OPENING, const.AskMode, DEFAULT_ASK_BEFORE_OPENING),
        probatio.Optional(const.CONF_OPENING_CODE): TextSelector(TextSelectorConfig(type=TextSelectorType.PASSWORD)),
    }
    if account[const.CONF_PROVIDER] == const.PROVIDER_NONE:
        return scope | gate | record
    temperature = default_temperature(account)
    return {
        probatio.Optional(const.CONF_EFFORT): _build_effort_selector(),
        **number_field(
            const.CONF_TEMPERATURE,
            0,
            2,
            step=0.1,
            default=probatio.UNDEFINED if temperature is None else temperature,
            required=False,
        ),
        **token_field(const.CONF_CONTEXT_TOKENS),
        **token_field(const.CONF_MAX_ANSWER_TOKENS, DEFAULT_SETTINGS.max_answer_tokens),
        **switch_field(const.CONF_EXACT_COUNTING, default=DEFAULT_EXACT_COUNTING),
        **(switch_field(const.CONF_COMPACTION, default=DEFAULT_COMPACTION) if can_shorten(account) else {}),
        **scope,
        **build_choice(const.CONF_CONTEXT_PLACEMENT, ContextPlacement, DEFAULT_CONTEXT_PLACEMENT),
        **switch_field(const.CONF_STATES, default=DEFAULT_STATES),
        **images,
        **number_field(const.CONF_TURN_TIMEOUT, 1, 600, UnitOfTime.SECONDS, default=DEFAULT_TURN_TIMEOUT),
        **gate,
        **record,
    }


def _build_effort_selector() -> SelectSelector:
    # buttons could not be cleared again
    mode = SelectSelectorMode.DROPDOWN
    config = SelectSelectorConfig(options=list(SELECTABLE_EFFORTS), translation_key=const.CONF_EFFORT, mode=mode)
    return SelectSelector(config)


async def async_weigh_agent(agent: Agent) -> RequestWeight | None:
    """Return the weight of the agent's requests for a form, or None if it is unknown or takes too long."""
    context = llm.LLMContext(const.DOMAIN, Context(), agent.hass.config.language, CONVERSATION_DOMAIN, None)
    try:
        async with asyncio.timeout(_WEIGHT_TIMEOUT):
            return await async_weigh_request(agent, context)
    except TimeoutError, TurnError:
        return None


def format_weight(weight: RequestWeight | None, language: str) -> dict[str, str]:
    """Return the parts of a weight as placeholders of a text. An unknown part is a question mark."""
    tokens = dict.fromkeys(each.name for each in dataclass_fields(RequestWeight)) if weight is None else asdict(weight)
    if weight is not None:
        tokens["facts"] = weight.facts or 0
    tokens.pop("sources")
    return {name: _UNKNOWN if count is None else format_count(count, language) for name, count in tokens.items()}


async def _async_describe_weight(agent: Agent) -> str:
    """Return a sentence in Home Assistant's language, or an empty text if the weight is unknown."""
    weight = await async_weigh_agent(agent)
    if weight is None:
        return ""
    language = agent.hass.config.language
    text = await async_get_spoken_text(agent.hass, language, "selector", "request_weight.options.tokens")
    sources = [
        f"- {name}: {_format_estimate(size, language)} → {_format_estimate(sent, language)}"
        for name, (size, sent) in weight.sources.items()
    ]
    return "\n".join(
        [text.format(tokens=_format_estimate(weight.total, language)), *(["", *sources] if sources else [])]
    )


def _format_estimate(tokens: int, language: str) -> str:
    """Return a number of tokens with two digits, which are enough for an estimate."""
    return format_count(int(float(f"{tokens:.2g}")), language)
