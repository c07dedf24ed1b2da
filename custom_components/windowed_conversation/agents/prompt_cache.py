"""Detection of collapsed prompt caches. Requests are compared by their fingerprints, so that no text has to be kept."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from weakref import WeakKeyDictionary

from ..providers import Usage, count_messages_tokens, count_tools_tokens
from ..turn.model import BilledRequest
from ..window import Message, Role, TextCounter, Window

# In seconds. No provider states a shorter lifetime of its prompt cache than Anthropic, which keeps it for five minutes
# after the last use. https://docs.claude.com/en/docs/build-with-claude/prompt-caching
CACHE_LIFETIME_SECONDS = 300.0

# A prompt cache counts as collapsed if it served fewer tokens than expected, by more than this share and this number of
# tokens. Both limits are those of pydantic-ai's WarnOnCacheBusts, and allow for caches that work in blocks of tokens.
_TOLERATED_LOSS_SHARE = 0.05
_TOLERATED_LOSS_TOKENS = 2000

# Every provider with a cache can cache a prefix of this many tokens. Anthropic's Haiku 4.5 and Gemini 3 have the
# highest minimum. https://docs.claude.com/en/docs/build-with-claude/prompt-caching
# https://ai.google.dev/gemini-api/docs/caching
_MIN_CACHEABLE_TOKENS = 4096

# Only this many unexplained misses in a row count as a fault, because providers do not guarantee cache hits: OpenAI
# moves a request from a busy machine to another one, whose cache is cold, and for Gemini, users have counted one miss
# in five requests, or even one in two. Five misses in a row have a probability of 1 in 3,000 at the lower rate and of 1
# in 30 at the higher one, and take only a few minutes if a cache does not work at all.
# https://platform.openai.com/docs/guides/prompt-caching https://github.com/googleapis/python-genai/issues/1880
# https://github.com/BerriAI/litellm/issues/10667
UNEXPLAINED_MISS_LIMIT = 5


class PromptPart(StrEnum):
    """A part of the fixed beginning that all requests of an agent share."""

    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    ENTITIES = "entities"


@dataclass(frozen=True, slots=True)
class PromptFingerprints:
    """Hashes of the parts of a system prompt: the instructions, and the prompt of the tools for the home.

    `is_volatile` means that part of the prompt is meant to change from turn to turn.
    """

    instructions_hash: int
    entities_hash: int
    is_volatile: bool = False


@dataclass(frozen=True, slots=True)
class RequestFingerprints:
    """The fingerprints of a request."""

    billed_at: float
    model: str
    # The fingerprints of the fixed beginning.
    part_hashes: dict[PromptPart, int]
    # The size of the fixed beginning.
    fixed_tokens: int
    # The fingerprints of the messages after the fixed beginning.
    message_hashes: Sequence[int]
    # The sizes of the messages after the fixed beginning.
    message_tokens: Sequence[int]
    # The index of the message with which the newest exchange begins.
    newest_exchange_index: int

    @classmethod
    def from_billed(cls, billed: BilledRequest, prompt: PromptFingerprints, counter: TextCounter) -> Self:
        """Return the fingerprints of a billed request."""
        request = billed.request
        system = [message for message in request.messages if message.role is Role.SYSTEM]
        messages = request.messages[len(system) :]
        return cls(
            billed_at=billed.billed_at,
            model=request.model,
            part_hashes={
                PromptPart.INSTRUCTIONS: prompt.instructions_hash,
                PromptPart.TOOLS: hash(tuple([tool.text for tool in request.tools])),
                PromptPart.ENTITIES: prompt.entities_hash,
            },
            fixed_tokens=count_messages_tokens(system, counter) + count_tools_tokens(request.tools, counter),
            message_hashes=array("q", map(_message_hash, messages)),
            message_tokens=array("q", [message.tokens or 0 for message in messages]),
            newest_exchange_index=max(
                [place for place, message in enumerate(messages) if message.role is Role.USER], default=0
            ),
        )


def _message_hash(message: Message) -> int:
    calls = tuple([call.id for call in message.tool_calls])
    return hash((message.role, message.content, message.tool_call_id, calls, message.tokens))


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The tokens that the cache should have served and did serve, and the parts of the prompt that have changed."""

    expected: int
    cached_tokens: int
    changed_parts: tuple[PromptPart, ...]

    @property
    def is_collapsed(self) -> bool:
        """Whether the cache served less than expected by more than both 5 % and 2,000 tokens."""
        return self.expected - self.cached_tokens > max(_TOLERATED_LOSS_TOKENS, _TOLERATED_LOSS_SHARE * self.expected)


