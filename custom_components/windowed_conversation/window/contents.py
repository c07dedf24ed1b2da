"""The contents of a window in the order in which they are sent, with the rollback of an open exchange."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from .exchange import Exchange, OpenExchange
from .history import History
from .messages import Message
from .restore import Evicted, Snapshot
from .summary import Passage, with_summary


class _State(NamedTuple):
    """The system message, the figures of evicted exchanges, and the evicted exchanges that wait for a summary."""

    system: Message | None = None
    evicted: Evicted = Evicted()
    unsummarized: Passage | None = None


class Contents:
    """The parts of a conversation that are still sent.

    `sent` holds all messages in order, so that rendering is a single copy; every method that changes a part changes
    `sent` too. `begin` starts a transaction that `close` commits and `abort` rolls back: closed exchanges that change
    in between are set aside.
    """

    __slots__ = ("_before", "_set_aside", "first", "has_changed", "history", "last_number", "opened", "sent", "state")

    def __init__(self) -> None:
        self.state = _State()
        self.history = History()
        self.last_number = 0
        self.opened: OpenExchange | None = None
        self.sent: list[Message] = []
        # The index in `sent` at which the exchanges begin.
        self.first = 0
        # What `abort` restores: the state at `begin`, and the closed exchanges that have changed since.
        self._before = self.state
        self._set_aside: dict[int, Exchange] = {}
        # Whether closed exchanges or figures have changed since somebody set it back.
        self.has_changed = False

    @property
    def tokens(self) -> int:
        """The tokens of all exchanges."""
        return self.history.tokens + (self.opened.tokens if self.opened else 0)

    def put_system(self, system: Message | None) -> None:
        """Replace the system message."""
        self._become(self.state._replace(system=system))

    def hold(self, passage: Passage | None) -> None:
        """Replace the exchanges that wait for a summary."""
        self.state = self.state._replace(unsummarized=passage)

    def begin(self, exchange: OpenExchange) -> None:
        """Open the newest exchange."""
        self._before = self.state
        self.opened = exchange
        self.sent += exchange.messages

    def rewrite(self, messages: Sequence[Message]) -> None:
        """Replace the messages of the open exchange in `sent` with as many others."""
        self.sent[len(self.sent) - len(messages) :] = messages

    def close(self, exchange: Exchange) -> None:
        """Append the exchange that was open to the history."""
        self.history.append(exchange)
        self.last_number = exchange.number
        self.opened = None
        self.has_changed = True
        if self._set_aside:
            self._set_aside.clear()

    def abort(self, exchange: OpenExchange) -> None:
        """Roll back to the state before the open exchange."""
        self.opened = None
        del self.sent[len(self.sent) - len(exchange.messages) :]
        if self._set_aside:
            self.replace(self._set_aside.values())
            self._set_aside.clear()
        self._become(self._before)

    def replace(self, exchanges: Iterable[Exchange]) -> None:
        """Insert closed exchanges by their number, replacing those with the same number."""
        exchanges = tuple(exchanges)
        if self.opened:
            self._put_aside(filter(None, (self.history.get(exchange.number) for exchange in exchanges)))
        self.history.put(exchanges)
        self.has_changed = True
        self._render()

    def evict(self, exchanges: Sequence[Exchange]) -> None:
        """Remove closed exchanges and count a trim, also if there are none.

        Takes constant time for each, unless it leaves gaps.
        """
        messages = sum(len(exchange.messages) for exchange in exchanges)
        tokens = sum(exchange.tokens for exchange in exchanges)
        self.state = self.state._replace(evicted=self.state.evicted.and_a_trim(len(exchanges), messages, tokens))
        self.has_changed = True
        if self.opened:
            self._put_aside(exchanges)
        self.history.remove(exchanges)
        if not exchanges or self.history.is_older(exchanges):
            del self.sent[self.first : self.first + messages]
        else:
            self._render()

    def summarize(self, passage: Passage, summary: Exchange) -> None:
        """Evict a passage and insert its summary before the newest exchange, which stays. No exchange may be open."""
        newest = max(1, self.last_number)
        replaced = [exchange for exchange in self.history if exchange.number in passage.numbers - {newest}]
        if replaced:
            self.evict(replaced)
        self.replace(with_summary(self.history, newest, summary))
        self.last_number += 1
        waiting = self.state.unsummarized
        self.hold(waiting and waiting.without(passage.numbers))

    def at_rest(self, conversation_id: str) -> Snapshot:
        """Return the contents between two turns; with an open exchange, the contents that `abort` would restore."""
        state = self._before if self.opened else self.state
        exchanges = {exchange.number: exchange for exchange in self.history} | self._set_aside
        in_order = tuple(exchanges[number].numbered(0) for number in sorted(exchanges))
        waiting = state.unsummarized.exchanges if state.unsummarized else ()
        return Snapshot(conversation_id, state.system, in_order, state.evicted, waiting)

    def restore(self, snapshot: Snapshot) -> None:
        """Load a snapshot into empty contents. Exchanges that have numbers keep them; the others count from 1."""
        places = enumerate(snapshot.exchanges, start=1)
        exchanges = [exchange if exchange.number else exchange.numbered(place) for place, exchange in places]
        self.last_number = exchanges[-1].number if exchanges else 0
        self.replace(exchanges)
        self._become(_State(snapshot.system, snapshot.evicted))

    def view(self, shows: Callable[[frozenset[str]], bool]) -> tuple[Message, ...]:
        """Return the messages of the exchanges with visible tags, and always those of the newest exchange."""
        exchanges = [*self.history, *filter(None, [self.opened])]
        shown = [*filter(lambda exchange: shows(exchange.tags), exchanges[:-1]), *exchanges[-1:]]
        return (*self.sent[: self.first], *chain.from_iterable(exchange.messages for exchange in shown))

    def _become(self, state: _State) -> None:
        self.sent[: self.first] = () if state.system is None else (state.system,)
        self.first = 0 if state.system is None else 1
        self.state = state

    def _put_aside(self, exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            self._set_aside.setdefault(exchange.number, exchange)

    def _render(self) -> None:
        """Rebuild `sent` for the closed exchanges."""
        opened = len(self.opened.messages) if self.opened else 0
        self.sent[self.first : len(self.sent) - opened] = self.history.messages()
