"""The demo home: its areas, the entities in them, and the entities that are exposed to the agent.

configuration.yaml defines the entities; this module assigns them to areas as a user would.
"""

from demo.client import Client

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
EXPOSED_ENTITY_IDS: tuple[str, ...] = tuple(entity for entities in ENTITY_IDS_BY_AREA.values() for entity in entities)
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
    """Assign the entities to areas, expose them to Assist, and hide the template helpers. Safe to repeat."""
    known = {area["name"]: area["area_id"] for area in await client.send_command("config/area_registry/list")}
    for name, entities in ENTITY_IDS_BY_AREA.items():
        area_id = known.get(name) or (await client.send_command("config/area_registry/create", name=name))["area_id"]
        for entity_id in entities:
            await client.send_command("config/entity_registry/update", entity_id=entity_id, area_id=area_id)
    for entity_id in _HIDDEN_ENTITY_IDS:
        await client.send_command("config/entity_registry/update", entity_id=entity_id, hidden_by="user")
    await client.send_command(
        "homeassistant/expose_entity",
        assistants=["conversation"],
        entity_ids=list(EXPOSED_ENTITY_IDS),
        should_expose=True,
    )
