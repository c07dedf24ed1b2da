"""Tests that tools are sent with short schemas which still allow every call that Home Assistant accepts."""

from collections.abc import Iterable
import json
from random import Random
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er, floor_registry as fr, llm
from homeassistant.setup import async_setup_component
import probatio
import pytest
from pytest_homeassistant_custom_component.common import async_mock_service

from custom_components.windowed_conversation.bridge.tools import SafeAPIInstance, ToolSchemaCache, async_get_tools
from custom_components.windowed_conversation.const import CONF_STATES
from demo.model_server import ModelServer, call, words
from tests.exact_tokens import exact_count
from tests.json_schemas import build_value, find_mistakes, is_accepted

from .conftest import SayFn, SetUpFn
from .states import get_state

# The domains with tools of their own.
DOMAINS = ("calendar", "climate", "cover", "fan", "humidifier", "lawn_mower", "light", "media_player", "todo", "vacuum")
CONTEXT = llm.LLMContext(platform="test", context=None, language="en", assistant=conversation.DOMAIN, device_id=None)
BRIGHTER = {
    "alias": "Brighter",
    "description": "Makes a room brighter.",
    "fields": {
        "room": {"required": True, "selector": {"area": None}},
        "percent": {"description": "How much", "selector": {"number": {"min": 1, "max": 100}}},
        "mode": {"selector": {"select": {"options": ["slowly"]}}},
        "more": {"selector": {"object": None}},
    },
    "sequence": [],
}


@pytest.fixture
async def everything(home: HomeAssistant) -> HomeAssistant:
    """Return a home with every domain that has tools, with a script and a floor."""
    fr.async_get(home).async_create("Upstairs")
    for domain in (*DOMAINS, "llm", "assist_satellite"):
        assert await async_setup_component(home, domain, {})
    assert await async_setup_component(home, "script", {"script": {"brighter": BRIGHTER}})
    await home.async_block_till_done()
    return home


async def get_tools(home: HomeAssistant, dice: Random) -> llm.APIInstance:
    """Expose entities of random domains, and return the tools that Home Assistant offers for them."""
    return await expose_and_get_tools(home, dice.sample(DOMAINS, dice.randint(0, len(DOMAINS))), dice)


async def expose_and_get_tools(home: HomeAssistant, domains: Iterable[str], dice: Random) -> llm.APIInstance:
    """Expose entities of these domains and no others, and return the tools that Home Assistant offers for them."""
    for entity_id in home.states.async_entity_ids(DOMAINS):
        home.states.async_remove(entity_id)
    for domain in domains:
        for number in range(dice.randint(1, 3)):
            home.states.async_set(f"{domain}.thing_{number}", "on", {"friendly_name": f"{domain} thing {number}"})
            async_expose_entity(home, "conversation", f"{domain}.thing_{number}", should_expose=True)
    async_expose_entity(home, "conversation", "script.brighter", should_expose=dice.random() < 0.5)
    return await llm.async_get_api(home, "assist", CONTEXT)


def convert_whole(api: llm.APIInstance) -> dict[str, dict[str, Any]]:
    """Return the schemas of the tools as Home Assistant's own agents send them."""
    return {
        tool.name: probatio.to_openapi(
            tool.parameters, custom_serializer=api.custom_serializer, openapi_version="3.1.0"
        )
        for tool in api.tools
    }


def convert_short(api: llm.APIInstance) -> dict[str, dict[str, Any]]:
    """Return the schemas of the tools as they are sent."""
    return {schema.name: dict(schema.parameters) for schema in ToolSchemaCache().convert_tools(api)}


def is_taken(tool: llm.Tool, arguments: Any) -> bool:
    """Return whether Home Assistant's check accepts the arguments of a call."""
    try:
        tool.parameters(arguments)
    except probatio.Invalid:
        return False
    return True


