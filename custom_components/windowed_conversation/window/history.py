"""The closed exchanges of a window: their order, their totals, and the order of their eviction."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from types import MappingProxyType

from .exchange import Exchange
from .messages import Message
from .policy import WindowPolicy
from .tags import EPHEMERAL, IMPORTANT, SETS_IN_USE

_EPHEMERAL, _ORDINARY, _PROTECTED = range(3)

_number = attrgetter("number")
_messages = attrgetter("messages")
_tokens = attrgetter("tokens")


@lru_cache(maxsize=SETS_IN_USE)
def _eviction_class(tags: frozenset[str]) -> int:
    if IMPORTANT in tags:
        return _PROTECTED
    return _EPHEMERAL if EPHEMERAL in tags else _ORDINARY


class History:
    """Closed exchanges by number, which rises from the oldest to the newest.

    `tokens` is their total. Appending takes constant time, and evicting is linear in the evicted exchanges.
    Inserting older exchanges sorts: after the abort of a trim, or a change of tags.
    """

    __slots__ = ("_by_tags", "_classes", "_with_results", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        # The number of exchanges with each set of tags: there are few sets, and their hashes are cached.
        self._by_tags: dict[frozenset[str], int] = {}
        # By eviction class, in the order of eviction; each ordered by number.
        self._classes: tuple[dict[int, Exchange], ...] = ({}, {}, {})
        # The exchanges whose tool results stubs may still replace.
        self._with_results: dict[int, Exchange] = {}

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

    def tag_counts(self, opened: frozenset[str]) -> Mapping[str, int]:
        """Return the number of exchanges with each tag, including an open exchange with these tags."""
        counts = dict.fromkeys(opened, 1)
        for tags, exchanges in self._by_tags.items():
            for tag in tags:
                counts[tag] = counts.get(tag, 0) + exchanges
        return MappingProxyType(counts)

    def get(self, number: int) -> Exchange | None:
        """Return the exchange with this number, or None."""
        return next((group[number] for group in self._classes if number in group), None)

    def messages(self) -> Iterator[Message]:
        """Iterate over the messages of the exchanges, oldest first."""
        return chain.from_iterable(map(_messages, self))

    def append(self, exchange: Exchange) -> None:
        """Append the newest exchange."""
        number, tags = exchange.number, exchange.tags
        self._classes[_eviction_class(tags)][number] = exchange
        self._by_tags[tags] = self._by_tags.get(tags, 0) + 1
        if exchange.has_full_results:
            self._with_results[number] = exchange
        self.tokens += exchange.tokens

    def put(self, exchanges: Iterable[Exchange]) -> None:
        """Insert exchanges by their number, replacing those with the same number."""
        in_order = True
        for exchange in exchanges:
            old = self.get(exchange.number)
            if old is not None and _eviction_class(old.tags) == _eviction_class(exchange.tags):
                self._forget(old)
            else:
                in_order = False
                self.remove(() if old is None else (old,))
            self.append(exchange)
        if not in_order:
            for group in (*self._classes, self._with_results):
                ordered = sorted(group.items())
                group.clear()
                group.update(ordered)

    def remove(self, exchanges: Iterable[Exchange]) -> None:
        """Remove exchanges."""
        for exchange in exchanges:
            del self._classes[_eviction_class(exchange.tags)][exchange.number]
            self._forget(exchange)

    def _forget(self, exchange: Exchange) -> None:
        """Remove an exchange from the totals and all indexes, except from its eviction class."""
        self._with_results.pop(exchange.number, None)
        self.tokens -= exchange.tokens
        self._by_tags[exchange.tags] -= 1
        if not self._by_tags[exchange.tags]:
            del self._by_tags[exchange.tags]

    def exchanges_to_stub(self, kept: int, spared: int) -> list[Exchange]:
        """Return the exchanges with whole tool results, except the newest `kept` ones and the number `spared`."""
        with_results = list(self._with_results.values())
        return [exchange for exchange in with_results[: max(0, len(with_results) - kept)] if exchange.number != spared]

    def exchanges_to_evict(self, tokens: int, policy: WindowPolicy, spared: int) -> list[Exchange]:
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

    def was_oldest(self, exchanges: Iterable[Exchange]) -> bool:
        """Return whether removed exchanges are older than all that are left."""
        oldest = min((next(iter(group)) for group in self._classes if group), default=None)
        return oldest is None or max(map(_number, exchanges)) < oldest
