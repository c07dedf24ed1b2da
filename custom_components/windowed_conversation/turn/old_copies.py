"""What may stay of an older copy of a window, such as an export, after something was forgotten."""

from collections.abc import Collection
import math

from ..memory import Tombstone
from ..window import Exchange, Snapshot, is_summary
from .forgetting import Erasure, without_profile
from .narration import key_of


def without_forgotten(key: str, snapshot: Snapshot, tombstones: Collection[Tombstone]) -> Snapshot:
    """Return what may stay of an older copy of a window, or the same snapshot if all of it may.

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
