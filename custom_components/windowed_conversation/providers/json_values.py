"""Functions that read values and lists of models from a server's JSON, where each value may have any type or size.

Halves of surrogate pairs are joined or replaced. If a value that an answer needs has the wrong type or is missing, an
error is raised. An informational value of the wrong type is treated as missing.
"""

import asyncio
from codecs import IncrementalDecoder, getincrementaldecoder
from dataclasses import dataclass, field
from functools import partial
import json
import math
from operator import itemgetter
import re
from typing import Any

from ..window import is_int_in_range
from ..window.codecs import decode_json
from .errors import BadStream

_UTF_16_CODEC = "utf-16-le"

_CODE_PATTERN = re.compile(r"[a-zA-Z_0-9]{1,40}")

# Routers list hundreds of models, with up to a hundred values each.
_MAX_MODELS = 10_000
_MAX_LISTED_VALUES = 250_000
# The maximum page size of Anthropic's and Google's lists, which neither of them fills:
# https://platform.claude.com/docs/en/api/models/list and https://ai.google.dev/api/models#method:-models.list
PAGE_SIZE = 1000


@dataclass(slots=True)
class SurrogateJoiner:
    """Joins surrogate pairs that a stream splits. A first half waits for its second half; at the end it is dropped."""

    _decoder: IncrementalDecoder = field(default_factory=partial(getincrementaldecoder(_UTF_16_CODEC), "replace"))
    _has_pending_half: bool = False

    def feed(self, text: str) -> str:
        """Add text, and return the characters that are complete so far."""
        if text.isascii() and not self._has_pending_half:
            return text
        whole = self._decoder.decode(text.encode(_UTF_16_CODEC, "surrogatepass"))
        half, _ = self._decoder.getstate()
        self._has_pending_half = bool(half)
        return whole


def fix_surrogates(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, or replaced if they are unpaired."""
    return text.encode(_UTF_16_CODEC, "surrogatepass").decode(_UTF_16_CODEC, "replace")


def read_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text, with null for NaN, infinity, and numbers too large for a float.

    Raises `json.JSONDecodeError`, `UnicodeDecodeError` and `RecursionError`.
    """
    return decode_json(text if isinstance(text, str) else text.decode())


def max_value_count(text: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text. Separators inside strings are counted, too."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


def read_repaired_json(text: str) -> Any:
    """Return the value of a JSON text like `read_json`, with surrogate pairs joined or replaced."""
    value = read_json(text)
    if "\\u" not in text and text.isascii():
        return value
    return json.loads(fix_surrogates(json.dumps(value, ensure_ascii=False)))


def drop_non_finite(value: Any) -> Any:
    """Return a JSON value without numbers that are not finite: they are removed from objects, and null elsewhere."""
    try:
        # Nearly all values are finite, and this check does not need to traverse a deeply nested value in Python.
        json.dumps(value, allow_nan=False)
    except ValueError:
        return _drop_infinite(value)
    return value


def _drop_infinite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _drop_infinite(each) for name, each in value.items() if not _is_infinite(each)}
        case list() | tuple():
            return [_drop_infinite(each) for each in value]
    return None if _is_infinite(value) else value


def as_text(value: object) -> str:
    """Return the value if it is text, or an empty text for null. Raises `TypeError` for other values."""
    if isinstance(value, str):
        return value
    if value is not None:
        raise TypeError("not a text")
    return ""


def as_code(value: object) -> str:
    """Return a server's code, or an empty text for any other value: a longer text may repeat the conversation."""
    return value if isinstance(value, str) and _CODE_PATTERN.fullmatch(value) else ""


def get_member(value: object, name: str) -> Any:
    """Return a member of an object, or None if it is missing or the value is not an object."""
    return value.get(name) if isinstance(value, dict) else None


def get_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list; empty if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def count_or_none(value: object) -> int | None:
    """Return the value if it is a whole number from 0 to 10^9, else None."""
    return value if is_int_in_range(value) else None


def require_count(value: object) -> int:
    """Return a server's token count. Raises `BadStream` if it is not a whole number from 0 to 10^9."""
    if not is_int_in_range(value):
        raise BadStream("the server does not count tokens")
    return value


def get_count(usage: object, name: str) -> int:
    """Return one count of a usage, or 0 if it is not valid: a wrong count must not make the answer fail."""
    return count_or_none(get_member(usage, name)) or 0


def token_limit(sizes: object, name: str) -> int | None:
    """Return the named limit in tokens, or None if the object has no valid value for it."""
    return count_or_none(get_member(sizes, name)) or None


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


async def read_models(body: bytes, field: str = "data", name: str = "id") -> dict[str, Any]:
    """Return the objects of a server's model list by name, sorted. Raises `BadStream` if the body is not such a list.

    It is parsed outside of the event loop because it may list thousands of models.
    """
    return await asyncio.to_thread(_read_models, body, field, name)


def _read_models(body: bytes, field: str, name: str) -> dict[str, Any]:
    if max_value_count(body) > _MAX_LISTED_VALUES:
        raise BadStream(f"the list of models has more than {_MAX_LISTED_VALUES} values")
    models = get_member(read_json(body), field)
    if not isinstance(models, list) or not all(isinstance(get_member(model, name), str) for model in models):
        raise BadStream("the server does not list models")
    if len(models) > _MAX_MODELS:
        raise BadStream(f"the server lists more than {_MAX_MODELS} models")
    return {model[name]: model for model in sorted(models, key=itemgetter(name))}
