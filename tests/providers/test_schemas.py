"""Tests that a choice at the top of a tool's schema becomes one object, which accepts all that a branch does."""

from random import Random
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.encoder import add_items, flatten_choices

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "null": type(None), "object": dict}

KINDS = ("string", "integer", "boolean", "null")
VALUES = ("", "on", 0, 7, True, None)


def closed_object(dice: Random) -> dict[str, Any]:
    """Return an object schema that allows no properties except those it names."""
    properties = {name: {"type": dice.choice(KINDS)} for name in dice.sample("abcd", dice.randint(0, 3))}
    required = [name for name in properties if dice.random() < 0.5]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def choice(dice: Random, depth: int = 0) -> dict[str, Any]:
    """Return a choice between objects, nested choices, and types other than object."""
    makers = (closed_object, closed_object, lambda _: {"type": "null"}, lambda dice: choice(dice, depth + 1))
    branches = [dice.choice(makers[: 4 - (depth > 1)])(dice) for _ in range(dice.randint(1, 3))]
    return {dice.choice(("anyOf", "oneOf")): branches}


def make_object(dice: Random) -> dict[str, Any]:
    """Return an object that some choices accept."""
    return {name: dice.choice(VALUES) for name in dice.sample("abcd", dice.randint(0, 3))}


def is_accepted(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a schema accepts a value, by the part of the JSON Schema standard that these schemas use."""
    kind = schema.get("type")
    return (
        (kind is None or type(value) is _TYPES[kind])
        and (not isinstance(value, dict) or _are_taken(value, schema))
        and ("anyOf" not in schema or any(is_accepted(value, each) for each in schema["anyOf"]))
        and ("oneOf" not in schema or sum(is_accepted(value, each) for each in schema["oneOf"]) == 1)
        and all(is_accepted(value, each) for each in schema.get("allOf", ()))
    )


def _are_taken(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return (
        all(name in value for name in schema.get("required", ()))
        and all(is_accepted(value[name], properties[name]) for name in value.keys() & properties.keys())
        and (schema.get("additionalProperties") is not False or value.keys() <= properties.keys())
    )


def test_what_a_branch_takes_the_object_takes(subtests: pytest.Subtests) -> None:
    for seed in range(200):
        with subtests.test(seed=seed):
            dice = Random(seed)
            schema = choice(dice)
            taken = [value for value in (make_object(dice) for _ in range(200)) if is_accepted(value, schema)]

            assert [value for value in taken if not is_accepted(value, flatten_choices(schema))] == []


def test_no_choice_is_left_at_the_top(subtests: pytest.Subtests) -> None:
    for seed in range(20):
        with subtests.test(seed=seed):
            assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & flatten_choices(choice(Random(seed))).keys()


def test_choice_keeps_every_name_type_and_word() -> None:
    schema = {
        "type": "object",
        "properties": {},
        "description": "What to play",
        "anyOf": [
            {"type": "object", "properties": {"room": TEXT, "song": TEXT}, "required": ["room", "song"]},
            {"type": "object", "properties": {"room": NUMBER, "album": TEXT}, "required": ["album", "room"]},
        ],
    }

    assert flatten_choices(schema) == {
        "type": "object",
        "description": "What to play",
        "properties": {"room": {"anyOf": [TEXT, NUMBER]}, "song": TEXT, "album": TEXT},
        "required": ["room"],
    }


def test_object_of_which_one_of_two_members_is_required_keeps_both() -> None:
    schema = {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT, "c": TEXT},
        "required": ["c"],
        "additionalProperties": False,
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }

    assert flatten_choices(schema) == {name: value for name, value in schema.items() if name != "anyOf"}


def test_all_of_several_objects_is_all_of_their_members() -> None:
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
            {"properties": {"b": NUMBER}, "required": ["b"]},
            {"not": {"required": ["a", "b"]}},
        ]
    }

    assert flatten_choices(schema) == {"properties": {"a": TEXT, "b": NUMBER}, "required": ["a", "b"]}


@pytest.mark.parametrize("branch", [True, {}, {"type": ["object", "null"]}])
def test_branch_that_takes_anything_leaves_nothing_required(branch: Any) -> None:
    closed = {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "additionalProperties": False}

    assert flatten_choices({"anyOf": [closed, branch]}) == {"properties": {"a": TEXT}}


@pytest.mark.parametrize("where", ["top", "property", "items", "choice", "other"])
def test_array_says_what_is_in_it(where: str) -> None:
    silent, array = {"type": "array", "maxItems": 0}, {"type": "array", "maxItems": 0, "items": {}}
    schemas: dict[str, Any] = {
        "top": lambda each: each,
        "property": lambda each: {"type": "object", "properties": {"a": each, "default": TEXT}},
        "items": lambda each: {"type": "array", "items": each},
        "choice": lambda each: {"anyOf": [TEXT, each]},
        "other": lambda each: {"type": "object", "additionalProperties": each},
    }

    assert add_items(schemas[where](silent)) == schemas[where](array)


def test_value_that_looks_like_an_array_stays() -> None:
    schema = {"type": "object", "default": {"type": "array"}, "enum": [{"type": "array"}]}

    assert add_items(schema) == schema
