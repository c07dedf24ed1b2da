"""Forgetting in the windows on conversations, in the store and in working memory.

A model may repeat a fact in any words, in any later exchange. So all exchanges since then leave the windows of the
person who told it. Other windows lose only the exchanges that repeat the words, or have them from memory: a family and
its automations should not lose their conversations because somebody forgets a fact.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
import json
import math
from operator import attrgetter
import sqlite3
from typing import NamedTuple

from ..memory import KINDS, Forgotten, Kind, Memory, Repetitions, Selection, Tombstone
from ..store import Room, check_sum, delete_values, owners_of_values
from ..window import QUESTION, EvictionCounts, Exchange, Message, Snapshot, is_summary, with_content
from ..window.codecs.rows import (
    TABLES,
    TEXTS,
    ConversationChange,
    StoredConversation,
    delete_conversation,
    delete_orphans,
    read_conversation,
    stored_conversations,
    write_change,
)
from .context import said_in
from .forget_requests import FORGET_TOOL
from .narration import key_of
from .profile import HEADING
from .scope import WindowKey

CONVERSATIONS = Room(TABLES.format(sum=check_sum(TEXTS["exchange"])), TEXTS, mend=delete_orphans)

# A window by its agent and its key, and an exchange by when it began and with what.
type Place = tuple[str, str]
type _Key = tuple[float | None, str]

_tokens = attrgetter("tokens")


def _messages(exchange: Exchange) -> int:
    return len(exchange.messages)


@dataclass(frozen=True, slots=True)
class Erasure:
    """The decision on each exchange after forgetting, by the selection behind it.

    `told` finds what repeats it, `asked` what repeats the query, and `lent` are its texts by their names as sources.
    `goes` has for each window which of its exchanges go, and `lost` how many it has lost.
    """

    forgotten: Forgotten
    selection: Selection
    told: Repetitions
    asked: Repetitions
    lent: Mapping[str, str]
    goes: dict[Place, dict[_Key, bool]] = field(default_factory=dict)
    lost: dict[Place, int] = field(default_factory=dict)

    def judge(self, place: Place, versions: Collection[Snapshot]) -> None:
        """Decide which exchanges of a window go. What goes in one version of it goes in all of them."""
        goes = self.goes[place] = {}
        for exchange in chain.from_iterable((*each.pending_exchanges, *each.exchanges) for each in versions):
            goes[_key(exchange)] = goes.get(_key(exchange)) or self._takes(place, exchange)
        there = {_key(exchange) for each in versions for exchange in each.exchanges}
        self.lost[place] = sum(map(goes.__getitem__, there))

    def rest(self, place: Place, snapshot: Snapshot) -> Snapshot:
        """Return the part of a window that may stay, the same snapshot if all of it may."""
        goes = self.goes.get(place, {})

        def stays(exchange: Exchange) -> bool:
            # not known is what was said since the windows were looked at
            key = _key(exchange)
            return not (goes[key] if key in goes else self._takes(place, exchange))

        if not all(map(stays, snapshot.pending_exchanges)):
            snapshot = snapshot._replace(pending_exchanges=())
        rest = tuple(filter(stays, snapshot.exchanges))
        return _with_rest(snapshot, rest, has_profile=not self._is_in_profile(place))

    def _takes(self, place: Place, exchange: Exchange) -> bool:
        """Return whether an exchange of a window goes."""
        if self.selection.agent is not None:
            # what an agent that is gone was told stays where others know it
            return self.selection.agent == place[0]
        window = WindowKey.parse(place[1])
        return self._is_since(window, exchange) or self._has_words(window, exchange)

    def _is_since(self, window: WindowKey, exchange: Exchange) -> bool:
        """Return whether an exchange may have it in any words: by its time, or because nobody can read it."""
        since = self.forgotten.since.get(window.user or "")
        if _is_opaque(exchange) and (since is not None or window.conversation in self.forgotten.conversations):
            return True
        if since is not None and _end(exchange) >= since:
            return True
        if not is_summary(exchange) and _may_hold(exchange, self.forgotten.moments.get(window.conversation, ())):
            return True
        return self._is_owned(window) and self._is_in_span(exchange)

    def _has_words(self, window: WindowKey, exchange: Exchange) -> bool:
        """Return whether an exchange repeats the words, or has some of them from memory."""
        said, *answers = _texts(exchange)
        text = "\n".join((said, *answers))
        if self.told.are_in(text) or (self._may_ask(window) and self.asked.are_in(text)):
            return True
        lent = (self.lent[source] for source in exchange.sources & self.lent.keys())
        return any(self.told.lend(each, said, "\n".join(answers)) for each in lent)

    def _may_ask(self, window: WindowKey) -> bool:
        """Return whether who forgets may change a window in which the words of the query are."""
        person = self.selection.person
        return person is ... or window.user in {None, person}

    def _is_in_profile(self, place: Place) -> bool:
        """Return whether the system prompt of a window may have what is forgotten."""
        people = self.forgotten.people
        return bool(self.forgotten.facts) and (None in people or WindowKey.parse(place[1]).user in people)

    def _is_owned(self, window: WindowKey) -> bool:
        """Return whether a window belongs to the person that everything is forgotten of."""
        selection = self.selection
        if selection.is_named or "turn" not in selection.kinds:
            return False
        return selection.person is ... or (window.user is not None and window.user == selection.person)

    def _is_in_span(self, exchange: Exchange) -> bool:
        since, before = self.selection.since, self.selection.before
        is_recent = since is None or _end(exchange) >= since
        return is_recent and (before is None or (exchange.messages[0].created or -math.inf) < before)


class ConversationForgetting:
    """Forgets in conversations what memory forgets, in the same transaction. For the thread that writes.

    Implements `Companion`.
    """

    def __init__(self, languages: tuple[str, ...]) -> None:
        self._languages = languages
        self._live: Mapping[Place, Snapshot] = {}
        self._erasures: list[Erasure] = []

    @contextmanager
    def beside(self, live: Mapping[Place, Snapshot]) -> Iterator[list[Erasure]]:
        """Also look at windows in working memory. Yield a list of what is to be removed from them, filled meanwhile."""
        self._live, self._erasures = live, []
        try:
            yield self._erasures
        finally:
            self._live, self._erasures = {}, []

    def forget(
        self, connection: sqlite3.Connection, forgotten: Forgotten, selection: Selection, *, dry_run: bool
    ) -> int:
        """Delete what is to be forgotten from stored conversations, and return how many exchanges are concerned."""
        told, asked = (Repetitions(self._languages, each) for each in (forgotten.told, [selection.query or ""]))
        lent = {key_of(*item): text for item, text in forgotten.texts.items()}
        erasure = Erasure(forgotten, selection, told, asked, lent)
        stored = {(each.agent, each.key): each for each in stored_conversations(connection)}
        for place in stored.keys() | self._live.keys():
            contents = read_conversation(connection, *place) if place in stored else None
            erasure.judge(place, [*filter(None, (contents, self._live.get(place)))])
            if contents is not None and not dry_run:
                _write(connection, stored[place], contents, erasure.rest(place, contents))
        if not dry_run:
            self._erasures.append(erasure)
        return sum(erasure.lost.values())


def _write(connection: sqlite3.Connection, stored: StoredConversation, before: Snapshot, rest: Snapshot) -> None:
    gone = {each.number for each in before.exchanges}.difference(each.number for each in rest.exchanges)
    if not gone:
        return
    if not rest.exchanges:
        delete_conversation(connection, stored.agent, stored.key)
        return
    stats = stored.stats._replace(
        exchange_count=len(rest.exchanges),
        message_count=_sum(_messages, rest.exchanges),
        current_tokens=_sum(_tokens, rest.exchanges),
        evicted_exchanges=rest.evicted.exchanges,
        evicted_messages=rest.evicted.messages,
        evicted_tokens=rest.evicted.tokens,
    )
    write_change(connection, ConversationChange(stored.agent, stored.key, stored.used, stats, removed=gone))


def without_forgetting(snapshot: Snapshot) -> Snapshot:
    """Return a window without its newest exchange if a model has forgotten something in it, as it has those words."""
    messages = chain.from_iterable(exchange.messages for exchange in snapshot.exchanges[-1:])
    is_forgetting = any(call.name == FORGET_TOOL for message in messages for call in message.tool_calls)
    return snapshot._replace(exchanges=snapshot.exchanges[:-1]) if is_forgetting else snapshot


class Gone(NamedTuple):
    """People, and agents and accounts, that own something in the store and are not there any more."""

    people: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()

    def forget(self, memory: Memory, kinds: Iterable[Kind] = KINDS) -> None:
        """Forget what they own: conversations, values, and these kinds in memory."""
        for person in self.people:
            memory.forget(person=person, kinds=kinds)
        for agent in self.owners:
            memory.forget(agent=agent, kinds=kinds)
        with memory.database.write() as connection:
            delete_values(connection, self.owners)


def find_gone(memory: Memory, *, people: Collection[str], owners: Collection[str], removed: Collection[str]) -> Gone:
    """Return the people and agents that are none of these; `removed` are agents of that kind.

    An agent that only memory knows may have come with an import, and its turns stay.
    """
    with memory.database.read() as connection:
        stored, known = stored_conversations(connection), owners_of_values(connection)
    users = memory.people().union(filter(None, (WindowKey.parse(each.key).user for each in stored)))
    agents = known.union((each.agent for each in stored), removed)
    return Gone(frozenset(users.difference(people)), frozenset(agents.difference(owners)))


def forget_all_but_memory(memory: Memory) -> None:
    """Forget all conversations and values."""
    gone = find_gone(memory, people=(), owners=(), removed=())
    gone._replace(people=frozenset()).forget(memory, kinds=())


def without_forgotten(snapshot: Snapshot, tombstones: Collection[Tombstone]) -> Snapshot:
    """Return the part of an older copy of a window that may stay, the same snapshot if all of it may.

    A tombstone has no words, only the time at which the forgotten item came into being. All exchanges are removed from
    the first one that was in progress at that time or names the item as a source. A summary is removed if anything
    older was forgotten, because nobody knows when the exchanges that it stands for were said.
    """
    if tombstones and (system := without_profile(snapshot.system)) is not snapshot.system:
        snapshot = snapshot._replace(system=system)
    sources = frozenset(key_of(each.kind, each.id) for each in tombstones)
    times = sorted(each.at for each in tombstones)
    first = next((_end(each) for each in snapshot.exchanges if _may_hold(each, times)), math.inf)
    return _with_rest(snapshot, snapshot.exchanges[: _first(snapshot.exchanges, first, sources)], has_profile=True)


def _first(exchanges: tuple[Exchange, ...], since: float, sources: frozenset[str]) -> int:
    """Return the place of the first exchange that ended since a time, or for which one of the sources was recalled."""
    for place, exchange in enumerate(exchanges):
        if (since < math.inf and _end(exchange) >= since) or not sources.isdisjoint(exchange.sources):
            return place
    return len(exchanges)


def _with_rest(snapshot: Snapshot, rest: tuple[Exchange, ...], *, has_profile: bool) -> Snapshot:
    """Return a window with the exchanges that stay. It keeps its profile only if all of them do, and `has_profile`."""
    gone, evicted = len(snapshot.exchanges) - len(rest), snapshot.evicted
    system = snapshot.system if has_profile and not gone else without_profile(snapshot.system)
    if not gone:
        return snapshot if system is snapshot.system else snapshot._replace(system=system)
    messages, tokens = (_sum(each, snapshot.exchanges) - _sum(each, rest) for each in (_messages, _tokens))
    evicted = EvictionCounts(
        evicted.exchanges + gone, evicted.messages + messages, evicted.tokens + tokens, evicted.trims
    )
    return snapshot._replace(system=system, exchanges=rest, evicted=evicted)


def _sum(figure: Callable[[Exchange], int], exchanges: tuple[Exchange, ...]) -> int:
    return sum(map(figure, exchanges))


def _may_hold(exchange: Exchange, times: Sequence[float]) -> bool:
    """Return whether one of these times, in order, is one of an exchange. A summary may be about any time before it."""
    start = -math.inf if is_summary(exchange) else exchange.messages[0].created
    if start is None:
        return False
    place = bisect_left(times, start)
    return place < len(times) and times[place] <= _end(exchange)


def _end(exchange: Exchange) -> float:
    created = exchange.messages[-1].created
    return math.inf if created is None else created


def _key(exchange: Exchange) -> _Key:
    return exchange.messages[0].created, exchange.messages[0].content


def _is_opaque(exchange: Exchange) -> bool:
    """Return whether it is a summary that only its provider reads."""
    return exchange.messages[0].content == QUESTION and exchange.messages[-1].native is not None


def _texts(exchange: Exchange) -> Iterator[str]:
    """Yield the texts of an exchange: first those of its messages, then the arguments of its tool calls."""
    # a stamp has names and weekdays, and nothing that was said
    yield from (said_in(message.content) for message in exchange.messages)
    for call in chain.from_iterable(message.tool_calls for message in exchange.messages):
        yield json.dumps(dict(call.arguments), ensure_ascii=False, default=str)


def without_profile(system: Message | None) -> Message | None:
    """Return a system message without the profile, which may have what was forgotten.

    Its tokens are in proportion until a turn sets the next one.
    """
    if system is None or HEADING not in system.content:
        return system
    content = system.content.partition(HEADING)[0].rstrip()
    return with_content(system, content, (system.tokens or 0) * len(content) // len(system.content))
