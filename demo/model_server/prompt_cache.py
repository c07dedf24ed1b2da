"""Prompt caches as the providers document them: of the start of every prompt, or only up to the client's mark.

Entries do not expire with time. The wire formats report cache use with their own field names.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from .usage import BYTES_PER_TOKEN

_REMEMBERED_PROMPTS = 256
_REMEMBERED_MARKS = 4096

# https://platform.claude.com/docs/en/build-with-claude/prompt-caching: the provider searches for an entry in the twenty
# blocks before a mark.
_LOOKBACK_BLOCKS = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """A position up to which a prompt is cached: the byte at which the marked block ends."""

    end: int
    long: bool = False


@dataclass(frozen=True, slots=True)
class Caching:
    """The caching rules for a request. `minimum` and `step` are in tokens; the defaults are those of OpenAI.

    https://platform.openai.com/docs/guides/prompt-caching: from 1024 tokens on, in steps of 128. If `marks` is None,
    each prompt is cached automatically, otherwise only up to the marks; `blocks` are the byte positions at which blocks
    end.
    """

    minimum: int = 1024
    step: int = 128
    marks: tuple[Mark, ...] | None = None
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cached:
    """The tokens that the cache served, those that were newly written to it, and the part kept for an hour."""

    read: int = 0
    written: int = 0
    written_long: int = 0


class PromptCache:
    """The answered prompts by model; the newest ones are kept."""

    def __init__(self) -> None:
        self._prompts: dict[str, deque[bytes]] = {}
        self._marked: dict[str, deque[bytes]] = {}

    def use(self, model: str, prompt: bytes, caching: Caching) -> Cached:
        """Return the number of tokens that the cache reads and writes for the prompt, and store the prompt."""
        if caching.marks is None:
            return self._automatic(model, prompt, caching)
        return self._up_to_marks(model, prompt, caching, caching.marks)

    def clear(self) -> None:
        """Remove all prompts."""
        self._prompts.clear()
        self._marked.clear()

    def _automatic(self, model: str, prompt: bytes, caching: Caching) -> Cached:
        prompts = self._prompts.setdefault(model, deque(maxlen=_REMEMBERED_PROMPTS))
        longest = max((common_prefix(prompt, earlier) for earlier in prompts), default=0)
        prompts.append(prompt)
        read, whole = _cacheable(longest, caching), _cacheable(len(prompt), caching)
        return Cached(read, whole - read)

    def _up_to_marks(self, model: str, prompt: bytes, caching: Caching, marks: tuple[Mark, ...]) -> Cached:
        entries = self._marked.setdefault(model, deque(maxlen=_REMEMBERED_MARKS))
        found = max((end for end in _looked_for(caching, marks) if _digest(prompt, end) in entries), default=0)
        wanted = [mark for mark in marks if mark.end // BYTES_PER_TOKEN >= caching.minimum]
        entries.extend(_digest(prompt, mark.end) for mark in wanted)
        read = found // BYTES_PER_TOKEN
        ends = [max((mark.end for mark in group), default=0) for group in (wanted, [m for m in wanted if m.long])]
        written, written_long = (max(0, end // BYTES_PER_TOKEN - read) for end in ends)
        return Cached(read, written, written_long)


def _cacheable(size: int, caching: Caching) -> int:
    whole = size // BYTES_PER_TOKEN
    return whole - whole % caching.step if whole >= caching.minimum else 0


def _looked_for(caching: Caching, marks: tuple[Mark, ...]) -> Iterator[int]:
    for mark in marks:
        before = [end for end in caching.blocks if end <= mark.end]
        yield from before[-_LOOKBACK_BLOCKS:]


def _digest(prompt: bytes, end: int) -> bytes:
    return sha256(prompt[:end]).digest()


def common_prefix(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix, in bytes."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
