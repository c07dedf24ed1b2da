"""The check that a JSON value has the type of a field."""

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict


def has_json_type(value: object, kind: Any) -> bool:
    """Return whether a JSON value has a type: a JSON type, a list of one, a typed dictionary, or a union of them.

    A typed dictionary has all of its required fields and no unknown ones. An integer counts as a float, a bool as
    neither.
    """
    if is_typeddict(kind):
        return isinstance(value, dict) and _has_fields(value, kind)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(has_json_type(each, *get_args(kind)) for each in value)
    if isinstance(kind, UnionType):
        return any(has_json_type(value, each) for each in get_args(kind))
    if isinstance(value, bool) and kind is not Any:
        return kind is bool
    return kind is Any or isinstance(value, float | int if kind is float else get_origin(kind) or kind)


def _has_fields(value: Mapping[str, object], kind: Any) -> bool:
    types = _get_field_types(kind)
    is_complete = kind.__required_keys__ <= value.keys() <= types.keys()
    return is_complete and all(has_json_type(each, types[name]) for name, each in value.items())


_get_field_types = cache(get_type_hints)
