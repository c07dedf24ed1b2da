"""The contents of a window: closed exchanges in eviction order, the open exchange with its rollback, and trimming."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from .exchange import EvictionCounts, Exchange, OpenExchange, Snapshot
from .messages import EPHEMERAL, IMPORTANT, TAG_SET_CACHE_SIZE, Message, Role, with_content
from .policy import MIN_RESULT_TOKENS, WindowPolicy
from .summary import (
    SummaryInput,
    build_evicted_summary_input,
    build_summary_changes,
    is_summary,
    join_summary_inputs,
)
from .tokens import TokenCounter
from .tool_results import cut_content, find_rounds, iter_stubs, stub_older_rounds

_EPHEMERAL_CLASS, _ORDINARY_CLASS, _PROTECTED_CLASS = range(3)

_get_number = attrgetter("number")
_get_messages = attrgetter("messages")


@lru_cache(maxsize=TAG_SET_CACHE_SIZE)
def _get_eviction_class(tags: frozenset[str]) -> int:
    if IMPORTANT in tags:
        return _PROTECTED_CLASS
    return _EPHEMERAL_CLASS if EPHEMERAL in tags else _ORDINARY_CLASS


class History:
    """The closed exchanges by number. Numbers increase from the oldest to the newest exchange.

    Appending takes constant time, and evicting is linear in the number of evicted exchanges. Inserting older exchanges
    (after an aborted trim or a change of tags) requires sorting.
    """

    __slots__ = ("_exchanges_by_class", "_stubbable_exchanges", "exchange_count_by_tags", "protected", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        # The number of exchanges with each set of tags. There are few different sets, and their hashes are cached.
        self.exchange_count_by_tags: dict[frozenset[str], int] = {}
        # The exchanges that are evicted last.
        self.protected: dict[int, Exchange] = {}
        # The exchanges of each eviction class, ordered by number. The first class is evicted first.
        self._exchanges_by_class: tuple[dict[int, Exchange], ...] = ({}, {}, self.protected)
        # The exchanges with full tool results that can still be replaced by stubs.
        self._stubbable_exchanges: dict[int, Exchange] = {}

    def __iter__(self) -> Iterator[Exchange]:
        """Iterate over the exchanges, oldest first."""
        ephemeral, ordinary, protected = self._exchanges_by_class
        if not ephemeral and not protected:
            return iter(ordinary.values())
        return iter(sorted(chain.from_iterable(group.values() for group in self._exchanges_by_class), key=_get_number))

    def get(self, number: int) -> Exchange | None:
        """Return the exchange with this number, or None."""
        return next((group[number] for group in self._exchanges_by_class if number in group), None)

    def append(self, exchange: Exchange) -> None:
        """Append the newest exchange."""
        number, tags = exchange.number, exchange.tags
        self._exchanges_by_class[_get_eviction_class(tags)][number] = exchange
        self.exchange_count_by_tags[tags] = self.exchange_count_by_tags.get(tags, 0) + 1
        if exchange.has_full_results:
            self._stubbable_exchanges[number] = exchange
        self.tokens += exchange.tokens

    def insert(self, exchanges: Iterable[Exchange]) -> None:
        """Insert exchanges, replacing those with the same numbers."""
        in_order = True
        for exchange in exchanges:
            old = self.get(exchange.number)
            if old is not None and _get_eviction_class(old.tags) == _get_eviction_class(exchange.tags):
                self._remove_from_indexes(old)
            else:
                in_order = False
                self.remove(() if old is None else (old,))
            self.append(exchange)
        if not in_order:
            for group in (*self._exchanges_by_class, self._stubbable_exchanges):
                ordered = sorted(group.items())
                group.clear()
                group.update(ordered)

    def remove(self, exchanges: Iterable[Exchange]) -> None:
        """Remove exchanges, which must be in the history."""
        for exchange in exchanges:
            del self._exchanges_by_class[_get_eviction_class(exchange.tags)][exchange.number]
            self._remove_from_indexes(exchange)

    def _remove_from_indexes(self, exchange: Exchange) -> None:
        """Remove an exchange from the totals and from all indexes except its eviction class."""
        self._stubbable_exchanges.pop(exchange.number, None)
        self.tokens -= exchange.tokens
        self.exchange_count_by_tags[exchange.tags] -= 1
        if not self.exchange_count_by_tags[exchange.tags]:
            del self.exchange_count_by_tags[exchange.tags]

    def select_exchanges_to_stub(self, rounds: int, spared: int) -> list[tuple[Exchange, int]]:
        """Return the exchanges with full tool results that do not belong to the newest `rounds` tool rounds.

        Each is paired with the number of its rounds that do. The exchange with the number `spared` is not returned.
        """
        older = list[tuple[Exchange, int]]()
        for exchange in reversed(self._stubbable_exchanges.values()):
            newest = min(rounds, len(find_rounds(exchange)))
            rounds -= newest
            if exchange.number != spared and newest < len(find_rounds(exchange)):
                older.append((exchange, newest))
        return older

    def select_exchanges_to_evict(self, tokens: int, policy: WindowPolicy, spared: int) -> list[Exchange]:
        """Return the exchanges to evict from a window of this many tokens: ephemeral, ordinary, then protected ones.

        Within each class the oldest exchanges are evicted first. Protected exchanges are evicted only if the window
        would otherwise exceed the budget itself, not to reach the low-water mark. The exchange with the number `spared`
        is kept.
        """
        low_water = policy.low_water_tokens
        evicted: list[Exchange] = []
        for group, exchanges in enumerate(self._exchanges_by_class):
            limit = policy.history_tokens if group == _PROTECTED_CLASS else low_water
            for exchange in exchanges.values():
                if tokens <= limit:
                    break
                if exchange.number != spared:
                    evicted.append(exchange)
                    tokens -= exchange.tokens
        return evicted


class _WindowState(NamedTuple):
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
        "has_changed",
        "history",
        "history_start",
        "last_number",
        "messages",
        "open_exchange",
        "state",
    )

    def __init__(self) -> None:
        self.state = _WindowState()
        self.history = History()
        self.last_number = 0
        self.open_exchange: OpenExchange | None = None
        self.messages: list[Message] = []
        # The index of the first message in `messages` that belongs to an exchange.
        self.history_start = 0
        # For `abort`: the state when the exchange was opened, and the previous versions of exchanges changed since
        # then.
        self._state_before = self.state
        self._exchanges_before: dict[int, Exchange] = {}
        # Whether closed exchanges or counts have changed since `Window.take_changed_exchanges` last reset this flag.
        self.has_changed = False

    @property
    def tokens(self) -> int:
        """The tokens of all exchanges, including the open one."""
        return self.history.tokens + (self.open_exchange.tokens if self.open_exchange else 0)

    def set_state(self, state: _WindowState) -> None:
        """Replace the state, and update the system message in `messages`."""
        self.messages[: self.history_start] = () if state.system is None else (state.system,)
        self.history_start = 0 if state.system is None else 1
        self.state = state

    def begin(self, exchange: OpenExchange) -> None:
        """Start a new exchange, which becomes the newest one."""
        self._state_before = self.state
        self.open_exchange = exchange
        self.messages += exchange.messages

    def close(self, exchange: Exchange) -> None:
        """Append the closed form of the open exchange to the history."""
        self.history.append(exchange)
        self.last_number = exchange.number
        self.open_exchange = None
        self.has_changed = True
        if self._exchanges_before:
            self._exchanges_before.clear()

    def abort(self, exchange: OpenExchange) -> None:
        """Roll back to the state before the open exchange was started."""
        self.open_exchange = None
        del self.messages[-len(exchange.messages) :]
        if self._exchanges_before:
            self.replace_exchanges(self._exchanges_before.values())
            self._exchanges_before.clear()
        self.set_state(self._state_before)

    def replace_open_messages(self, exchange: OpenExchange, messages: Mapping[int, Message]) -> None:
        """Replace messages of the open exchange by index. The new ones differ in content and tokens only."""
        for place, message in messages.items():
            exchange.tokens += (message.tokens or 0) - (exchange.messages[place].tokens or 0)
            exchange.messages[place] = message
        self.messages[-len(exchange.messages) :] = exchange.messages

    def replace_exchanges(self, exchanges: Iterable[Exchange]) -> None:
        """Insert closed exchanges, replacing those with the same numbers."""
        exchanges = tuple(exchanges)
        if self.open_exchange:
            self._save_for_abort(filter(None, (self.history.get(exchange.number) for exchange in exchanges)))
        self.history.insert(exchanges)
        self.has_changed = True
        self._rebuild_messages()

    def evict(self, exchanges: Sequence[Exchange]) -> None:
        """Remove closed exchanges and count a trim, even if `exchanges` is empty."""
        messages = sum(len(exchange.messages) for exchange in exchanges)
        tokens = sum(exchange.tokens for exchange in exchanges)
        self.state = self.state._replace(evicted=self.state.evicted.after_trim(len(exchanges), messages, tokens))
        self.has_changed = True
        if self.open_exchange:
            self._save_for_abort(exchanges)
        self.history.remove(exchanges)
        self._rebuild_messages()

    def insert_summary(self, passage: SummaryInput, summary: Exchange) -> None:
        """Evict a passage and insert its summary before the newest exchange, which is kept.

        The earlier summary is evicted with the passage, unless a trim has already evicted all of the passage. No
        exchange may be open.
        """
        newest = max(1, self.last_number)
        older = [exchange for exchange in self.history if exchange.number != newest]
        if any(exchange.number in passage.numbers for exchange in older):
            self.evict([exchange for exchange in older if exchange.number in passage.numbers or is_summary(exchange)])
        self.replace_exchanges(build_summary_changes(self.history, newest, summary))
        self.last_number += 1
        waiting = self.state.pending_summary and self.state.pending_summary.without_exchanges(passage.numbers)
        self.state = self.state._replace(pending_summary=waiting)

    def exchanges_after_abort(self, following: Iterable[OpenExchange]) -> tuple[Exchange, ...]:
        """Return the exchanges as `abort` would restore them, and those that follow the open one."""
        exchanges = {exchange.number: exchange for exchange in self.history} | self._exchanges_before
        later = [each.to_exchange(number) for number, each in enumerate(following, start=self.last_number + 2)]
        return (*[exchanges[number] for number in sorted(exchanges)], *later)

    def snapshot(self, conversation_id: str, following: Iterable[OpenExchange]) -> Snapshot:
        """Return a snapshot of the contents without an open exchange, as `abort` would restore them."""
        state = self._state_before if self.open_exchange else self.state
        in_order = tuple(exchange.with_number(0) for exchange in self.exchanges_after_abort(following))
        waiting = state.pending_summary.exchanges if state.pending_summary else ()
        return Snapshot(conversation_id, state.system, in_order, state.evicted, waiting)

    def restore(self, snapshot: Snapshot) -> None:
        """Load a snapshot into empty contents. Exchanges without a number are numbered from 1."""
        places = enumerate(snapshot.exchanges, start=1)
        exchanges = [exchange if exchange.number else exchange.with_number(place) for place, exchange in places]
        self.last_number = exchanges[-1].number if exchanges else 0
        self.replace_exchanges(exchanges)
        self.set_state(_WindowState(snapshot.system, snapshot.evicted))

    def _save_for_abort(self, exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            self._exchanges_before.setdefault(exchange.number, exchange)

    def _rebuild_messages(self) -> None:
        """Rebuild the part of `messages` that belongs to closed exchanges."""
        opened = len(self.open_exchange.messages) if self.open_exchange else 0
        self.messages[self.history_start : len(self.messages) - opened] = chain.from_iterable(
            map(_get_messages, self.history)
        )


def trim(contents: Contents, policy: WindowPolicy, in_force: WindowPolicy, counter: TokenCounter) -> None:
    """Trim to the policy in force, keeping the newest exchange. `policy` is the user's own policy."""
    newest = 0 if contents.open_exchange else contents.last_number
    shortened, whole, evicted = _stub_older_rounds(contents, in_force, counter), list[Exchange](), list[Exchange]()
    if contents.tokens > in_force.history_tokens:
        whole = _stub_old_results(contents, in_force, newest, counter)
        evicted = contents.history.select_exchanges_to_evict(contents.tokens, in_force, newest)
    if policy.summarize and evicted:
        passage = build_evicted_summary_input(contents.state.system, (*contents.history, *whole), evicted)
        waiting = join_summary_inputs(contents.state.pending_summary, passage, policy.history_tokens)
        contents.state = contents.state._replace(pending_summary=waiting)
    if shortened or whole or evicted:
        contents.evict(evicted)


