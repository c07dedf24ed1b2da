"""Health of the prompt cache and the windows, and repair issues about windows, models, servers and the store.

Requests are compared by their fingerprints, so that no text has to be kept.
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
from homeassistant.helpers.translation import async_get_cached_translations

from ..bridge.errors import format_count
from ..const import DOMAIN
from ..providers import Usage, count_messages_tokens, count_tools_tokens
from ..store import StoreState, UnavailableReason
from ..turn.limits import Shortfall
from ..turn.model import BilledRequest, PromptFingerprints
from ..window import Message, Role, TextCounter, Window, WindowRegistry, WindowStats

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

# In percent of the token budget. A window above this is full.
FULL_WINDOW_PERCENT = 95

# Only this many trims in a row that leave a window full count as a problem, because one large exchange causes one such
# trim, and a question about it another. Turns are not counted, because every window exceeds 95 % before a trim, and a
# large one does so for many turns.
_FUTILE_TRIM_LIMIT = 3

# The owner of issues about the store, which all agents share.
_STORE_ISSUE_OWNER = "all"


class PromptPart(StrEnum):
    """A part of the fixed beginning that all requests of an agent share."""

    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    ENTITIES = "entities"


# The texts that name the parts: those of the page's bar, whose home is the description of the entities.
_NAME_KEY_BY_PART = {
    PromptPart.INSTRUCTIONS: "config_panel.bar.instructions",
    PromptPart.TOOLS: "config_panel.bar.tools",
    PromptPart.ENTITIES: "config_panel.bar.home",
}
_NO_PART_KEY = "selector.effort.options.none"


@dataclass(frozen=True, slots=True)
class RequestFingerprints:
    """The fingerprints of a request.

    `part_hashes` are the fingerprints of its fixed beginning, which has `fixed_tokens` tokens. `message_hashes` are
    those of the messages after that, and `message_tokens` their sizes. `newest_exchange_index` is the index of the
    message with which the newest exchange begins.
    """

    billed_at: float
    model: str
    part_hashes: dict[PromptPart, int]
    fixed_tokens: int
    message_hashes: Sequence[int]
    message_tokens: Sequence[int]
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


@dataclass(frozen=True, slots=True)
class Health:
    """The current problems: the statistics of a window that stays full, and a collapse of the prompt cache."""

    full_window: WindowStats | None = None
    collapse: CacheUse | None = None

    def list_issues(self) -> list[dict[str, Any]]:
        """Return the problems as plain values: names and numbers, but no conversation text."""
        issues: list[dict[str, Any]] = []
        if self.full_window:
            numbers = {"tokens": self.full_window.current_tokens, "protected_tokens": self.full_window.protected_tokens}
            issues.append({"issue": "window_stays_full", **numbers})
        if self.collapse:
            numbers = {"expected_tokens": self.collapse.expected, "cached_tokens": self.collapse.cached_tokens}
            issues.append({"issue": "cache_lost", "changed": [*self.collapse.changed_parts], **numbers})
        return issues


class HealthWatch:
    """Finds problems of an agent's windows in its turns. `cache_watch` finds those of the prompt cache."""

    def __init__(self) -> None:
        self.cache_watch = CacheWatch()
        self._futile_trims: WeakKeyDictionary[Window, int] = WeakKeyDictionary()

    def on_turn(self, window: Window, before: WindowStats, after: WindowStats) -> None:
        """Evaluate an ended turn by the statistics of its window before and after it."""
        if after.utilization <= FULL_WINDOW_PERCENT:
            self._futile_trims.pop(window, None)
        elif after.trims > before.trims:
            self._futile_trims[window] = self._futile_trims.get(window, 0) + 1

    def get_health(self) -> Health:
        """Return the current problems."""
        stats = [window.stats() for window, trims in self._futile_trims.items() if trims >= _FUTILE_TRIM_LIMIT]
        full = [each for each in stats if each.utilization > FULL_WINDOW_PERCENT]
        return Health(full[0] if full else None, self.cache_watch.collapse)


