"""How much of a conversation is kept, and how much goes at once. Applying it is the window's business."""

from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

type ToolResults = Literal["stub", "keep"]

_MAX_TOKENS = 1_000_000_000
_MAX_TRIM_SHARE = 0.9
# From simulated prompt caches: what a retained token costs stops falling at a share of a quarter, and at 32,000 tokens
# 96 % of the input is cached with a share of 0.15 already, so that to free more would only be to forget more.
_SMALL_WINDOW, _SMALL_WINDOW_SHARE = 16_000, 0.25
_LARGE_WINDOW, _LARGE_WINDOW_SHARE = 32_000, 0.15
# What a trim frees of a limit, against what it frees of the budget itself: where a model reads less than the user
# allows, nearly all of that should be in use, and a tenth of it still lets some turns begin alike.
_SHARE_OF_LIMIT = 0.4
# Less would leave no room for the line that marks a cut.
_MIN_RESULT_TOKENS = 100
# A summary is a fifth of a small window, where it has to leave room, and no more than a page of a large one.
_SUMMARY_SHARE, _MIN_SUMMARY_TOKENS, _MAX_SUMMARY_TOKENS = 5, 100, 500


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The budget of a window's exchanges in tokens, the share of it that a trim frees, and what stays of what goes.

    Between trims every request begins with the bytes of the last one, which is what makes prompt caches hit:
    measured at 4,000 to 8,000 tokens, 77 to 86 % of the input at a share of 0.25, against 7 to 23 % where single
    messages go first in, first out. With `trim_share` None the share follows the budget, see `share`.

    A tool result costs at most `result_cap_tokens`, the rest of it is cut off on entry. With `tool_results` "stub" a
    line takes its place when its exchange is closed: measured, 70 to 80 % more exchanges in the same budget, 12 to
    15 % cheaper. With `max_tool_turns` the results of the newest so many exchanges that have whole ones stay, and
    older ones are replaced only at a trim. "keep" replaces none.

    With `summarize` a window holds on to what trims let go, until there is a summary of it or it is given up.

    Raises `ValueError` that names the field: `history_tokens` is a whole number from 1 to a thousand million,
    `trim_share` is from 0 to 0.9 or None, `result_cap_tokens` is from 100 on, `max_tool_turns` from 1 on or None.
    """

    history_tokens: int = 8000
    trim_share: float | None = None
    tool_results: ToolResults = "stub"
    max_tool_turns: int | None = None
    result_cap_tokens: int = 4000
    summarize: bool = False

    def __post_init__(self) -> None:
        """Check the fields; a whole number may come as a float, as number fields in forms send it."""
        share = self.trim_share
        if share is not None and (not _is_number(share) or not 0 <= share <= _MAX_TRIM_SHARE):
            raise ValueError(f"trim_share must be a number from 0 to {_MAX_TRIM_SHARE}, not {share!r}")
        if self.tool_results not in get_args(ToolResults.__value__):
            raise ValueError(f"tool_results must be 'stub' or 'keep', not {self.tool_results!r}")
        self._check_whole("history_tokens", 1)
        self._check_whole("result_cap_tokens", _MIN_RESULT_TOKENS)
        if self.max_tool_turns is not None:
            self._check_whole("max_tool_turns", 1)

    @property
    def share(self) -> float:
        """The share of the budget that a trim frees: `trim_share`, or what suits the budget.

        That is 0.25 up to 16,000 tokens, 0.15 from 32,000 on, and on the line between these in between, so that no
        small change of the budget makes a large one of the window.
        """
        if self.trim_share is not None:
            return self.trim_share
        beyond = (self.history_tokens - _SMALL_WINDOW) / (_LARGE_WINDOW - _SMALL_WINDOW)
        return _SMALL_WINDOW_SHARE + (_LARGE_WINDOW_SHARE - _SMALL_WINDOW_SHARE) * min(max(beyond, 0), 1)

    @property
    def low_water(self) -> float:
        """What a trim leaves at most, in tokens."""
        return (1 - self.share) * self.history_tokens

    def limited(self, tokens: int) -> Self:
        """Return the policy with a budget of at most so many tokens, and a smaller share of it if that is less."""
        if tokens >= self.history_tokens:
            return self
        return replace(self, history_tokens=max(tokens, 1), trim_share=self.share * _SHARE_OF_LIMIT)

    @property
    def summary_tokens(self) -> int:
        """What a summary costs at most, in tokens: a fifth of the budget, but from 100 to 500."""
        return min(max(self.history_tokens // _SUMMARY_SHARE, _MIN_SUMMARY_TOKENS), _MAX_SUMMARY_TOKENS)

    @property
    def compaction_tokens(self) -> int:
        """What a summary of the provider's own costs at most, in tokens: what a trim frees, and no less than ours."""
        return max(int(self.history_tokens * self.share), self.summary_tokens)

    @property
    def stubs_at_close(self) -> bool:
        """Whether tool results are replaced as soon as their exchange is closed."""
        return self.tool_results == "stub" and self.max_tool_turns is None

    def _check_whole(self, field: str, least: int) -> None:
        value = getattr(self, field)
        if not _is_number(value) or not least <= value <= _MAX_TOKENS or value != int(value):
            raise ValueError(f"{field} must be a whole number from {least} to {_MAX_TOKENS}, not {value!r}")
        object.__setattr__(self, field, int(value))


def _is_number(value: object) -> bool:
    """Return whether the value is a number to compare with, which NaN is not, and True is no number of tokens."""
    return isinstance(value, int | float) and not isinstance(value, bool)
