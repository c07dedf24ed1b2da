"""Reads the fields of an exported line, and checks them."""

import json
from typing import Any

from .texts import moment

# the integers that every JSON reader reads exactly
_HIGHEST = 2**53


class Fields:
    """The fields of one line. A field that memory would not have written raises `TypeError` or `ValueError`."""

    def __init__(self, line: str) -> None:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise TypeError("A line is an object")
        self._fields: dict[str, Any] = fields

    def text(self, name: str) -> str:
        """Return a text."""
        text: str = self._of(name, str)
        return text

    def optional(self, name: str) -> str | None:
        """Return a text, or None if it is missing."""
        return self.text(name) if self._fields.get(name) is not None else None

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words of a text, or an empty tuple if it is missing."""
        return tuple((self.optional(name) or "").split())

    def moment(self, name: str) -> float:
        """Return a time."""
        return moment(self._of(name, int | float))

    def count(self, name: str) -> int:
        """Return a positive integer."""
        count: int = self._of(name, int)
        if not 1 <= count <= _HIGHEST:
            raise ValueError(f"{name} is out of range")
        return count

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value: bool = self._fields.get(name) is True
        if not value and self._fields.get(name) is not False:
            raise TypeError(f"{name} is missing or of another type")
        return value

    def optional_count(self, name: str) -> int | None:
        """Return a positive integer, or None if it is missing."""
        return self.count(name) if self._fields.get(name) is not None else None

    def _of(self, name: str, kind: Any) -> Any:
        value = self._fields.get(name)
        # in Python, a boolean is a number
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"{name} is missing or of another type")
        return value
