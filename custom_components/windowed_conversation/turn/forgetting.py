"""The exchanges that forgetting takes out of a window.

A model may repeat what it was told in any words, in any later exchange, and others reach it besides memory: tools,
fallback agents, imports. So the exchanges that go are not searched for one by one. All go from the first that was not
over when the oldest of what was forgotten came to be: those before it cannot hold it. Where somebody said it
before it was remembered, all go from the first that has most of its words.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
import json
import math
from typing import Self

from ..memory import Forgotten, Repetitions, Tombstone
from ..window import QUESTION, Exchange, Message, Snapshot, is_summary, rewritten
from .context import said_in
from .narration import key_of
from .profile import HEADING
from .scope import WindowKey


@dataclass(frozen=True, slots=True)
class Erasure:
    """What to remove from windows after forgetting: everything since `since`, and all that names one of the `sources`.

    It may have entered the windows of `people`, or all windows if None is among them, and was said in `conversations`.
    `repeated` has for each window, by its key, the time when something was said that repeats it.
    """

    since: float
    people: frozenset[str | None]
    conversations: frozenset[str]
    sources: frozenset[str]
    repeated: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, forgotten: Forgotten) -> Self:
        """Return the exchanges to remove from windows along with what was forgotten."""
        sources = frozenset(key_of(kind, row) for kind, ids in forgotten.ids.items() for row in ids)
        return cls(forgotten.since, forgotten.people, forgotten.conversations, sources)

    def rest(self, key: str, snapshot: Snapshot) -> Snapshot:
        """Return the part of a window that may stay, the same snapshot if all of it may."""
        since = min(self.repeated.get(key, math.inf), self.since if self._reaches(key) else math.inf)
        first = self._first(snapshot.exchanges, since)
        system = snapshot.system if since == math.inf else without_profile(snapshot.system)
        if first == len(snapshot.exchanges):
            return snapshot if system is snapshot.system else snapshot._replace(system=system)
        removed = snapshot.exchanges[first:]
        evicted = snapshot.evicted
        return snapshot._replace(
            system=without_profile(snapshot.system),
            exchanges=snapshot.exchanges[:first],
            evicted=evicted._replace(
                exchanges=evicted.exchanges + len(removed),
                messages=evicted.messages + sum(len(exchange.messages) for exchange in removed),
                tokens=evicted.tokens + sum(exchange.tokens for exchange in removed),
            ),
        )

    def _reaches(self, key: str) -> bool:
        """Return whether it may have entered a window: what is private enters the windows of its owner only."""
        window = WindowKey.parse(key)
        is_theirs = window.user is not None and window.user in self.people
        return is_theirs or None in self.people or window.conversation in self.conversations

    def _first(self, exchanges: tuple[Exchange, ...], since: float) -> int:
        for place, exchange in enumerate(exchanges):
            if (since < math.inf and _end(exchange) >= since) or not self.sources.isdisjoint(exchange.sources):
                return place
        return len(exchanges)

    def repeated_at(self, key: str, snapshot: Snapshot, repetitions: Repetitions) -> float | None:
        """Return when a window first had a text that repeats it, or that nobody can read, or None if it has none."""
        for exchange in snapshot.exchanges:
            if (self._reaches(key) and _is_opaque(exchange)) or repetitions.are_in(_text(exchange)):
                return exchange.messages[-1].created or -math.inf
        return None


class Search:
    """Also finds repetitions of what was forgotten, which takes time. Not thread-safe."""

    def __init__(self, erasure: Erasure, languages: tuple[str, ...], told: Iterable[str]) -> None:
        self._erasure = erasure
        self._repetitions = Repetitions(languages, told)

    def rest(self, key: str, snapshot: Snapshot) -> Snapshot:
        """Return the part of a window that may stay, the same snapshot if all of it may."""
        return replace(self._erasure, repeated=self.repeated({key: snapshot})).rest(key, snapshot)

    def repeated(self, windows: Mapping[str, Snapshot]) -> dict[str, float]:
        """Return when each of the windows first had a text that repeats it, if it has any."""
        times = {key: self._erasure.repeated_at(key, each, self._repetitions) for key, each in windows.items()}
        return {key: at for key, at in times.items() if at is not None}


def without_forgotten(key: str, snapshot: Snapshot, tombstones: Collection[Tombstone]) -> Snapshot:
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
    return Erasure(math.inf, frozenset(), frozenset(), sources, {key: first}).rest(key, snapshot)


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
