"""What forgetting takes out of the windows on conversations, in the store and in working memory.

A model may repeat what it was told in any words, in any later exchange, and others reach it besides memory: tools,
fallback agents, imports. So the exchanges that go are not searched for one by one. All go from the first that was not
over when the oldest of what was forgotten came to be: those before it cannot hold it. Where somebody said it
before it was remembered, or memory never had it, all go from the first that has most of its words.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
import json
import math
from operator import attrgetter
import sqlite3
from typing import NamedTuple

from ..memory import Forgotten, Memory, Repetitions, Selection, Tombstone
from ..store import Room, check_sum, delete_values, owners_of_values
from ..window import QUESTION, Evicted, Exchange, Message, Snapshot, is_summary, rewritten
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
from .narration import key_of
from .profile import HEADING
from .remembering import FORGET_TOOL
from .scope import WindowKey

CONVERSATIONS = Room(TABLES.format(sum=check_sum(TEXTS["exchange"])), TEXTS, mend=delete_orphans)

# A window by its agent and its key.
type Place = tuple[str, str]

_tokens = attrgetter("tokens")


def _messages(exchange: Exchange) -> int:
    return len(exchange.messages)


@dataclass(frozen=True, slots=True)
class Erasure:
    """What to remove from windows after forgetting, and what was selected for that.

    `repeated` has for each window the time when something was said that repeats it.
    """

    forgotten: Forgotten
    selection: Selection
    repeated: Mapping[Place, float] = field(default_factory=dict)

    def rest(self, place: Place, snapshot: Snapshot) -> Snapshot:
        """Return the part of a window that may stay, the same snapshot if all of it may."""
        if (agent := self.selection.agent) is not None:
            # what an agent that is gone was told stays where others know it
            return _with_rest(snapshot, () if agent == place[0] else snapshot.exchanges, has_profile=True)
        since = min(self.repeated.get(place, math.inf), self.forgotten.since if self.reaches(place) else math.inf)
        sources = frozenset(key_of(kind, row) for kind, ids in self.forgotten.ids.items() for row in ids)
        rest = snapshot.exchanges[: _first(snapshot.exchanges, since, sources)]
        if self._is_owned(place):
            rest = tuple(exchange for exchange in rest if not self._is_in_span(exchange))
        return _with_rest(snapshot, rest, has_profile=since == math.inf)

    def reaches(self, place: Place) -> bool:
        """Return whether it may have entered a window: what is private enters the windows of its owner only."""
        window, people = WindowKey.parse(place[1]), self.forgotten.people
        is_theirs = window.user is not None and window.user in people
        return is_theirs or None in people or window.conversation in self.forgotten.conversations

    def may_change(self, place: Place) -> bool:
        """Return whether who forgets may change a window in which only the words are: memory says whose they are."""
        person = self.selection.person
        return self.forgotten.has_any or person is ... or WindowKey.parse(place[1]).user in {None, person}

    def _is_owned(self, place: Place) -> bool:
        """Return whether a window belongs to the person that everything is forgotten of."""
        selection = self.selection
        if selection.is_named or "turn" not in selection.kinds:
            return False
        user = WindowKey.parse(place[1]).user
        return selection.person is ... or (user is not None and user == selection.person)

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
        repetitions, erasure = Repetitions(self._languages, forgotten.told), Erasure(forgotten, selection)
        gone, repeated = 0, dict[Place, float]()
        stored = {(each.agent, each.key): each for each in stored_conversations(connection)}
        for place in stored.keys() | self._live.keys():
            contents = read_conversation(connection, *place) if place in stored else None
            said = set[tuple[float | None, str]]()
            for before in filter(None, (contents, self._live.get(place))):
                repeated_at = _repeated_at(erasure, place, before, repetitions)
                # what was said before the contents were read is newer than they are
                repeated[place] = min(repeated_at, repeated.get(place, math.inf))
                rest = replace(erasure, repeated=repeated).rest(place, before)
                kept = {id(exchange) for exchange in rest.exchanges}
                lost = [exchange for exchange in before.exchanges if id(exchange) not in kept]
                if before is contents and lost and not dry_run:
                    _write(connection, stored[place], rest, {exchange.number for exchange in lost})
                # most are both stored and in working memory
                said |= {(exchange.messages[0].created, exchange.messages[0].content) for exchange in lost}
            gone += len(said)
        if not dry_run:
            self._erasures.append(replace(erasure, repeated=repeated))
        return gone


def _write(connection: sqlite3.Connection, stored: StoredConversation, rest: Snapshot, gone: Collection[int]) -> None:
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


def _repeated_at(erasure: Erasure, place: Place, snapshot: Snapshot, repetitions: Repetitions) -> float:
    """Return when a window first had a text that repeats it, or that nobody can read, or infinity if it has none."""
    if erasure.may_change(place):
        for exchange in snapshot.exchanges:
            if (erasure.reaches(place) and _is_opaque(exchange)) or repetitions.are_in(_text(exchange)):
                return exchange.messages[-1].created or -math.inf
    return math.inf


def without_forgetting(snapshot: Snapshot) -> Snapshot:
    """Return a window without its newest exchange if a model has forgotten something in it, as it has those words."""
    messages = chain.from_iterable(exchange.messages for exchange in snapshot.exchanges[-1:])
    is_forgetting = any(call.name == FORGET_TOOL for message in messages for call in message.tool_calls)
    return snapshot._replace(exchanges=snapshot.exchanges[:-1]) if is_forgetting else snapshot


class Gone(NamedTuple):
    """People, and agents and accounts, that own something in the store and are not there any more."""

    people: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()

    def forget(self, memory: Memory) -> None:
        """Forget what they own."""
        for person in self.people:
            memory.forget(person=person)
        for agent in self.owners:
            memory.forget(agent=agent)
        with memory.database.write() as connection:
            delete_values(connection, self.owners)


def find_gone(memory: Memory, *, people: Collection[str], owners: Collection[str], removed: Collection[str]) -> Gone:
    """Return who is none of these; `removed` are agents of that kind.

    An agent that only memory knows may have come with an import, and its turns stay.
    """
    with memory.database.read() as connection:
        stored, known = stored_conversations(connection), owners_of_values(connection)
    users = memory.people().union(filter(None, (WindowKey.parse(each.key).user for each in stored)))
    agents = known.union((each.agent for each in stored), removed)
    return Gone(frozenset(users.difference(people)), frozenset(agents.difference(owners)))


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
    evicted = Evicted(evicted.exchanges + gone, evicted.messages + messages, evicted.tokens + tokens, evicted.trims)
    return snapshot._replace(system=system, exchanges=rest, evicted=evicted)


def _sum(figure: Callable[[Exchange], int], exchanges: tuple[Exchange, ...]) -> int:
    return sum(map(figure, exchanges))


def _may_hold(exchange: Exchange, times: list[float]) -> bool:
    start = -math.inf if is_summary(exchange) else exchange.messages[0].created
    return start is not None and any(start <= at <= _end(exchange) for at in times)


def _end(exchange: Exchange) -> float:
    created = exchange.messages[-1].created
    return math.inf if created is None else created


def _is_opaque(exchange: Exchange) -> bool:
    """Return whether it is a summary that only its provider reads."""
    return exchange.messages[0].content == QUESTION and exchange.messages[-1].native is not None


def _text(exchange: Exchange) -> str:
    # a stamp has names and weekdays, and nothing that was said
    said = (said_in(message.content) for message in exchange.messages)
    calls = (call.arguments for message in exchange.messages for call in message.tool_calls)
    return "\n".join((*said, *(json.dumps(dict(arguments), ensure_ascii=False, default=str) for arguments in calls)))


def without_profile(system: Message | None) -> Message | None:
    """Return a system message without the profile, which may have what was forgotten.

    Its tokens are in proportion until a turn sets the next one.
    """
    if system is None or HEADING not in system.content:
        return system
    content = system.content.partition(HEADING)[0].rstrip()
    return rewritten(system, content, (system.tokens or 0) * len(content) // len(system.content))
