"""The class of the tools with which a model reads and changes the store."""

from collections.abc import Callable, Coroutine
from typing import Any, override

from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
import probatio

from ..const import DOMAIN
from ..memory.core import MemoryUnavailable
from .errors import refuse


def text_validator(length: int) -> probatio.All[str]:
    """Return the validator of an argument with 1 to `length` characters."""
    return probatio.All(str, probatio.Length(min=1, max=length))


class StoreTool(llm.Tool):
    """A tool for one exchange of one speaker."""

    integration = DOMAIN

    def __init__(
        self,
        name: str,
        description: str,
        parameters: probatio.Schema,
        run: Callable[..., Coroutine[Any, Any, llm.ToolResult]],
        annotations: llm.ToolAnnotations,
    ) -> None:
        """Create the tool. `run` gets the validated arguments. `parameters` are constant: every request has them."""
        self.name = name
        self.description = description
        self.parameters = parameters
        self.annotations = annotations
        self._run = run

    @override
    async def async_call(
        self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext
    ) -> llm.ToolResult:
        try:
            return await self._run(**self.parameters(tool_input.tool_args))
        except MemoryUnavailable:
            return refuse("memory_unavailable", "This cannot be used right now.")
