"""Health of the prompt cache and the windows, and the repair issues on windows, models, servers and the store.

Requests are compared by fingerprints: no text is kept.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from ..const import DOMAIN
from ..providers import Usage, messages_tokens, tools_tokens
from ..store import Reason, StoreState
from ..turn.limits import Shortfall
from ..turn.model import BilledRequest, PromptFingerprints
from ..window import KindCounter, Role, Window, WindowRegistry, WindowStats

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

# In percent of the budget.
FULL = 95

# This many trims in a row that leave a window full are no accident: one large exchange makes one, a question about it
# another. Turns are not counted, because every window climbs over 95 % before a trim, a large one in many turns.
_TRIMS_IN_VAIN = 3

# All agents share one store.
_ALL_AGENTS = "all"


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
                Part.TOOLS: hash(tuple([tool.text for tool in request.tools])),
                Part.ENTITIES: prompt.entities,
            },
            fixed=messages_tokens(system, counter) + tools_tokens(request.tools, counter),
            messages=array(
                "q",
                [
                    hash(
                        (
                            each.role,
                            each.content,
                            each.tool_call_id,
                            tuple([call.id for call in each.tool_calls]),
                            each.tokens,
                        )
                    )
                    for each in messages
                ],
            ),
            tokens=array("q", [message.tokens or 0 for message in messages]),
            settled=max([place for place, message in enumerate(messages) if message.role is Role.USER], default=0),
        )


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
        self._unexplained += len([miss for miss in misses if not miss.changed])
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


@dataclass(frozen=True, slots=True)
class Health:
    """The problems: the figures of a window that stays full, and a collapse of the prompt cache."""

    full: WindowStats | None = None
    collapse: CacheUse | None = None

    def issues(self) -> list[dict[str, Any]]:
        """Return the issues that the problems raise, as plain values: words and figures, nothing that was said."""
        issues: list[dict[str, Any]] = []
        if self.full:
            numbers = {"tokens": self.full.current_tokens, "protected_tokens": self.full.protected_tokens}
            issues.append({"issue": "window_stays_full", **numbers})
        if self.collapse:
            numbers = {"expected_tokens": self.collapse.expected, "cached_tokens": self.collapse.cached}
            issues.append({"issue": "cache_lost", "changed": [*self.collapse.changed], **numbers})
        return issues


class HealthWatch:
    """The problems that an agent's turns show of its windows; `cache` has those of the prompt cache."""

    def __init__(self) -> None:
        self.cache = CacheWatch()
        self._trims_in_vain: WeakKeyDictionary[Window, int] = WeakKeyDictionary()

    def on_turn(self, window: Window, before: WindowStats, after: WindowStats) -> None:
        """Learn from an ended turn, by the figures of its window before and after it."""
        if after.utilization <= FULL:
            self._trims_in_vain.pop(window, None)
        elif after.trims > before.trims:
            self._trims_in_vain[window] = self._trims_in_vain.get(window, 0) + 1

    def health(self) -> Health:
        """Return the current problems."""
        stats = [window.stats() for window, trims in self._trims_in_vain.items() if trims >= _TRIMS_IN_VAIN]
        full = [each for each in stats if each.utilization > FULL]
        return Health(full[0] if full else None, self.cache.collapse)


class Issue(StrEnum):
    """The issues, by translation key."""

    WINDOW_TOO_SMALL = "window_too_small"
    WINDOW_STAYS_FULL = "window_stays_full"
    MODEL_TOO_SMALL = "model_too_small"
    SERVER_READS_LITTLE = "server_reads_little"
    OLLAMA_READS_LITTLE = "ollama_reads_little"
    MEMORY_AWAY = "memory_away"
    MEMORY_DAMAGED = "memory_damaged"
    MEMORY_FAULT = "memory_fault"
    MEMORY_FULL = "memory_full"
    MEMORY_LEFT = "memory_left"
    MEMORY_LOCKED = "memory_locked"
    MEMORY_NEWER = "memory_newer"
    MEMORY_NO_FTS5 = "memory_no_fts5"
    MEMORY_READ_ONLY = "memory_read_only"
    TEXTS_DAMAGED = "texts_damaged"
    SERVER_AWAY = "server_away"
    CACHE_LOST = "cache_lost"


_MEMORY_ISSUES: dict[Reason, Issue] = {
    "away": Issue.MEMORY_AWAY,
    "damaged": Issue.MEMORY_DAMAGED,
    "full": Issue.MEMORY_FULL,
    "locked": Issue.MEMORY_LOCKED,
    "newer": Issue.MEMORY_NEWER,
    "no_fts5": Issue.MEMORY_NO_FTS5,
    "read_only": Issue.MEMORY_READ_ONLY,
}


