"""Tool schemas for formats that accept no choice (`anyOf` and its like) at the top: OpenAI's and Anthropic's."""

from collections.abc import Iterable, Mapping
from typing import Any

type Schema = dict[str, Any]

_CHOICES = ("anyOf", "oneOf")
# By the error messages of both: https://github.com/goruck/home-generative-agent/pull/545
# and https://github.com/marianfoo/mcp-sap-docs/pull/51
_REFUSED_AT_THE_TOP = frozenset({*_CHOICES, "allOf", "const", "enum", "not"})

# The keywords that contain other schemas.
_MAPPINGS = ("properties", "patternProperties", "$defs")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")


def without_choice(schema: Mapping[str, Any]) -> Schema:
    """Return an object's schema without a choice at its top. It accepts everything that the choice accepts.

    Its properties are those of all branches; required are the properties that every branch requires. A branch that
    accepts unnamed properties does not limit those that others name: their types are kept.
    """
    if schema.keys().isdisjoint(_REFUSED_AT_THE_TOP):
        return dict(schema)
    own = {name: value for name, value in schema.items() if name not in _REFUSED_AT_THE_TOP}
    parts = [own, *map(_branch, schema.get("allOf", ()))]
    parts += (_either(schema[name]) for name in _CHOICES if name in schema)
    properties: Schema = {}
    for part in parts:
        properties = {**part.get("properties", {}), **properties}
    names = dict.fromkeys(name for part in parts for name in part.get("properties", ()))
    required = dict.fromkeys(name for part in parts for name in part.get("required", ()))
    return {
        **own,
        "properties": {name: properties[name] for name in names},
        **({"required": list(required)} if required else {}),
        **({"additionalProperties": False} if any(map(_is_closed, parts)) else {}),
    }


def with_items(schema: Any) -> Any:
    """Return a schema in which every array defines its items, even if they may be anything."""
    if not isinstance(schema, dict):
        return schema
    inner: Schema = {
        **{name: {key: with_items(each) for key, each in schema[name].items()} for name in _MAPPINGS if name in schema},
        **{name: [with_items(each) for each in schema[name]] for name in _LISTS if name in schema},
        **{name: with_items(schema[name]) for name in _SINGLE if name in schema},
    }
    says_nothing = "array" in _types(schema) and "items" not in schema
    return {**schema, **inner, **({"items": {}} if says_nothing else {})}


def _either(branches: Iterable[Any]) -> Schema:
    """Return a schema that accepts every object that at least one branch accepts."""
    objects = [branch for branch in map(_branch, branches) if "object" in _types(branch)]
    names = dict.fromkeys(name for each in objects for name in each["properties"])
    required = [each.get("required", ()) for each in objects]
    return {
        "properties": {name: _any_of(each["properties"].get(name) for each in objects) for name in names},
        "required": [name for name in (required or [()])[0] if all(name in each for each in required)],
        "additionalProperties": not (objects and all(map(_is_closed, objects))),
    }


def _branch(schema: Any) -> Schema:
    """Return a branch as an object without a choice. A branch that is not an object accepts anything, or nothing."""
    return {"type": "object", "properties": {}, **(without_choice(schema) if isinstance(schema, dict) else {})}


def _any_of(schemas: Iterable[Any]) -> Any:
    different: list[Any] = []
    for each in schemas:
        if each is not None and each not in different:
            different.append(each)
    return different[0] if len(different) == 1 else {"anyOf": different}


def _is_closed(schema: Schema) -> bool:
    return schema.get("additionalProperties") is False and "patternProperties" not in schema


def _types(schema: Schema) -> Iterable[str]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else types