class Issue(StrEnum):
    """The repair issues, by translation key."""

    WINDOW_TOO_SMALL = "window_too_small"
    WINDOW_STAYS_FULL = "window_stays_full"
    MODEL_RETIRED = "model_retired"
    MODEL_TOO_SMALL = "model_too_small"
    SERVER_CONTEXT_TOO_SMALL = "server_reads_little"
    MEMORY_AWAY = "memory_away"
    MEMORY_DAMAGED = "memory_damaged"
    MEMORY_FAULT = "memory_fault"
    MEMORY_FULL = "memory_full"
    MEMORY_LEFTOVER = "memory_left"
    MEMORY_LOCKED = "memory_locked"
    MEMORY_NEWER = "memory_newer"
    MEMORY_NO_FTS5 = "memory_no_fts5"
    MEMORY_READ_ONLY = "memory_read_only"
    TEXTS_DAMAGED = "texts_damaged"
    SERVER_AWAY = "server_away"
    CACHE_LOST = "cache_lost"


# The issues that have a repair flow.
FIXABLE_ISSUES = frozenset({Issue.MODEL_RETIRED, Issue.MODEL_TOO_SMALL, Issue.MEMORY_DAMAGED, Issue.MEMORY_LEFTOVER})
# In the data of an issue: the id of its agent or account.
ATTR_OWNER = "owner"

_ISSUE_BY_REASON: dict[UnavailableReason, Issue] = {
    "away": Issue.MEMORY_AWAY,
    "damaged": Issue.MEMORY_DAMAGED,
    "full": Issue.MEMORY_FULL,
    "locked": Issue.MEMORY_LOCKED,
    "newer": Issue.MEMORY_NEWER,
    "no_fts5": Issue.MEMORY_NO_FTS5,
    "read_only": Issue.MEMORY_READ_ONLY,
}


@callback
def async_update_window_issue(hass: HomeAssistant, agent_id: str, agent_name: str, stats: WindowStats) -> None:
    """Raise an issue if the newest exchange alone exceeds the token budget, or clear it."""
    placeholders = {"agent": agent_name, "needed": str(stats.current_tokens), "window": str(stats.max_tokens)}
    async_update_issue(hass, Issue.WINDOW_TOO_SMALL, agent_id, placeholders if stats.over_budget else None)


@callback
def async_review_windows(hass: HomeAssistant, agent_id: str, agent_name: str, windows: WindowRegistry[str]) -> None:
    """Check the newest conversation again, because the token budget may have changed."""
    newest = next(iter(windows.stats().values()), None)
    if newest is not None:
        async_update_window_issue(hass, agent_id, agent_name, newest)


@callback
def async_update_model_issue(hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None) -> None:
    """Raise an issue if requests are too large for the model, or clear it."""
    placeholders = None
    if shortfall is not None:
        exposed = (async_should_expose(hass, CONVERSATION_DOMAIN, each) for each in hass.states.async_entity_ids())
        placeholders = {**_format_shortfall(agent_name, shortfall), "entities": str(sum(exposed))}
    async_update_issue(hass, Issue.MODEL_TOO_SMALL, agent_id, placeholders)


@callback
def async_review_retired_issue(hass: HomeAssistant, agent_id: str, model: str | None) -> None:
    """Clear the issue of a model that the agent does not use any more. `model` is the one that it uses, if any."""
    issue = async_find_issue(hass, f"{Issue.MODEL_RETIRED}_{agent_id}")
    if issue is not None and (issue.translation_placeholders or {}).get("model") != model:
        async_update_issue(hass, Issue.MODEL_RETIRED, agent_id, None)


@callback
def async_update_context_issue(
    hass: HomeAssistant, agent_id: str, agent_name: str, shortfall: Shortfall | None
) -> None:
    """Raise an issue if a full window needs a larger context than the server provides, or clear it."""
    placeholders = None
    if shortfall is not None:
        # suggest a power of two, as is usual for context sizes
        suggested = str(1 << (shortfall.needed_tokens - 1).bit_length())
        placeholders = {**_format_shortfall(agent_name, shortfall), "suggested": suggested}
    async_update_issue(hass, Issue.SERVER_CONTEXT_TOO_SMALL, agent_id, placeholders)


def _format_shortfall(agent_name: str, shortfall: Shortfall) -> dict[str, str]:
    return {
        "agent": agent_name,
        "needed": format_count(shortfall.needed_tokens),
        "context": format_count(shortfall.context_tokens),
    }


