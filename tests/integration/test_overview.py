"""Tests for the overview of the home that replaces Home Assistant's list of entities in the system prompt."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from homeassistant.components.homeassistant import llm as home_llm
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er, floor_registry as fr, llm
from homeassistant.setup import async_setup_component
from homeassistant.util import yaml as yaml_util
import pytest

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_MEMORY,
    CONF_ROUTING,
    CONF_STATES,
)
from custom_components.windowed_conversation.home.bridge import overview
from custom_components.windowed_conversation.home.bridge.states import async_acquire_home_states, async_get_home_states
from custom_components.windowed_conversation.home.core.home import STATES_HINT
from demo.model_server import ModelServer, words
from demo.model_server.home_overview import OverviewEntity, parse_overview

from .conftest import SayFn, SetUpFn

CORE_HEADING = "Static Context: An overview of the areas and the devices in this smart home:"
OUR_HEADING = "Devices by area and domain, name/alias:"
ODD_PARTS = (
    ", ",
    ",",
    "; ",
    ": ",
    "/",
    " (",
    ")",
    "'",
    '"',
    "\\",
    "\n",
    "- names: ",
    "#",
    " | ",
    "ä",
    "#1",
    "{",
    "yes",
)


@pytest.fixture
def _shared(home: HomeAssistant) -> Iterator[None]:
    """Share the overview, as an account with tools does."""
    release = async_acquire_home_states(home)
    yield
    release()


@pytest.fixture
def count_core_lists(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that returns how often the overview made Home Assistant's list."""
    calls: list[None] = []
    dump = overview.dump_core_list

    def counted(*args: Any) -> str:
        calls.append(None)
        return dump(*args)

    monkeypatch.setattr(overview, "dump_core_list", counted)
    return lambda: len(calls)


def shorten(home: HomeAssistant, api: llm.APIInstance) -> str:
    """Return the prompt of the tools with the overview."""
    states = async_get_home_states(home)
    assert states is not None
    return states.overview.shorten_prompt(api, None)


async def get_api(home: HomeAssistant) -> llm.APIInstance:
    """Return the tools and the prompt of Home Assistant's own API."""
    return await llm.async_get_api(home, "assist", llm.LLMContext("test", Context(), "en", "conversation", None))


def create_name(random: Random, number: int, most: int = 3) -> str:
    """Return a name that no other number has."""
    parts = [random.choice(ODD_PARTS) for _ in range(random.randrange(most))]
    return f"N{number}{''.join(parts)}x" if parts else f"Name {number}"


def create_areas(home: HomeAssistant, random: Random) -> list[ar.AreaEntry]:
    """Create areas, some of them with aliases and floors."""
    floors = [fr.async_get(home).async_create(create_name(random, number)) for number in range(3)]
    areas = ar.async_get(home)
    return [
        areas.async_create(
            create_name(random, number),
            aliases={create_name(random, 10 * number) for _ in range(random.randrange(3))},
            floor_id=random.choice((None, *(floor.floor_id for floor in floors))),
        )
        for number in range(5)
    ]


def create_entities(home: HomeAssistant, random: Random, areas: list[ar.AreaEntry], most: int = 30) -> None:
    """Create exposed entities, some of them in areas, with aliases, or without an entry in the registry."""
    registry = er.async_get(home)
    for number in range(most):
        domain = random.choice(("light", "sensor", "cover", "calendar"))
        entity_id, name = f"{domain}.thing_{number}", create_name(random, number)
        if random.random() < 0.8:
            entity_id = registry.async_get_or_create(domain, "test", str(number), original_name=name).entity_id
            aliases: list[str | er.ComputedNameType] = [
                er.COMPUTED_NAME,
                *(create_name(random, 100 * number) for _ in range(random.randrange(3))),
            ]
            area = random.choice((None, *(each.id for each in areas)))
            registry.async_update_entity(entity_id, area_id=area, aliases=aliases)
        home.states.async_set(entity_id, "on", {"friendly_name": name})
        async_expose_entity(home, "conversation", entity_id, should_expose=random.random() < 0.9)


