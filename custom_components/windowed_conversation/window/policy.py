"""The policy of a window: its size, the share of it that a trim frees, and the handling of tool results."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from .messages import MAX_TOKENS, is_number

type ToolResultMode = Literal["stub", "keep"]

_MAX_TRIM_SHARE = 0.9
# From simulated prompt caches: the cost of a retained token stops falling at a share of a quarter. At 32,000 tokens, 96
# % of the input is already cached with a share of 0.15, so a larger share would only forget more.
_SMALL_WINDOW_TOKENS, _SMALL_WINDOW_SHARE = 16_000, 0.25
_LARGE_WINDOW_TOKENS, _LARGE_WINDOW_SHARE = 32_000, 0.15
# The share for a model whose context is smaller than the user's budget, so that little of it stays unused. Right after
# a trim, a request to a model with 4,000 tokens still fills 80 % of its room with this share, but only 75 % with a
# quarter.
_LIMITED_TRIM_SHARE = 0.15
# A shorter result would have no room for the line that marks a cut.
MIN_RESULT_TOKENS = 100
# From simulated tool loops of 50 rounds, with results of 200 to 2,000 tokens in windows of 4,000 to 32,000: the share
# of a request that repeats the beginning of the previous one rises until stubs free half of the room. With results of
# 1,000 tokens in a window of 8,000 it is 72 % at a share of 0.15, 77 % at 0.25, 81 % at 0.5, and 82 % if only the
# newest result is kept.
_MIN_ROUNDS_TRIM_SHARE = 0.5
# A summary gets a fifth of a small window, where it must leave room, and at most a page of a large one.
_SUMMARY_DIVISOR, _MIN_SUMMARY_TOKENS, _MAX_SUMMARY_TOKENS = 5, 100, 500


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The limits of a window: its size, the share of it that a trim frees, and the handling of tool results.

    Between trims, every request begins with the same bytes as the previous one, so that it hits prompt caches: measured
    at 4,000 to 8,000 tokens, 77 to 86 % of the input with a share of 0.25, compared with 7 to 23 % if single messages
    are evicted first in, first out.

    Raises `ValueError` with the name of a field that is out of range.
    """

    # From 1 to 10^9.
    history_tokens: int = 8000
    # From 0 to 0.9. None makes the share depend on the budget, see `effective_trim_share`.
    trim_share: float | None = None
    # "stub" replaces each tool result by a single line when its exchange is closed: measured, the same budget holds 70
    # to 80 % more exchanges, and costs are 12 to 15 % lower. "keep" replaces none.
    tool_results: ToolResultMode = "stub"
    # At least 1, or None. With "stub", this many of the newest tool rounds keep their results, and a trim replaces
    # those of older rounds, even within an exchange. A tool round is an assistant message with calls, and their
    # results.
    max_tool_turns: int | None = None
    # The maximum size of a tool result, at least 100. A longer result is cut on entry.
    result_cap_tokens: int = 4000
    # Whether evicted exchanges stay in the window until they are summarized or summarizing them has failed.
    summarize: bool = False
    # The tools whose results are always replaced by stubs, because they were true only while their exchange was open.
    live_tools: frozenset[str] = frozenset()
    # The tools whose results are never replaced by stubs when their exchange is closed, because they stay useful.
    lasting_tools: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Validate the fields. Accepts floats such as 5.0 as integers, because number fields of forms return them."""
        share = self.trim_share
        if share is not None and (not is_number(share) or not 0 <= share <= _MAX_TRIM_SHARE):
            raise ValueError(f"trim_share must be a number from 0 to {_MAX_TRIM_SHARE}, not {share!r}")
        if self.tool_results not in get_args(ToolResultMode.__value__):
            raise ValueError(f"tool_results must be 'stub' or 'keep', not {self.tool_results!r}")
        self._check_integer("history_tokens", 1)
        self._check_integer("result_cap_tokens", MIN_RESULT_TOKENS)
        if self.max_tool_turns is not None:
            self._check_integer("max_tool_turns", 1)

    @property
    def effective_trim_share(self) -> float:
        """The share of the budget that a trim frees: `trim_share`, or a default that depends on the budget.

        The default is 0.25 up to 16,000 tokens and 0.15 from 32,000 tokens on. It is linear in between, so that a small
        change of the budget does not change the window much.
        """
        if self.trim_share is not None:
            return self.trim_share
        beyond = (self.history_tokens - _SMALL_WINDOW_TOKENS) / (_LARGE_WINDOW_TOKENS - _SMALL_WINDOW_TOKENS)
        return _SMALL_WINDOW_SHARE + (_LARGE_WINDOW_SHARE - _SMALL_WINDOW_SHARE) * min(max(beyond, 0), 1)

    @property
    def low_water_tokens(self) -> float:
        """The size down to which a trim evicts, in tokens."""
        return (1 - self.effective_trim_share) * self.history_tokens

    @property
    def stubs_at_close(self) -> bool:
        """Whether tool results are replaced by stubs when their exchange is closed."""
        return self.tool_results == "stub" and self.max_tool_turns is None

    def open_low_water_tokens(self, closed: int) -> float:
        """Return the size down to which stubs of older tool rounds reduce the open exchange, in tokens.

        That is half of the room that closed exchanges of `closed` tokens leave, or less if a trim frees more than half.
        """
        return (1 - max(self.effective_trim_share, _MIN_ROUNDS_TRIM_SHARE)) * (self.history_tokens - closed)

    @property
    def summary_tokens(self) -> int:
        """The largest size of a summary in tokens: a fifth of the budget, but between 100 and 500."""
        return min(max(self.history_tokens // _SUMMARY_DIVISOR, _MIN_SUMMARY_TOKENS), _MAX_SUMMARY_TOKENS)

    @property
    def compaction_tokens(self) -> int:
        """The largest size of a provider's compaction in tokens: a trim's share, but at least `summary_tokens`."""
        return max(int(self.history_tokens * self.effective_trim_share), self.summary_tokens)

    def with_limit(self, tokens: int | None) -> WindowPolicy:
        """Return the policy with its budget limited to `tokens`, and at least 1. None means no limit.

        Unless the user has chosen the share, a trim frees a smaller share of a limited budget.
        """
        if tokens is None or tokens >= self.history_tokens:
            return self
        share = min(self.effective_trim_share, _LIMITED_TRIM_SHARE) if self.trim_share is None else self.trim_share
        return replace(self, history_tokens=max(tokens, 1), trim_share=share)

    def _check_integer(self, field: str, least: int) -> None:
        value = getattr(self, field)
        if not is_number(value) or not least <= value <= MAX_TOKENS or value != int(value):
            raise ValueError(f"{field} must be a whole number from {least} to {MAX_TOKENS}, not {value!r}")
        object.__setattr__(self, field, int(value))