def compare_requests(before: RequestFingerprints, now: RequestFingerprints, usage: Usage) -> CacheUse | None:
    """Return the cache use of a request that follows another one in its window, or None if that is unknown.

    The expected tokens are those that both requests share, including those that they would share if no fixed part had
    changed. The result is unknown if the cache may have expired, if history was evicted (a trim, whose cost is
    expected) or cleared by the provider, if it searched the web, or if the requests have too little in common.
    """
    total = now.fixed_tokens + sum(now.message_tokens)
    shared, common = 0, min(before.fixed_tokens, now.fixed_tokens)
    for one, other, tokens in zip(before.message_hashes, now.message_hashes, now.message_tokens, strict=False):
        if one != other:
            break
        shared, common = shared + 1, common + tokens
    shortened = usage.cleared or usage.searches or shared < before.newest_exchange_index
    if before.model != now.model or now.billed_at - before.billed_at > CACHE_LIFETIME_SECONDS or shortened or not total:
        return None
    # This is in the provider's own tokens, so that an error of our token count does not look like a cache miss.
    expected = round(usage.input * common / total)
    if expected <= _TOLERATED_LOSS_TOKENS:
        return None
    return CacheUse(
        expected, usage.cached, tuple(part for part in PromptPart if before.part_hashes[part] != now.part_hashes[part])
    )


class CacheWatch:
    """Watches how an agent uses prompt caches. `collapse` is the fault found in its newest comparable turn, if any.

    A miss that is explained by a change counts at once. An unexplained miss counts only after several in a row.
    """

    def __init__(self) -> None:
        self.collapse: CacheUse | None = None
        self._unexplained_misses = 0
        self._last_requests: WeakKeyDictionary[Window, RequestFingerprints] = WeakKeyDictionary()
        # The smallest number of tokens that was ever billed as cached, by model.
        self._min_cached_tokens: dict[str, int] = {}

    def on_turn(
        self, window: Window, billed: Sequence[BilledRequest], prompt: PromptFingerprints, counter: TextCounter
    ) -> None:
        """Evaluate the requests of an ended turn.

        A request that forbids tool calls is skipped, because for some providers its beginning differs, and no other
        request follows it. So is one with a picture, whose size in tokens is unknown. If parts are volatile, no cache
        hits are expected, and earlier findings are discarded.
        """
        if prompt.is_volatile:
            self._last_requests.pop(window, None)
            self.collapse, self._unexplained_misses = None, 0
            return
        uses = [
            self._measure_use(window, RequestFingerprints.from_billed(each, prompt, counter), each.usage)
            for each in billed
            if each.request.may_call and each.request.has_own_size(each.usage)
        ]
        first = uses[0] if uses else None
        if first is not None and not first.is_collapsed:
            # Only the first request of a turn can end the row: a later hit finds tokens that the previous request has
            # just written.
            self._unexplained_misses = 0
        misses = [use for use in uses if use is not None and use.is_collapsed]
        self._unexplained_misses += len([miss for miss in misses if not miss.changed_parts])
        enough = self._unexplained_misses >= UNEXPLAINED_MISS_LIMIT
        wrong = [miss for miss in misses if miss.changed_parts or enough]
        if wrong:
            self.collapse = wrong[0]
        elif first is not None:
            self.collapse = None

    def _measure_use(self, window: Window, now: RequestFingerprints, usage: Usage) -> CacheUse | None:
        before = self._last_requests.get(window)
        self._last_requests[window] = now
        if usage.cached:
            self._min_cached_tokens[now.model] = min(usage.cached, self._min_cached_tokens.get(now.model, usage.cached))
        use = before and compare_requests(before, now, usage)
        least = self._min_cached_tokens.get(now.model)
        return use if use and least is not None and use.expected >= min(least, _MIN_CACHEABLE_TOKENS) else None
