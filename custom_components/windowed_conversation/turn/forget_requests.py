"""Requests to forget, by words or through a model's tool, and the questions asked back before anything is gone.

A request is asked back if it is about everything of a person or more than one fact, or if the speaker is known only by
the device. Every function waits for the disk.
"""

from functools import partial
from typing import Any

from ..memory import Forgotten, Kind, Memory, spoken
from .remember_requests import MOST_NAMED, MemoryReply, Phrase, matching_facts
from .speaker import Speaker, is_supported_by, speaks_of_oneself

# The name of the tool by which a model forgets.
FORGET_TOOL = "forget"

_PAST: tuple[Kind, ...] = ("turn", "episode")
# The most facts and turns that one sentence may delete.
_MOST_FACTS = 10
_MOST_PAST = 100
# A single word occurs in too many turns.
_FEWEST_WORDS = 2


def forget_fact(memory: Memory, speaker: Speaker, query: str) -> MemoryReply:
    """Forget the one fact that is meant, or else the turns with these words. If several match, only list them."""
    meant = matching_facts(memory, speaker, query)
    if len({spoken(fact.text) for fact in meant}) > 1:
        return MemoryReply(Phrase.SEVERAL_FOUND, tuple(fact.text for fact in meant[:MOST_NAMED]))
    if not meant:
        return _forget_past(memory, speaker, query)
    ids = [("fact", fact.id) for fact in meant]
    forget = partial(_forget, phrase=Phrase.FORGOTTEN, named=(meant[0].text,), ids=ids, person=speaker.person)
    if speaker.by_device or len(meant) > 1:
        return MemoryReply(Phrase.ASK_FACT, (meant[0].text,), then=forget)
    return forget(memory)


def forget_everything(memory: Memory, speaker: Speaker, about: str) -> MemoryReply:
    """Forget everything that has all of the words. About "me" it is everything that the speaker owns."""
    if speaks_of_oneself(about, speaker.language) and not speaker.words().question(about).words:
        return _ask_for_person(memory, speaker)
    selected = memory.forget(query=about, person=speaker.person, dry_run=True)
    if not selected.has_words:
        return MemoryReply(Phrase.NOT_FOUND)
    if len(selected.facts) > _MOST_FACTS or _past(selected) > _MOST_PAST:
        return MemoryReply(Phrase.TOO_MUCH)
    found = [fact for fact in memory.facts(speaker.person) if fact.id in selected.facts]
    # in a window that others share, private facts are forgotten and not named
    named = tuple(fact.text for fact in found if speaker.is_alone or not fact.private)
    phrase = Phrase.FORGOTTEN if named else Phrase.FORGOTTEN_PAST
    forget = partial(_forget, phrase=phrase, named=named, query=about, person=speaker.person)
    if speaker.by_device or len(found) > 1:
        return MemoryReply(Phrase.ASK, counts=_counts(len(found), selected), then=forget)
    return forget(memory)


def _ask_for_person(memory: Memory, speaker: Speaker) -> MemoryReply:
    if speaker.person is None:
        return MemoryReply(Phrase.UNKNOWN_SPEAKER)
    selected = memory.forget(person=speaker.person, dry_run=True)
    own = sum(fact.person is not None for fact in memory.facts(speaker.person))
    forget, counts = partial(_forget, phrase=Phrase.FORGOTTEN_PERSON, person=speaker.person), _counts(own, selected)
    return MemoryReply(Phrase.ASK_EVERYTHING, counts=counts, then=forget) if any(counts) else forget(memory)


def _forget_past(memory: Memory, speaker: Speaker, query: str) -> MemoryReply:
    """Forget turns, episodes and exchanges that have the words, if these are the speaker's own."""
    words = speaker.words()
    if len(words.question(query).words) < _FEWEST_WORDS or not is_supported_by(query, speaker.said, None, words):
        return MemoryReply(Phrase.NOT_FOUND)
    selected = memory.forget(query=query, person=speaker.person, kinds=_PAST, dry_run=True)
    if not selected.has_words:
        return MemoryReply(Phrase.NOT_FOUND)
    if _past(selected) > _MOST_PAST:
        return MemoryReply(Phrase.TOO_MUCH)
    forget = partial(_forget, phrase=Phrase.FORGOTTEN_PAST, query=query, person=speaker.person, kinds=_PAST)
    if speaker.by_device:
        return MemoryReply(Phrase.ASK, counts=_counts(0, selected), then=forget)
    return forget(memory)


def _forget(memory: Memory, *, phrase: Phrase, named: tuple[str, ...] = (), **conditions: Any) -> MemoryReply:
    return MemoryReply(phrase, named, forgotten=memory.forget(**conditions))


def _past(forgotten: Forgotten) -> int:
    return len(forgotten.turns) + len(forgotten.episodes)


def _counts(facts: int, selected: Forgotten) -> tuple[int, int]:
    """Return the numbers of facts and turns that a person would lose; most exchanges are turns of memory, too."""
    return facts, max(len(selected.turns), selected.exchanges, len(selected.records))
