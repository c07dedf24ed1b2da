"""The demo home: its areas, the entities in them, and those that the agent may see.

The entities themselves are in configuration.yaml; this puts them where a person would have put them.
"""

from demo.client import Client

AREAS: dict[str, tuple[str, ...]] = {
    "Kitchen": ("light.kitchen_light", "switch.coffee_machine", "sensor.kitchen_temperature"),
    "Living Room": (
        "light.living_room_light",
        "climate.living_room_thermostat",
        "sensor.living_room_temperature",
    ),
    "Bedroom": ("light.bedroom_light", "binary_sensor.bedroom_window", "sensor.bedroom_temperature"),
    "Garage": ("light.garage_light", "cover.garage_door", "lock.side_door"),
}
EXPOSED: tuple[str, ...] = tuple(entity for entities in AREAS.values() for entity in entities)
GOOD_NIGHT = "input_button.good_night"

# The helpers of template entities, which nobody needs to see.
_HIDDEN = (
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


async def furnish(client: Client) -> None:
    """Put every entity into its area, expose it to Assist, and hide the helpers of its templates. Repeatable."""
    known = {area["name"]: area["area_id"] for area in await client.command("config/area_registry/list")}
    for name, entities in AREAS.items():
        area_id = known.get(name) or (await client.command("config/area_registry/create", name=name))["area_id"]
        for entity_id in entities:
            await client.command("config/entity_registry/update", entity_id=entity_id, area_id=area_id)
    for entity_id in _HIDDEN:
        await client.command("config/entity_registry/update", entity_id=entity_id, hidden_by="user")
    await client.command(
        "homeassistant/expose_entity",
        assistants=["conversation"],
        entity_ids=list(EXPOSED),
        should_expose=True,
    )
