"""Home Assistant's LLM tools: offered in a fixed order, as JSON schemas, and called so that none breaks a turn."""

from dataclasses import dataclass, fields
import logging
from typing import override

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import llm
import probatio

from ..providers.events import ToolSchema
from ..turn.errors import ToolsUnavailable

_LOGGER = logging.getLogger(__name__)

# OpenAI refuses these at the top of a tool's parameters, and llama.cpp's grammars do not need them there.
_NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


@dataclass
class SafeAPIInstance(llm.APIInstance):
    """An API whose tools fail with a result: the model is told, and the turn goes on."""

    @override
    async def async_call_tool(self, tool_input: llm.ToolInput) -> llm.ToolResult:
        try:
            return await super().async_call_tool(tool_input)
        except HomeAssistantError, probatio.Invalid:
            raise
        except Exception as err:
            kind = type(err).__name__
            _LOGGER.error("Tool %s failed: %s", tool_input.tool_name, kind)  # noqa: TRY400
            _LOGGER.debug("The error of the tool", exc_info=err)
            raise HomeAssistantError(kind) from err


async def async_get_tools(
    hass: HomeAssistant, api_ids: tuple[str, ...], llm_context: llm.LLMContext
) -> SafeAPIInstance | None:
    """Return the tools of the APIs, None where no API is wanted; raises `ToolsUnavailable`."""
    if not api_ids:
        return None
    try:
        api = await llm.async_get_api(hass, list(api_ids), llm_context)
    except (HomeAssistantError, ValueError) as err:
        raise ToolsUnavailable(f"LLM API {', '.join(api_ids)}: {type(err).__name__}") from err
    return SafeAPIInstance(**{field.name: getattr(api, field.name) for field in fields(llm.APIInstance)})


def tool_schemas(api: llm.APIInstance | None) -> tuple[ToolSchema, ...]:
    """Return the API's tools by name, so that two requests in a row begin with the same bytes."""
    if api is None:
        return ()
    tools = sorted(api.tools, key=lambda tool: tool.name)
    return tuple(_schema(tool, api) for tool in tools)


def _schema(tool: llm.Tool, api: llm.APIInstance) -> ToolSchema:
    parameters = probatio.to_openapi(tool.parameters, custom_serializer=api.custom_serializer, openapi_version="3.1.0")
    kept = {key: value for key, value in parameters.items() if key not in _NOT_AT_THE_TOP}
    return ToolSchema(tool.name, tool.description or "", kept)
