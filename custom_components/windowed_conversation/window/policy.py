"""The policy of a window: its size, the share that a trim frees, and the handling of tool results."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

type ToolResults = Literal["stub", "keep"]

_MAX_TOKENS = 1_000_000_000
_MAX_TRIM_SHARE = 0.9
# From simulated prompt caches: the cost of a retained token stops falling at a share of a quarter, and at 32,000 tokens
# 96 % of the input is cached with a share of 0.15 already, so that to free more would only be to forget more.
_SMALL_WINDOW, _SMALL_WINDOW_SHARE = 16_000, 0.25
_LARGE_WINDOW, _LARGE_WINDOW_SHARE = 32_000, 0.15
# A model that reads less than the user allows should be filled: with this share, a request to one that reads 4,000
# tokens has 80 % of its room filled right after a trim as well, where a quarter would leave it at 75 %.
_LIMITED_SHARE = 0.15
# With less there is no room for the line that marks a cut.
MIN_RESULT_TOKENS = 100
# From simulated tool loops of 50 rounds, results of 200 to 2,000 tokens in windows of 4,000 to 32,000: the share of a
# request that is the beginning of the one before rises until stubs free half of the room. 1,000 tokens in a window of
# 8,000: 72 % at a share of 0.15, 77 % at 0.25, 81 % at 0.5, and 82 % where only the newest result stays.
_ROUNDS_SHARE = 0.5
# A summary is a fifth of a small window, where it has to leave room, and no more than a page of a large one.
_SUMMARY_SHARE, _MIN_SUMMARY_TOKENS, _MAX_SUMMARY_TOKENS = 5, 100, 500


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The limits of a window: its size, the share that a trim frees, and the treatment of tool results.

    Between trims every request begins with the bytes of the last one, so that prompt caches hit: measured
    at 4,000 to 8,000 tokens, 77 to 86 % of the input at a share of 0.25, against 7 to 23 % if single messages are
    evicted first in, first out. With `trim_share` None the share follows the budget, see `share`.

    A tool result costs at most `result_cap_tokens`; the rest is cut off on entry. With `tool_results` "stub", a line
    replaces each result when its exchange is closed: measured, 70 to 80 % more exchanges in the same budget, 12 to 15 %
    cheaper. With `max_tool_turns`, the newest exchanges with whole results, up to this number, keep theirs, and older
    results are replaced only at a trim. "keep" replaces none. Results of `live_tools` are replaced in any case: they
    were true only while their exchange was open.

    With `summarize`, a window holds on to evicted exchanges until there is a summary of them or summarizing fails.

    Raises `ValueError` that names the field: `history_tokens` is a whole number from 1 to 10^9, `trim_share` is from 0
    to 0.9 or None, `result_cap_tokens` is at least 100, `max_tool_turns` is at least 1 or None.
    """

    history_tokens: int = 8000
    trim_share: float | None = None
    tool_results: ToolResults = "stub"
    max_tool_turns: int | None = None
    result_cap_tokens: int = 4000
    summarize: bool = False
    live_tools: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check the fields. Number fields in forms send whole numbers as floats."""
        share = self.trim_share
        if share is not None and (not _is_number(share) or not 0 <= share <= _MAX_TRIM_SHARE):
            raise ValueError(f"trim_share must be a number from 0 to {_MAX_TRIM_SHARE}, not {share!r}")
        if self.tool_results not in get_args(ToolResults.__value__):
            raise ValueError(f"tool_results must be 'stub' or 'keep', not {self.tool_results!r}")
        self._check_integer("history_tokens", 1)
        self._check_integer("result_cap_tokens", MIN_RESULT_TOKENS)
        if self.max_tool_turns is not None:
            self._check_integer("max_tool_turns", 1)

    @property
    def share(self) -> float:
        """The share of the budget that a trim frees: `trim_share`, or the default for the budget.

        The default is 0.25 up to 16,000 tokens and 0.15 from 32,000 tokens on. It is linear in between, so that a small
        change of the budget makes no large change of the window.
        """
        if self.trim_share is not None:
            return self.trim_share
        beyond = (self.history_tokens - _SMALL_WINDOW) / (_LARGE_WINDOW - _SMALL_WINDOW)
        return _SMALL_WINDOW_SHARE + (_LARGE_WINDOW_SHARE - _SMALL_WINDOW_SHARE) * min(max(beyond, 0), 1)

    @property
    def low_water(self) -> float:
        """The most that a trim leaves, in tokens."""
        return (1 - self.share) * self.history_tokens

    def rounds_low_water(self, closed: int) -> float:
        """Return the most that stubs of older tool rounds leave of the open exchange, in tokens.

        That is half of the room beside closed exchanges of this many tokens, or less if a trim frees more.
        """
        return (1 - max(self.share, _ROUNDS_SHARE)) * (self.history_tokens - closed)

    @property
    def summary_tokens(self) -> int:
        """The most that a summary costs, in tokens: a fifth of the budget, between 100 and 500."""
        return min(max(self.history_tokens // _SUMMARY_SHARE, _MIN_SUMMARY_TOKENS), _MAX_SUMMARY_TOKENS)

    @property
    def compaction_tokens(self) -> int:
        """The most that a provider's compaction costs, in tokens: a trim's share, and at least `summary_tokens`."""
        return max(int(self.history_tokens * self.share), self.summary_tokens)

    def limited(self, tokens: int | None) -> WindowPolicy:
        """Return the policy with a budget of at most this many tokens, and at least 1. None is no limit.

        Unless the user has chosen the share, a trim frees a smaller share of a limited budget.
        """
        if tokens is None or tokens >= self.history_tokens:
            return self
        share = min(self.share, _LIMITED_SHARE) if self.trim_share is None else self.trim_share
        return replace(self, history_tokens=max(tokens, 1), trim_share=share)

    def _check_integer(self, field: str, least: int) -> None:
        value = getattr(self, field)
        if not _is_number(value) or not least <= value <= _MAX_TOKENS or value != int(value):
            raise ValueError(f"{field} must be a whole number from {least} to {_MAX_TOKENS}, not {value!r}")
        object.__setattr__(self, field, int(value))


def _is_number(value: object) -> bool:
    """Return whether the value is a number. NaN and booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