def read_core_list(prompt: str) -> list[dict[str, str]]:
    """Return the entities of Home Assistant's list."""
    block = prompt.partition(f"{CORE_HEADING}\n")[2]
    lines = [line for line in block.split("\n") if line.startswith(("- ", "  "))]
    found: list[dict[str, str]] = yaml_util.parse_yaml("\n".join(lines))  # type: ignore[assignment]
    return found


def sort_entities(entities: list[dict[str, str]]) -> list[tuple[str, ...]]:
    """Return the names, domains and areas of entities in a fixed order."""
    return sorted((each["names"], each["domain"], each.get("areas", "")) for each in entities)


def join_names(entity: OverviewEntity) -> dict[str, str]:
    """Return an entity of the overview in the form of Home Assistant's list."""
    return {
        "names": ", ".join((entity.name, *entity.aliases)),
        "domain": entity.domain,
        "areas": ", ".join((entity.area, *entity.area_aliases)),
    }


@pytest.mark.usefixtures("_shared")
@pytest.mark.parametrize("seed", range(12))
async def test_each_name_alias_area_and_domain_of_the_list_is_in_the_overview(home: HomeAssistant, seed: int) -> None:
    random = Random(seed)
    create_entities(home, random, create_areas(home, random))
    api = await get_api(home)
    shortened = shorten(home, api)

    assert CORE_HEADING not in shortened
    assert sort_entities([join_names(each) for each in parse_overview(shortened)]) == sort_entities(
        list(home_llm.async_get_exposed_entities(home, "conversation", include_state=False).values())
    )


@pytest.mark.usefixtures("_shared")
@pytest.mark.parametrize("seed", range(4))
async def test_each_area_has_its_floor(home: HomeAssistant, seed: int) -> None:
    random = Random(seed)
    areas, floors = create_areas(home, random), fr.async_get(home)
    create_entities(home, random, areas)
    names = {
        area.name: floor.name
        for area in areas
        if area.floor_id is not None and (floor := floors.async_get_floor(area.floor_id)) is not None
    }
    found = parse_overview(shorten(home, await get_api(home)))

    assert {each.area: each.floor for each in found if each.floor} == {
        area: floor for area, floor in names.items() if area in {each.area for each in found}
    }


@pytest.mark.usefixtures("_shared")
async def test_areas_that_home_assistant_writes_alike_are_told_apart(home: HomeAssistant) -> None:
    areas, entities = ar.async_get(home), er.async_get(home)
    for name, area in (
        ("kitchen", areas.async_create("A, B")),
        ("hall", areas.async_create("A", aliases={"B"})),
    ):
        entities.async_update_entity(f"input_boolean.{name}", area_id=area.id)

    found = parse_overview(shorten(home, await get_api(home)))

    assert {(each.name, each.area, each.area_aliases) for each in found} == {
        ("kitchen light", "A, B", ()),
        ("hall light", "A", ("B",)),
    }


@pytest.mark.usefixtures("_shared")
async def test_rest_of_the_prompt_stays_as_it_is(home: HomeAssistant) -> None:
    api = await get_api(home)
    before, _, after = api.api_prompt.partition(CORE_HEADING)
    *_, rest = after.partition("domain: input_boolean\n- names: kitchen light\n  domain: input_boolean\n")
    shortened = shorten(home, api)

    assert shortened == f"{before}{OUR_HEADING}\nno area: input_boolean: hall light, kitchen light\n{rest}"


@pytest.mark.usefixtures("_shared")
async def test_list_that_is_not_whole_stays(home: HomeAssistant) -> None:
    api = await get_api(home)
    api.api_prompt = api.api_prompt.replace("kitchen light", "kitchen lamp")

    assert shorten(home, api) == api.api_prompt


@pytest.mark.usefixtures("_shared")
@pytest.mark.parametrize("changed", [None, lambda *args, **more: {"light.x": 1}, lambda *args, **more: {"light.x": {}}])
async def test_list_stays_if_home_assistant_makes_it_in_another_way(
    home: HomeAssistant, monkeypatch: pytest.MonkeyPatch, changed: Callable[..., Any] | None
) -> None:
    api = await get_api(home)
    monkeypatch.setattr(home_llm, "async_get_exposed_entities", changed)

    assert shorten(home, api) == api.api_prompt