@callback
def async_raise_or_clear_window(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise an issue while the newest exchange alone is over the budget."""
    placeholders = {"agent": agent_name, "needed": str(stats.current_tokens), "window": str(stats.max_tokens)}
    _raise_or_clear(hass, Issue.WINDOW_TOO_SMALL, agent_id, placeholders if stats.over_budget else None)


@callback
def async_review_windows(hass: HomeAssistant, agent_id: str, agent_name: str, windows: WindowRegistry[str]) -> None:
    """Check the newest conversation again after the budget may have changed."""
    newest = next(iter(windows.stats().values()), None)
    if newest is not None:
        async_raise_or_clear_window(hass, agent_id, agent_name, newest)


@callback
def async_raise_or_clear_model(
    hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None
) -> None:
    """Raise an issue while requests are too large for the model."""
    placeholders = None
    if shortfall is not None:
        exposed = (async_should_expose(hass, CONVERSATION_DOMAIN, each) for each in hass.states.async_entity_ids())
        placeholders = {**_shortfall(agent_name, shortfall), "entities": str(sum(exposed))}
    _raise_or_clear(hass, Issue.MODEL_TOO_SMALL, agent_id, placeholders)


@callback
def async_raise_or_clear_size(
    hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None, *, is_ollama: bool = False
) -> None:
    """Raise an issue while a full window needs more than the server reads."""
    placeholders = None
    if shortfall is not None:
        # context sizes are powers of two
        suggested = str(1 << (shortfall.needed - 1).bit_length())
        placeholders = {**_shortfall(agent_name, shortfall), "suggested": suggested}
    _raise_or_clear(hass, Issue.OLLAMA_READS_LITTLE, agent_id, placeholders if is_ollama else None)
    _raise_or_clear(hass, Issue.SERVER_READS_LITTLE, agent_id, None if is_ollama else placeholders)


def _shortfall(agent_name: str, shortfall: Shortfall) -> dict[str, str]:
    return {"agent": agent_name, "needed": f"{shortfall.needed:,}", "context": f"{shortfall.context:,}"}


@callback
def async_raise_or_clear_health(hass: HomeAssistant, agent_id: str, agent_name: str, watch: HealthWatch) -> None:
    """Raise issues for the current problems of the windows, and clear all others.

    A window whose newest exchange alone is over the budget has its own issue.
    """
    full = lost = None
    health = watch.health()
    if health.full is not None and not health.full.over_budget:
        full = {
            "agent": agent_name,
            "full": str(FULL),
            "tokens": f"{health.full.current_tokens:,}",
            "protected": f"{health.full.protected_tokens:,}",
            "window": f"{health.full.max_tokens:,}",
        }
    if health.collapse is not None:
        lost = {
            "agent": agent_name,
            "expected": f"{health.collapse.expected:,}",
            "cached": f"{health.collapse.cached:,}",
            "changed": ", ".join(health.collapse.changed) or "nothing",
        }
    _raise_or_clear(hass, Issue.WINDOW_STAYS_FULL, agent_id, full)
    _raise_or_clear(hass, Issue.CACHE_LOST, agent_id, lost)


@callback
def async_clear_issues(hass: HomeAssistant, owner: str) -> None:
    """Clear the issues of an agent or an account."""
    for issue in Issue:
        _raise_or_clear(hass, issue, owner, None)


@callback
def async_raise_or_clear_server(hass: HomeAssistant, entry_id: str, account: str | None) -> None:
    """Raise an issue for an account whose server has been away for long, or clear it for None."""
    _raise_or_clear(hass, Issue.SERVER_AWAY, entry_id, None if account is None else {"account": account})


@callback
def async_raise_or_clear_store(hass: HomeAssistant, path: Path, state: StoreState) -> None:
    """Raise issues for why the store is off and for what was damaged and set aside, and clear all others."""
    reason: Reason | None = "damaged" if state.reason is None and state.set_aside is not None else state.reason
    issue = None if reason is None else _MEMORY_ISSUES.get(reason, Issue.MEMORY_FAULT)
    placeholders = {"path": str(state.set_aside or path if reason == "damaged" else path)}
    for each in (*_MEMORY_ISSUES.values(), Issue.MEMORY_FAULT):
        _raise_or_clear(hass, each, _ALL_AGENTS, placeholders if each is issue else None)
    damaged = {"texts": str(state.rows_set_aside)} if state.rows_set_aside else None
    _raise_or_clear(hass, Issue.TEXTS_DAMAGED, _ALL_AGENTS, damaged)


@callback
def async_raise_or_clear_left(hass: HomeAssistant, until: date | None) -> None:
    """Raise an issue for memory that stays without an account until a day, or clear it for None."""
    placeholders = None if until is None else {"until": until.isoformat()}
    # it stays when Home Assistant starts again without an account, and so without this integration
    _raise_or_clear(hass, Issue.MEMORY_LEFT, _ALL_AGENTS, placeholders, stays=True)


def _raise_or_clear(
    hass: HomeAssistant, issue: Issue, owner: str, placeholders: dict[str, str] | None, *, stays: bool = False
) -> None:
    """Raise an issue with these placeholders, or clear it if there are none. One that `stays` has a repair flow."""
    if placeholders is None:
        ir.async_delete_issue(hass, DOMAIN, f"{issue}_{owner}")
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{issue}_{owner}",
        is_fixable=stays,
        is_persistent=stays,
        severity=ir.IssueSeverity.WARNING,
        translation_key=issue,
        translation_placeholders=placeholders,
    )
