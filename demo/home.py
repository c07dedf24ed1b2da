"""The demo home: its areas, the entities in them, and the entities that are exposed to the agent.

configuration.yaml defines the entities; this module assigns them to areas as a user would.
"""

from demo.client import Client, Json

# Other names, by which the home is spoken of in German.
GERMAN_NAME_BY_AREA = {"Kitchen": "Küche", "Living Room": "Wohnzimmer", "Bedroom": "Schlafzimmer"}
GERMAN_NAME_BY_ENTITY_ID = {
    "light.kitchen_light": "Küchenlicht",
    "switch.coffee_machine": "Kaffeemaschine",
    "light.living_room_light": "Wohnzimmerlicht",
    "climate.living_room_thermostat": "Heizung",
    "light.bedroom_light": "Schlafzimmerlicht",
    "binary_sensor.bedroom_window": "Schlafzimmerfenster",
    "light.garage_light": "Garagenlicht",
    "cover.garage_door": "Garagentor",
    "lock.side_door": "Seitentür",
    "todo.shopping_list": "Einkaufsliste",
    "weather.weather": "Wetter",
}
_SHOPPING_LIST = "Shopping list"

ENTITY_IDS_BY_AREA: dict[str, tuple[str, ...]] = {
    "Kitchen": ("light.kitchen_light", "switch.coffee_machine", "sensor.kitchen_temperature"),
    "Living Room": (
        "light.living_room_light",
        "climate.living_room_thermostat",
        "sensor.living_room_temperature",
    ),
    "Bedroom": ("light.bedroom_light", "binary_sensor.bedroom_window", "sensor.bedroom_temperature"),
    "Garage": ("light.garage_light", "cover.garage_door", "lock.side_door"),
}
PERSON_ENTITY_IDS = ("person.demo", "person.ben", "person.emma")
EXPOSED_ENTITY_IDS: tuple[str, ...] = (
    *(entity for entities in ENTITY_IDS_BY_AREA.values() for entity in entities),
    *PERSON_ENTITY_IDS,
    "todo.shopping_list",
    "weather.weather",
)
GOOD_NIGHT_BUTTON = "input_button.good_night"

# The helpers of the template entities, which users do not need to see.
_HIDDEN_ENTITY_IDS = (
    "input_boolean.kitchen_light_on",
    "input_boolean.living_room_light_on",
    "input_boolean.bedroom_light_on",
    "input_boolean.garage_light_on",
    "input_boolean.coffee_machine_on",
    "input_boolean.living_room_heating",
    "input_boolean.garage_door_open",
    "input_boolean.side_door_locked",
    "input_number.living_room_brightness",
    "input_number.bedroom_brightness",
)


async def set_up_home(client: Client) -> None:
    """Add the shopping list, place and name everything, expose it to Assist, and hide the helpers. Safe to repeat."""
    await _add_shopping_list(client)
    await _name_areas(client)
    for entity_id, name in GERMAN_NAME_BY_ENTITY_ID.items():
        # Home Assistant's name for "the entity's own name" is null
        await client.send_command("config/entity_registry/update", entity_id=entity_id, aliases=[None, name])
    for entity_id in _HIDDEN_ENTITY_IDS:
        await client.send_command("config/entity_registry/update", entity_id=entity_id, hidden_by="user")
    await _track_owner(client)
    await client.send_command(
        "homeassistant/expose_entity",
        assistants=["conversation"],
        entity_ids=list(EXPOSED_ENTITY_IDS),
        should_expose=True,
    )


async def _add_shopping_list(client: Client) -> None:
    entries = await client.send_command("config_entries/get", domain="local_todo")
    if not entries:
        path = "/api/config/config_entries/flow"
        form = await client.post(path, {"handler": "local_todo"})
        await client.post(f"{path}/{form['flow_id']}", {"todo_list_name": _SHOPPING_LIST})


async def _name_areas(client: Client) -> None:
    known = {area["name"]: area["area_id"] for area in await client.send_command("config/area_registry/list")}
    for name, entities in ENTITY_IDS_BY_AREA.items():
        names: Json = {"name": name, "aliases": [GERMAN_NAME_BY_AREA[name]] if name in GERMAN_NAME_BY_AREA else []}
        if name in known:
            area_id = known[name]
            await client.send_command("config/area_registry/update", area_id=area_id, **names)
        else:
            area_id = (await client.send_command("config/area_registry/create", **names))["area_id"]
        for entity_id in entities:
            await client.send_command("config/entity_registry/update", entity_id=entity_id, area_id=area_id)


async def _track_owner(client: Client) -> None:
    """Give the owner a phone as the two others have it.

    Home Assistant adds the owner as a person only if its people are loaded before the owner registers.
    """
    user = await client.send_command("auth/current_user")
    fields = {"name": user["name"], "user_id": user["id"], "device_trackers": ["device_tracker.phone_of_demo"]}
    people = (await client.send_command("person/list"))["storage"]
    owner = next((person for person in people if person["user_id"] == user["id"]), None)
    if owner is None:
        await client.send_command("person/create", **fields)
    else:
        await client.send_command("person/update", person_id=owner["id"], **fields)
