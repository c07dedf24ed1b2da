"""An LLM API with many tools, which note their calls."""

from collections.abc import Callable
from typing import Any, override

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import Unauthorized
from homeassistant.helpers import llm
import probatio
import pytest

ANNOTATIONS = llm.ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
ROOMS = ("attic", "cellar", "garden", "library", "sauna", "workshop", "pantry", "nursery", "studio", "mill", "loft")
SUBJECTS = ("weather", "inventory", "tickets", "timetable", "recipes", "invoices", "plants", "radio")


class SourceTool(llm.Tool):
    """A tool of a large source, which notes its calls."""

    integration = "test"
    annotations = ANNOTATIONS

    def __init__(self, name: str, description: str, calls: list[tuple[str, Any]]) -> None:
        self.name, self.description, self._calls = name, description, calls
        self.parameters = probatio.Schema(
            {probatio.Required("amount", description="Between 1 and 10, the number of entries."): int}
        )

    @override
    async def async_call(self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext):
        self._calls.append((self.name, tool_input.tool_args))
        return llm.ToolResult(data={"done": self.name})


class Source(llm.API):
    """An LLM API with many tools."""

    tools: list[llm.Tool]
    is_for_administrators = False
    prompt = ""

    @override
    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        if self.is_for_administrators:
            raise Unauthorized
        return llm.APIInstance(self, self.prompt, llm_context, self.tools)


type Calls = list[tuple[str, Any]]
type AddSource = Callable[..., Calls]


@pytest.fixture
def add_source(home: HomeAssistant) -> AddSource:
    """Return a function that registers an API with tools for each subject and room, and returns their calls."""

    def add(
        api_id: str = "archive",
        *,
        is_for_administrators: bool = False,
        more: tuple[llm.Tool, ...] = (),
        count: int | None = None,
        lists_names: bool = False,
    ) -> Calls:
        calls: Calls = []
        tools = [
            SourceTool(f"{subject}_of_{room}", f"List the {subject} in the {room}, newest first, with dates.", calls)
            for subject in SUBJECTS
            for room in ROOMS
        ]
        api = Source(hass=home, id=api_id, name=api_id.title())
        object.__setattr__(api, "tools", [*tools[:count], *more])
        object.__setattr__(api, "is_for_administrators", is_for_administrators)
        if lists_names:
            object.__setattr__(api, "prompt", f"Use {', '.join([tool.name for tool in tools[::-1]])}.")
        llm.async_register_api(home, api)
        return calls

    return add
