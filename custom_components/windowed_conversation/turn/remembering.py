"""What is remembered, recalled and forgotten when people ask for it, by words or through a model's tools.

Every function waits for the disk. Each returns what is to be said and what was done.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from enum import StrEnum
from types import EllipsisType

from ..memory import Forgotten, Memory, MemoryFull, Recalled, Words, fact_text, one_line, spoken
from .fact_updates import updated
from .first_person import speaks_of_oneself
from .narration import HOME, SUMMARY_OF
from .quotes import is_of_quote
from .speaker import Speaker

# The name of the tool by which a model forgets.
FORGET_TOOL = "forget"

# How many facts are read out, and how many are named if several match.
_MOST_READ = 7
_MOST_NAMED = 3
# How many lines a model gets for a question, and how long each is at most.
_LINES = 8
_LENGTH = 300
# The most facts and turns that one sentence may delete.
_MOST_FACTS = 10
_MOST_PAST = 100
# The share of the words that a fact must have to match.
_SHARE = 0.6
_CANDIDATES = 20
# A single word occurs in too many turns.
_FEWEST_WORDS = 2


class Phrase(StrEnum):
    """What is said: a translation key."""

    REMEMBERED = "memory_remembered"
    UPDATED = "memory_updated"
    UNKNOWN_SPEAKER = "memory_unknown_speaker"
    FULL = "memory_full"
    KNOWN = "memory_known"
    KNOWN_AND_MORE = "memory_known_and_more"
    NOTHING_KNOWN = "memory_nothing_known"
    FORGOTTEN = "memory_forgotten"
    FORGOTTEN_PAST = "memory_forgotten_past"
    FORGOTTEN_PERSON = "memory_forgotten_person"
    NOT_FOUND = "memory_not_found"
    SEVERAL_FOUND = "memory_several_found"
    TOO_MUCH = "memory_too_much"
    UNAVAILABLE = "memory_unavailable"
    BACKUP = "memory_backup"


@dataclass(frozen=True, slots=True)
class Remembering:
    """What to say, the facts that it names, and what was done to memory.

    `more` counts the facts that are not named, `replaced` is the outdated fact after an update, and `stored` the id of
    the fact that was remembered.
    """

    phrase: Phrase
    facts: tuple[str, ...] = ()
    more: int = 0
    replaced: str = ""
    stored: int | None = field(default=None, compare=False)
    forgotten: Forgotten | None = None

    @property
    def placeholders(self) -> dict[str, str]:
        """Return what the phrase may name."""
        facts = "; ".join(map(quoted, self.facts))
        return {"facts": facts, "more": str(self.more), "replaced": quoted(self.replaced)}


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact to remember: in which words it was told, and whose it is; without an owner it is the home's."""

    text: str
    quote: str
    source: str
    owner: str | None = None
    private: bool = False


def quoted(text: str) -> str:
    """Return a text in quotation marks that it cannot close."""
    return f'"{text.translate(_MARKS)}"'


_MARKS = str.maketrans(dict.fromkeys('"“”„«»', "'"))


def remember(
    memory: Memory, speaker: Speaker, text: str, quote: str, *, source: str = "said", replaces: str = ""
) -> Remembering:
    """Remember a fact: the speaker's own and private if it says "I" or "my", else the home's.

    `replaces` is the fact that it updates, where that is known. Raise ValueError if the text has no words.
    """
    is_own = any(speaks_of_oneself(each, speaker.language) for each in (text, quote))
    if is_own and speaker.person is None:
        return Remembering(Phrase.UNKNOWN_SPEAKER)
    told = NewFact(text, quote, source, speaker.person if is_own else None, is_own)
    return remember_as(memory, speaker, told, replaces)


def remember_as(memory: Memory, speaker: Speaker, told: NewFact, replaces: str = "") -> Remembering:
    """Remember a fact of an owner that the caller has decided; the rest is as in `remember`."""
    fact = fact_text(told.text)
    old = _replaced(memory, speaker, told.owner, fact, replaces)
    try:
        stored = memory.add_fact(
            fact,
            person=told.owner,
            private=told.private,
            source=told.source,
            quote=told.quote,
            replaces=old.id if old else None,
        )
    except MemoryFull:
        return Remembering(Phrase.FULL)
    if old is None:
        return Remembering(Phrase.REMEMBERED, (fact,), stored=stored)
    return Remembering(Phrase.UPDATED, (fact,), replaced=old.text, stored=stored)


def what_is_known(memory: Memory, speaker: Speaker) -> Remembering:
    """Name the newest facts: the speaker's own, then the home's."""
    known = memory.facts(speaker.person, private=speaker.is_alone)
    own_first = sorted(known, key=lambda fact: fact.person is None)
    facts, more = tuple(fact.text for fact in own_first[:_MOST_READ]), len(known) - _MOST_READ
    if not facts:
        return Remembering(Phrase.NOTHING_KNOWN)
    return Remembering(Phrase.KNOWN_AND_MORE, facts, more) if more > 0 else Remembering(Phrase.KNOWN, facts)


