"""Tests for the check that a JSON value has the type of a field."""

from typing import Any, NotRequired, TypedDict

import pytest

from custom_components.windowed_conversation.store import has_json_type


class Part(TypedDict):
    """A field with fields."""

    name: str
    size: NotRequired[int | None]


FITTING: list[tuple[object, Any]] = [
    ("a", str),
    (1, int),
    (1, float),
    (1.5, float),
    (True, bool),
    (None, str | None),
    ([], list[str]),
    (["a"], list[str]),
    ({"a": 1}, dict[str, int]),
    ({"name": "a"}, Part),
    ({"name": "a", "size": None}, Part),
    ([{"name": "a", "size": 1}], list[Part]),
    (None, Any),
    (True, Any),
]
OTHERS: list[tuple[object, Any]] = [
    (1, str),
    (1.5, int),
    (True, int),
    (True, float),
    (1, bool),
    (None, str),
    ("a", list[str]),
    ([1], list[str]),
    ([], dict[str, int]),
    ({}, Part),
    ({"name": 1}, Part),
    ({"name": "a", "colour": "red"}, Part),
    ([{"name": "a", "size": "big"}], list[Part]),
]


@pytest.mark.parametrize(("value", "kind"), FITTING, ids=str)
def test_value_of_the_type_is_accepted(value: object, kind: Any) -> None:
    assert has_json_type(value, kind)


@pytest.mark.parametrize(("value", "kind"), OTHERS, ids=str)
def test_value_of_another_type_is_not_accepted(value: object, kind: Any) -> None:
    assert not has_json_type(value, kind)
