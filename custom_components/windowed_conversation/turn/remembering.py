"""Requests to remember, correct and recall, by words or through a model's tools.

Every function waits for the disk. Each returns the words to say and the work done. `forget_requests` forgets.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import partial
import re
from types import EllipsisType

from ..memory import Fact, Forgotten, Memory, MemoryFull, Recalled, Words, fact_text, one_line, spoken
from .fact_updates import updated
from .first_person import speaks_of_oneself
from .narration import HOME, SUMMARY_OF
from .speaker import Speaker

# How many facts are read out at a time, and how many are named if several match.
_MOST_READ = 7
MOST_NAMED = 3
# How many lines a model gets for a question, and how long each is at most.
_LINES = 8
_LENGTH = 300
# The share of the words that a fact must have to be meant, and to be corrected.
_SHARE = 0.6
_SIMILAR = 0.5
_CANDIDATES = 20

# Conjunctions after which German, Dutch, Swedish and Danish have another word order than a sentence.
_CLAUSE = r"(?:^|\W)(dass|daß|dat|att|at)\s+{}"


class Phrase(StrEnum):
    """The sentences of memory's answers: their translation keys."""

    REMEMBERED_OWN = "memory_remembered_own"
    REMEMBERED_OWN_CLAUSE = "memory_remembered_own_clause"
    REMEMBERED_HOME = "memory_remembered_home"
    REMEMBERED_HOME_CLAUSE = "memory_remembered_home_clause"
    REPLACES = "memory_replaces"
    UNKNOWN_SPEAKER = "memory_unknown_speaker"
    FULL = "memory_full"
    KNOWN_OWN = "memory_known_own"
    KNOWN_HOME = "memory_known_home"
    NOTHING_KNOWN = "memory_nothing_known"
    NOTHING_KNOWN_OWN = "memory_nothing_known_own"
    GO_ON = "memory_go_on"
    ALL_RIGHT = "memory_all_right"
    HEARD_OWN = "memory_heard_own"
    HEARD_AT_DEVICE = "memory_heard_at_device"
    HEARD_HOME = "memory_heard_home"
    HEARD_GENERAL = "memory_heard_general"
    ASK = "memory_ask"
    ASK_EVERYTHING = "memory_ask_everything"
    ASK_FACT = "memory_ask_fact"
    FACTS_ONE = "memory_facts_one"
    FACTS_FEW = "memory_facts_few"
    FACTS_OTHER = "memory_facts_other"
    TURNS_ONE = "memory_turns_one"
    TURNS_FEW = "memory_turns_few"
    TURNS_OTHER = "memory_turns_other"
    AND = "memory_and"
    NOT_FORGOTTEN = "memory_not_forgotten"
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
    """An answer about memory, the facts that it names, and the change to memory. `rest` is said after it.

    `more` counts the facts that are not named, `counts` the facts and turns that a question is about. `named` has the
    ids of the facts, `stored` that of the fact that was remembered. `then` is done if the person agrees.
    """

    phrase: Phrase
    facts: tuple[str, ...] = ()
    more: int = 0
    counts: tuple[int, int] = (0, 0)
    named: tuple[int, ...] = field(default=(), compare=False)
    stored: int | None = field(default=None, compare=False)
    forgotten: Forgotten | None = None
    then: Callable[[Memory], Remembering] | None = field(default=None, compare=False)
    rest: tuple[Remembering, ...] = ()


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
    fact = _new_fact(speaker, text, quote, source)
    return Remembering(Phrase.UNKNOWN_SPEAKER) if fact is None else remember_as(memory, speaker, fact, replaces)


def remember_as(memory: Memory, speaker: Speaker, told: NewFact, replaces: str = "") -> Remembering:
    """Remember a fact of an owner that the caller has decided; the rest is as in `remember`."""
    return _remembered(memory, speaker, told, _replaced(memory, speaker, told, replaces))


def correct(
    memory: Memory, speaker: Speaker, text: str, *, is_sure: bool, named: tuple[int, ...] = ()
) -> Remembering | None:
    """Remember a fact in place of the one that it corrects, one of those that were `named` before others.

    Return None if the speaker may have corrected something else, because no such fact is known and they are not sure.
    """
    told = _new_fact(speaker, text, speaker.said, "said")
    if told is None:
        return Remembering(Phrase.UNKNOWN_SPEAKER) if is_sure else None
    words, found = speaker.words(), _found(memory, speaker, text, told.owner)
    candidates = [fact for fact in found if fact.id in named] or found
    similar = _meant(text, candidates, words, _SIMILAR)
    old = updated(fact_text(text), candidates, speaker.language, words) or (similar[0] if len(similar) == 1 else None)
    return _remembered(memory, speaker, told, old) if old or is_sure else None


def what_is_known(memory: Memory, speaker: Speaker, start: int = 0) -> Remembering:
    """Name the newest facts from a place on: the speaker's own, then the home's. Ask whether to go on."""
    known = sorted(memory.facts(speaker.person, private=speaker.is_alone), key=lambda fact: fact.person is None)
    part = known[start : start + _MOST_READ]
    if not part:
        return Remembering(Phrase.NOTHING_KNOWN)
    end = start + len(part)
    own, homes = ([fact for fact in part if (fact.person is None) == is_home] for is_home in (False, True))
    said = [Remembering(Phrase.KNOWN_OWN, tuple(map(as_told, own)))] if own else []
    if not own and not start and speaker.person is not None:
        said.append(Remembering(Phrase.NOTHING_KNOWN_OWN))
    if homes:
        said.append(Remembering(Phrase.KNOWN_HOME, tuple(map(as_told, homes))))
    then = None
    if end < len(known):
        said.append(Remembering(Phrase.GO_ON, more=len(known) - end))
        then = partial(what_is_known, speaker=speaker, start=end)
    return replace(said[0], named=tuple(fact.id for fact in part), then=then, rest=tuple(said[1:]))


