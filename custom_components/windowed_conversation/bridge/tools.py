"""Home Assistant's LLM tools together with our own, called so that no error ends a turn."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
import logging
import time
from typing import Any, override

from homeassistant.components.homeassistant import llm as home_llm
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError, Unauthorized
from homeassistant.helpers import llm
import probatio

from ..const import DOMAIN
from ..turn.attempts import ToolRun
from ..turn.errors import ToolsUnavailable
from .errors import log_fault

_LOGGER = logging.getLogger(__name__)

# Home Assistant's own tool for looking up states, and the prompt paragraph that demands its use.
_STATES_TOOL_NAME = "GetLiveContext"
_STATES_TOOL = ("homeassistant", _STATES_TOOL_NAME)
# Home Assistant's tool for the time, which the stamp of every message has.
_CLOCK_TOOL = ("llm", "GetDateTime")
_STATES_TOOL_PROMPT: str = getattr(home_llm, "DYNAMIC_CONTEXT_PROMPT", "")


@dataclass
class SafeAPIInstance(llm.APIInstance):
    """An API whose failing tools return an error result, so that the model is informed and the turn continues.

    The chat log converts Home Assistant's errors in the same way, but only while it waits for the tool. If a tool
    outlived its turn, its error would be logged with its message, which may contain user data. `on_run` is called after
    each call.
    """

    on_run: Callable[[ToolRun], None] | None = None

    @override
    async def async_call_tool(self, tool_input: llm.ToolInput) -> llm.ToolResult:
        started_at, name = time.monotonic(), tool_input.tool_name
        try:
            return await super().async_call_tool(tool_input)
        except (HomeAssistantError, probatio.Invalid) as err:
            data: dict[str, Any] = {"error": type(err).__name__}
            if text := _describe_refusal(err):
                data["error_text"] = text
        except Exception as err:  # noqa: BLE001 - no error of a tool ends the turn
            log_fault(_LOGGER, f"Tool {tool_input.tool_name} failed", err)
            data = {"error": type(err).__name__}
        finally:
            if self.on_run is not None:
                # the name of a tool that was not offered is text invented by the model
                tool_name = name if name in [tool.name for tool in self.tools] else "unknown"
                self.on_run(ToolRun(tool_name, started_at, time.monotonic()))
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

    APIs that the speaker is not authorized to use are skipped. Home Assistant's tool for the time is removed, because
    every message is sent with its time. With `knows_states`, the agent's own tools look up states, so Home Assistant's
    tool for that is removed, as is the prompt paragraph that demands its use. Raises `ToolsUnavailable` for an API that
    does not exist.
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
    replaced = {_CLOCK_TOOL, _STATES_TOOL} if knows_states else {_CLOCK_TOOL}
    safe.tools = [tool for tool in safe.tools if _identify_tool(tool) not in replaced]
    if knows_states:
        safe.api_prompt = _remove_states_prompt(safe.api_prompt)
    taken = {tool.name for tool in safe.tools}
    safe.tools = [*safe.tools, *[llm.NamespacedTool(DOMAIN, tool) if tool.name in taken else tool for tool in own]]
    return safe


def _identify_tool(tool: llm.Tool) -> tuple[str | None, str]:
    """Return the integration of a tool, and its name without namespaces.

    A tool of another home, which an MCP server offers, has the same name, but nothing stands in for it.
    """
    return tool.integration, tool.name.rpartition("__")[2]


def _describe_refusal(err: Exception) -> str:
    """Return the text of an error, with the reason if Home Assistant only says that an argument is invalid.

    The schemas that are sent do not list all values that Home Assistant accepts, but the reason does.
    """
    texts = (str(err), str(err.__cause__) if isinstance(err.__cause__, probatio.Invalid) else "")
    return ": ".join(filter(None, texts))


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
