"""The part of an older copy of a window that may stay after something was forgotten."""

from collections.abc import Iterable

from custom_components.windowed_conversation.memory import Tombstone
from custom_components.windowed_conversation.turn.forgetting import without_forgotten
from custom_components.windowed_conversation.window import Exchange, Message, Snapshot
from custom_components.windowed_conversation.window.tags import SUMMARY


def exchange(at: float | None, *, sources: Iterable[str] = (), tags: frozenset[str] = frozenset()) -> Exchange:
    """Return an exchange that took two seconds."""
    question = Message.user(f"at {at}", created=at, tags=tags)
    answer = Message.assistant("hi", created=None if at is None else at + 2)
    return Exchange((question, answer), frozenset(), tokens=10, sources=frozenset(sources))


def left(exchanges: list[Exchange], *tombstones: Tombstone) -> list[str]:
    """Return the words in a copy with these exchanges after something was forgotten."""
    rest = without_forgotten(Snapshot("mine", None, tuple(exchanges)), tombstones)
    return [each.messages[0].content for each in rest.exchanges]


def test_all_goes_from_the_exchange_in_which_it_came_to_be() -> None:
    exchanges = [exchange(at) for at in (10.0, 20.0, 30.0)]

    assert left(exchanges, Tombstone("turn", 3, 22.0)) == ["at 10.0"]
    assert left(exchanges, Tombstone("fact", 3, 20.0)) == ["at 10.0"]


def test_what_was_forgotten_of_another_time_takes_nothing_along() -> None:
    snapshot = Snapshot("mine", None, (exchange(10.0), exchange(20.0)))

    assert without_forgotten(snapshot, [Tombstone("turn", 3, 15.0)]) is snapshot


def test_all_goes_from_the_exchange_in_which_it_was_recalled() -> None:
    exchanges = [exchange(10.0), exchange(20.0, sources=["fact:7"]), exchange(30.0)]

    assert left(exchanges, Tombstone("fact", 7, 1.0)) == ["at 10.0"]
    assert left(exchanges, Tombstone("fact", 8, 1.0)) == ["at 10.0", "at 20.0", "at 30.0"]


def test_summary_goes_if_anything_older_was_forgotten() -> None:
    exchanges = [exchange(10.0, tags=frozenset({SUMMARY})), exchange(20.0)]

    assert left(exchanges, Tombstone("turn", 3, 1.0)) == []
    assert left(exchanges, Tombstone("turn", 3, 15.0)) == ["at 10.0", "at 20.0"]


def test_exchange_without_a_time_is_no_copy_of_ours_and_stays() -> None:
    assert left([exchange(None)], Tombstone("turn", 3, 1.0)) == ["at None"]
