"""Home Assistant's LLM tools: in a fixed order, as JSON schemas, and called so that no error ends a turn."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import chain
import logging
from operator import attrgetter, is_
from typing import Any, override

from homeassistant.components.homeassistant import llm as home_llm
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError, Unauthorized
from homeassistant.helpers import llm
import probatio

from ..const import DOMAIN
from ..providers import ToolSchema
from ..turn.errors import ToolsUnavailable
from .errors import log_fault

_LOGGER = logging.getLogger(__name__)

# The name of Home Assistant's own tool for looking up states, and the prompt paragraph that demands its use.
_STATES_TOOL_NAME = "GetLiveContext"
_STATES_TOOL_PROMPT: str = getattr(home_llm, "DYNAMIC_CONTEXT_PROMPT", "")

type SchemaSerializer = Callable[[Any], Any]
type _SchemaSources = tuple[object, ...]


@dataclass
class SafeAPIInstance(llm.APIInstance):
    """An API whose failing tools return an error result, so that the model is informed and the turn continues.

    The chat log converts Home Assistant's errors in the same way, but only while it waits for the tool. If a tool
    outlived its turn, its error would be logged with its message, which may contain user data.
    """

    @override
    async def async_call_tool(self, tool_input: llm.ToolInput) -> llm.ToolResult:
        try:
            return await super().async_call_tool(tool_input)
        except (HomeAssistantError, probatio.Invalid) as err:
            data: dict[str, Any] = {"error": type(err).__name__}
            if str(err):
                data["error_text"] = str(err)
        except Exception as err:  # noqa: BLE001 - no error of a tool ends the turn
            log_fault(_LOGGER, f"Tool {tool_input.tool_name} failed", err)
            data = {"error": type(err).__name__}
        return llm.ToolResult(data=data, error=True)


class _OwnToolsAPI(llm.API):
    """An API for an agent that has only its own tools."""

    @override
    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        return llm.APIInstance(self, "", llm_context, [])


async def async_get_tools(
    hass: HomeAssistant,
    api_ids: tuple[str, ...],
    llm_context: llm.LLMContext,
    own: tuple[llm.Tool, ...] = (),
    *,
    knows_states: bool = False,
) -> SafeAPIInstance | None:
    """Return the tools of the APIs together with the agent's own tools, or None if there are none.

    APIs that the speaker is not authorized to use are skipped. With `knows_states`, the agent's own tools look up
    states, so Home Assistant's tool for that is removed, as is the prompt paragraph that demands its use. Raises
    `ToolsUnavailable` for an API that does not exist.
    """
    try:
        api = await _async_get_usable_apis(hass, api_ids, llm_context)
    except (HomeAssistantError, ValueError) as err:
        raise ToolsUnavailable(f"LLM API {', '.join(api_ids)}: {type(err).__name__}") from err
    if api is None and not own:
        return None
    if api is None:
        api = await _OwnToolsAPI(hass=hass, id=DOMAIN, name=DOMAIN).async_get_api_instance(llm_context)
    safe = SafeAPIInstance(**{field.name: getattr(api, field.name) for field in fields(llm.APIInstance)})
    if knows_states:
        safe.tools = [tool for tool in safe.tools if tool.name.rpartition("__")[2] != _STATES_TOOL_NAME]
        safe.api_prompt = _remove_states_prompt(safe.api_prompt)
    taken = {tool.name for tool in safe.tools}
    safe.tools = [*safe.tools, *[llm.NamespacedTool(DOMAIN, tool) if tool.name in taken else tool for tool in own]]
    return safe


def _remove_states_prompt(prompt: str) -> str:
    """Return the prompt of the tools without the paragraph that demands a look-up for every state."""
    if _STATES_TOOL_PROMPT and _STATES_TOOL_PROMPT in prompt:
        return prompt.replace(_STATES_TOOL_PROMPT, "")
    return "\n".join(line for line in prompt.split("\n") if _STATES_TOOL_NAME not in line)


async def _async_get_usable_apis(
    hass: HomeAssistant, api_ids: tuple[str, ...], llm_context: llm.LLMContext
) -> llm.APIInstance | None:
    """Return the tools of the APIs that the speaker may use, or None if there are none.

    Since 2026.11 some APIs are for administrators only, and Home Assistant refuses a list of APIs if it contains one of
    those.
    """
    if not api_ids:
        return None
    try:
        return await llm.async_get_api(hass, list(api_ids), llm_context)
    except Unauthorized:
        usable: dict[str, llm.APIInstance] = {}
        for api_id in api_ids:
            with suppress(Unauthorized):
                usable[api_id] = await llm.async_get_api(hass, api_id, llm_context)
    if len(usable) > 1:
        return await llm.async_get_api(hass, list(usable), llm_context)
    return next(iter(usable.values()), None)


class ToolSchemaCache:
    """The JSON schemas of an agent's tools, each converted only once although every turn builds new tools.

    Converting a schema takes longer than all other work on it. Cached sources are compared by identity, because schema
    markers with different descriptions are equal.
    """

    def __init__(self) -> None:
        self._schema_by_tool: dict[str, tuple[_SchemaSources, ToolSchema]] = {}

    def convert_tools(self, api: llm.APIInstance | None) -> tuple[ToolSchema, ...]:
        """Return the schemas of the API's tools, sorted by name so that requests begin with the same bytes."""
        if api is None:
            return ()
        schemas: dict[str, tuple[_SchemaSources, ToolSchema]] = {}
        converted: list[ToolSchema] = []
        for tool in sorted(api.tools, key=attrgetter("name")):
            origin = _list_schema_sources(tool.parameters, api.custom_serializer)
            # A tool that does not declare whether it changes anything is assumed to do so.
            read_only = getattr(tool.annotations, "read_only", False) is True
            before, schema = self._schema_by_tool.get(tool.name, ((), None))
            is_same = len(origin) == len(before) and all(map(is_, origin, before, strict=True))
            if (
                not is_same
                or schema is None
                or schema.description != (tool.description or "")
                or schema.read_only != read_only
            ):
                schema = _convert_schema(tool, api.custom_serializer, read_only=read_only)
            schemas[tool.name] = origin, schema
            converted.append(schema)
        self._schema_by_tool = schemas
        return tuple(converted)


def _list_schema_sources(parameters: probatio.Schema, serializer: SchemaSerializer | None) -> _SchemaSources:
    """Return the objects that a schema is converted from. Keeping a reference to them keeps their identities unique."""
    if not isinstance(parameters, probatio.Schema):
        # Home Assistant annotates another type for this argument, but also converts a `Schema`.
        return _list_schema_sources(probatio.Schema(parameters), serializer)
    schema = parameters.schema
    items = chain.from_iterable(schema.items()) if isinstance(schema, dict) else [schema]
    return serializer, parameters.required, parameters.extra, *items


def _convert_schema(tool: llm.Tool, serializer: SchemaSerializer | None, *, read_only: bool) -> ToolSchema:
    parameters = probatio.to_openapi(tool.parameters, custom_serializer=serializer, openapi_version="3.1.0")
    return ToolSchema(tool.name, tool.description or "", parameters, read_only)
