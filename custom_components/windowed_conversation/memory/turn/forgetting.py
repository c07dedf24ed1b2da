"""Requests to forget, and the deletion of the affected exchanges from windows, the store and working memory.

A model may repeat a fact in any words in any later exchange. So all exchanges since the fact was stated are deleted
from the windows of the person who stated it. Other windows lose only the exchanges that repeat the fact's text or got
it from memory: a family and its automations should not lose their conversations because one person forgets a fact. The
person has to confirm a request that covers everything about a person or more than one fact, or whose speaker is known
only by the device.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
import json
import math
import sqlite3
from typing import Any, NamedTuple

from ...record import list_recorded_people
from ...store import Schema, checksum_sql, delete_values, list_value_owners
from ...turn.context import extract_user_text
from ...turn.routing import WindowKey
from ...window import QUESTION, EvictionCounts, Exchange, Message, Snapshot, is_summary, with_content
from ...window.codecs.snapshot import (
    TABLES_SQL,
    TEXTS,
    StoredConversation,
    delete_conversation,
    delete_orphans,
    list_stored_conversations,
    read_conversation,
    write_conversation,
)
from ..core import (
    KINDS,
    Erasure,
    ExchangeOwner,
    ExchangeText,
    LostRows,
    Memory,
    MemoryKind,
    RecallHit,
    Tombstone,
    clean_text,
    has_time_between,
)
from .near_facts import find_near_facts
from .recall import HEADING, format_source_id
from .remember_requests import MAX_FACTS_NAMED, MemoryReply, ReplyKey, find_matching_facts, say_facts
from .speaker import Speaker, is_about_speaker, is_supported_by

CONVERSATIONS = Schema(TABLES_SQL.format(sum=checksum_sql(TEXTS["exchange"])), TEXTS, mend=delete_orphans)

# A window is identified by its agent and its key, and an exchange by the time and the content of its first message.
type WindowId = tuple[str, str]
type _ExchangeKey = tuple[float | None, str]

# The name of the tool with which a model forgets facts.
FORGET_TOOL_NAME = "forget"

_PAST: tuple[MemoryKind, ...] = ("turn", "summary")

# The maximum number of facts and turns that one sentence may delete.
_MAX_FORGOTTEN_FACTS = 10
_MAX_PAST_MEMORIES = 100

# The minimum number of words in such a request: a single word occurs in too many turns.
_MIN_QUERY_WORDS = 2


class ForgottenExchanges:
    """The exchanges that windows lose when memory is erased. `lost_count_by_window` counts them by window."""

    def __init__(self, erasure: Erasure) -> None:
        self.erasure = erasure
        self.lost_count_by_window: dict[WindowId, int] = {}
        self._texts = {format_source_id(*item): text for item, text in erasure.text_by_source.items()}
        self._decisions_by_window: dict[WindowId, dict[_ExchangeKey, bool]] = {}

    def decide_lost_exchanges(self, place: WindowId, versions: Collection[Snapshot]) -> None:
        """Decide which exchanges a window loses. An exchange that one version of it loses is lost in all."""
        decisions = self._decisions_by_window[place] = {}
        for exchange in chain.from_iterable((*each.pending_exchanges, *each.exchanges) for each in versions):
            decisions[_exchange_key(exchange)] = decisions.get(_exchange_key(exchange), True) and self._is_kept(
                place, exchange
            )
        there = {_exchange_key(exchange) for each in versions for exchange in each.exchanges}
        self.lost_count_by_window[place] = sum(not decisions[key] for key in there)

    def remove_lost(self, place: WindowId, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot without the lost exchanges, or the same snapshot if it loses none."""
        decisions = self._decisions_by_window.get(place, {})

        def is_kept(exchange: Exchange) -> bool:
            # exchanges added after the decision have no entry
            key = _exchange_key(exchange)
            return decisions[key] if key in decisions else self._is_kept(place, exchange)

        if not all(map(is_kept, snapshot.pending_exchanges)):
            snapshot = snapshot._replace(pending_exchanges=())
        people, rest = self.erasure.people, tuple(filter(is_kept, snapshot.exchanges))
        is_in_profile = self.erasure.forgotten.facts and (None in people or WindowKey.parse(place[1]).user in people)
        return _keep_only(snapshot, rest, has_profile=not is_in_profile)

    def forgets_turn(
        self, owner: ExchangeOwner, texts: tuple[str, str], span: tuple[float, float], sources: Collection[str]
    ) -> bool:
        """Return whether a turn loses its texts, the sentence and the answer. `span` is its start and end.

        `sources` are the ids of the memories that it was sent.
        """
        recalled = tuple(self._texts[source] for source in self._texts.keys() & {*sources})
        return not self.erasure.keeps_exchange(ExchangeText(*texts, recalled_texts=recalled), *span, owner)

    def may_have_reached(self, person: str | None, conversation: str | None) -> bool:
        """Return whether the requests of a turn of this person in this conversation may have a forgotten text."""
        if not self.erasure.people.isdisjoint({person, None}) or conversation in self.erasure.conversations:
            return True
        lost = [WindowKey.parse(key).conversation for (_, key), count in self.lost_count_by_window.items() if count]
        return conversation in lost

    def _is_kept(self, place: WindowId, exchange: Exchange) -> bool:
        window = WindowKey.parse(place[1])
        # the stamp has only names and weekdays, and no text of the user
        said, *answers = [extract_user_text(message.content) for message in exchange.messages]
        calls = chain.from_iterable(message.tool_calls for message in exchange.messages)
        answers += [json.dumps(dict(call.arguments), ensure_ascii=False, default=str) for call in calls]
        first, last = exchange.messages[0], exchange.messages[-1]
        text = ExchangeText(
            said,
            "\n".join(answers),
            recalled_texts=tuple(self._texts[source] for source in exchange.sources & self._texts.keys()),
            is_summary=is_summary(exchange),
            is_readable=first.content != QUESTION or last.native is None,
        )
        owner = ExchangeOwner(place[0], window.user, window.conversation)
        return self.erasure.keeps_exchange(text, first.created, _get_end_time(exchange), owner)


