"""Selectors that the structure of an AI task can name, each with data that it accepts and data that it refuses."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from homeassistant.helpers import llm, selector
import probatio


class SelectorCase(NamedTuple):
    """A selector's configuration with an example of `valid` and of `invalid` data.

    `invalid` is None if the selector accepts everything but, perhaps, None.
    """

    config: Mapping[str, Any]
    valid: Any
    invalid: Any


_ANY_TEXT = "kitchen"
_PARCEL = {
    "fields": {
        "carrier": {"selector": {"text": {}}, "required": True},
        "pieces": {"selector": {"number": {"min": 1, "max": 9}}},
        "size": {"selector": {"select": {"options": ["small", "large"]}}},
    }
}
_SONG = {"media_content_id": "media-source://local/song.mp3", "media_content_type": "audio/mpeg"}

SELECTORS: Mapping[str, SelectorCase] = {
    "action": SelectorCase({"action": {}}, [{"action": "light.turn_on"}], None),
    "app": SelectorCase({"app": {}}, "core_ssh", 5),
    "area": SelectorCase({"area": {}}, _ANY_TEXT, 5),
    "area_multiple": SelectorCase({"area": {"multiple": True}}, [_ANY_TEXT], [5]),
    "assist_pipeline": SelectorCase({"assist_pipeline": {}}, "preferred", 5),
    "attribute": SelectorCase({"attribute": {"entity_id": "light.hall"}}, "brightness", 5),
    "backup_location": SelectorCase({"backup_location": {}}, "backups", "no backup"),
    "boolean": SelectorCase({"boolean": {}}, True, None),
    "choose": SelectorCase({"choose": {"choices": {"one": {"selector": {"number": {}}}}}}, 5, []),
    "color_rgb": SelectorCase({"color_rgb": {}}, [255, 128, 0], [255, 128]),
    "color_temp": SelectorCase({"color_temp": {"unit": "kelvin", "min": 2000, "max": 6500}}, 2700, 9000),
    "condition": SelectorCase(
        {"condition": {}}, [{"condition": "state", "entity_id": "light.hall", "state": "on"}], ["?"]
    ),
    "config_entry": SelectorCase({"config_entry": {}}, "01JABCDEF", 5),
    "constant": SelectorCase({"constant": {"value": True, "label": "Enabled"}}, True, False),
    "conversation_agent": SelectorCase({"conversation_agent": {}}, "conversation.home_assistant", 5),
    "country": SelectorCase({"country": {}}, "DE", 5),
    "country_list": SelectorCase({"country": {"countries": ["DE", "NL"]}}, "NL", "XX"),
    "date": SelectorCase({"date": {}}, "2026-11-23", "tomorrow"),
    "datetime": SelectorCase({"datetime": {}}, "2026-11-23 08:00:00", "tomorrow"),
    "device": SelectorCase({"device": {}}, "0a1b2c", 5),
    "duration": SelectorCase({"duration": {}}, {"minutes": 5}, {"minutes": "a few"}),
    "entity": SelectorCase({"entity": {"domain": "light"}}, "light.hall", "the light in the hall"),
    "entity_multiple": SelectorCase({"entity": {"multiple": True}}, ["light.hall"], ["the light"]),
    "file": SelectorCase({"file": {"accept": "image/*"}}, "0182a1b9-9dbc-4cb6-8a0e-9a2c3e5b1c55", "no id"),
    "floor": SelectorCase({"floor": {}}, "ground", 5),
    "icon": SelectorCase({"icon": {}}, "mdi:home", 5),
    "label": SelectorCase({"label": {}}, "garden", 5),
    "language": SelectorCase({"language": {}}, "de", 5),
    "language_list": SelectorCase({"language": {"languages": ["de", "en"]}}, "de", "xx"),
    "location": SelectorCase({"location": {}}, {"latitude": 52.5, "longitude": 13.4}, {"latitude": 52.5}),
    "media": SelectorCase({"media": {}}, {"entity_id": "media_player.hall", **_SONG}, {"entity_id": 5}),
    "number": SelectorCase({"number": {"min": 0, "max": 10, "step": 1, "mode": "box"}}, 3, 11),
    "number_free": SelectorCase({"number": {"mode": "box", "step": "any"}}, -1.5, "many"),
    "object": SelectorCase({"object": {}}, {"anything": [1, "two"]}, None),
    "object_fields": SelectorCase({"object": _PARCEL}, {"carrier": "DHL", "pieces": 2}, {"pieces": 2}),
    "object_multiple": SelectorCase({"object": {**_PARCEL, "multiple": True}}, [{"carrier": "DHL"}], {"carrier": 5}),
    "qr_code": SelectorCase({"qr_code": {"data": "https://example.com"}}, "https://example.com", None),
    "select": SelectorCase({"select": {"options": ["on", "off"]}}, "on", "dimmed"),
    "select_custom": SelectorCase({"select": {"options": ["on", "off"], "custom_value": True}}, "dimmed", 5),
    "select_labels": SelectorCase({"select": {"options": [{"value": "1", "label": "One"}]}}, "1", 1),
    "select_multiple": SelectorCase(
        {"select": {"options": ["red", "green"], "multiple": True}}, ["red", "green"], ["blue"]
    ),
    "state": SelectorCase({"state": {"entity_id": "light.hall"}}, "on", 5),
    "statistic": SelectorCase({"statistic": {}}, "sensor.energy", 5),
    "target": SelectorCase({"target": {}}, {"entity_id": ["light.hall"]}, "the hall"),
    "template": SelectorCase({"template": {}}, "{{ states('light.hall') }}", "{{ states("),
    "text": SelectorCase({"text": {}}, "A van stands at the gate.", 5),
    "text_multiple": SelectorCase({"text": {"multiple": True}}, ["red", "van"], "red"),
    "theme": SelectorCase({"theme": {}}, "midnight", 5),
    "time": SelectorCase({"time": {}}, "08:00:00", "morning"),
    "trigger": SelectorCase({"trigger": {}}, [{"trigger": "state", "entity_id": "light.hall"}], "?"),
}


def make_structure(fields: Mapping[str, Mapping[str, Any]]) -> probatio.Schema:
    """Return the structure that Home Assistant makes from the field "structure" of "ai_task.generate_data"."""
    return probatio.Schema(
        {
            (probatio.Required if field.get("required") else probatio.Optional)(
                name, description=field.get("description")
            ): selector.selector(field["selector"])
            for name, field in fields.items()
        },
        extra=probatio.PREVENT_EXTRA,
    )


def make_json_schema(fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema that Home Assistant makes from such a field."""
    schema: dict[str, Any] = probatio.to_openapi(
        make_structure(fields), custom_serializer=llm.selector_serializer, openapi_version="3.1.0"
    )
    return schema


def make_case_fields(case: SelectorCase) -> dict[str, dict[str, Any]]:
    """Return a structure with the case's selector as an optional field, and a required text."""
    return {
        "value": {"selector": case.config, "description": "The value to find"},
        "note": {"selector": {"text": {}}, "required": True},
    }