def cut_results_to_fit(contents: Contents, exchange: OpenExchange, policy: WindowPolicy, counter: TokenCounter) -> None:
    """Cut tool results of the newest round until the policy in force is met or each has at most 100 tokens.

    Small results are not cut. Cutting counts as a trim.
    """
    room = policy.history_tokens - contents.history.tokens
    places = range(exchange.newest_round_start + 1, len(exchange.messages))
    results = {place: exchange.messages[place] for place in places if exchange.messages[place].role is Role.TOOL}
    tokens = [result.tokens or 0 for result in results.values()]
    most = max(_find_max_item_tokens(tokens, room - exchange.tokens + sum(tokens)), MIN_RESULT_TOKENS)
    cuts: dict[int, Message] = {}
    for place, result in results.items():
        if (result.tokens or 0) > most:
            content, cost = cut_content(result, most, counter)
            if cost < (result.tokens or 0):
                cuts[place] = with_content(result, content, cost)
    if cuts:
        contents.replace_open_messages(exchange, cuts)
        contents.evict(())


def _find_max_item_tokens(tokens: Iterable[int], room: int) -> int:
    """Return the largest size per item with which all items fit. Larger items share the room that small ones leave."""
    larger = sorted(tokens)
    while larger and larger[0] * len(larger) <= room:
        room -= larger.pop(0)
    return room // max(1, len(larger))


