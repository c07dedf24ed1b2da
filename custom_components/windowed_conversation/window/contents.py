"""The contents of a window: closed exchanges in eviction order, the open exchange with its rollback, and trimming."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from .exchange import EvictionCounts, Exchange, OpenExchange, Snapshot
from .messages import EPHEMERAL, IMPORTANT, SETS_IN_USE, Message, Role, ToolCall, with_content
from .policy import MIN_RESULT_TOKENS, WindowPolicy
from .summary import SummaryInput, evicted_summary_input, join_summary_inputs, with_summary
from .tokens import TokenCounter
from .tool_results import cut_content, stub_result, stub_results

_EPHEMERAL, _ORDINARY, _PROTECTED = range(3)

_number = attrgetter("number")
_messages = attrgetter("messages")


@lru_cache(maxsize=SETS_IN_USE)
def _eviction_class(tags: frozenset[str]) -> int:
    if IMPORTANT in tags:
        return _PROTECTED
    return _EPHEMERAL if EPHEMERAL in tags else _ORDINARY


class History:
    """The closed exchanges by number. Numbers increase from the oldest to the newest exchange.

    `tokens` is their total, `protected` holds the exchanges that are evicted last, and `by_tags` is the number of
    exchanges with each set of tags; there are few different sets, and their hashes are cached. Appending takes constant
    time, and evicting is linear in the number of evicted exchanges. Inserting older exchanges (after an aborted trim or
    a change of tags) requires sorting.
    """

    __slots__ = ("_classes", "_with_results", "by_tags", "protected", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self.by_tags: dict[frozenset[str], int] = {}
        self.protected: dict[int, Exchange] = {}
        # The exchanges of each eviction class, ordered by number. The first class is evicted first.
        self._classes: tuple[dict[int, Exchange], ...] = ({}, {}, self.protected)
        # The exchanges with full tool results that can still be replaced by stubs.
        self._with_results: dict[int, Exchange] = {}

    def __iter__(self) -> Iterator[Exchange]:
        """Iterate over the exchanges, oldest first."""
        ephemeral, ordinary, protected = self._classes
        if not ephemeral and not protected:
            return iter(ordinary.values())
        return iter(sorted(chain.from_iterable(group.values() for group in self._classes), key=_number))

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
        self.by_tags[tags] = self.by_tags.get(tags, 0) + 1
        if exchange.has_full_results:
            self._with_results[number] = exchange
        self.tokens += exchange.tokens

    def put(self, exchanges: Iterable[Exchange]) -> None:
        """Insert exchanges, replacing those with the same numbers."""
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
        """Remove exchanges, which must be in the history."""
        for exchange in exchanges:
            del self._classes[_eviction_class(exchange.tags)][exchange.number]
            self._forget(exchange)

    def _forget(self, exchange: Exchange) -> None:
        """Remove an exchange from the totals and from all indexes except its eviction class."""
        self._with_results.pop(exchange.number, None)
        self.tokens -= exchange.tokens
        self.by_tags[exchange.tags] -= 1
        if not self.by_tags[exchange.tags]:
            del self.by_tags[exchange.tags]

    def exchanges_to_stub(self, newest: int, spared: int) -> list[Exchange]:
        """Return the exchanges with full tool results, except the last `newest` of them and the number `spared`."""
        older = islice(self._with_results.values(), max(0, len(self._with_results) - newest))
        return [exchange for exchange in older if exchange.number != spared]

    def exchanges_to_evict(self, tokens: int, policy: WindowPolicy, spared: int) -> list[Exchange]:
        """Return the exchanges to evict from a window of this many tokens: ephemeral, ordinary, then protected ones.

        Within each class the oldest exchanges are evicted first. Protected exchanges are evicted only if the window
        would otherwise exceed the budget itself, not to reach the low-water mark. The exchange with the number `spared`
        is kept.
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
        """Return whether all of these removed exchanges are older than the remaining ones."""
        oldest = min((next(iter(group)) for group in self._classes if group), default=None)
        return oldest is None or max(map(_number, exchanges)) < oldest


class _State(NamedTuple):
    """The system message, the eviction counts, and the evicted exchanges that wait for a summary."""

    system: Message | None = None
    evicted: EvictionCounts = EvictionCounts()
    pending_summary: SummaryInput | None = None


