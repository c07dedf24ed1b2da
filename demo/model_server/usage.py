"""Token usage: an estimate from the bytes of the request, in words that no wire format owns.

The tokens that a prompt cache would have served are in `prompt_cache`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import json
from typing import Any

from .media import priced

BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens: `prompt` includes `cached` and `written` (to the cache), `completion` includes `reasoning`.

    `written_long` is the part of `written` that is kept for an hour.
    """

    prompt: int
    cached: int
    completion: int
    reasoning: int
    written: int = 0
    written_long: int = 0


def to_bytes(value: Any) -> bytes:
    """Return compact JSON in the key order that was received."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def prompt_bytes(tools: Iterable[Any], messages: Iterable[Any]) -> bytes:
    """Return the bytes that the model reads, in the order they are cached: the tools, then the messages, one a line."""
    return b"".join(part_bytes(part) for part in (*tools, *messages))


def part_bytes(part: Any) -> bytes:
    """Return one part of a prompt in bytes for the cache: a line; attachments by their price, not their size."""
    return to_bytes(priced(part)) + b"\n"


def tokens(data: bytes) -> int:
    """Return the estimate for these bytes, rounded up."""
    return -(-len(data) // BYTES_PER_TOKEN)


def completion_tokens(text: str, arguments: Iterable[Mapping[str, Any]]) -> int:
    """Return the estimate for the model's words."""
    return tokens(text.encode() + b"".join(to_bytes(dict(each)) for each in arguments))