def _stub_older_rounds(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> bool:
    """Replace tool results of the open exchange with stubs, oldest round first, down to the low-water mark.

    Rounds that the policy no longer keeps are replaced even below that mark. The newest round is kept. Returns whether
    anything changed. Each round is examined only once, even if this is called often.
    """
    exchange = contents.open_exchange
    if exchange is None:
        return False
    stubs: dict[int, Message] = {}
    tokens, low_water = exchange.tokens, policy.open_low_water_tokens(contents.history.tokens)
    kept_rounds = policy.max_tool_turns if policy.tool_results == "stub" else None
    outdated_rounds = len(exchange.round_starts) - kept_rounds if kept_rounds else 0
    for start, end in pairwise(exchange.round_starts[exchange.stubbed_rounds :]):
        if tokens <= low_water and exchange.stubbed_rounds >= outdated_rounds:
            break
        for place, stub in iter_stubs(exchange.messages, range(start, end), counter):
            stubs[place] = stub
            tokens += (stub.tokens or 0) - (exchange.messages[place].tokens or 0)
        exchange.stubbed_rounds += 1
    contents.replace_open_messages(exchange, stubs)
    return bool(stubs)


def _stub_old_results(contents: Contents, policy: WindowPolicy, newest: int, counter: TokenCounter) -> list[Exchange]:
    """Replace tool results that the policy no longer keeps with stubs. Return the exchanges before that change."""
    if policy.tool_results == "keep":
        return []
    opened = contents.open_exchange
    rounds = (policy.max_tool_turns or 0) - (len(opened.round_starts) if opened else 0)
    older = contents.history.select_exchanges_to_stub(max(0, rounds), 0 if policy.max_tool_turns else newest)
    stubbed = [(exchange, stub_older_rounds(exchange, counter, full_rounds)) for exchange, full_rounds in older]
    changed = [(exchange, after) for exchange, after in stubbed if after != exchange]
    if changed:
        contents.replace_exchanges([after for _, after in changed])
    return [exchange for exchange, _ in changed]
