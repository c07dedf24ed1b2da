"""The context size of a model, as its server states it, or as answered and refused requests show it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
import time
from typing import Any

from ..window import MAX_FACTOR, MAX_TOKENS, is_int_in_range

# No server in use reads less, in tokens: the refusal of a smaller request has another reason.
_MIN_CONTEXT_TOKENS = 2048

# The latest plausible time, in seconds since the epoch.
_MAX_TIMESTAMP = 10**12

# How long a statement or a refusal is valid, in seconds: a server may be restarted with a larger context.
_VALIDITY_SECONDS = 24 * 60 * 60


@dataclass(slots=True)
class _Sizes:
    """The known sizes, in tokens."""

    # The size that the server named in a refusal.
    named: int | None = None
    # The size that the server returned when it was asked. It may read only so much of a longer request.
    queried: int | None = None
    # The largest request that was answered, or 0.
    accepted: int = 0
    # The smallest request that was refused as too long.
    refused: int | None = None
    # The time of the last statement or refusal, in seconds since the epoch.
    at: int = 0


class ContextSizeTracker:
    """The known size of a model, in tokens of planned requests. All agents that use the model share it."""

    def __init__(self, on_change: Callable[[], None] = lambda: None, *, clock: Callable[[], float] = time.time) -> None:
        # Called when something worth storing was learned.
        self._on_change = on_change
        # Returns seconds since the epoch.
        self._clock = clock
        self._sizes = _Sizes()
        # Whether a bill contradicts the queried size, so that the server should be asked again. The caller that does so
        # resets it.
        self.may_have_changed = False
        # The ratio of billed to planned tokens of the newest request, at least 1.
        self._billed_ratio = 1.0

    @property
    def readable_tokens(self) -> int | None:
        """How many tokens of a longer request the server reads, as it said when it was asked, or None if unknown."""
        return self._sizes.queried

    def get_context_tokens(self, listed: int | None = None) -> int | None:
        """Return the size to plan with, or None if it is unknown; `listed` is the size in the model's list or profile.

        A named or listed size is raised to the largest answered request. After a refusal, the result is at most that
        request, unless a size below the refused request is named or listed.
        """
        self._expire_old_sizes()
        sizes, stated = self._sizes, self._sizes.named or listed
        if sizes.named is None and sizes.queried is not None:
            stated = max(int(sizes.queried / self._billed_ratio), 1)
        elif stated is not None:
            stated = max(stated, sizes.accepted)
        if sizes.refused is None:
            return stated
        return max(sizes.accepted, stated if stated is not None and stated < sizes.refused else 1)

    def get_retry_tokens(self, refused: int, half: int) -> int | None:
        """Return the size to send after `refused` tokens were refused: the stated one, or else that of an answer.

        None means half of the history: nothing smaller is known, or the answered requests were below `half`.
        """
        self._expire_old_sizes()
        stated, accepted = self._sizes.named or self._sizes.queried, self._sizes.accepted
        if stated is not None and stated < refused:
            return stated
        return accepted if half <= accepted < refused else None

    def has_accepted(self, tokens: int) -> bool:
        """Return whether a request of this size was answered."""
        return tokens <= self._sizes.accepted

    def on_answered(self, tokens: int, *, billed: int = 0, refused: int | None = None) -> None:
        """Learn from an answered request of `tokens` planned tokens, of which the provider billed `billed`, or 0.

        `refused` is the size of the smallest request that was refused as too long before this smaller one.
        """
        self._expire_old_sizes()
        sizes, tokens = self._sizes, min(tokens, MAX_TOKENS)
        before = sizes.refused
        if before is not None and tokens >= before:
            sizes.refused = None
        if refused is not None and refused > max(tokens, _MIN_CONTEXT_TOKENS):
            sizes.refused, sizes.at = min(refused, sizes.refused or MAX_TOKENS), int(self._clock())
            # the server may read less than before
            sizes.accepted = sizes.accepted if sizes.accepted < refused else 0
        if sizes.refused != before:
            self._on_change()
        # a larger answered request alone is stored with the next change
        sizes.accepted = max(sizes.accepted, tokens)
        if billed and tokens > 0:
            # messages that were counted earlier keep their token counts, so the plan may be too low
            self._billed_ratio = min(max(billed / tokens, 1.0), MAX_FACTOR)
        if sizes.queried is not None and billed > sizes.queried:
            sizes.queried, self.may_have_changed = min(billed, MAX_TOKENS), True
            self._on_change()

    def on_size_named(self, tokens: int) -> None:
        """Learn the context size, in tokens, that the server named when it refused a request."""
        self._learn_stated_size(min(max(tokens, 1), MAX_TOKENS), None)

    def on_size_queried(self, tokens: int) -> None:
        """Learn how many tokens the server reads, which it returned when it was asked."""
        self._learn_stated_size(None, min(max(tokens, 1), MAX_TOKENS))

    def _learn_stated_size(self, named: int | None, queried: int | None) -> None:
        self._sizes.named, self._sizes.queried, self._sizes.at = named, queried, int(self._clock())
        self._on_change()

    def reset(self) -> None:
        """Forget everything that was learned about the size."""
        if self._sizes != _Sizes():
            self._sizes = _Sizes()
            self._on_change()

    def as_dict(self) -> dict[str, Any]:
        """Return the values to store for a restart, or an empty dictionary if nothing was learned."""
        return {} if self._sizes == _Sizes() else asdict(self._sizes)

    def restore(self, values: object) -> None:
        """Restore the values of `as_dict`; damaged values are ignored."""
        if isinstance(values, Mapping) and values.keys() == asdict(_Sizes()).keys() and _are_valid_values(values):
            self._sizes = _Sizes(**values)

    def _expire_old_sizes(self) -> None:
        """Forget sizes that are a day old, or that seem so because the clock was set back by a day or more."""
        sizes = self._sizes
        if sizes.at and abs(self._clock() - sizes.at) >= _VALIDITY_SECONDS:
            self._sizes = _Sizes(accepted=sizes.accepted)


def _are_valid_values(values: Mapping[str, Any]) -> bool:
    stated = [values[name] for name in ("named", "queried", "refused") if values[name] is not None]
    is_valid = all(is_int_in_range(each, 1) for each in stated) and is_int_in_range(values["accepted"])
    return is_valid and is_int_in_range(values["at"], 0, _MAX_TIMESTAMP)