def recalled_lines(memory: Memory, speaker: Speaker, query: str, zone: tzinfo) -> tuple[str, ...]:
    """Return what memory finds for a question and the speaker may know, best first, as lines of data for a model."""
    found = memory.recall(query, person=speaker.person, speaker=speaker.name, limit=_LINES, private=speaker.is_alone)
    return tuple(_line(recalled, speaker, zone) for recalled in found)


def _line(recalled: Recalled, speaker: Speaker, zone: tzinfo) -> str:
    who = HOME if recalled.person is None else speaker.name or recalled.person
    if recalled.kind == "episode":
        who = f"{who}, {SUMMARY_OF}"
    text = one_line((recalled.excerpt or recalled.text).replace("\n", " / "), _LENGTH)
    return f"{datetime.fromtimestamp(recalled.at, zone):%Y-%m-%d}, {who}: {quoted(text)}"


def forget_fact(memory: Memory, speaker: Speaker, query: str) -> Remembering:
    """Forget the one fact that is meant, or else what was said in these words. If several match, only list them."""
    words = speaker.words()
    meant = _meant(query, _found(memory, speaker, query), words)
    if len({spoken(fact.text) for fact in meant}) > 1:
        return Remembering(Phrase.SEVERAL_FOUND, tuple(fact.text for fact in meant[:_MOST_NAMED]))
    if not meant:
        return _forget_past(memory, speaker, query, words)
    forgotten = memory.forget(ids=[("fact", fact.id) for fact in meant], person=speaker.person)
    return Remembering(Phrase.FORGOTTEN, (meant[0].text,), forgotten=forgotten)


def forget_everything(memory: Memory, speaker: Speaker, about: str) -> Remembering:
    """Forget everything that has all of the words. About "me" it is everything that the speaker owns."""
    if speaks_of_oneself(about, speaker.language) and not speaker.words().question(about).words:
        return _forget_person(memory, speaker)
    selected = memory.forget(query=about, person=speaker.person, dry_run=True)
    named = [fact.text for fact in memory.facts(speaker.person, private=speaker.is_alone) if fact.id in selected.facts]
    if not selected.has_words:
        return Remembering(Phrase.NOT_FOUND)
    if len(selected.facts) > _MOST_FACTS or _past(selected) > _MOST_PAST:
        return Remembering(Phrase.TOO_MUCH)
    forgotten = memory.forget(query=about, person=speaker.person)
    return Remembering(Phrase.FORGOTTEN if named else Phrase.FORGOTTEN_PAST, tuple(named), forgotten=forgotten)


def _forget_person(memory: Memory, speaker: Speaker) -> Remembering:
    if speaker.person is None:
        return Remembering(Phrase.UNKNOWN_SPEAKER)
    return Remembering(Phrase.FORGOTTEN_PERSON, forgotten=memory.forget(person=speaker.person))


def _forget_past(memory: Memory, speaker: Speaker, query: str, words: Words) -> Remembering:
    """Forget turns, episodes and exchanges that have the words, if these are the speaker's own."""
    if len(words.question(query).words) < _FEWEST_WORDS or not is_of_quote(query, speaker.said, None, words):
        return Remembering(Phrase.NOT_FOUND)
    selected = memory.forget(query=query, person=speaker.person, kinds=("turn", "episode"), dry_run=True)
    if not selected.has_words:
        return Remembering(Phrase.NOT_FOUND)
    if _past(selected) > _MOST_PAST:
        return Remembering(Phrase.TOO_MUCH)
    forgotten = memory.forget(query=query, person=speaker.person, kinds=("turn", "episode"))
    return Remembering(Phrase.FORGOTTEN_PAST, forgotten=forgotten)


def _past(forgotten: Forgotten) -> int:
    return len(forgotten.turns) + len(forgotten.episodes)


def _replaced(memory: Memory, speaker: Speaker, owner: str | None, fact: str, replaces: str) -> Recalled | None:
    """Return the fact of the same owner that is closed: the one that is named, else the one that it is an update of."""
    words = speaker.words()
    if replaces:
        named = _meant(replaces, _found(memory, speaker, replaces, owner), words)
        if len(named) == 1:
            return named[0]
    return updated(fact, _found(memory, speaker, fact, owner), speaker.language, words)


def _found(memory: Memory, speaker: Speaker, query: str, owner: str | EllipsisType | None = ...) -> list[Recalled]:
    found = memory.recall(
        query,
        person=speaker.person,
        speaker=speaker.name,
        kinds=("fact",),
        limit=_CANDIDATES,
        private=speaker.is_alone,
    )
    return [fact for fact in found if owner is ... or fact.person == owner]


def _meant(query: str, facts: Iterable[Recalled], words: Words) -> list[Recalled]:
    """Return the facts that are meant: those in the very words, else those with most of the words."""
    candidates = list(facts)
    same = [fact for fact in candidates if spoken(fact.text) == spoken(query)]
    wanted = set(words.question(query).words)
    if same or not wanted:
        return same
    shares = [len(wanted & words.held(fact.text)) / len(wanted) for fact in candidates]
    best = max(shares, default=0.0)
    return [fact for fact, share in zip(candidates, shares, strict=True) if share == best >= _SHARE]
