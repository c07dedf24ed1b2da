"""Tests for the effect of a tool in its result: the states that it led to, or what a failed call may have done."""

from collections.abc import Awaitable, Callable
from typing import Any, override

from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant, ServiceCall
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import llm
import probatio
import pytest

from custom_components.windowed_conversation.bridge.tools import SafeAPIInstance, async_get_tools

NOTHING = "nothing"
UNKNOWN = "unknown, check before you try again"

type CallFn = Callable[..., Awaitable[llm.ToolResult]]


class FailingTool(llm.Tool):
    """A tool that fails after it may have done something."""

    name = "test__fail"
    description = "Fail."
    parameters = probatio.Schema({probatio.Required("name"): str})
    integration = "test"

    def __init__(self, err: Exception) -> None:
        self._err = err

    @override
    async def async_call(
        self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext
    ) -> llm.ToolResult:
        self.parameters(tool_input.tool_args)
        raise self._err


async def get_api(home: HomeAssistant, *own: llm.Tool) -> SafeAPIInstance:
    context = llm.LLMContext(
        platform="test", context=None, language="en", assistant=conversation.DOMAIN, device_id=None
    )
    api = await async_get_tools(home, ("assist",), context, own)
    assert api is not None
    return api


@pytest.fixture
def turn_on(home: HomeAssistant) -> Callable[[str], Awaitable[str]]:
    """Return a function that turns an entity on with Home Assistant's tool, and returns the state in the result."""

    async def turn_on(name: str) -> str:
        api = await get_api(home)
        data: Any = (await api.async_call_tool(llm.ToolInput("intent__HassTurnOn", {"name": name}))).data
        (target,) = data["data"]["success"]
        return str(target["state"])

    return turn_on


async def test_result_of_an_intent_has_the_state_that_it_led_to(turn_on: Callable[[str], Awaitable[str]]) -> None:
    assert await turn_on("kitchen light") == "on"


async def test_state_that_was_so_before_is_unchanged(turn_on: Callable[[str], Awaitable[str]]) -> None:
    await turn_on("kitchen light")

    assert await turn_on("kitchen light") == "on (unchanged so far)"


@pytest.mark.parametrize(("reported", "state"), [("opening", "opening"), ("", "closed (unchanged so far)")])
async def test_cover_that_has_only_begun_to_open_is_not_open(
    home: HomeAssistant, turn_on: Callable[[str], Awaitable[str]], reported: str, state: str
) -> None:
    async def open_cover(call: ServiceCall) -> None:
        home.states.async_set("cover.door", reported or "closed", {"friendly_name": "Door", "device_class": "garage"})

    home.services.async_register("cover", "open_cover", open_cover)
    home.states.async_set("cover.door", "closed", {"friendly_name": "Door", "device_class": "garage"})
    async_expose_entity(home, conversation.DOMAIN, "cover.door", should_expose=True)

    assert await turn_on("Door") == state


async def test_entity_whose_attributes_cannot_be_read_makes_the_call_no_failure(home: HomeAssistant) -> None:
    async def open_cover(call: ServiceCall) -> None:
        home.states.async_set("cover.odd", "7", {"friendly_name": "Odd", "unit_of_measurement": 10**5000})

    home.services.async_register("cover", "open_cover", open_cover)
    home.states.async_set("cover.odd", "closed", {"friendly_name": "Odd"})
    async_expose_entity(home, conversation.DOMAIN, "cover.odd", should_expose=True)

    result = await (await get_api(home)).async_call_tool(llm.ToolInput("intent__HassTurnOn", {"name": "Odd"}))

    assert not result.error


# Calls that fail, each with its effect.
FAILING_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("intent__HassTurnOn", {"name": "no such light"}, NOTHING),
    ("intent__HassTurnOn", {"name": 5, "domain": {"a": 1}}, NOTHING),
    ("no_such_tool", {}, NOTHING),
    ("test__fail", {"brightness": 1}, NOTHING),
    ("test__fail", {"name": "x"}, UNKNOWN),
]


async def test_failed_call_says_whether_it_may_have_done_something(
    home: HomeAssistant, subtests: pytest.Subtests
) -> None:
    for err in (TypeError("x"), HomeAssistantError("x"), probatio.Invalid("x")):
        for name, arguments, effect in FAILING_CALLS:
            with subtests.test(error=repr(err), name=name, arguments=arguments):
                api = await get_api(home, FailingTool(err))

                result = await api.async_call_tool(llm.ToolInput(name, arguments))

                assert (result.error, result.data["done"]) == (True, effect)


async def test_failed_look_up_has_done_nothing(home: HomeAssistant) -> None:
    tool = FailingTool(TypeError("x"))
    tool.annotations = llm.ToolAnnotations(read_only=True)
    api = await get_api(home, tool)

    assert (await api.async_call_tool(llm.ToolInput("test__fail", {"name": "x"}))).data["done"] == NOTHING


async def test_orders_of_home_assistant_do_not_contradict_each_other(home: HomeAssistant) -> None:
    prompt = (await get_api(home)).api_prompt

    assert "For a device, pass just its name. " in prompt
    assert "When controlling an area, pass just its name, and a domain if the tool has one." in prompt
    assert "unless they named one, a floor or the whole home" in prompt
    assert "prefer passing" not in prompt
