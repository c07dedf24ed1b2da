"""The figures of a window: its contents, and what it has evicted."""

from collections.abc import Mapping
from typing import NamedTuple

from .contents import Contents
from .policy import WindowPolicy
from .tags import IMPORTANT, NO_TAGS


class WindowStats(NamedTuple):
    """The figures of a window at one moment.

    `message_count`, `exchange_count` and `current_tokens` cover all exchanges including an open one, but not the system
    prompt, whose tokens are `prefix_tokens`. `max_tokens` is the user's history budget and `utilization` the used part
    of it in percent, at most 100. `over_budget` is True if the exchanges that have to stay exceed the budget, or the
    limit of the current turn. `tag_distribution` has the number of exchanges for each tag; `protected_tokens` is the
    part of `current_tokens` in exchanges tagged `important`.
    """

    message_count: int
    exchange_count: int
    current_tokens: int
    max_tokens: int
    utilization: float
    prefix_tokens: int
    over_budget: bool
    tag_distribution: Mapping[str, int]
    evicted_exchanges: int
    evicted_messages: int
    evicted_tokens: int
    trims: int
    protected_tokens: int


def figures(contents: Contents, policy: WindowPolicy, in_force: WindowPolicy) -> WindowStats:
    """Return the figures of a window with these contents; `policy` is the user's."""
    history, opened = contents.history, contents.opened
    system, evicted, _ = contents.state
    budget, tokens, tags = policy.history_tokens, contents.tokens, opened.tags if opened else NO_TAGS
    return WindowStats(
        message_count=len(contents.sent) - contents.first,
        exchange_count=len(history) + (opened is not None),
        current_tokens=tokens,
        max_tokens=budget,
        utilization=min(100.0, 100 * tokens / budget),
        prefix_tokens=(system and system.tokens) or 0,
        over_budget=tokens > in_force.history_tokens,
        tag_distribution=history.tag_counts(tags),
        evicted_exchanges=evicted.exchanges,
        evicted_messages=evicted.messages,
        evicted_tokens=evicted.tokens,
        trims=evicted.trims,
        protected_tokens=history.protected_tokens + (opened.tokens if opened and IMPORTANT in tags else 0),
    )
