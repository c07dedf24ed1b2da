"""The figures of a window: what it holds now and what it has let go. Showing them is the sensors' business."""

from collections.abc import Mapping
from typing import NamedTuple


class Evicted(NamedTuple):
    """What a window has let go since it began; `trims` counts the blocks that it went in."""

    exchanges: int = 0
    messages: int = 0
    tokens: int = 0
    trims: int = 0

    def and_a_trim(self, exchanges: int, messages: int, tokens: int) -> Evicted:
        """Return the sums with one more block."""
        return Evicted(self.exchanges + exchanges, self.messages + messages, self.tokens + tokens, self.trims + 1)


class WindowStats(NamedTuple):
    """The figures of a window at one moment.

    `message_count`, `exchange_count` and `current_tokens` are of all exchanges, the open one too, without the system
    prompt, whose tokens are `prefix_tokens`. `max_tokens` is the policy's history budget, `utilization` the part of
    it in use in percent: over 100, and `over_budget`, when the newest exchange alone is larger.
    `tag_distribution` has for each tag the number of exchanges in which it occurs, `protected_tokens` is the part of
    `current_tokens` in exchanges tagged `important`.
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
