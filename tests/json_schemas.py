"""JSON Schema as far as tools use it: random values for a schema, whether it accepts a value, and its mistakes."""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

type Schema = Mapping[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip
# The keywords with a schema, with several, and with one for each name.
_SINGLE, _LISTS, _MAPS = ("items", "not"), ("anyOf", "oneOf", "allOf"), ("properties",)
_WORDS = ("", "on", "Kitchen", "lamp by the sofa", "12:30")


def is_accepted(value: Any, schema: Any) -> bool:
    """Return whether a schema accepts a value."""
    if isinstance(schema, bool):
        return schema
    return (
        _has_type(value, schema.get("type"))
        and ("enum" not in schema or value in schema["enum"])
        and _is_within_limits(value, schema)
        and (not isinstance(value, list) or all(is_accepted(each, schema.get("items", {})) for each in value))
        and (not isinstance(value, dict) or _are_members_accepted(value, schema))
        and ("anyOf" not in schema or any(is_accepted(value, each) for each in schema["anyOf"]))
        and ("oneOf" not in schema or sum(is_accepted(value, each) for each in schema["oneOf"]) == 1)
        and all(is_accepted(value, each) for each in schema.get("allOf", ()))
        and ("not" not in schema or not is_accepted(value, schema["not"]))
    )


def _has_type(value: Any, kind: Any) -> bool:
    kinds = [kind] if isinstance(kind, str) else kind or [*_TYPES]
    return any(isinstance(value, _TYPES[each]) and isinstance(value, bool) <= (each == "boolean") for each in kinds)


def _is_within_limits(value: Any, schema: Schema) -> bool:
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
    if isinstance(value, list):
        return bool(schema.get("minItems", 0) <= len(value))
    if isinstance(value, (int, float)):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _are_members_accepted(value: dict[str, Any], schema: Schema) -> bool:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", ())) and all(
        is_accepted(each, known.get(name, others)) for name, each in value.items()
    )


def build_value(schema: Any, dice: Random) -> Any:
    """Return a random value that mostly fits the schema; `is_accepted` says whether it does."""
    schema = _choose_branches(schema if isinstance(schema, Mapping) else {}, dice)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kinds = schema.get("type", "string")
    builders: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(
            ("integer", "number"), lambda: dice.randint(int(schema.get("minimum", -5)), int(schema.get("maximum", 500)))
        ),
        "boolean": lambda: dice.random() < 0.5,
        "null": lambda: None,
        "string": lambda: dice.choice(_WORDS),
        "array": lambda: [build_value(schema.get("items", {}), dice) for _ in range(dice.randint(0, 3))],
        "object": lambda: _build_object(schema, dice),
    }
    return builders[kinds if isinstance(kinds, str) else dice.choice(kinds)]()


def _choose_branches(schema: Schema, dice: Random) -> Schema:
    """Return the schema with one branch of each choice, and with all of `allOf`."""
    parts = [dice.choice(schema[name]) for name in ("anyOf", "oneOf") if name in schema] + list(schema.get("allOf", ()))
    inner = [_choose_branches(part, dice) for part in parts if isinstance(part, Mapping)]
    own = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf", "allOf")}
    for part in reversed(inner):
        own = {**part, **own}
    return own


def _build_object(schema: Schema, dice: Random) -> dict[str, Any]:
    required = schema.get("required", ())
    known = {name: each for name, each in schema.get("properties", {}).items()
             if name in required or dice.random() < 0.5}  # fmt: skip
    others = schema.get("additionalProperties", True)
    extra = {"more": others} if others and dice.random() < 0.3 else {}
    return {name: build_value(each, dice) for name, each in {**known, **extra}.items()}


def find_mistakes(schema: Any) -> list[str]:
    """Return the keywords whose value is not a valid one in JSON Schema."""
    if isinstance(schema, bool):
        return []
    return [] if _has_valid_keywords(schema) and not list(_iter_invalid_parts(schema)) else [str(schema)]


def _has_valid_keywords(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kinds = schema.get("type", [])
    return (
        set([kinds] if isinstance(kinds, str) else kinds) <= _TYPES.keys()
        and all(isinstance(schema.get(name, {}), Mapping) for name in _MAPS)
        and all(isinstance(schema.get(name, [{}]), list) and schema.get(name, [{}]) for name in (*_LISTS, "enum"))
        and set(schema.get("required", ())) <= schema.get("properties", {}).keys()
    )


def _iter_invalid_parts(schema: Schema) -> Iterator[str]:
    parts = [schema[name] for name in _SINGLE if name in schema]
    parts += [each for name in _LISTS for each in schema.get(name, ())]
    parts += [each for name in _MAPS for each in schema.get(name, {}).values()]
    for part in parts:
        yield from find_mistakes(part)