@pytest.mark.usefixtures("_shared")
async def test_prompt_without_entities_stays(home: HomeAssistant) -> None:
    for name in ("kitchen", "hall"):
        async_expose_entity(home, "conversation", f"input_boolean.{name}", should_expose=False)
    api = await get_api(home)

    assert shorten(home, api) == api.api_prompt


@pytest.mark.usefixtures("_shared")
async def test_overview_is_made_once_between_changes(home: HomeAssistant, count_core_lists: Callable[[], int]) -> None:
    api = await get_api(home)
    texts = {shorten(home, api) for _ in range(5)}

    assert (len(texts), count_core_lists()) == (1, 1)


@pytest.mark.usefixtures("_shared")
async def test_state_changes_do_not_make_the_overview_again(
    home: HomeAssistant, count_core_lists: Callable[[], int]
) -> None:
    shorten(home, await get_api(home))
    home.states.async_set("input_boolean.hall", "on", {"friendly_name": "hall light", "brightness": 3})
    await home.async_block_till_done()
    shorten(home, await get_api(home))

    assert count_core_lists() == 1


def rename_floor(home: HomeAssistant) -> None:
    """Rename the floor of the kitchen."""
    (floor,) = fr.async_get(home).async_list_floors()
    fr.async_get(home).async_update(floor.floor_id, name="Basement")


def move_kitchen_light(home: HomeAssistant) -> None:
    """Remove the area of the kitchen light."""
    er.async_get(home).async_update_entity("input_boolean.kitchen", area_id=None)


def hide_kitchen_light(home: HomeAssistant) -> None:
    """Expose the kitchen light no longer."""
    async_expose_entity(home, "conversation", "input_boolean.kitchen", should_expose=False)


def rename_state(home: HomeAssistant) -> None:
    """Rename an entity that is in no registry."""
    home.states.async_set("light.odd", "on", {"friendly_name": "Even"})


def add_last_state(home: HomeAssistant) -> None:
    """Add the state of an entity that is in no registry, and that Home Assistant lists last."""
    home.states.async_set("light.zoo", "on", {"friendly_name": "zoo"})


def add_first_state(home: HomeAssistant) -> None:
    """Add the state of an entity that is in no registry, and that Home Assistant lists first."""
    home.states.async_set("light.aaa", "on", {"friendly_name": "Aaa"})


def split_names(home: HomeAssistant) -> None:
    """Give the hall light two names that Home Assistant's list writes like its one name before."""
    er.async_get(home).async_update_entity("input_boolean.hall", aliases=["Hall", "light"])


@pytest.mark.usefixtures("_shared")
@pytest.mark.parametrize(
    "change",
    [
        rename_floor,
        move_kitchen_light,
        hide_kitchen_light,
        rename_state,
        add_first_state,
        add_last_state,
        split_names,
    ],
)
async def test_change_of_the_registries_changes_the_overview(
    home: HomeAssistant, kitchen: ar.AreaEntry, change: Callable[[HomeAssistant], None]
) -> None:
    floor = fr.async_get(home).async_create("Cellar")
    ar.async_get(home).async_update(kitchen.id, floor_id=floor.floor_id)
    er.async_get(home).async_update_entity("input_boolean.hall", aliases=["Hall, light"])
    home.states.async_set("light.odd", "on", {"friendly_name": "Odd"})
    for entity_id in ("light.odd", "light.zoo", "light.aaa"):
        async_expose_entity(home, "conversation", entity_id, should_expose=True)
    before = shorten(home, await get_api(home))
    change(home)
    await home.async_block_till_done()
    after = [shorten(home, await get_api(home)) for _ in range(2)]

    assert (CORE_HEADING in after[0], "- names:" in after[0]) == (False, False)
    assert before != after[0] == after[1]


def get_system_prompts(model_server: ModelServer) -> list[str]:
    """Return the system prompt of each request for an answer."""
    return [str(record.body["messages"][0]["content"]) for record in model_server.requests]


async def test_request_has_the_overview_instead_of_the_list(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, kitchen: ar.AreaEntry
) -> None:
    await set_up(**{CONF_ROUTING: "model_only"})
    await say("hello")
    (prompt,) = get_system_prompts(model_server)

    assert f"{OUR_HEADING}\nKitchen: input_boolean: kitchen light\nno area: input_boolean: hall light" in prompt
    assert "- names:" not in prompt


