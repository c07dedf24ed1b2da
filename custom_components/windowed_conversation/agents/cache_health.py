"""Health of a provider's prompt cache: the tokens expected from it and served, and the changes behind a miss.

Each request is compared with the previous one in the same window, by fingerprints: no text is kept.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from weakref import WeakKeyDictionary

from ..providers import Usage, messages_tokens, tools_tokens
from ..turn.ports import BilledRequest, PromptFingerprints
from ..window import KindCounter, Message, Role, Window

# In seconds, how long a provider keeps its cache: Anthropic's five minutes after the last use are the shortest
# time that a provider names. https://docs.claude.com/en/docs/build-with-claude/prompt-caching
CACHE_LIFE = 300.0

# The shortfall from which a prompt cache counts as collapsed: a share of the expected tokens, and tokens. They are
# those of pydantic-ai's WarnOnCacheBusts, and leave room for caches that work in steps.
_TOLERATED_SHARE = 0.05
_TOLERATED_TOKENS = 2000

# Every provider with a cache caches a prefix of this many tokens: Anthropic's Haiku 4.5 and Gemini 3 need the most.
# https://docs.claude.com/en/docs/build-with-claude/prompt-caching https://ai.google.dev/gemini-api/docs/caching
_CACHED_BY_ALL = 4096

# This many unexplained misses in a row are no accident. Caches promise nothing: OpenAI sends a request for which
# one machine has no time to another, whose cache is cold, and Gemini gives no guarantee at all; people have counted one
# miss in five there, and one in two. Five in a row are 1 in 3,000 at the one rate, 1 in 30 at the other, and a few
# minutes of talk where a cache does not work at all. https://platform.openai.com/docs/guides/prompt-caching
# https://github.com/googleapis/python-genai/issues/1880 https://github.com/BerriAI/litellm/issues/10667
UNEXPLAINED_MISSES = 5


class Part(StrEnum):
    """A part of the beginning that all requests of an agent share."""

    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    ENTITIES = "entities"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as fingerprints.

    `parts` are those of its fixed beginning, which has `fixed` tokens. `messages` are those of the messages after that,
    with `tokens` each. The newest exchange begins with the message number `settled`.
    """

    at: float
    model: str
    parts: dict[Part, int]
    fixed: int
    messages: Sequence[int]
    tokens: Sequence[int]
    settled: int

    @classmethod
    def of(cls, billed: BilledRequest, prompt: PromptFingerprints, counter: KindCounter) -> Self:
        """Return the fingerprints of a billed request."""
        request = billed.request
        system = [message for message in request.messages if message.role is Role.SYSTEM]
        messages = request.messages[len(system) :]
        return cls(
            at=billed.at,
            model=request.model,
            parts={
                Part.INSTRUCTIONS: prompt.instructions,
                Part.TOOLS: hash(tuple(tool.text for tool in request.tools)),
                Part.ENTITIES: prompt.entities,
            },
            fixed=messages_tokens(system, counter) + tools_tokens(request.tools, counter),
            messages=array("q", map(_fingerprint, messages)),
            tokens=array("q", (message.tokens or 0 for message in messages)),
            settled=max((place for place, message in enumerate(messages) if message.role is Role.USER), default=0),
        )


def _fingerprint(message: Message) -> int:
    calls = tuple(call.id for call in message.tool_calls)
    return hash((message.role, message.content, message.tool_call_id, calls, message.tokens))


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The tokens that the cache should have served and did serve, and the parts of the prompt that had changed."""

    expected: int
    cached: int
    changed: tuple[Part, ...]

    @property
    def collapsed(self) -> bool:
        """Whether the cache served less than expected by more than both 5 % and 2,000 tokens."""
        return self.expected - self.cached > max(_TOLERATED_TOKENS, _TOLERATED_SHARE * self.expected)


def compare(before: SentRequest, now: SentRequest, usage: Usage) -> CacheUse | None:
    """Return the use of the cache by a request after another one in its window, or None if that is unknown.

    Expected are the tokens that both requests share, plus those that they would share if no fixed part had changed. The
    result is unknown if the cache may have expired, if history was evicted (a trim, whose price is known) or cleared by
    the provider, or if the requests have too little in common.
    """
    total = now.fixed + sum(now.tokens)
    shared, common = 0, min(before.fixed, now.fixed)
    for one, other, tokens in zip(before.messages, now.messages, now.tokens, strict=False):
        if one != other:
            break
        shared, common = shared + 1, common + tokens
    shortened = usage.cleared or shared < before.settled
    if before.model != now.model or now.at - before.at > CACHE_LIFE or shortened or not total:
        return None
    # in the provider's own tokens, so that an error of our count does not look like one of the cache
    expected = round(usage.input * common / total)
    if expected <= _TOLERATED_TOKENS:
        return None
    return CacheUse(expected, usage.cached, tuple(part for part in Part if before.parts[part] != now.parts[part]))


class CacheWatch:
    """The use of the caches by an agent; `collapse` is the fault that its newest comparable turn has shown.

    A miss that a change explains counts at once, an unexplained one only as the last of several in a row.
    """

    def __init__(self) -> None:
        self.collapse: CacheUse | None = None
        self._unexplained = 0
        self._sent: WeakKeyDictionary[Window, SentRequest] = WeakKeyDictionary()
        # By model, the fewest tokens that were ever billed as cached.
        self._least_cached: dict[str, int] = {}

    def on_turn(
        self, window: Window, billed: Sequence[BilledRequest], prompt: PromptFingerprints, counter: KindCounter
    ) -> None:
        """Learn from the requests of an ended turn.

        Skips a request that forbids calls: for some providers it begins differently, and no other follows it. Nothing
        is expected of a cache for volatile parts, and earlier findings no longer matter then.
        """
        if prompt.volatile:
            self._sent.pop(window, None)
            self.collapse, self._unexplained = None, 0
            return
        uses = [
            self._use(window, SentRequest.of(each, prompt, counter), each.usage)
            for each in billed
            if each.request.may_call
        ]
        first = uses[0] if uses else None
        if first is not None and not first.collapsed:
            # a later hit does not end the row: it finds the tokens that the previous request has just written
            self._unexplained = 0
        misses = [use for use in uses if use is not None and use.collapsed]
        self._unexplained += sum(not miss.changed for miss in misses)
        enough = self._unexplained >= UNEXPLAINED_MISSES
        wrong = [miss for miss in misses if miss.changed or enough]
        if wrong:
            self.collapse = wrong[0]
        elif first is not None:
            self.collapse = None

    def _use(self, window: Window, now: SentRequest, usage: Usage) -> CacheUse | None:
        before = self._sent.get(window)
        self._sent[window] = now
        if usage.cached:
            self._least_cached[now.model] = min(usage.cached, self._least_cached.get(now.model, usage.cached))
        use = before and compare(before, now, usage)
        least = self._least_cached.get(now.model)
        return use if use and least is not None and use.expected >= min(least, _CACHED_BY_ALL) else None