async def test_call_that_home_assistant_accepts_fits_the_schema_that_is_sent(
    everything: HomeAssistant, subtests: pytest.Subtests
) -> None:
    for seed in range(25):
        with subtests.test(seed=seed):
            dice = Random(seed)
            api = await get_tools(everything, dice)
            whole, short = convert_whole(api), convert_short(api)
            calls = [(tool, build_value(whole[tool.name], dice)) for tool in api.tools for _ in range(20)]
            accepted = [
                (tool.name, made)
                for tool, made in calls
                if is_accepted(made, whole[tool.name]) and is_taken(tool, made)
            ]

            assert len(accepted) > len(calls) / 2
            assert [each for each in accepted if not is_accepted(each[1], short[each[0]])] == []


async def test_schema_that_is_sent_is_valid_and_asks_for_all_but_implied_domains(
    everything: HomeAssistant, subtests: pytest.Subtests
) -> None:
    for seed in range(25):
        with subtests.test(seed=seed):
            api = await get_tools(everything, Random(seed))
            whole, short = convert_whole(api), convert_short(api)

            lost = {name: whole[name]["properties"].keys() - short[name]["properties"].keys() for name in whole}
            domains = {
                name: whole[name]["properties"]["domain"]["items"]["enum"] for name, names in lost.items() if names
            }

            assert [mistakes for schema in short.values() if (mistakes := find_mistakes(schema))] == []
            assert {frozenset(each) for each in lost.values()} <= {frozenset(), frozenset({"domain"})}
            assert {name: name.partition("__")[0] for name in domains} == {
                name: only for name, (only,) in domains.items()
            }
            assert {name: each.get("required") for name, each in short.items()} == {
                name: each.get("required") for name, each in whole.items()
            }


def count_tokens(schemas: dict[str, dict[str, Any]]) -> int:
    return sum(exact_count(json.dumps(each, separators=(",", ":"))) for each in schemas.values())


@pytest.fixture(scope="module")
def _vocabulary() -> None:
    """Read the vocabulary before the event loop, which must not read files, exists."""
    exact_count("")


@pytest.mark.usefixtures("_vocabulary")
async def test_schemas_of_home_assistant_lose_a_quarter_of_their_tokens(everything: HomeAssistant) -> None:
    api = await expose_and_get_tools(everything, DOMAINS, Random(0))

    assert count_tokens(convert_short(api)) <= 0.75 * count_tokens(convert_whole(api))


async def test_tools_of_one_home_have_the_same_bytes_for_every_agent(everything: HomeAssistant) -> None:
    api = await expose_and_get_tools(everything, DOMAINS, Random(0))
    sent = [schema.text for schema in ToolSchemaCache().convert_tools(api)]

    again = [
        schema.text
        for schema in ToolSchemaCache().convert_tools(await llm.async_get_api(everything, "assist", CONTEXT))
    ]

    assert again == sent


@pytest.mark.parametrize(
    ("knows_states", "removed"), [(False, {"GetDateTime"}), (True, {"GetDateTime", "GetLiveContext"})]
)
async def test_tools_with_a_stand_in_are_not_offered(
    everything: HomeAssistant, *, knows_states: bool, removed: set[str]
) -> None:
    all_tools = await llm.async_get_api(everything, "assist", CONTEXT)

    offered = await async_get_tools(everything, ("assist",), CONTEXT, knows_states=knows_states)

    assert offered is not None
    missing = {tool.name for tool in all_tools.tools} - {tool.name for tool in offered.tools}
    assert {name.rpartition("__")[2] for name in missing} == removed


class OtherHome(llm.API):
    """An API with a tool of another home, which an MCP server offers under the name that it has there."""

    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        names = ("llm__GetDateTime", "homeassistant__GetLiveContext")
        return llm.APIInstance(self, "", llm_context, [*map(OtherTool, names)])


class OtherTool(llm.Tool):
    """A tool of another home."""

    integration = "mcp"

    def __init__(self, name: str) -> None:
        self.name = name

    async def async_call(self, *_args: Any) -> llm.ToolResult:
        return llm.ToolResult(data={})