class ConversationForgetting:
    """Deletes forgotten exchanges from stored conversations, in the same transaction as the memory deletion.

    Call only from the writer thread.
    """

    def __init__(self) -> None:
        self._live_snapshots: Mapping[WindowId, Snapshot] = {}
        self._losses: list[ForgottenExchanges] = []

    @contextmanager
    def include_live(self, live: Mapping[WindowId, Snapshot]) -> Iterator[list[ForgottenExchanges]]:
        """Include windows in working memory in the decision. Yield a list that `forget` fills with their losses."""
        self._live_snapshots, self._losses = live, []
        try:
            yield self._losses
        finally:
            self._live_snapshots, self._losses = {}, []

    def forget(self, connection: sqlite3.Connection, erasure: Erasure, lost: LostRows, dry_run: bool) -> LostRows:
        """Delete the lost exchanges of stored conversations. Return `lost` with the number of those of all windows."""
        losses = ForgottenExchanges(erasure)
        stored = {(each.agent_id, each.window_key): each for each in list_stored_conversations(connection)}
        for place in stored.keys() | self._live_snapshots.keys():
            contents = read_conversation(connection, *place) if place in stored else None
            losses.decide_lost_exchanges(place, [*filter(None, (contents, self._live_snapshots.get(place)))])
            if contents is not None and not dry_run:
                _apply_losses(connection, stored[place], contents, losses.remove_lost(place, contents))
        if not dry_run:
            self._losses.append(losses)
        return replace(lost, exchange_count=sum(losses.lost_count_by_window.values()))


def _apply_losses(connection: sqlite3.Connection, stored: StoredConversation, before: Snapshot, rest: Snapshot) -> None:
    gone = {each.number for each in before.exchanges}.difference(each.number for each in rest.exchanges)
    if not gone:
        return
    if not rest.exchanges:
        delete_conversation(connection, stored.agent_id, stored.window_key)
        return
    stats = stored.stats._replace(
        exchange_count=len(rest.exchanges),
        message_count=sum([len(each.messages) for each in rest.exchanges]),
        current_tokens=sum([each.tokens for each in rest.exchanges]),
        evicted_exchanges=rest.evicted.exchanges,
        evicted_messages=rest.evicted.messages,
        evicted_tokens=rest.evicted.tokens,
    )
    write_conversation(connection, stored._replace(stats=stats), removed_numbers=gone)


