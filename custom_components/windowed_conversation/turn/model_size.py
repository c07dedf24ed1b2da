"""How much a model reads: what its server says, and what served and refused requests have shown."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
import time
from typing import Any, Self

from ..window import GREATEST_FIGURE, is_figure

# No clock is later than this, in seconds since the epoch.
_LAST_SECOND = 10**12

# After this many requests that a learned size has limited, a larger one is tried. Each such try that is refused doubles
# this, so that a server that does not change refuses ever fewer requests.
_LEAST_PATIENCE, _MOST_PATIENCE = 8, 1024

# A refusal this far below the size that was refused before confirms it.
_NEAR = 0.1

# A request is limited by a learned size if it fills this share of it: a trim leaves three quarters of the history.
_LIMITED = 0.75

# How many refusals it takes to believe them: a single one may be a fault of the server.
_BELIEVED = 2

# For how long a refusal and a named size count, in seconds: the server may have been given a larger context since.
_LIFE = 24 * 60 * 60


@dataclass(slots=True)
class _Known:
    """What was learned, in tokens; `at` is the time of the last refusal or named size, in seconds since the epoch.

    `named` is the size that the server named, `served` the largest request that was served, and `refused` the smallest
    request that was refused since. `refusals` counts these up to those that are believed, and `since` is the largest
    request that was served since the first of them. `tried` is the refusal that was forgotten in order to try a larger
    request, which happens after `patience` requests were `limited`.
    """

    named: int | None = None
    served: int = 0
    since: int = 0
    refused: int | None = None
    tried: int | None = None
    refusals: int = 0
    limited: int = 0
    patience: int = _LEAST_PATIENCE
    at: float = 0.0

    @property
    def learned(self) -> int | None:
        """The size that refusals show, or None if none of them is believed."""
        if self.refused is None or self.refusals < _BELIEVED:
            return None
        return max(min(self.middle(self.refused), self.refused - 1), 1)

    def middle(self, refused: int) -> int:
        """Return the size between the largest served and the smallest refused request.

        Requests stay below it by what is reserved for the answer, so that none is refused once this is close to the
        true size.
        """
        return (self.served + refused) // 2

    def forget_refusals(self) -> None:
        """Forget the refusals and what was served since."""
        self.refused, self.refusals, self.since, self.limited = None, 0, 0, 0


class ModelSize:
    """What is known of the size of one model of an account, in tokens of planned requests, including their answers.

    Shared by all who ask the model. `clock` returns seconds since the epoch; `on_change` is called when something worth
    storing was learned.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None, *, clock: Callable[[], float] = time.time) -> None:
        self._on_change = on_change
        self._clock = clock
        self._known = _Known()
        # the newest request that was served, without its answer
        self._last: int | None = None

    def tokens(self, listed: int | None = None) -> int | None:
        """Return the size to plan with, or None if it is unknown; `listed` is the size in the model's list or profile.

        It is never below a request that was served, and always below one whose refusal is believed.
        """
        self._age()
        named = self._known.named or listed
        size = None if named is None else max(named, self._known.served)
        learned = self._known.learned
        return size if learned is None else min(size or learned, learned)

    def target(self, refused: int) -> int | None:
        """Return how many tokens the next, smaller request may have after a refusal, or None if that is unknown."""
        self._age()
        known = self._known
        size = min(known.named or refused, known.middle(refused) if known.served < refused else refused)
        return size if size < refused else None

    def is_larger(self, tokens: int) -> bool:
        """Return whether a request is larger than the last one that was served, or none was served yet."""
        return self._last is None or tokens > self._last

    def on_served(self, tokens: int, answer: int = 0, billed: int = 0) -> None:
        """Learn from a request that was served: its planned tokens, and those of its answer.

        `billed` is what the provider reports for both, or 0 if it reports nothing.
        """
        self._age()
        known = self._known
        refusals = known.refused, known.tried
        whole = min(max(tokens + answer, billed), GREATEST_FIGURE)
        self._last = tokens
        known.served = max(known.served, whole)
        if known.tried is not None and tokens >= known.tried:
            known.tried, known.patience = None, _LEAST_PATIENCE
        if known.refused is not None:
            self._on_served_since(known.refused, tokens, whole)
        # `served` is stored whenever the refusals are
        if refusals != (known.refused, known.tried):
            self._on_change()

    def _on_served_since(self, refused: int, tokens: int, whole: int) -> None:
        known = self._known
        if tokens >= refused:
            known.forget_refusals()
            known.patience = _LEAST_PATIENCE
            return
        if whole < refused:
            known.since = max(known.since, whole)
        learned = known.learned
        if learned is not None and tokens >= _LIMITED * learned:
            known.limited += 1
            if known.limited >= known.patience:
                known.tried = refused
                known.forget_refusals()

    def on_refused(self, refused: int, served: int) -> None:
        """Learn from a request that was refused as too long while a smaller one was served instead."""
        self._age()
        known = self._known
        least = min(size for size in (refused, known.refused, GREATEST_FIGURE) if size is not None)
        known.refusals = min(known.refusals + 1, _BELIEVED)
        if known.tried is not None and refused >= (1 - _NEAR) * known.tried:
            # the refusal that was forgotten still holds
            least, known.refusals = min(least, known.tried), _BELIEVED
            known.patience = min(2 * known.patience, _MOST_PATIENCE)
        known.tried = None
        known.since = served if known.since >= least else max(known.since, served)
        known.refused, known.limited, known.at = least, 0, self._clock()
        if known.refusals == _BELIEVED and known.served >= least:
            # less than before twice in a row: the server reads less now, or counts differently
            known.served = min(known.since, least - 1)
        self._on_change()

    def on_named(self, tokens: int) -> None:
        """Learn from the size that the server named, in tokens."""
        self._known.named = min(max(tokens, 1), GREATEST_FIGURE)
        self._known.at = self._clock()
        self._on_change()

    def doubt(self) -> None:
        """Record that less than what was served before was refused for an unknown reason."""
        if self._known.refused is None:
            self._known.served = 0

    def forget(self) -> None:
        """Forget everything that was learned."""
        if self._known != _Known():
            self._known = _Known()
            self._on_change()

    def as_dict(self) -> dict[str, Any]:
        """Return what to store for a restart; empty if nothing was learned."""
        return {} if self._known == _Known() else asdict(self._known)

    @classmethod
    def remembered(
        cls,
        kept: object,
        on_change: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Return what `as_dict` stored; damaged data is ignored."""
        size = cls(on_change, clock=clock)
        if isinstance(kept, Mapping) and kept.keys() == asdict(size._known).keys() and _is_possible(kept):
            size._known = _Known(**kept)
        return size

    def _age(self) -> None:
        """Forget what is a day old, also if the clock was set back by more than a day."""
        known = self._known
        if known.at and abs(self._clock() - known.at) >= _LIFE:
            known.named, known.tried, known.at, known.patience = None, None, 0.0, _LEAST_PATIENCE
            known.forget_refusals()


def _is_possible(kept: Mapping[str, Any]) -> bool:
    return (
        all(kept[name] is None or is_figure(kept[name], 1) for name in ("named", "refused", "tried"))
        and all(is_figure(kept[name]) for name in ("served", "since", "refusals", "limited"))
        and is_figure(kept["patience"], _LEAST_PATIENCE, _MOST_PATIENCE)
        and isinstance(kept["at"], int | float)
        and 0 <= kept["at"] < _LAST_SECOND
    )
