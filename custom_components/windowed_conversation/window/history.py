"""The closed exchanges of a window: their order, their totals, and the order of their eviction."""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter

from .exchange import Exchange
from .messages import Message
from .policy import WindowPolicy
from .tags import EPHEMERAL, IMPORTANT, TagCounts

_EPHEMERAL, _ORDINARY, _PROTECTED = range(3)

_number = attrgetter("number")
_messages = attrgetter("messages")
_tokens = attrgetter("tokens")


def _eviction_class(exchange: Exchange) -> int:
    if IMPORTANT in exchange.tags:
        return _PROTECTED
    return _EPHEMERAL if EPHEMERAL in exchange.tags else _ORDINARY


class History:
    """Closed exchanges by number, which rises from the oldest to the newest.

    `tokens` is their total, `tags` counts the exchanges of each tag, and `version` rises with every change. Appending
    takes constant time, and evicting is linear in what is evicted. Inserting older exchanges sorts: after the abort of
    a trim, or a change of tags.
    """

    __slots__ = ("_classes", "_whole", "tags", "tokens", "version")

    def __init__(self) -> None:
        self.tokens = self.version = 0
        self.tags = TagCounts()
        # By eviction class, in the order of eviction; each ordered by number.
        self._classes: tuple[dict[int, Exchange], ...] = ({}, {}, {})
        # The exchanges whose tool results stubs may still replace.
        self._whole: dict[int, Exchange] = {}

    def __len__(self) -> int:
        return sum(map(len, self._classes))

    def __iter__(self) -> Iterator[Exchange]:
        """Iterate over the exchanges, oldest first."""
        ephemeral, ordinary, protected = self._classes
        if not ephemeral and not protected:
            return iter(ordinary.values())
        return iter(sorted(chain.from_iterable(group.values() for group in self._classes), key=_number))

    @property
    def protected_tokens(self) -> int:
        """The tokens of the protected exchanges."""
        return sum(map(_tokens, self._classes[_PROTECTED].values()))

    def get(self, number: int) -> Exchange | None:
        """Return the exchange with this number, or None."""
        return next((group[number] for group in self._classes if number in group), None)

    def messages(self) -> Iterator[Message]:
        """Iterate over the messages of the exchanges, oldest first."""
        return chain.from_iterable(map(_messages, self))

    def append(self, exchange: Exchange) -> None:
        """Append the newest exchange."""
        self._classes[_eviction_class(exchange)][exchange.number] = exchange
        if exchange.whole_results:
            self._whole[exchange.number] = exchange
        self.version += 1
        self.tokens += exchange.tokens
        self.tags.add(exchange.tags)

    def put(self, exchanges: Iterable[Exchange]) -> None:
        """Insert exchanges by their number, replacing those with the same number."""
        in_order = True
        for exchange in exchanges:
            old = self.get(exchange.number)
            if old is not None and _eviction_class(old) == _eviction_class(exchange):
                self._forget(old)
            else:
                in_order = False
                self.remove(() if old is None else (old,))
            self.append(exchange)
        if not in_order:
            for group in (*self._classes, self._whole):
                ordered = sorted(group.items())
                group.clear()
                group.update(ordered)

    def remove(self, exchanges: Iterable[Exchange]) -> None:
        """Remove exchanges."""
        for exchange in exchanges:
            del self._classes[_eviction_class(exchange)][exchange.number]
            self._forget(exchange)

    def _forget(self, exchange: Exchange) -> None:
        """Remove an exchange from the totals and all indexes, except from its eviction class."""
        self._whole.pop(exchange.number, None)
        self.version += 1
        self.tokens -= exchange.tokens
        self.tags.remove(exchange.tags)

    def to_stub(self, kept: int, spared: int) -> list[Exchange]:
        """Return the exchanges with whole tool results, except the newest `kept` ones and the number `spared`."""
        whole = list(self._whole.values())
        return [exchange for exchange in whole[: max(0, len(whole) - kept)] if exchange.number != spared]

    def to_evict(self, tokens: int, policy: WindowPolicy, spared: int) -> list[Exchange]:
        """Return the exchanges to evict from a window of this many tokens: ephemeral, ordinary, then protected ones.

        Each class is evicted first in, first out. Protected exchanges are evicted only while the rest exceeds the
        budget itself, not to reach the low-water mark. The exchange with the number `spared` stays.
        """
        low_water = policy.low_water
        evicted: list[Exchange] = []
        for group, exchanges in enumerate(self._classes):
            limit = policy.history_tokens if group == _PROTECTED else low_water
            for exchange in exchanges.values():
                if tokens <= limit:
                    break
                if exchange.number != spared:
                    evicted.append(exchange)
                    tokens -= exchange.tokens
        return evicted

    def is_older(self, exchanges: Iterable[Exchange]) -> bool:
        """Return whether removed exchanges are older than all that are left."""
        oldest = min((next(iter(group)) for group in self._classes if group), default=None)
        return oldest is None or max(map(_number, exchanges)) < oldest
