"""Home Assistant's LLM tools: in a fixed order, as JSON schemas, and called so that none can break a turn."""

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

# Home Assistant's own tool that looks up states, and its order to use it.
_LOOKS_UP = "GetLiveContext"
_ORDER: str = getattr(home_llm, "DYNAMIC_CONTEXT_PROMPT", "")

type Serializer = Callable[[Any], Any]
type _Origin = tuple[object, ...]


@dataclass
class SafeAPIInstance(llm.APIInstance):
    """An API whose tools fail with a result: the model learns about it, and the turn continues.

    The chat log makes the same results of Home Assistant's errors, but only while it waits for the tool. The error of a
    tool that outlives its turn would be logged with its message.
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


class _OwnAPI(llm.API):
    """The API of the agent's own tools, for an agent without others."""

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
    """Return the tools of the APIs and the agent's own, or None if there are none.

    An API that the speaker may not use is left out. With `knows_states` the agent's own tools look up states: Home
    Assistant's tool for that, and the paragraph that orders to use it, are left out. Raises `ToolsUnavailable` for an
    API that does not exist.
    """
    try:
        api = await _async_usable(hass, api_ids, llm_context)
    except (HomeAssistantError, ValueError) as err:
        raise ToolsUnavailable(f"LLM API {', '.join(api_ids)}: {type(err).__name__}") from err
    if api is None and not own:
        return None
    if api is None:
        api = await _OwnAPI(hass=hass, id=DOMAIN, name=DOMAIN).async_get_api_instance(llm_context)
    safe = SafeAPIInstance(**{field.name: getattr(api, field.name) for field in fields(llm.APIInstance)})
    if knows_states:
        safe.tools = [tool for tool in safe.tools if tool.name.rpartition("__")[2] != _LOOKS_UP]
        safe.api_prompt = _without_order(safe.api_prompt)
    taken = {tool.name for tool in safe.tools}
    safe.tools = [*safe.tools, *[llm.NamespacedTool(DOMAIN, tool) if tool.name in taken else tool for tool in own]]
    return safe


def _without_order(prompt: str) -> str:
    """Return the prompt of the tools without the paragraph that orders a look-up for each state."""
    if _ORDER and _ORDER in prompt:
        return prompt.replace(_ORDER, "")
    return "\n".join(line for line in prompt.split("\n") if _LOOKS_UP not in line)


async def _async_usable(
    hass: HomeAssistant, api_ids: tuple[str, ...], llm_context: llm.LLMContext
) -> llm.APIInstance | None:
    """Return the tools of those APIs that the speaker may use, or None if there are none.

    Since 2026.11 some are for administrators only, and Home Assistant refuses all of them together because of one.
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


class ToolSchemas:
    """The JSON schemas of an agent's tools, converted once. Home Assistant makes new tools for each turn.

    Converting takes longer than everything else that is done with a schema. Sources are compared by identity, because
    markers with different descriptions are equal.
    """

    def __init__(self) -> None:
        self._schemas: dict[str, tuple[_Origin, ToolSchema]] = {}

    def convert(self, api: llm.APIInstance | None) -> tuple[ToolSchema, ...]:
        """Return the API's tools sorted by name, so that two requests in a row begin with the same bytes."""
        if api is None:
            return ()
        schemas: dict[str, tuple[_Origin, ToolSchema]] = {}
        converted: list[ToolSchema] = []
        for tool in sorted(api.tools, key=attrgetter("name")):
            origin = _origin(tool.parameters, api.custom_serializer)
            # a tool that does not say whether it changes something may do so
            read_only = getattr(tool.annotations, "read_only", False) is True
            before, schema = self._schemas.get(tool.name, ((), None))
            is_same = len(origin) == len(before) and all(map(is_, origin, before, strict=True))
            if (
                not is_same
                or schema is None
                or schema.description != (tool.description or "")
                or schema.read_only != read_only
            ):
                schema = _schema(tool, api.custom_serializer, read_only=read_only)
            schemas[tool.name] = origin, schema
            converted.append(schema)
        self._schemas = schemas
        return tuple(converted)


def _origin(parameters: probatio.Schema, serializer: Serializer | None) -> _Origin:
    """Return the objects that a schema is made from. While these are kept, no other object has their identity."""
    if not isinstance(parameters, probatio.Schema):
        # Home Assistant asks for another type, but converts this one as well
        return _origin(probatio.Schema(parameters), serializer)
    schema = parameters.schema
    items = chain.from_iterable(schema.items()) if isinstance(schema, dict) else [schema]
    return serializer, parameters.required, parameters.extra, *items


def _schema(tool: llm.Tool, serializer: Serializer | None, *, read_only: bool) -> ToolSchema:
    parameters = probatio.to_openapi(tool.parameters, custom_serializer=serializer, openapi_version="3.1.0")
    return ToolSchema(tool.name, tool.description or "", parameters, read_only)
