"""What a window holds, in the order of sending, and what it goes back to when the open exchange is aborted."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from .exchange import Exchange, OpenExchange
from .history import History
from .messages import Message
from .restore import Snapshot
from .state import State
from .summary import Passage


class Contents:
    """The parts of a conversation that are still sent.

    `sent` is all of it in order, so that rendering is one copy: what changes a part changes it there, too. `begin` to
    `abort` is a transaction: closed exchanges that change in between are set aside by what changes them. `at_rest` is
    kept for as long as state and history are what it was made of, so nothing that changes them has to drop it.
    """

    __slots__ = ("_before", "_kept", "_made_of", "_set_aside", "history", "last_number", "opened", "sent", "state")

    def __init__(self) -> None:
        self.state = State()
        self.history = History()
        self.last_number = 0
        self.opened: OpenExchange | None = None
        self.sent: list[Message] = []
        # What `abort` goes back to: the state at `begin`, and the closed exchanges that have changed since.
        self._before = self.state
        self._set_aside: dict[int, Exchange] = {}
        self._kept: Snapshot | None = None
        self._made_of = self.state, 0

    @property
    def first(self) -> int:
        """Where the exchanges begin in what is sent."""
        return 0 if self.state.system is None else 1

    @property
    def tokens(self) -> int:
        """What all exchanges cost together."""
        return self.history.tokens + (self.opened.tokens if self.opened else 0)

    def put_system(self, system: Message | None) -> None:
        """Replace the system message."""
        self._become(self.state._replace(system=system))

    def hold(self, dropped: Passage | None) -> None:
        """Replace what waits for a summary."""
        self.state = self.state._replace(dropped=dropped)

    def begin(self, exchange: OpenExchange) -> None:
        """Take in the newest exchange, which `close` or `abort` ends."""
        self._before = self.state
        self.opened = exchange
        self.sent += exchange.messages

    def rewrite(self, messages: Sequence[Message]) -> None:
        """Send these messages for those of the open exchange, of which there are as many."""
        self.sent[len(self.sent) - len(messages) :] = messages

    def close(self, exchange: Exchange) -> None:
        """Make this the newest closed exchange; it was the open one."""
        self.history.append(exchange)
        self.last_number = exchange.number
        self.opened = None
        if self._set_aside:
            self._set_aside.clear()

    def abort(self, exchange: OpenExchange) -> None:
        """Go back to what was there before the open exchange."""
        self.opened = None
        del self.sent[len(self.sent) - len(exchange.messages) :]
        if self._set_aside:
            self.replace(self._set_aside.values())
            self._set_aside.clear()
        self._become(self._before)

    def replace(self, exchanges: Iterable[Exchange]) -> None:
        """Put closed exchanges where their numbers say, in the place of those that have the same."""
        exchanges = tuple(exchanges)
        if self.opened:
            self._put_aside(filter(None, (self.history.get(exchange.number) for exchange in exchanges)))
        self.history.put(exchanges)
        self._render()

    def evict(self, gone: Sequence[Exchange]) -> None:
        """Take closed exchanges out: one trim, also when none of them go. Constant for each, unless it leaves gaps."""
        messages = sum(len(exchange.messages) for exchange in gone)
        tokens = sum(exchange.tokens for exchange in gone)
        self.state = self.state._replace(evicted=self.state.evicted.and_a_trim(len(gone), messages, tokens))
        if self.opened:
            self._put_aside(gone)
        self.history.remove(gone)
        if not gone or self.history.is_older(gone):
            del self.sent[self.first : self.first + messages]
        else:
            self._render()

    def at_rest(self, conversation_id: str) -> Snapshot:
        """Return what there is between two turns: with an exchange open, what `abort` would go back to."""
        state, version = made_of = self._before if self.opened else self.state, self.history.version
        if self._kept is None or self._made_of[0] is not state or self._made_of[1] != version:
            exchanges = {exchange.number: exchange for exchange in self.history} | self._set_aside
            at_rest = tuple(exchanges[number].numbered(0) for number in sorted(exchanges))
            self._kept = Snapshot(conversation_id, state.system, at_rest, state.evicted)
            self._made_of = made_of
        return self._kept

    def restore(self, snapshot: Snapshot) -> None:
        """Take over a snapshot; nothing may be there yet."""
        self.last_number = len(snapshot.exchanges)
        self.replace(exchange.numbered(number) for number, exchange in enumerate(snapshot.exchanges, start=1))
        self._become(State(snapshot.system, snapshot.evicted))

    def view(self, shows: Callable[[frozenset[str]], bool]) -> tuple[Message, ...]:
        """Return what to send of the exchanges whose tags are shown; the newest one always is."""
        exchanges = [*self.history, *filter(None, [self.opened])]
        shown = [*filter(lambda exchange: shows(exchange.tags), exchanges[:-1]), *exchanges[-1:]]
        return (*self.sent[: self.first], *chain.from_iterable(exchange.messages for exchange in shown))

    def _become(self, state: State) -> None:
        self.sent[: self.first] = () if state.system is None else (state.system,)
        self.state = state

    def _put_aside(self, exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            self._set_aside.setdefault(exchange.number, exchange)

    def _render(self) -> None:
        """Write anew what is sent of the closed exchanges."""
        opened = len(self.opened.messages) if self.opened else 0
        self.sent[self.first : len(self.sent) - opened] = self.history.messages()