@callback
def async_update_health(hass: HomeAssistant, agent_id: str, agent_name: str, watch: HealthWatch) -> None:
    """Raise the issues for the current health problems, and clear those of solved problems.

    A window whose newest exchange alone exceeds the token budget has an issue of its own.
    """
    full = lost = None
    health = watch.get_health()
    if health.full_window is not None and not health.full_window.over_budget:
        full = {
            "agent": agent_name,
            "full": str(FULL_WINDOW_PERCENT),
            "tokens": format_count(health.full_window.current_tokens),
            "protected": format_count(health.full_window.protected_tokens),
            "window": format_count(health.full_window.max_tokens),
        }
    if health.collapse is not None:
        lost = {
            "agent": agent_name,
            "expected": format_count(health.collapse.expected),
            "cached": format_count(health.collapse.cached_tokens),
            "changed": _name_parts(hass, health.collapse.changed_parts),
        }
    async_update_issue(hass, Issue.WINDOW_STAYS_FULL, agent_id, full)
    async_update_issue(hass, Issue.CACHE_LOST, agent_id, lost)


def _name_parts(hass: HomeAssistant, parts: Sequence[PromptPart]) -> str:
    """Return the names of the parts in Home Assistant's language, or its word for none."""
    keys = [_NAME_KEY_BY_PART[part] for part in parts] or [_NO_PART_KEY]
    return ", ".join([_get_text(hass, key) for key in keys])


def _get_text(hass: HomeAssistant, key: str) -> str:
    texts = async_get_cached_translations(hass, hass.config.language, key.partition(".")[0], DOMAIN)
    return texts.get(f"component.{DOMAIN}.{key}", "")


@callback
def async_clear_issues(hass: HomeAssistant, owner: str) -> None:
    """Clear the issues of an agent or an account."""
    for issue in Issue:
        async_update_issue(hass, issue, owner, None)


@callback
def async_list_issues(hass: HomeAssistant, owner: str) -> list[str]:
    """Return the translation keys of the issues of an agent or an account."""
    return [str(issue) for issue in Issue if async_find_issue(hass, f"{issue}_{owner}")]


@callback
def async_find_issue(hass: HomeAssistant, issue_id: str) -> ir.IssueEntry | None:
    """Return an issue that is shown. After a restart, the registry also has issues that were not raised again."""
    issue = ir.async_get(hass).async_get_issue(DOMAIN, issue_id)
    return issue if issue is not None and issue.active else None


@callback
def async_update_server_issue(hass: HomeAssistant, entry_id: str, account: str | None) -> None:
    """Raise an issue for an account whose server has been away for a long time, or clear it if `account` is None."""
    async_update_issue(hass, Issue.SERVER_AWAY, entry_id, None if account is None else {"account": account})


@callback
def async_update_store_issues(hass: HomeAssistant, path: Path, state: StoreState) -> None:
    """Raise issues for the reason why the store is off and for damaged data that was set aside, or clear them."""
    reason: UnavailableReason | None = (
        "damaged" if state.reason is None and state.damaged_path is not None else state.reason
    )
    issue = None if reason is None else _ISSUE_BY_REASON.get(reason, Issue.MEMORY_FAULT)
    placeholders = {"path": str(state.damaged_path or path if reason == "damaged" else path)}
    for each in (*_ISSUE_BY_REASON.values(), Issue.MEMORY_FAULT):
        async_update_issue(hass, each, _STORE_ISSUE_OWNER, placeholders if each is issue else None)
    damaged = {"texts": str(state.rows_set_aside)} if state.rows_set_aside else None
    async_update_issue(hass, Issue.TEXTS_DAMAGED, _STORE_ISSUE_OWNER, damaged)


@callback
def async_update_leftovers(hass: HomeAssistant, until: date | None) -> None:
    """Raise an issue for memory that is kept without an account until a date, or clear it if `until` is None."""
    placeholders = None if until is None else {"until": until.isoformat()}
    async_update_issue(hass, Issue.MEMORY_LEFTOVER, _STORE_ISSUE_OWNER, placeholders)


@callback
def async_update_issue(hass: HomeAssistant, issue: Issue, owner: str, placeholders: dict[str, str] | None) -> None:
    """Raise an issue with these placeholders, or clear it if they are None."""
    if placeholders is None:
        ir.async_delete_issue(hass, DOMAIN, f"{issue}_{owner}")
        return
    ir.async_create_issue(
        hass,
        DOMAIN,
        f"{issue}_{owner}",
        data={ATTR_OWNER: owner},
        is_fixable=issue in FIXABLE_ISSUES,
        # this one must survive a restart, after which the integration is not loaded because it has no account
        is_persistent=issue is Issue.MEMORY_LEFTOVER,
        severity=ir.IssueSeverity.WARNING,
        translation_key=issue,
        translation_placeholders=placeholders,
    )
