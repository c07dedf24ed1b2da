"""Checks of untrusted data: its size, its characters, and the fields of each JSON object."""

from collections.abc import Callable, Mapping
import json
from math import isfinite
from typing import Any

from ..errors import WindowError
from ..messages import is_number

# Twice as many characters as the largest configurable window would hold in English.
MAX_DATA_CHARS = 16_000_000

# About 30,000 years.
_MAX_SECONDS = 10**12

# The type of each field, or a function that returns whether a value is valid.
type FieldChecks = Mapping[str, type | Callable[[Any], bool]]


class CodecError(WindowError):
    """The data is not a conversation: a field is missing, unknown, invalid or too large. The message quotes no text."""


def _parse_finite_float(number: str) -> float | None:
    value = float(number)
    return value if isfinite(value) else None


# Decodes numbers that Python reads but JSON does not define, such as NaN, as None.
decode_json = json.JSONDecoder(parse_float=_parse_finite_float, parse_constant=lambda _: None).decode


def is_text_list(value: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def is_timestamp(value: object) -> bool:
    """Return whether a value is a number of seconds."""
    return is_number(value) and abs(value) <= _MAX_SECONDS


def check_data(data: object) -> None:
    """Raise `CodecError` for data that is not JSON, has a lone surrogate, or exceeds 16 million characters."""
    try:
        text = json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as err:
        raise CodecError("the data is no JSON") from err
    if len(text) > MAX_DATA_CHARS:
        raise CodecError(f"the data has more than {MAX_DATA_CHARS} characters")
    _check_characters(text, "the data")


def check_object(value: object, path: str, required: FieldChecks, optional: FieldChecks) -> dict[str, Any]:
    """Return the value if it is an object with valid required and optional fields only. Raises `CodecError`."""
    if not isinstance(value, dict):
        raise CodecError(f"{path} is no object")
    if missing := required.keys() - value.keys():
        raise CodecError(f"{path} has no {', '.join(sorted(missing))}")
    for name, each in value.items():
        check = required.get(name) or optional.get(name)
        if check is None:
            raise CodecError(f"{path} has an unknown field")
        if not (isinstance(each, check) if isinstance(check, type) else check(each)):
            raise CodecError(f"{path}.{name} is not valid")
    return value


def decode_json_text(text: str, path: str) -> Any:
    """Return the value of a JSON text. Numbers that JSON does not define become None. Raises `CodecError`."""
    try:
        value = decode_json(text)
    except (ValueError, RecursionError) as err:
        raise CodecError(f"{path} is no JSON") from err
    if "\\u" in text:
        _check_characters(json.dumps(value, ensure_ascii=False), path)
    return value


def _check_characters(text: str, path: str) -> None:
    """Raise `CodecError` for a lone surrogate, which UTF-8 cannot encode, so that no request could be sent with it."""
    try:
        text.encode()
    except UnicodeEncodeError as err:
        raise CodecError(f"{path} has half a character") from err
