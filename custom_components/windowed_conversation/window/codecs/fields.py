"""Checks of untrusted data: its size, its characters, and the fields of each JSON object."""

from collections.abc import Iterator, Mapping
import json
from math import isfinite
from typing import Any, Self

from ..errors import WindowError
from ..messages import MAX_TOKENS, is_int_in_range, is_number

# Twice as many characters as the largest configurable window would hold in English.
MAX_DATA_CHARS = 16_000_000

# The cost of an object in characters, in addition to its texts, so that the number of empty objects is limited too.
_OBJECT_COST_CHARS = 32

# About 30,000 years.
_MAX_SECONDS = 10**12


class CodecError(WindowError):
    """Stored conversation data cannot be read."""


class UnknownFormat(CodecError):
    """The data is not a conversation of this integration."""


class TooNew(CodecError):
    """The data was written by a newer version of this integration."""


class MalformedData(CodecError):
    """A field is missing, has the wrong type, or is in the wrong place."""


class TooLarge(CodecError):
    """The data is too large to be a conversation."""


def _parse_finite_float(number: str) -> float | None:
    value = float(number)
    return value if isfinite(value) else None


# Decodes numbers that Python reads but JSON does not define, such as NaN, as None.
decode_json = json.JSONDecoder(parse_float=_parse_finite_float, parse_constant=lambda _: None).decode


class CharAllowance:
    """The number of characters that may still be read, shared by all fields of a conversation."""

    def __init__(self, char_count: int = MAX_DATA_CHARS) -> None:
        self._remaining_chars = char_count

    def spend(self, char_count: int) -> None:
        """Subtract characters that were read. Raises `TooLarge` if too few remain."""
        self._remaining_chars -= char_count
        if self._remaining_chars < 0:
            raise TooLarge(f"more than {MAX_DATA_CHARS} characters")


class Fields:
    """The fields of one JSON object, which errors call `path`. Methods raise `MalformedData` and `TooLarge`."""

    def __init__(self, value: object, path: str, allowance: CharAllowance) -> None:
        if not isinstance(value, Mapping):
            raise MalformedData(f"{path} is no object")
        allowance.spend(_OBJECT_COST_CHARS)
        self.path = path
        self._values: Mapping[Any, Any] = value
        self._allowance = allowance

    def has(self, name: str) -> bool:
        """Return whether the field exists and is not null."""
        return self._values.get(name) is not None

    def read_text(self, name: str) -> str:
        """Return the text in a field."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self.build_error(name, "is no text")
        self._allowance.spend(len(value))
        return self._check_encodable(name, value)

    def read_optional_text(self, name: str) -> str | None:
        """Return the text in a field, or None if the field is missing."""
        return self.read_text(name) if self.has(name) else None

    def read_integer(self, name: str, most: int = MAX_TOKENS) -> int:
        """Return the integer in a field, which must be between 0 and `most`."""
        value = self._values.get(name)
        if not is_int_in_range(value, most=most):
            raise self.build_error(name, f"is no whole number from 0 to {most}")
        return value

    def read_seconds(self, name: str) -> float:
        """Return the number of seconds in a field."""
        value = self._values.get(name)
        if not is_number(value) or not abs(value) <= _MAX_SECONDS:
            raise self.build_error(name, "is no number")
        return value

    def read_texts(self, name: str) -> list[str]:
        """Return the list of texts in a field, or an empty list if the field is missing."""
        values = self._read_list(name)
        if not all(isinstance(value, str) for value in values):
            raise self.build_error(name, "is no list of texts")
        self._allowance.spend(len(self._check_encodable(name, "".join(values))) + len(values))
        return values

    def read_child(self, name: str) -> Self:
        """Return the fields of the object in a field."""
        return type(self)(self._values.get(name), f"{self.path}.{name}", self._allowance)

    def children(self, name: str) -> Iterator[Self]:
        """Yield the fields of each object in a list; nothing if the field is missing."""
        for place, value in enumerate(self._read_list(name)):
            yield type(self)(value, f"{self.path}.{name}[{place}]", self._allowance)

    def read_json(self, name: str) -> Any:
        """Return the decoded value of a field with JSON text. Numbers that JSON does not define become None."""
        text = self.read_text(name)
        try:
            value = decode_json(text)
            if "\\u" in text:
                self._check_encodable(name, json.dumps(value, ensure_ascii=False))
        except (ValueError, RecursionError) as err:
            raise self.build_error(name, "is no JSON") from err
        return value

    def read_json_object(self, name: str) -> dict[str, Any]:
        """Return the decoded object of a field with JSON text."""
        value = self.read_json(name)
        if not isinstance(value, dict):
            raise self.build_error(name, "is no object")
        return value

    def check_field_names(self, *names: str) -> None:
        """Raise `MalformedData` if the object has any other fields, because their meaning would be lost."""
        if unknown := len(self._values.keys() - set(names)):
            raise MalformedData(f"{self.path} has {unknown} unknown fields")

    def build_error(self, name: str, problem: str) -> MalformedData:
        """Return the `MalformedData` error for a field. `problem` is, for example, "is missing"."""
        return MalformedData(f"{self.path}.{name} {problem}")

    def _check_encodable(self, name: str, text: str) -> str:
        """Return a text if UTF-8 can encode it. A text with a lone surrogate could never be sent in a request."""
        try:
            text.encode()
        except UnicodeEncodeError as err:
            raise self.build_error(name, "has half a character") from err
        return text

    def _read_list(self, name: str) -> list[Any]:
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise self.build_error(name, "is no list")
        return list(value)
