"""Tests that a reduced schema of a tool accepts all that the whole one does, says as much, and is valid."""

import json
from random import Random
from typing import Any, cast

import probatio
import pytest

from custom_components.windowed_conversation.agents.config import DEFAULT_INSTRUCTIONS
from custom_components.windowed_conversation.bridge.tools import reduce_schema, shorten_intent_schema
from custom_components.windowed_conversation.home.bridge.tools import GetHistoryTool, GetStatesTool
from custom_components.windowed_conversation.memory.bridge.tools import make_tools
from custom_components.windowed_conversation.memory.turn.dialog import MemoryDialog
from custom_components.windowed_conversation.memory.turn.speaker import Speaker
from tests.exact_tokens import exact_count
from tests.json_schemas import build_value, find_mistakes, is_accepted

TEXT = {"type": "string"}
_SCALARS: tuple[dict[str, Any], ...] = (
    {"type": "string", "minLength": 1, "maxLength": 300, "title": "A text"},
    {"type": "string", "enum": ["on", "off"], "description": "  "},
    {"type": "integer", "minimum": 0, "maximum": 100, "default": None},
    {"allOf": [{"type": "integer"}, {"type": "number", "minimum": 0, "maximum": 100}]},
    {"allOf": [{"type": ["string", "null"]}, {"type": "string", "enum": ["", "on"]}]},
    {"type": "boolean", "default": False},
    {"type": ["string", "null"], "default": ""},
    {},
)


def make_schema(dice: Random, depth: int = 0) -> dict[str, Any]:
    """Return a random schema with all that a reduction has to understand."""
    makers = (
        lambda: dict(dice.choice(_SCALARS)),
        lambda: {"type": "array", "items": make_schema(dice, depth + 1), "minItems": dice.randint(0, 2)},
        lambda: make_object(dice, depth + 1),
        lambda: {dice.choice(("anyOf", "oneOf", "allOf")): [make_schema(dice, depth + 1) for _ in range(2)]},
        lambda: {"type": "object", "not": make_object(dice, depth + 1)},
        lambda: {"type": "object", "additionalProperties": dice.choice((True, False, {}, TEXT))},
    )
    return dice.choice(makers if depth < 4 else makers[:1])()


def make_object(dice: Random, depth: int = 0) -> dict[str, Any]:
    """Return a random schema of an object. Some of its properties have the names of keywords."""
    names = dice.sample(("name", "title", "description", "default", "required", "items"), dice.randint(0, 3))
    return {
        "type": "object",
        "properties": {name: make_schema(dice, depth + 1) for name in names},
        "required": [name for name in names if dice.random() < 0.4],
        "additionalProperties": dice.choice((True, False, {}, TEXT)),
    }


def list_names(schema: Any) -> list[str]:
    """Return the names of all properties in a schema, however deep they are."""
    if isinstance(schema, list):
        return [name for each in schema for name in list_names(each)]
    if not isinstance(schema, dict):
        return []
    return [*schema.get("properties", {}), *(name for each in schema.values() for name in list_names(each))]


def test_reduced_schema_accepts_all_that_the_whole_one_does(subtests: pytest.Subtests) -> None:
    for seed in range(300):
        with subtests.test(seed=seed):
            dice = Random(seed)
            schema = make_object(dice)
            accepted = [value for value in (build_value(schema, dice) for _ in range(50)) if is_accepted(value, schema)]

            assert [value for value in accepted if not is_accepted(value, reduce_schema(schema))] == []


def test_reduced_schema_is_valid_and_has_every_name(subtests: pytest.Subtests) -> None:
    for seed in range(300):
        with subtests.test(seed=seed):
            schema = make_object(Random(seed))

            reduced = reduce_schema(schema)

            assert find_mistakes(reduced) == []
            assert list_names(reduced) == list_names(schema)


def test_reducing_twice_changes_nothing_more(subtests: pytest.Subtests) -> None:
    for seed in range(50):
        with subtests.test(seed=seed):
            reduced = reduce_schema(make_object(Random(seed)))

            assert reduce_schema(reduced) == reduced


