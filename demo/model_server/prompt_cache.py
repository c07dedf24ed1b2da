"""Prompt caches as the providers document them: of the start of every prompt, or only up to the client's mark.

Entries do not expire with time. The wire formats report cache use with their own field names.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from .usage import BYTES_PER_TOKEN

_MAX_PROMPTS = 256
_MAX_MARKS = 4096

# https://platform.claude.com/docs/en/build-with-claude/prompt-caching: the provider searches for an entry in the twenty
# blocks before a mark.
_LOOKBACK_BLOCKS = 20


@dataclass(frozen=True, slots=True)
class CacheMark:
    """A position up to which a prompt is cached: the byte at which the marked block ends."""

    end_byte: int
    is_long: bool = False


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The caching rules for a request. The defaults are those of OpenAI: from 1024 tokens on, in steps of 128.

    https://platform.openai.com/docs/guides/prompt-caching
    """

    min_tokens: int = 1024
    step_tokens: int = 128
    # None caches each prompt automatically, otherwise it is cached only up to the marks.
    marks: tuple[CacheMark, ...] | None = None
    # The byte positions at which blocks end.
    block_ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The tokens that the cache served, those that were newly written to it, and the part kept for an hour."""

    read_tokens: int = 0
    written_tokens: int = 0
    long_written_tokens: int = 0


class PromptCache:
    """The answered prompts by model; the newest ones are kept."""

    def __init__(self) -> None:
        self._prompts_by_model: dict[str, deque[bytes]] = {}
        self._digests_by_model: dict[str, deque[bytes]] = {}

    def use_cache(self, model: str, prompt: bytes, rules: CacheRules) -> CacheUse:
        """Return the number of tokens that the cache reads and writes for the prompt, and store the prompt."""
        if rules.marks is None:
            return self._use_prefix(model, prompt, rules)
        return self._use_marks(model, prompt, rules, rules.marks)

    def clear(self) -> None:
        """Remove all prompts."""
        self._prompts_by_model.clear()
        self._digests_by_model.clear()

    def _use_prefix(self, model: str, prompt: bytes, rules: CacheRules) -> CacheUse:
        prompts = self._prompts_by_model.setdefault(model, deque(maxlen=_MAX_PROMPTS))
        longest = 0
        for earlier in prompts:
            # few prompts share more than the longest prefix so far, and to find the end of a prefix takes longer
            if len(earlier) > longest and prompt.startswith(earlier[: longest + 1]):
                longest = count_common_bytes(prompt, earlier)
        prompts.append(prompt)
        read, whole = _count_cacheable_tokens(longest, rules), _count_cacheable_tokens(len(prompt), rules)
        return CacheUse(read, whole - read)

    def _use_marks(self, model: str, prompt: bytes, rules: CacheRules, marks: tuple[CacheMark, ...]) -> CacheUse:
        entries = self._digests_by_model.setdefault(model, deque(maxlen=_MAX_MARKS))
        found = max((end for end in _iter_lookup_ends(rules, marks) if _hash_prefix(prompt, end) in entries), default=0)
        wanted = [mark for mark in marks if mark.end_byte // BYTES_PER_TOKEN >= rules.min_tokens]
        entries.extend(_hash_prefix(prompt, mark.end_byte) for mark in wanted)
        read = found // BYTES_PER_TOKEN
        ends = [
            max((mark.end_byte for mark in group), default=0) for group in (wanted, [m for m in wanted if m.is_long])
        ]
        written, written_long = (max(0, end // BYTES_PER_TOKEN - read) for end in ends)
        return CacheUse(read, written, written_long)


def _count_cacheable_tokens(size: int, rules: CacheRules) -> int:
    whole = size // BYTES_PER_TOKEN
    return whole - whole % rules.step_tokens if whole >= rules.min_tokens else 0


def _iter_lookup_ends(rules: CacheRules, marks: tuple[CacheMark, ...]) -> Iterator[int]:
    for mark in marks:
        before = [end for end in rules.block_ends if end <= mark.end_byte]
        yield from before[-_LOOKBACK_BLOCKS:]


def _hash_prefix(prompt: bytes, end: int) -> bytes:
    return sha256(prompt[:end]).digest()


def count_common_bytes(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix, in bytes."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
