"""What a window holds: the system message, closed exchanges and the open one, and all of it in the order of sending."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from .exchange import Exchange, OpenExchange
from .history import History
from .messages import Message


class Contents:
    """The parts of a conversation that are still sent.

    `sent` is all of it in order, so that rendering is one copy: what changes a part changes it there, too.
    """

    __slots__ = ("history", "opened", "sent", "system")

    def __init__(self) -> None:
        self.system: Message | None = None
        self.history = History()
        self.opened: OpenExchange | None = None
        self.sent: list[Message] = []

    @property
    def first(self) -> int:
        """Where the exchanges begin in what is sent."""
        return 0 if self.system is None else 1

    @property
    def tokens(self) -> int:
        """What all exchanges cost together."""
        return self.history.tokens + (self.opened.tokens if self.opened else 0)

    def put_system(self, system: Message | None) -> None:
        """Replace the system message."""
        self.sent[: self.first] = () if system is None else (system,)
        self.system = system

    def rewrite(self, messages: Sequence[Message]) -> None:
        """Send these messages for those of the open exchange, of which there are as many."""
        self.sent[len(self.sent) - len(messages) :] = messages

    def discard(self, exchange: OpenExchange) -> None:
        """Take the open exchange out."""
        self.opened = None
        del self.sent[len(self.sent) - len(exchange.messages) :]

    def replace(self, exchanges: Iterable[Exchange]) -> None:
        """Put closed exchanges where their numbers say, in the place of those that have the same."""
        self.history.put(exchanges)
        self._render()

    def remove(self, gone: Sequence[Exchange]) -> None:
        """Take closed exchanges out: constant for each, unless that leaves gaps."""
        self.history.remove(gone)
        if not gone or self.history.is_older(gone):
            del self.sent[self.first : self.first + sum(len(exchange.messages) for exchange in gone)]
        else:
            self._render()

    def view(self, shows: Callable[[frozenset[str]], bool]) -> tuple[Message, ...]:
        """Return what to send of the exchanges whose tags are shown; the newest one always is."""
        exchanges = [*self.history, *filter(None, [self.opened])]
        shown = [*filter(lambda exchange: shows(exchange.tags), exchanges[:-1]), *exchanges[-1:]]
        return (*self.sent[: self.first], *chain.from_iterable(exchange.messages for exchange in shown))

    def _render(self) -> None:
        """Write anew what is sent of the closed exchanges."""
        opened = len(self.opened.messages) if self.opened else 0
        self.sent[self.first : len(self.sent) - opened] = self.history.messages()
