"""Tests for results of tools that cannot be written as JSON, as a server of tools may send them."""

from typing import Any, override

from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
import probatio
import pytest

from demo.model_server import ModelServer, call, words

from .conftest import SayFn, SetUpFn, get_speech


def nested(depth: int) -> dict[str, Any]:
    """Return an object that is nested this deeply."""
    value: dict[str, Any] = {"innermost": 1}
    for _ in range(depth):
        value = {"inner": value}
    return value


class OddTool(llm.Tool):
    """A tool that returns this result."""

    name = "look_up"
    integration = "test"
    parameters = probatio.Schema({})
    annotations = llm.ToolAnnotations(read_only=True, destructive=False, open_world=False)

    def __init__(self, data: Any) -> None:
        self.data = data

    @override
    async def async_call(self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext) -> Any:
        return llm.ToolResult(data=self.data)


class OddAPI(llm.API):
    """An API with this tool."""

    tool: OddTool

    @override
    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        return llm.APIInstance(self, "", llm_context, [self.tool])


RESULTS: dict[str, Any] = {
    "nested": nested(300),
    "deeply nested": nested(3000),
    "half of a surrogate pair": {"title": "\ud83d"},
    "above 64 bits": {"count": 10**400},
    "nothing": None,
    "list": [1, 2],
    "object": {"value": object()},
}


@pytest.mark.parametrize("data", RESULTS.values(), ids=RESULTS.keys())
async def test_result_that_cannot_be_written_ends_neither_the_turn_nor_the_conversation(
    data: Any, home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    api = OddAPI(hass=home, id="odd", name="Odd")
    object.__setattr__(api, "tool", OddTool(data))
    llm.async_register_api(home, api)
    await set_up(llm_hass_api=["odd"], routing="model_only")
    model_server.script(call("look_up"), words("I could not look."), words("You are welcome."))

    answers = [get_speech(await say(each)) for each in ("look it up", "thanks")]
    (result,) = [each["content"] for each in model_server.requests[1].body["messages"] if each["role"] == "tool"]

    assert answers == ["I could not look.", "You are welcome."]
    assert '"done":"nothing"' in result