@pytest.mark.parametrize("apis", [("other",), ("assist", "other")])
async def test_tools_of_another_home_are_offered(everything: HomeAssistant, apis: tuple[str, ...]) -> None:
    llm.async_register_api(everything, OtherHome(hass=everything, id="other", name="Other"))

    offered = await async_get_tools(everything, apis, CONTEXT, knows_states=True)

    assert offered is not None
    assert sorted(tool.name.rpartition("__")[2] for tool in offered.tools if tool.integration == "mcp") == [
        "GetDateTime",
        "GetLiveContext",
    ]


@pytest.fixture
async def two_lamps(everything: HomeAssistant) -> HomeAssistant:
    """Return a home with a light and a fan of one name in the kitchen."""
    area = ar.async_get(everything).async_get_or_create("Kitchen")
    for domain in ("light", "fan"):
        entry = er.async_get(everything).async_get_or_create(
            domain, "test", "lamp", suggested_object_id="lamp", original_name="Lamp"
        )
        er.async_get(everything).async_update_entity(entry.entity_id, area_id=area.id)
        everything.states.async_set(entry.entity_id, "on", {"friendly_name": "Lamp"})
        async_expose_entity(everything, "conversation", entry.entity_id, should_expose=True)
    return everything


async def call_tool(home: HomeAssistant, tool: str, /, **arguments: Any) -> llm.ToolResult:
    """Call a tool that an agent of ours is offered."""
    api = await async_get_tools(home, ("assist",), CONTEXT)
    assert isinstance(api, SafeAPIInstance)
    return await api.async_call_tool(llm.ToolInput(tool_name=tool, tool_args=arguments))


@pytest.mark.parametrize("target", [{"name": "Lamp"}, {"area": "Kitchen"}, {"name": "Lamp", "domain": ["light"]}])
async def test_domain_that_was_not_asked_for_is_filled_in_by_home_assistant(
    two_lamps: HomeAssistant, target: dict[str, Any]
) -> None:
    calls = async_mock_service(two_lamps, "light", "turn_on")

    await call_tool(two_lamps, "light__HassLightSet", brightness=40, **target)

    assert [(each.data["entity_id"], each.data["brightness_pct"]) for each in calls] == [("light.lamp", 40)]


async def test_refused_device_class_comes_back_with_those_that_are_accepted(two_lamps: HomeAssistant) -> None:
    result = await call_tool(two_lamps, "intent__HassTurnOn", area="Kitchen", device_class=["lamp"])

    assert result.error
    assert "blind" in str(result.data["error_text"])
    assert "outlet" in str(result.data["error_text"])


async def test_refused_device_class_is_corrected_in_the_same_turn(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_STATES: True, "routing": "model_only"})
    model_server.script(
        call("HassTurnOn", area="Kitchen", device_class=["lamp"]),
        call("HassTurnOn", name="kitchen light"),
        words("Done."),
    )

    await say("light up the kitchen")

    results = [each["content"] for each in model_server.requests[-1].body["messages"] if each["role"] == "tool"]
    assert "awning" in results[0]
    assert get_state(home, "input_boolean.kitchen").state == "on"


async def test_floor_is_asked_for_once_the_home_has_one(everything: HomeAssistant) -> None:
    floors = fr.async_get(everything)
    floors.async_delete("upstairs")
    schemas, api = ToolSchemaCache(), await expose_and_get_tools(everything, ["light"], Random(0))

    def get_arguments() -> set[str]:
        return {name for schema in schemas.convert_tools(api) for name in schema.parameters["properties"]}

    before = get_arguments()
    floors.async_create("Upstairs")

    assert ("floor" in before, "floor" in get_arguments()) == (False, True)


async def test_numbers_of_mcp_servers_have_a_type(home: HomeAssistant) -> None:
    rooms = {"type": "array", "items": {"type": "integer"}}
    numbers = {"amount": {"type": "integer", "minimum": 1}, "weight": {"type": "number"}, "rooms": rooms}
    api, tool = await llm.async_get_api(home, "assist", CONTEXT), OtherTool("list_stock")
    tool.parameters = probatio.from_openapi({"type": "object", "properties": numbers, "required": ["amount"]})
    api.tools = [tool]

    (schema,) = ToolSchemaCache().convert_tools(api)

    assert schema.parameters["properties"] == numbers