def who_hears(memory: Memory, speaker: Speaker, about: str, named: tuple[int, ...]) -> Remembering | None:
    """Say who else can be told a fact, or those that were just `named`. Return None if no such fact is known."""
    if about:
        named = tuple(fact.id for fact in _meant(about, _found(memory, speaker, about), speaker.words()))
        if not named:
            return None
    facts = [fact for fact in memory.facts(speaker.person, private=speaker.is_alone) if fact.id in named]
    own = tuple(as_told(fact) for fact in facts if fact.person is not None)
    homes = tuple(as_told(fact) for fact in facts if fact.person is None)
    alone = Phrase.HEARD_AT_DEVICE if speaker.has_device else Phrase.HEARD_OWN
    said = [Remembering(phrase, some) for phrase, some in ((alone, own), (Phrase.HEARD_HOME, homes)) if some]
    first, *rest = said or [Remembering(Phrase.HEARD_GENERAL)]
    return replace(first, named=named, rest=tuple(rest))


def recalled_lines(memory: Memory, speaker: Speaker, query: str, zone: tzinfo) -> tuple[str, ...]:
    """Return memories that match a question and that the speaker may know, best first, as lines of data for a model."""
    found = memory.recall(query, person=speaker.person, speaker=speaker.name, limit=_LINES, private=speaker.is_alone)
    return tuple(_line(recalled, speaker, zone) for recalled in found)


def meant_facts(memory: Memory, speaker: Speaker, query: str) -> list[Recalled]:
    """Return the facts that the speaker means, best first."""
    return _meant(query, _found(memory, speaker, query), speaker.words())


def as_told(fact: Fact) -> str:
    """Return the text of a fact, with the conjunction that its clause was told with."""
    conjunction = _conjunction(fact.text, fact.quote)
    return f"{conjunction} {fact.text}" if conjunction else fact.text


def _conjunction(text: str, quote: str) -> str:
    found = re.search(_CLAUSE.format(re.escape(text)), quote, re.IGNORECASE)
    return found[1].casefold() if found else ""


def _new_fact(speaker: Speaker, text: str, quote: str, source: str) -> NewFact | None:
    """Return a fact and whose it is, or None if it is about a speaker who is unknown."""
    is_own = any(speaks_of_oneself(each, speaker.language) for each in (text, quote))
    if is_own and speaker.person is None:
        return None
    return NewFact(text, quote, source, speaker.person if is_own else None, is_own)


def _remembered(memory: Memory, speaker: Speaker, told: NewFact, old: Recalled | None) -> Remembering:
    fact = fact_text(told.text)
    try:
        stored = memory.add_fact(
            fact,
            person=told.owner,
            private=told.private,
            source=told.source,
            quote=told.quote,
            replaces=old.id if old else None,
            teller=speaker.person,
            conversation=speaker.conversation,
        )
    except MemoryFull:
        return Remembering(Phrase.FULL)
    rest = (Remembering(Phrase.REPLACES, (old.text,)),) if old else ()
    phrase = _REMEMBERED[told.owner is None, bool(_conjunction(fact, one_line(told.quote, len(told.quote))))]
    return Remembering(phrase, (fact,), named=(stored,), stored=stored, rest=rest)


_REMEMBERED = {
    (False, False): Phrase.REMEMBERED_OWN,
    (False, True): Phrase.REMEMBERED_OWN_CLAUSE,
    (True, False): Phrase.REMEMBERED_HOME,
    (True, True): Phrase.REMEMBERED_HOME_CLAUSE,
}


def _line(recalled: Recalled, speaker: Speaker, zone: tzinfo) -> str:
    who = HOME if recalled.person is None else speaker.name or recalled.person
    if recalled.kind == "episode":
        who = f"{who}, {SUMMARY_OF}"
    text = one_line((recalled.excerpt or recalled.text).replace("\n", " / "), _LENGTH)
    return f"{datetime.fromtimestamp(recalled.at, zone):%Y-%m-%d}, {who}: {quoted(text)}"


def _replaced(memory: Memory, speaker: Speaker, told: NewFact, replaces: str) -> Recalled | None:
    """Return the fact of the same owner that is closed: the one that is named, else the one that it is an update of."""
    words, fact = speaker.words(), fact_text(told.text)
    if replaces:
        named = _meant(replaces, _found(memory, speaker, replaces, told.owner), words)
        if len(named) == 1:
            return named[0]
    return updated(fact, _found(memory, speaker, fact, told.owner), speaker.language, words)


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


def _meant(query: str, facts: Iterable[Recalled], words: Words, least: float = _SHARE) -> list[Recalled]:
    """Return the facts that are meant: those in the very words, else those with most of the words."""
    candidates = list(facts)
    same = [fact for fact in candidates if spoken(fact.text) == spoken(query)]
    wanted = set(words.question(query).words)
    if same or not wanted:
        return same
    shares = [len(wanted & words.held(fact.text)) / len(wanted) for fact in candidates]
    best = max(shares, default=0.0)
    return [fact for fact, share in zip(candidates, shares, strict=True) if share == best >= least]
