"""The closed exchanges of a window, in order, what they add up to, and the order in which they go."""

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
    """Closed exchanges by their number, which rises from the oldest to the newest.

    `tokens` is what they cost together, `tags` counts the exchanges of each tag, `version` rises with every change.
    Appending is constant and evicting costs what goes. What puts exchanges back in between sorts: an abort after a
    trim, a change of tags.
    """

    __slots__ = ("_classes", "_recalled", "_whole", "tags", "tokens", "version")

    def __init__(self) -> None:
        self.tokens = self.version = 0
        self.tags = TagCounts()
        # By eviction class, those that go first in front; each in the order of the numbers.
        self._classes: tuple[dict[int, Exchange], ...] = ({}, {}, {})
        # Those among them whose tool results a stub may yet replace.
        self._whole: dict[int, Exchange] = {}
        # Those that have lines from memory, which leave at the next trim.
        self._recalled: dict[int, Exchange] = {}

    def __len__(self) -> int:
        return sum(map(len, self._classes))

    def __iter__(self) -> Iterator[Exchange]:
        """Go through the exchanges, oldest first."""
        ephemeral, ordinary, protected = self._classes
        if not ephemeral and not protected:
            return iter(ordinary.values())
        return iter(sorted(chain.from_iterable(group.values() for group in self._classes), key=_number))

    @property
    def protected_tokens(self) -> int:
        """What the protected exchanges cost."""
        return sum(map(_tokens, self._classes[_PROTECTED].values()))

    def get(self, number: int) -> Exchange | None:
        """Return the exchange of this number, or None."""
        return next((group[number] for group in self._classes if number in group), None)

    def messages(self) -> Iterator[Message]:
        """Go through the messages of the exchanges, oldest first."""
        return chain.from_iterable(map(_messages, self))

    def append(self, exchange: Exchange) -> None:
        """Take in the newest exchange."""
        self._classes[_eviction_class(exchange)][exchange.number] = exchange
        if exchange.whole_results:
            self._whole[exchange.number] = exchange
        if exchange.has_recalled:
            self._recalled[exchange.number] = exchange
        self.version += 1
        self.tokens += exchange.tokens
        self.tags.add(exchange.tags)

    def put(self, exchanges: Iterable[Exchange]) -> None:
        """Put exchanges where their numbers say, in the place of those that have the same."""
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
            for group in (*self._classes, self._whole, self._recalled):
                ordered = sorted(group.items())
                group.clear()
                group.update(ordered)

    def remove(self, exchanges: Iterable[Exchange]) -> None:
        """Take exchanges out."""
        for exchange in exchanges:
            del self._classes[_eviction_class(exchange)][exchange.number]
            self._forget(exchange)

    def _forget(self, exchange: Exchange) -> None:
        """Take an exchange out of all but its place."""
        self._whole.pop(exchange.number, None)
        self._recalled.pop(exchange.number, None)
        self.version += 1
        self.tokens -= exchange.tokens
        self.tags.remove(exchange.tags)

    def to_stub(self, kept: int, spared: int) -> list[Exchange]:
        """Return the exchanges that have whole tool results, but for the newest `kept` and the number `spared`."""
        whole = list(self._whole.values())
        return [exchange for exchange in whole[: max(0, len(whole) - kept)] if exchange.number != spared]

    def with_recalled(self, spared: int) -> list[Exchange]:
        """Return the exchanges that have lines from memory, but for the number `spared`."""
        return [exchange for exchange in self._recalled.values() if exchange.number != spared]

    def to_evict(self, tokens: int, policy: WindowPolicy, spared: int) -> list[Exchange]:
        """Return what goes from a window of so many tokens: ephemeral exchanges, then ordinary, then protected ones.

        Each class goes first in, first out. The low-water mark is reached without protected exchanges or not at all:
        these go only while what is left is over the budget itself. The exchange of the number `spared` stays.
        """
        low_water = policy.low_water
        gone: list[Exchange] = []
        for group, exchanges in enumerate(self._classes):
            limit = policy.history_tokens if group == _PROTECTED else low_water
            for exchange in exchanges.values():
                if tokens <= limit:
                    break
                if exchange.number != spared:
                    gone.append(exchange)
                    tokens -= exchange.tokens
        return gone

    def is_older(self, exchanges: Iterable[Exchange]) -> bool:
        """Return whether exchanges that were taken out are older than all that are left."""
        oldest = min((next(iter(group)) for group in self._classes if group), default=None)
        return oldest is None or max(map(_number, exchanges)) < oldest
