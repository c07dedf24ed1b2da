"""Requests to forget, by words or through a model's tool, and the questions asked back before anything is gone.

A request is asked back if it is about everything of a person or more than one fact, or if the speaker is known only by
the device. Every function waits for the disk.
"""

from functools import partial

from ..memory import Forgotten, Memory, spoken
from .first_person import speaks_of_oneself
from .quotes import is_supported_by
from .remember_requests import MOST_NAMED, MemoryReply, Phrase, matching_facts
from .speaker import Speaker

# The name of the tool by which a model forgets.
FORGET_TOOL = "forget"

# The most facts and turns that one sentence may delete.
_MOST_FACTS = 10
_MOST_PAST = 100
# A single word occurs in too many turns.
_FEWEST_WORDS = 2


def forget_fact(memory: Memory, speaker: Speaker, query: str) -> Remembering:
    """Forget the one fact that is meant, or else the turns with these words. If several match, only list them."""
    meant = meant_facts(memory, speaker, query)
    if len({spoken(fact.text) for fact in meant}) > 1:
        return MemoryReply(Phrase.SEVERAL_FOUND, tuple(fact.text for fact in meant[:MOST_NAMED]))
    if not meant:
        return _forget_past(memory, speaker, query)
    ids = tuple(fact.id for fact in meant)
    forget = partial(_forget_named, person=speaker.person, ids=ids, text=meant[0].text)
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
    forget = partial(_forget_matching, person=speaker.person, query=about, named=named)
    if speaker.by_device or len(found) > 1:
        return MemoryReply(Phrase.ASK, counts=_counts(len(found), selected), then=forget)
    return forget(memory)


def _ask_for_person(memory: Memory, speaker: Speaker) -> MemoryReply:
    if speaker.person is None:
        return MemoryReply(Phrase.UNKNOWN_SPEAKER)
    selected = memory.forget(person=speaker.person, dry_run=True)
    own = sum(fact.person is not None for fact in memory.facts(speaker.person))
    forget, counts = partial(_forget_person, person=speaker.person), _counts(own, selected)
    return MemoryReply(Phrase.ASK_EVERYTHING, counts=counts, then=forget) if any(counts) else forget(memory)


def _forget_past(memory: Memory, speaker: Speaker, query: str) -> MemoryReply:
    """Forget turns, episodes and exchanges that have the words, if these are the speaker's own."""
    words = speaker.words()
    if len(words.question(query).words) < _FEWEST_WORDS or not is_supported_by(query, speaker.said, None, words):
        return MemoryReply(Phrase.NOT_FOUND)
    selected = _matching_past(memory, speaker.person, query, dry_run=True)
    if not selected.has_words:
        return MemoryReply(Phrase.NOT_FOUND)
    if _past(selected) > _MOST_PAST:
        return MemoryReply(Phrase.TOO_MUCH)
    forget = partial(_forget_matching_past, person=speaker.person, query=query)
    if speaker.by_device:
        return MemoryReply(Phrase.ASK, counts=_counts(0, selected), then=forget)
    return forget(memory)


def _forget_named(memory: Memory, person: str | None, ids: tuple[int, ...], text: str) -> MemoryReply:
    forgotten = memory.forget(ids=[("fact", each) for each in ids], person=person)
    return MemoryReply(Phrase.FORGOTTEN, (text,), forgotten=forgotten)


def _forget_matching(memory: Memory, person: str | None, query: str, named: tuple[str, ...]) -> MemoryReply:
    forgotten = memory.forget(query=query, person=person)
    return MemoryReply(Phrase.FORGOTTEN if named else Phrase.FORGOTTEN_PAST, named, forgotten=forgotten)


def _forget_matching_past(memory: Memory, person: str | None, query: str) -> MemoryReply:
    forgotten = _matching_past(memory, person, query, dry_run=False)
    return MemoryReply(Phrase.FORGOTTEN_PAST, forgotten=forgotten)


def _matching_past(memory: Memory, person: str | None, query: str, *, dry_run: bool) -> Forgotten:
    return memory.forget(query=query, person=person, kinds=("turn", "episode"), dry_run=dry_run)


def _forget_person(memory: Memory, person: str) -> MemoryReply:
    return MemoryReply(Phrase.FORGOTTEN_PERSON, forgotten=memory.forget(person=person))


def _past(forgotten: Forgotten) -> int:
    return len(forgotten.turns) + len(forgotten.episodes)


def _counts(facts: int, selected: Forgotten) -> tuple[int, int]:
    """Return the numbers of facts and turns that a person would lose; most exchanges are turns of memory, too."""
    return facts, max(len(selected.turns), selected.exchanges, len(selected.records))