class Contents:
    """The parts of a conversation that are still sent.

    `messages` holds all messages in order, so that rendering only copies a list. Every method that changes a part
    updates it. `begin` starts a transaction, which `close` commits and `abort` rolls back; the previous versions of
    closed exchanges that change in between are kept for the rollback.
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
        # The index of the first message in `messages` that belongs to an exchange.
        self.first = 0
        # For `abort`: the state when the exchange was opened, and the previous versions of exchanges changed since
        # then.
        self._state_before = self.state
        self._exchanges_before: dict[int, Exchange] = {}
        # Whether closed exchanges or counts have changed since `Window.changed_exchanges` last reset this flag.
        self.has_changed = False

    @property
    def tokens(self) -> int:
        """The tokens of all exchanges, including the open one."""
        return self.history.tokens + (self.opened.tokens if self.opened else 0)

    def set_state(self, state: _State) -> None:
        """Replace the state, and update the system message in `messages`."""
        self.messages[: self.first] = () if state.system is None else (state.system,)
        self.first = 0 if state.system is None else 1
        self.state = state

    def begin(self, exchange: OpenExchange) -> None:
        """Start a new exchange, which becomes the newest one."""
        self._state_before = self.state
        self.opened = exchange
        self.messages += exchange.messages

    def close(self, exchange: Exchange) -> None:
        """Append the closed form of the open exchange to the history."""
        self.history.append(exchange)
        self.last_number = exchange.number
        self.opened = None
        self.has_changed = True
        if self._exchanges_before:
            self._exchanges_before.clear()

    def abort(self, exchange: OpenExchange) -> None:
        """Roll back to the state before the open exchange was started."""
        self.opened = None
        del self.messages[-len(exchange.messages) :]
        if self._exchanges_before:
            self.replace(self._exchanges_before.values())
            self._exchanges_before.clear()
        self.set_state(self._state_before)

    def replace(self, exchanges: Iterable[Exchange]) -> None:
        """Insert closed exchanges, replacing those with the same numbers."""
        exchanges = tuple(exchanges)
        if self.opened:
            self._keep_for_abort(filter(None, (self.history.get(exchange.number) for exchange in exchanges)))
        self.history.put(exchanges)
        self.has_changed = True
        self._render()

    def evict(self, exchanges: Sequence[Exchange]) -> None:
        """Remove closed exchanges and count a trim, even if `exchanges` is empty.

        Takes constant time for each exchange, unless older exchanges remain between the removed ones.
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
        """Evict a passage and insert its summary before the newest exchange, which is kept.

        No exchange may be open.
        """
        newest = max(1, self.last_number)
        replaced = [exchange for exchange in self.history if exchange.number in passage.numbers - {newest}]
        if replaced:
            self.evict(replaced)
        self.replace(with_summary(self.history, newest, summary))
        self.last_number += 1
        waiting = self.state.pending_summary and self.state.pending_summary.without(passage.numbers)
        self.state = self.state._replace(pending_summary=waiting)

    def snapshot(self, conversation_id: str) -> Snapshot:
        """Return a snapshot of the contents without an open exchange, as `abort` would restore them."""
        state = self._state_before if self.opened else self.state
        exchanges = {exchange.number: exchange for exchange in self.history} | self._exchanges_before
        in_order = tuple(exchanges[number].with_number(0) for number in sorted(exchanges))
        waiting = state.pending_summary.exchanges if state.pending_summary else ()
        return Snapshot(conversation_id, state.system, in_order, state.evicted, waiting)

    def restore(self, snapshot: Snapshot) -> None:
        """Load a snapshot into empty contents. Exchanges without a number are numbered from 1."""
        places = enumerate(snapshot.exchanges, start=1)
        exchanges = [exchange if exchange.number else exchange.with_number(place) for place, exchange in places]
        self.last_number = exchanges[-1].number if exchanges else 0
        self.replace(exchanges)
        self.set_state(_State(snapshot.system, snapshot.evicted))

    def visible_messages(self, shows: Callable[[frozenset[str]], bool]) -> tuple[Message, ...]:
        """Return the system message and the messages of exchanges whose tags `shows` accepts.

        The newest exchange is always included.
        """
        exchanges = [*self.history, *filter(None, [self.opened])]
        shown = [*filter(lambda exchange: shows(exchange.tags), exchanges[:-1]), *exchanges[-1:]]
        return (*self.messages[: self.first], *chain.from_iterable(exchange.messages for exchange in shown))

    def _keep_for_abort(self, exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            self._exchanges_before.setdefault(exchange.number, exchange)

    def _render(self) -> None:
        """Rebuild the part of `messages` that belongs to closed exchanges."""
        opened = len(self.opened.messages) if self.opened else 0
        self.messages[self.first : len(self.messages) - opened] = self.history.messages()


def trim(contents: Contents, policy: WindowPolicy, in_force: WindowPolicy, counter: TokenCounter) -> None:
    """Trim to the policy in force, keeping the newest exchange. `policy` is the user's own policy."""
    newest = 0 if contents.opened else contents.last_number
    shortened, whole, evicted = _stub_older_rounds(contents, in_force, counter), list[Exchange](), list[Exchange]()
    if contents.tokens > in_force.history_tokens:
        whole = _stub_old_results(contents, in_force, newest, counter)
        evicted = contents.history.exchanges_to_evict(contents.tokens, in_force, newest)
    if policy.summarize and evicted:
        passage = evicted_summary_input(contents.state.system, (*contents.history, *whole), evicted)
        waiting = join_summary_inputs(contents.state.pending_summary, passage, policy.history_tokens)
        contents.state = contents.state._replace(pending_summary=waiting)
    if shortened or whole or evicted:
        contents.evict(evicted)


def cut_to_fit(contents: Contents, exchange: OpenExchange, policy: WindowPolicy, counter: TokenCounter) -> None:
    """Cut tool results of the newest round until the policy in force is met or each has at most 100 tokens.

    Small results are not cut. Cutting counts as a trim.
    """
    room = policy.history_tokens - contents.history.tokens
    places = range(exchange.newest_round + 1, len(exchange.messages))
    results = {place: exchange.messages[place] for place in places if exchange.messages[place].role is Role.TOOL}
    tokens = [result.tokens or 0 for result in results.values()]
    most = max(_max_each(tokens, room - exchange.tokens + sum(tokens)), MIN_RESULT_TOKENS)
    cuts: dict[int, Message] = {}
    for place, result in results.items():
        if (result.tokens or 0) > most:
            content, cost = cut_content(exchange.originals.get(place, result), most, counter)
            if cost < (result.tokens or 0):
                cuts[place] = with_content(result, content, cost)
    if cuts:
        exchange.originals = {**{place: results[place] for place in cuts}, **exchange.originals}
        exchange.replace(cuts)
        contents.messages[-len(exchange.messages) :] = exchange.messages
        contents.evict(())


def _max_each(tokens: Iterable[int], room: int) -> int:
    """Return the largest size per item with which all items fit. Larger items share the room that small ones leave."""
    larger = sorted(tokens)
    while larger and larger[0] * len(larger) <= room:
        room -= larger.pop(0)
    return room // max(1, len(larger))


def _stub_older_rounds(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> bool:
    """Replace tool results of the open exchange with stubs, oldest round first, down to the low-water mark.

    The newest round is kept. Returns whether anything changed. Each round is examined only once, even if this is called
    often.
    """
    exchange = contents.opened
    if exchange is None:
        return False
    stubs: dict[int, Message] = {}
    low_water = policy.rounds_low_water(contents.history.tokens)
    tokens, calls = exchange.tokens, dict[str | None, ToolCall]()
    place = exchange.stub_end
    while place < exchange.newest_round:
        message = exchange.messages[place]
        if message.tool_calls:
            if tokens <= low_water:
                break
            calls = {call.id: call for call in message.tool_calls}
        elif message.role is Role.TOOL:
            shorter = stub_result(message, calls[message.tool_call_id], counter, exchange.originals.get(place))
            if shorter is not message:
                stubs[place] = shorter
                tokens -= (message.tokens or 0) - (shorter.tokens or 0)
        place += 1
    exchange.stub_end = place
    if stubs:
        exchange.replace(stubs)
        contents.messages[-len(exchange.messages) :] = exchange.messages
    return bool(stubs)


def _stub_old_results(contents: Contents, policy: WindowPolicy, newest: int, counter: TokenCounter) -> list[Exchange]:
    """Replace tool results that the policy no longer keeps with stubs. Return the exchanges before that change."""
    if policy.tool_results == "keep":
        return []
    opened = contents.opened
    whole_turns = (policy.max_tool_turns or 0) - (opened is not None and opened.has_results)
    whole = contents.history.exchanges_to_stub(max(0, whole_turns), newest)
    if whole:
        contents.replace([stub_results(exchange, counter) for exchange in whole])
    return whole
