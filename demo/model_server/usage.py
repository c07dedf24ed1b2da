"""Token usage: an estimate from the bytes of the request, and a prompt cache that works as OpenAI documents its own.

Nothing in here knows how usage is written on the wire.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import json
from typing import Any

BYTES_PER_TOKEN = 4

# https://platform.openai.com/docs/guides/prompt-caching: from 1024 tokens on, in steps of 128.
CACHE_FROM_TOKENS = 1024
CACHE_STEP_TOKENS = 128

_REMEMBERED_PROMPTS = 256


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens: `prompt` includes `cached`, `completion` includes `reasoning`."""

    prompt: int
    cached: int
    completion: int
    reasoning: int


def to_bytes(value: Any) -> bytes:
    """Return compact JSON in the key order that was received."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def prompt_bytes(tools: Iterable[Any], messages: Iterable[Any]) -> bytes:
    """Return what the model reads, in the order it is cached: the tools, then the messages, one a line."""
    return b"".join(to_bytes(part) + b"\n" for part in (*tools, *messages))


def tokens(data: bytes) -> int:
    """Return the estimate for these bytes, rounded up."""
    return -(-len(data) // BYTES_PER_TOKEN)


def common_prefix(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


class PromptCache:
    """The prompts that were answered, by model, newest kept. Entries do not expire with time."""

    def __init__(self) -> None:
        self._prompts: dict[str, deque[bytes]] = {}

    def cached_tokens(self, model: str, prompt: bytes) -> int:
        """Return how many tokens of the prompt an earlier one began with, and remember this prompt."""
        prompts = self._prompts.setdefault(model, deque(maxlen=_REMEMBERED_PROMPTS))
        longest = max((common_prefix(prompt, earlier) for earlier in prompts), default=0)
        prompts.append(prompt)
        whole = longest // BYTES_PER_TOKEN
        return whole - whole % CACHE_STEP_TOKENS if whole >= CACHE_FROM_TOKENS else 0

    def clear(self) -> None:
        """Forget every prompt."""
        self._prompts.clear()


def completion_tokens(text: str, arguments: Iterable[Mapping[str, Any]]) -> int:
    """Return the estimate for what the model wrote."""
    return tokens(text.encode() + b"".join(to_bytes(dict(each)) for each in arguments))
