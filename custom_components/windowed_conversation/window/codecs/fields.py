"""Typed and bounded reading of fields that come from outside, and its errors."""

from collections.abc import Callable, Iterator, Mapping
import json
from math import isfinite
from typing import Any

from ..errors import WindowError
from ..messages import MAX_COUNT, is_count

# Twice the characters that the largest window of the options would hold in English.
MAX_CHARACTERS = 16_000_000

# The cost of an object besides its texts, so that many empty ones are also too many.
_OBJECT_COST = 32

# Some 30,000 years.
_MOST_SECONDS = 10**12


class CodecError(WindowError):
    """A stored conversation cannot be read."""


class NotOurs(CodecError):
    """The data is not a conversation of ours."""


class NewerVersion(CodecError):
    """A later version wrote it."""


class Malformed(CodecError):
    """A part is missing, has the wrong type, or is in the wrong place."""


class TooLarge(CodecError):
    """The data is larger than a conversation can be."""


def _finite(number: str) -> float | None:
    value = float(number)
    return value if isfinite(value) else None


# Python writes and reads numbers that JSON has not, such as NaN: they are null.
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _: None).decode


class Allowance:
    """The number of characters that may still be read."""

    def __init__(self, characters: int = MAX_CHARACTERS) -> None:
        self._left = characters

    def spend(self, characters: int) -> None:
        """Count characters as read. Raises `TooLarge` when there are too many."""
        self._left -= characters
        if self._left < 0:
            raise TooLarge(f"more than {MAX_CHARACTERS} characters")


class Fields:
    """The fields of one JSON object. `where` names it in errors. Every method raises `Malformed` and `TooLarge`."""

    def __init__(self, value: object, where: str, allowance: Allowance) -> None:
        if not isinstance(value, Mapping):
            raise Malformed(f"{where} is no object")
        allowance.spend(_OBJECT_COST)
        self.where = where
        self._values: Mapping[Any, Any] = value
        self._allowance = allowance

    def has(self, name: str) -> bool:
        """Return whether the field is there and not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """Return a text."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self.error(name, "is no text")
        self._allowance.spend(len(value))
        return self._valid_text(name, value)

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None if there is none."""
        return self.text(name) if self.has(name) else None

    def integer(self, name: str, most: int = MAX_COUNT) -> int:
        """Return a whole number from 0 to `most`."""
        value = self._values.get(name)
        if not is_count(value, most=most):
            raise self.error(name, f"is no whole number from 0 to {most}")
        return value

    def seconds(self, name: str) -> float:
        """Return a number of seconds."""
        value = self._values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _MOST_SECONDS:
            raise self.error(name, "is no number")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, empty if there is none."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise self.error(name, "is no list of texts")
        self._allowance.spend(len(self._valid_text(name, "".join(values))) + len(values))
        return values

    def child(self, name: str) -> Fields:
        """Return the fields of a nested object."""
        return Fields(self._values.get(name), f"{self.where}.{name}", self._allowance)

    def children(self, name: str, read: Callable[[object], object] = lambda value: value) -> Iterator[Fields]:
        """Yield the fields of each object in a list, if there is one; `read` turns a value into an object."""
        for place, value in enumerate(self._list(name)):
            yield Fields(read(value), f"{self.where}.{name}[{place}]", self._allowance)

    def json(self, name: str) -> Any:
        """Return the value of a JSON text. Numbers that JSON does not have become null."""
        text = self.text(name)
        try:
            value = _decode(text)
            if "\\u" in text:
                self._valid_text(name, json.dumps(value, ensure_ascii=False))
        except (ValueError, RecursionError) as err:
            raise self.error(name, "is no JSON") from err
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a copy of an object of JSON types. Numbers that JSON does not have become null."""
        value = self._values.get(name)
        if not isinstance(value, Mapping):
            raise self.error(name, "is no object")
        try:
            text = self._valid_text(name, json.dumps(dict(value), ensure_ascii=False))
            self._allowance.spend(len(text))
            copy: dict[str, Any] = _decode(text)
        except (TypeError, ValueError, RecursionError) as err:
            raise self.error(name, "is no JSON") from err
        return copy

    def json_object(self, name: str) -> dict[str, Any]:
        """Return the object of a JSON text."""
        value = self.json(name)
        if not isinstance(value, dict):
            raise self.error(name, "is no object")
        return value

    def value(self, name: str) -> object:
        """Return a field of any type, or None if there is none."""
        return self._values.get(name)

    def expect_only(self, *names: str) -> None:
        """Raise `Malformed` if there is any other field, whose meaning would be lost."""
        if unknown := len(self._values.keys() - set(names)):
            raise Malformed(f"{self.where} has {unknown} unknown fields")

    def error(self, name: str, problem: str) -> Malformed:
        """Return the error to raise for a malformed field; `problem` is, for example, "is missing"."""
        return Malformed(f"{self.where}.{name} {problem}")

    def _valid_text(self, name: str, text: str) -> str:
        """Return a text that UTF-8 can hold: with half of a surrogate pair no request could ever be sent."""
        try:
            text.encode()
        except UnicodeEncodeError as err:
            raise self.error(name, "has half a character") from err
        return text

    def _list(self, name: str) -> list[Any]:
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise self.error(name, "is no list")
        return list(value)