async def test_change_of_an_entity_changes_the_prompt_once(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, kitchen: ar.AreaEntry
) -> None:
    await set_up(**{CONF_ROUTING: "model_only", CONF_STATES: True, CONF_MEMORY: "off"})
    for number in range(6):
        home.states.async_set("input_boolean.hall", "on" if number % 2 else "off", {"friendly_name": "hall light"})
        if number == 3:
            er.async_get(home).async_update_entity("input_boolean.hall", area_id=kitchen.id)
        await home.async_block_till_done()
        await say("hello")

    prompts = get_system_prompts(model_server)
    assert [prompts.index(prompt) for prompt in prompts] == [0, 0, 0, 3, 3, 3]


def furnish(home: HomeAssistant, most: int) -> None:
    """Create exposed entities in eight areas on two floors, named as in a home."""
    areas = [
        ar.async_get(home).async_create(
            name, floor_id=fr.async_get(home).async_create(f"Floor of {name}").floor_id if number < 2 else None
        )
        for number, name in enumerate(
            ("Kitchen", "Living room", "Bedroom", "Bathroom", "Office", "Garage", "Nursery", "Cellar")
        )
    ]
    kinds = (
        ("light", "ceiling light"),
        ("light", "lamp"),
        ("switch", "socket"),
        ("cover", "blind"),
        ("climate", "radiator"),
        ("sensor", "temperature"),
        ("sensor", "humidity"),
        ("binary_sensor", "window"),
    )
    for number in range(most):
        area, (domain, name) = areas[number % len(areas)], kinds[number // len(areas) % len(kinds)]
        entry = er.async_get(home).async_get_or_create(
            domain, "test", str(number), original_name=f"{area.name} {name} {number // 64 or ''}".strip()
        )
        er.async_get(home).async_update_entity(entry.entity_id, area_id=area.id)
        home.states.async_set(entry.entity_id, "off", {"friendly_name": entry.original_name})
        async_expose_entity(home, "conversation", entry.entity_id, should_expose=True)


async def test_small_model_gets_numbers_and_the_tool_that_finds_the_names(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    furnish(home, 200)
    await set_up(**{CONF_ROUTING: "model_only", CONF_STATES: True, CONF_CONTEXT_TOKENS: 4096})
    await say("hello")
    (prompt,) = get_system_prompts(model_server)

    (heading,) = [line for line in prompt.splitlines() if line.startswith("Devices by area")]
    offered = {tool["function"]["name"] for tool in model_server.requests[-1].body["tools"]}
    assert offered & set(heading.split()) == {"windowed_conversation__get_states"}
    assert "sensor: 6" in prompt


@pytest.mark.parametrize(("context", "has_states"), [(2400, True), (1000, False)])
async def test_small_model_is_told_of_states_only_if_it_gets_them(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, context: int, has_states: bool
) -> None:
    for component in ("light", "cover", "climate", "media_player", "todo", "vacuum"):
        assert await async_setup_component(home, component, {})
    furnish(home, 200)
    await set_up(**{CONF_ROUTING: "model_only", CONF_STATES: True, CONF_CONTEXT_TOKENS: context})
    await say("hello")

    (prompt,) = get_system_prompts(model_server)
    newest = model_server.requests[-1].body["messages"][-1]["content"]
    assert (STATES_HINT in prompt, "; states: " in newest) == (has_states, has_states)


async def test_small_model_keeps_exchanges_in_a_home_of_sixty_entities(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    for component in ("light", "switch", "cover", "climate", "media_player", "todo", "weather", "fan", "vacuum"):
        assert await async_setup_component(home, component, {})
    furnish(home, 60)
    await set_up(**{CONF_ROUTING: "model_only", CONF_STATES: True, CONF_CONTEXT_TOKENS: 4096})
    for number in range(20):
        model_server.script(words("The lights are off and the windows are closed, apart from those of the kitchen."))
        await say(f"what is the state of all the lights and of the windows in room {number}?")

    sent = [sum(each["role"] == "user" for each in record.body["messages"]) for record in model_server.requests]
    assert min(sent[8:]) > 8