@pytest.mark.parametrize(
    ("whole", "reduced"),
    [
        ({"additionalProperties": False, "properties": {"a": TEXT}}, {"properties": {"a": TEXT}}),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}),
        ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
        ({"title": "Name", **TEXT}, TEXT),
        ({"description": " ", **TEXT}, TEXT),
        ({"default": None, **TEXT}, TEXT),
        ({"default": [], "type": "array"}, {"type": "array"}),
        ({"required": [], "type": "object"}, {"type": "object"}),
        ({"minLength": 1, "maxLength": 300, **TEXT}, TEXT),
    ],
)
def test_keyword_that_says_nothing_is_removed(whole: dict[str, Any], reduced: dict[str, Any]) -> None:
    assert reduce_schema({"type": "object", "properties": {"x": whole}}) == {
        "type": "object",
        "properties": {"x": reduced},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "properties": {"title": TEXT, "default": TEXT}, "required": ["title"]},
        {**TEXT, "description": "A name", "default": "needs_action", "maxLength": 20, "minLength": 2},
        {"type": "boolean", "default": False},
        {"oneOf": [{"type": "object", "additionalProperties": False}, TEXT]},
        {"not": {"required": ["a"], "title": "A"}},
        {"allOf": [{"minimum": 0}, {"minimum": 3}]},
        {"allOf": [{"if": TEXT}, {"then": {"maxLength": 2}}]},
        {"allOf": [TEXT, {"type": "null"}]},
    ],
)
def test_keyword_that_says_something_stays(schema: dict[str, Any]) -> None:
    assert reduce_schema(schema) == schema


def test_deep_schema_is_reduced_only_to_a_depth() -> None:
    schema: dict[str, Any] = {"title": "innermost", **TEXT}
    for _ in range(2_000):
        schema = {"type": "array", "title": "Outer", "items": schema}

    reduced = reduce_schema(schema)

    assert "title" not in reduced["items"]["items"]


CLASSES = ["awning", "blind", "garage", "window"]
INTENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "floor": TEXT,
        "domain": {"type": "array", "items": {**TEXT, "enum": ["light"]}},
        "device_class": {"type": "array", "items": {**TEXT, "enum": CLASSES}},
    },
}


def test_domain_that_is_implied_is_not_asked_for() -> None:
    assert list(shorten_intent_schema(INTENT, "light", has_floors=True)["properties"]) == [
        "name",
        "floor",
        "device_class",
    ]


@pytest.mark.parametrize("implied", [None, "fan"])
def test_domain_that_is_not_implied_is_asked_for(implied: str | None) -> None:
    assert "domain" in shorten_intent_schema(INTENT, implied, has_floors=True)["properties"]


def test_domain_that_is_required_is_asked_for() -> None:
    assert "domain" in shorten_intent_schema({**INTENT, "required": ["domain"]}, "light", has_floors=True)["properties"]


def test_home_without_floors_is_not_asked_for_one() -> None:
    assert "floor" not in shorten_intent_schema(INTENT, None, has_floors=False)["properties"]


def test_device_classes_are_named_by_examples() -> None:
    assert shorten_intent_schema(INTENT, None, has_floors=True)["properties"]["device_class"] == {
        "type": "array",
        "items": TEXT,
        "description": "Such as blind, garage",
    }


def test_description_of_device_classes_by_home_assistant_stays() -> None:
    described = {"type": "array", "items": {**TEXT, "enum": CLASSES}, "description": "Kind of the device"}
    schema = {"type": "object", "properties": {"device_class": described}}

    assert shorten_intent_schema(schema, None, has_floors=True)["properties"]["device_class"] == {
        "type": "array",
        "items": TEXT,
        "description": "Kind of the device",
    }


def test_intent_without_arguments_stays() -> None:
    assert shorten_intent_schema({"type": "object"}, "light", has_floors=True) == {"type": "object"}


def test_own_instructions_and_tools_take_few_tokens() -> None:
    nobody, nothing = Speaker("", "en"), cast("Any", None)
    memory = make_tools(nothing, nobody, nothing, MemoryDialog({}, "", nobody), ("en", "de", "fr", "it"))
    own = (*memory, GetStatesTool(len), GetHistoryTool(len))
    sent = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": reduce_schema(probatio.to_openapi(tool.parameters, openapi_version="3.1.0")),
        }
        for tool in own
    ]

    assert sum(exact_count(json.dumps(each, separators=(",", ":"))) for each in sent) <= 380
    assert exact_count(DEFAULT_INSTRUCTIONS) <= 150
