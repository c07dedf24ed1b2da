"""The contents of a window in the order in which they are sent, with the rollback of an open exchange."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from .exchange import Exchange, OpenExchange
from .history import History
from .messages import Message
from .restore import EvictionCounts, Snapshot
from .summary import SummaryInput, with_summary


class _State(NamedTuple):
    """The system message, the figures of evicted exchanges, and the evicted exchanges that wait for a summary."""

    system: Message | None = None
    evicted: EvictionCounts = EvictionCounts()
    pending_summary: SummaryInput | None = None


class Contents:
    """The parts of a conversation that are still sent.

    `messages` holds all messages in order, so that rendering is a single copy; every method that changes a part changes
    it too. `begin` starts a transaction that `close` commits and `abort` rolls back: closed exchanges that change
    in between are kept for that.
    """

    __slots__ = (
        "_exchanges_before",
        "_state_before",
        "first",
        "has_changed",
        "history",
        "last_number",
        "messages",
        "opened",
        "state",
    )

    def __init__(self) -> None:
        self.state = _State()
        self.history = History()
        self.last_number = 0
        self.opened: OpenExchange | None = None
        self.messages: list[Message] = []
        # The index in `messages` at which the exchanges begin.
        self.first = 0
        # For `abort`: the state at `begin`, and the closed exchanges that have changed since.
        self._state_before = self.state
        self._exchanges_before: dict[int, Exchange] = {}
        # Whether closed exchanges or figures have changed since somebody set it back.
        self.has_changed = False

    @property
    def tokens(self) -> int:
        """The tokens of all exchanges."""
        return self.history.tokens + (self.opened.tokens if self.opened else 0)

    def set_system(self, system: Message | None) -> None:
        """Replace the system message."""
        self._set_state(self.state._replace(system=system))

    def set_pending(self, passage: SummaryInput | None) -> None:
        """Replace the exchanges that wait for a summary."""
        self.state = self.state._replace(pending_summary=passage)

    def begin(self, exchange: OpenExchange) -> None:
        """Open the newest exchange."""
        self._state_before = self.state
        self.opened = exchange
        self.messages += exchange.messages

    def rewrite(self, messages: Sequence[Message]) -> None:
        """Replace the messages of the open exchange in `messages` with as many others."""
        self.messages[len(self.messages) - len(messages) :] = messages

    def close(self, exchange: Exchange) -> None:
        """Append the exchange that was open to the history."""
        self.history.append(exchange)
        self.last_number = exchange.number
        self.opened = None
        self.has_changed = True
        if self._exchanges_before:
            self._exchanges_before.clear()

    def abort(self, exchange: OpenExchange) -> None:
        """Roll back to the state before the open exchange."""
        self.opened = None
        del self.messages[len(self.messages) - len(exchange.messages) :]
        if self._exchanges_before:
            self.replace(self._exchanges_before.values())
            self._exchanges_before.clear()
        self._set_state(self._state_before)

    def replace(self, exchanges: Iterable[Exchange]) -> None:
        """Insert closed exchanges by their number, replacing those with the same number."""
        exchanges = tuple(exchanges)
        if self.opened:
            self._keep_for_abort(filter(None, (self.history.get(exchange.number) for exchange in exchanges)))
        self.history.put(exchanges)
        self.has_changed = True
        self._render()

    def evict(self, exchanges: Sequence[Exchange]) -> None:
        """Remove closed exchanges and count a trim, also if there are none.

        Takes constant time for each, unless it leaves gaps.
        """
        messages = sum(len(exchange.messages) for exchange in exchanges)
        tokens = sum(exchange.tokens for exchange in exchanges)
        self.state = self.state._replace(evicted=self.state.evicted.after_trim(len(exchanges), messages, tokens))
        self.has_changed = True
        if self.opened:
            self._keep_for_abort(exchanges)
        self.history.remove(exchanges)
        if not exchanges or self.history.was_oldest(exchanges):
            del self.messages[self.first : self.first + messages]
        else:
            self._render()

    def summarize(self, passage: SummaryInput, summary: Exchange) -> None:
        """Evict a passage and insert its summary before the newest exchange, which stays. No exchange may be open."""
        newest = max(1, self.last_number)
        replaced = [exchange for exchange in self.history if exchange.number in passage.numbers - {newest}]
        if replaced:
            self.evict(replaced)
        self.replace(with_summary(self.history, newest, summary))
        self.last_number += 1
        waiting = self.state.pending_summary
        self.set_pending(waiting and waiting.without(passage.numbers))

    def snapshot(self, conversation_id: str) -> Snapshot:
        """Return the contents between two turns; with an open exchange, the contents that `abort` would restore."""
        state = self._state_before if self.opened else self.state
        exchanges = {exchange.number: exchange for exchange in self.history} | self._exchanges_before
        in_order = tuple(exchanges[number].with_number(0) for number in sorted(exchanges))
        waiting = state.pending_summary.exchanges if state.pending_summary else ()
        return Snapshot(conversation_id, state.system, in_order, state.evicted, waiting)

    def restore(self, snapshot: Snapshot) -> None:
        """Load a snapshot into empty contents. Exchanges that have numbers keep them; the others count from 1."""
        places = enumerate(snapshot.exchanges, start=1)
        exchanges = [exchange if exchange.number else exchange.with_number(place) for place, exchange in places]
        self.last_number = exchanges[-1].number if exchanges else 0
        self.replace(exchanges)
        self._set_state(_State(snapshot.system, snapshot.evicted))

    def visible_messages(self, shows: Callable[[frozenset[str]], bool]) -> tuple[Message, ...]:
        """Return the messages of the exchanges with visible tags, and always those of the newest exchange."""
        exchanges = [*self.history, *filter(None, [self.opened])]
        shown = [*filter(lambda exchange: shows(exchange.tags), exchanges[:-1]), *exchanges[-1:]]
        return (*self.messages[: self.first], *chain.from_iterable(exchange.messages for exchange in shown))

    def _set_state(self, state: _State) -> None:
        self.messages[: self.first] = () if state.system is None else (state.system,)
        self.first = 0 if state.system is None else 1
        self.state = state

    def _keep_for_abort(self, exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            self._exchanges_before.setdefault(exchange.number, exchange)

    def _render(self) -> None:
        """Rebuild `messages` for the closed exchanges."""
        opened = len(self.opened.messages) if self.opened else 0
        self.messages[self.first : len(self.messages) - opened] = self.history.messages()
