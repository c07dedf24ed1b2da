"""Token usage, estimated from the bytes of the request, in types that do not depend on a wire format.

`prompt_cache` has the tokens that a prompt cache would have served.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import json
from typing import Any

from .media import price_attachments

BYTES_PER_TOKEN = 4
# What a web search adds to the prompt.
SEARCH_TOKENS = 8000


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of tokens."""

    # Includes `cached`, `written`, and the tokens of the texts that `searches` have found.
    prompt: int
    cached: int
    # Includes `reasoning`.
    completion: int
    reasoning: int
    # Written to the cache.
    written: int = 0
    # The part of `written` that is kept for an hour.
    written_long: int = 0
    searches: int = 0


def encode_json(value: Any) -> bytes:
    """Return the value as compact JSON, with keys in the order in which they were received."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def encode_prompt(tools: Iterable[Any], messages: Iterable[Any]) -> bytes:
    """Return the bytes that the model reads in cache order: the tools, then the messages, one per line."""
    return b"".join(encode_part(part) for part in (*tools, *messages))


def encode_part(part: Any) -> bytes:
    """Return a part of a prompt as one line of bytes for the cache; attachments count by price, not by size."""
    return encode_json(price_attachments(part)) + b"\n"


def estimate_tokens(data: bytes) -> int:
    """Return the estimated number of tokens for these bytes, rounded up."""
    return -(-len(data) // BYTES_PER_TOKEN)


def estimate_completion_tokens(text: str, arguments: Iterable[Mapping[str, Any]]) -> int:
    """Return the estimated number of tokens for the model's text and arguments."""
    return estimate_tokens(text.encode() + b"".join(encode_json(dict(each)) for each in arguments))