def remove_forget_exchange(snapshot: Snapshot) -> Snapshot:
    """Return the window without its newest exchange with a forget call, which repeats the forgotten text."""
    calls = [[call.name for message in each.messages for call in message.tool_calls] for each in snapshot.exchanges]
    places = [place for place, names in enumerate(calls) if FORGET_TOOL_NAME in names]
    exchanges = snapshot.exchanges
    return snapshot._replace(exchanges=exchanges[: places[-1]] + exchanges[places[-1] + 1 :]) if places else snapshot


class RemovedOwners(NamedTuple):
    """People, agents and accounts that no longer exist but still own data in the store."""

    user_ids: frozenset[str] = frozenset()
    owner_ids: frozenset[str] = frozenset()

    def forget(self, memory: Memory, kinds: Iterable[MemoryKind] = KINDS) -> None:
        """Delete their conversations and stored values, and their entries of these kinds in memory."""
        for person in self.user_ids:
            memory.forget(person=person, kinds=kinds)
        for agent in self.owner_ids:
            memory.forget(agent=agent, kinds=kinds)
        with memory.database.write_transaction() as connection:
            delete_values(connection, self.owner_ids)


def find_removed_owners(
    memory: Memory, *, people: Collection[str], owners: Collection[str], removed: Collection[str]
) -> RemovedOwners:
    """Return the owners in the store that are none of these people and agents; `removed` are removed agents.

    An agent that only memory knows may have come with an import, so its turns stay.
    """
    with memory.database.read_transaction() as connection:
        stored, owners_in_file = list_stored_conversations(connection), list_value_owners(connection)
        recorded = list_recorded_people(connection)
    users = memory.get_owner_ids().union(
        recorded, filter(None, (WindowKey.parse(each.window_key).user for each in stored))
    )
    agents = owners_in_file.union((each.agent_id for each in stored), removed)
    return RemovedOwners(frozenset(users.difference(people)), frozenset(agents.difference(owners)))


def forget_all_but_memory(memory: Memory) -> None:
    """Delete all conversations and stored values."""
    removed = find_removed_owners(memory, people=(), owners=(), removed=())
    removed._replace(user_ids=frozenset()).forget(memory, kinds=())


def remove_forgotten(snapshot: Snapshot, tombstones: Collection[Tombstone]) -> Snapshot:
    """Return the part of an older copy of a window that may stay, or the same snapshot if all of it may.

    A tombstone has no text, only the time at which the forgotten item was created. All exchanges are removed from the
    first one that was in progress at that time or that names the item as a source. A summary is removed if anything
    older was forgotten, because the times of the exchanges that it replaces are unknown.
    """
    if tombstones and (system := remove_profile(snapshot.system)) is not snapshot.system:
        snapshot = snapshot._replace(system=system)
    sources = frozenset(format_source_id(each.kind, each.id) for each in tombstones)
    times = sorted(each.time for each in tombstones)
    first = next((_get_end_time(each) for each in snapshot.exchanges if _may_cover_time(each, times)), math.inf)
    rest = takewhile(
        lambda each: (first == math.inf or _get_end_time(each) < first) and sources.isdisjoint(each.sources),
        snapshot.exchanges,
    )
    return _keep_only(snapshot, tuple(rest), has_profile=True)


def _keep_only(snapshot: Snapshot, rest: tuple[Exchange, ...], *, has_profile: bool) -> Snapshot:
    """Return the window with only the remaining exchanges.

    The window keeps its profile only if all exchanges remain and `has_profile` is true.
    """
    is_whole, evicted = len(rest) == len(snapshot.exchanges), snapshot.evicted
    system = snapshot.system if has_profile and is_whole else remove_profile(snapshot.system)
    if is_whole:
        return snapshot if system is snapshot.system else snapshot._replace(system=system)
    ids = {id(each) for each in rest}
    lost = [each for each in snapshot.exchanges if id(each) not in ids]
    evicted = EvictionCounts(
        evicted.exchanges + len(lost),
        evicted.messages + sum([len(each.messages) for each in lost]),
        evicted.tokens + sum([each.tokens for each in lost]),
        evicted.trims,
    )
    return snapshot._replace(system=system, exchanges=rest, evicted=evicted)


def _may_cover_time(exchange: Exchange, times: Sequence[float]) -> bool:
    """Return whether an exchange may cover one of the sorted times. A summary may cover any time before it."""
    start = -math.inf if is_summary(exchange) else exchange.messages[0].created
    return start is not None and has_time_between(times, start, _get_end_time(exchange))


def _get_end_time(exchange: Exchange) -> float:
    created = exchange.messages[-1].created
    return math.inf if created is None else created


def _exchange_key(exchange: Exchange) -> _ExchangeKey:
    return exchange.messages[0].created, exchange.messages[0].content


def remove_profile(system: Message | None) -> Message | None:
    """Return the system message without the profile, which may contain forgotten facts.

    Its token count is scaled in proportion to the text, until a turn sets the next system message.
    """
    if system is None or HEADING not in system.content:
        return system
    content = system.content.partition(HEADING)[0].rstrip()
    return with_content(system, content, (system.tokens or 0) * len(content) // len(system.content))


def forget_fact(
    memory: Memory, speaker: Speaker, query: str, is_meant: Callable[[RecallHit | None], bool] = lambda _: True
) -> MemoryReply:
    """Forget the single fact that matches, or else the turns with the text. If several match, only list them.

    `is_meant` returns whether the speaker certainly means a fact, or past turns, for None. Otherwise they are asked.
    """
    meant = find_matching_facts(memory, speaker, query)
    if len({clean_text(fact.text) for fact in meant}) > 1:
        some = meant[:MAX_FACTS_NAMED]
        # only who asked may choose one of them
        named = tuple(fact.id for fact in some if is_meant(None))
        return MemoryReply(ReplyKey.SEVERAL_FOUND, say_facts(memory, some, speaker.language), named_fact_ids=named)
    if not meant:
        words, near = speaker.build_words(), _ask_about_near_facts(memory, speaker, query)
        is_short = len(words.search_terms(query).words) < _MIN_QUERY_WORDS
        if near or is_short or not is_supported_by(query, speaker.text, None, words):
            return near or MemoryReply(ReplyKey.NOT_FOUND)
        return _forget_matches(memory, speaker, query, _PAST, is_meant=is_meant(None))
    ids, said = [("fact", fact.id) for fact in meant], say_facts(memory, meant[:1], speaker.language)
    forget = partial(_forget_facts, phrase=ReplyKey.FORGOTTEN, named=said, ids=ids, person=speaker.person)
    if speaker.is_known_by_device or len(meant) > 1 or not is_meant(meant[0]):
        return MemoryReply(ReplyKey.ASK_TO_FORGET_FACT, said, on_yes=forget)
    return forget(memory)


def ask_to_forget_thing(memory: Memory, speaker: Speaker, query: str) -> MemoryReply:
    """Ask whether to forget the fact that names a thing. Nothing is forgotten at once, and no turn."""
    if find_matching_facts(memory, speaker, query):
        return forget_fact(memory, speaker, query, lambda row: row is None)
    return _ask_about_near_facts(memory, speaker, query) or MemoryReply(ReplyKey.NOT_FOUND)


def ask_to_forget_named(memory: Memory, speaker: Speaker, named: Collection[int]) -> MemoryReply | None:
    """Ask whether to forget the fact that memory named last. Return None if it named none or several."""
    facts = [fact for fact in memory.get_facts(speaker.person, private=speaker.is_alone) if fact.id in named]
    if len(facts) != 1:
        return None
    said = say_facts(memory, facts, speaker.language)
    ids = [("fact", facts[0].id)]
    forget = partial(_forget_facts, phrase=ReplyKey.FORGOTTEN, named=said, ids=ids, person=speaker.person)
    return MemoryReply(ReplyKey.ASK_TO_FORGET_FACT, said, on_yes=forget)


def _ask_about_near_facts(memory: Memory, speaker: Speaker, query: str) -> MemoryReply | None:
    """Return the question whether the fact with words like those of a query is meant, or None if there is none."""
    near = find_near_facts(query, memory.get_facts(speaker.person, private=speaker.is_alone))
    some = near[:MAX_FACTS_NAMED]
    named, ids = say_facts(memory, some, speaker.language), [("fact", fact.id) for fact in some]
    if len(near) > 1:
        return MemoryReply(ReplyKey.SEVERAL_FOUND, named, named_fact_ids=tuple(row for _, row in ids))
    forget = partial(_forget_facts, phrase=ReplyKey.FORGOTTEN, named=named, ids=ids, person=speaker.person)
    return MemoryReply(ReplyKey.ASK_IF_MEANT, named, on_yes=forget) if near else None


def forget_everything(memory: Memory, speaker: Speaker, query: str) -> MemoryReply:
    """Forget everything that contains all words of a query. For "me", forget everything that the speaker owns."""
    if is_about_speaker(query, speaker.language) and not speaker.build_words().search_terms(query).words:
        return _ask_to_forget_person(memory, speaker)
    return _forget_matches(memory, speaker, query, KINDS, is_meant=True)


def _ask_to_forget_person(memory: Memory, speaker: Speaker) -> MemoryReply:
    if speaker.person is None:
        return MemoryReply(ReplyKey.UNKNOWN_SPEAKER)
    own = sum(fact.person is not None for fact in memory.get_facts(speaker.person))
    counts = _count_losses(own, memory.forget(person=speaker.person, dry_run=True))
    forget = partial(_forget_facts, phrase=ReplyKey.FORGOTTEN_PERSON, person=speaker.person)
    return MemoryReply(ReplyKey.CONFIRM_ALL, counts=counts, on_yes=forget) if any(counts) else forget(memory)


def _forget_matches(
    memory: Memory, speaker: Speaker, query: str, kinds: tuple[MemoryKind, ...], *, is_meant: bool
) -> MemoryReply:
    """Forget the memories of these kinds, and the exchanges, that contain the words, if they belong to the speaker."""
    selected = memory.forget(query=query, person=speaker.person, kinds=kinds, dry_run=True)
    # a suggestion goes with its turn, and is no fact yet
    facts = selected.facts if "fact" in kinds else ()
    if "fact" in kinds and not facts and (near := _ask_about_near_facts(memory, speaker, query)):
        return near
    if not selected.has_matches:
        return MemoryReply(ReplyKey.NOT_FOUND)
    if len(facts) > _MAX_FORGOTTEN_FACTS or len(selected.turns) + len(selected.summaries) > _MAX_PAST_MEMORIES:
        return MemoryReply(ReplyKey.TOO_MUCH)
    found = [fact for fact in memory.get_facts(speaker.person) if fact.id in facts]
    # others share this window, so private facts are forgotten but not read out
    named = say_facts(memory, [fact for fact in found if speaker.is_alone or not fact.private], speaker.language)
    phrase = ReplyKey.FORGOTTEN if named else ReplyKey.FORGOTTEN_PAST
    forget = partial(_forget_facts, phrase=phrase, named=named, query=query, person=speaker.person, kinds=kinds)
    if speaker.is_known_by_device or len(found) > 1 or not is_meant:
        return MemoryReply(ReplyKey.ASK_TO_FORGET, counts=_count_losses(len(found), selected), on_yes=forget)
    return forget(memory)


def _forget_facts(memory: Memory, *, phrase: ReplyKey, named: tuple[str, ...] = (), **conditions: Any) -> MemoryReply:
    return MemoryReply(phrase, named, forgotten_rows=memory.forget(**conditions))


def _count_losses(facts: int, preview: LostRows) -> tuple[int, int]:
    """Return the numbers of facts and turns that a person would lose. Most exchanges are also turns in memory."""
    return facts, max(len(preview.turns), preview.exchange_count, len(preview.records))
