"""Requests to remember, correct and recall facts, by voice or through a model's tools. See `forgetting` for the others.

`updates` decides which fact a new one replaces. Functions with a `Memory` parameter block on disk I/O.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import partial
import re
import time
from types import EllipsisType
from typing import Any

from ..core import (
    Fact,
    FactStatement,
    LostRows,
    Memory,
    MemoryFull,
    RecallHit,
    Words,
    clean_fact,
    clean_text,
    join_lines,
)
from .recall import HOME_LABEL, MENTIONED, SUMMARY_LABEL, group_alike, quote_text
from .speaker import Speaker, is_about_speaker, load_language
from .updates import FoundUpdate, build_search_query, find_update, may_replace, shares_subject

# The maximum number of facts to read out at a time, and to name if several facts match.
_MAX_FACTS_READ = 7
MAX_FACTS_NAMED = 3
# The maximum number of lines that a model gets for a query, and the maximum length of each.
_MAX_HITS = 8
_MAX_LINE_CHARS = 300
# The minimum share of a query's words that a fact must contain to match the query, and to be corrected.
_MIN_MATCH_SHARE = 0.6
_MIN_CORRECTION_SHARE = 0.5
# The sources of facts that a person told, and the largest number of earlier facts that a model compares with one.
_TOLD_SOURCES = ("said", "tool")
_MAX_EARLIER_FACTS = 3
_MAX_CANDIDATES = 20
# The same for a fact of values and small words only, for which nothing can be searched.
_MAX_WORDLESS_CANDIDATES = 200

# Conjunctions after which German, Dutch and Scandinavian languages order the words unlike in a main clause.
_CONJUNCTION_TEMPLATE = r"(?:^|\W)(dass|daß|dat|att|at)\s+{}"


class ReplyKey(StrEnum):
    """The sentences with which memory answers, as translation keys."""

    REMEMBERED_OWN = "memory_remembered_own"
    REMEMBERED_HOME = "memory_remembered_home"
    REPLACES = "memory_replaces"
    ASK_TO_REPLACE = "memory_ask_replace"
    UNKNOWN_SPEAKER = "memory_unknown_speaker"
    MEMORY_FULL = "memory_full"
    KNOWN_OWN = "memory_known_own"
    KNOWN_HOME = "memory_known_home"
    NOTHING_KNOWN = "memory_nothing_known"
    NOTHING_KNOWN_OWN = "memory_nothing_known_own"
    ASK_TO_CONTINUE = "memory_go_on"
    ALL_RIGHT = "all_right"
    HEARD_OWN = "memory_heard_own"
    HEARD_AT_DEVICE = "memory_heard_at_device"
    HEARD_HOME = "memory_heard_home"
    HEARD_GENERAL = "memory_heard_general"
    ASK_TO_FORGET = "memory_ask"
    CONFIRM_ALL = "memory_ask_everything"
    ASK_TO_FORGET_FACT = "memory_ask_fact"
    ASK_IF_MEANT = "memory_ask_near"
    AND_CONJUNCTION = "memory_and"
    NOT_FORGOTTEN = "memory_not_forgotten"
    FORGOTTEN = "memory_forgotten"
    FORGOTTEN_PAST = "memory_forgotten_past"
    FORGOTTEN_PERSON = "memory_forgotten_person"
    NOT_FOUND = "memory_not_found"
    SEVERAL_FOUND = "memory_several_found"
    TOO_MUCH = "memory_too_much"
    LEARNED = "memory_learned"
    PRIVATE = "memory_private"
    NOTHING_LEARNED = "memory_nothing_learned"
    UNAVAILABLE = "memory_unavailable"
    BACKUP_IN_PROGRESS = "memory_backup"


@dataclass(frozen=True, slots=True)
class MemoryReply:
    """An answer about memory, with the facts that it names and the change to memory."""

    phrase: ReplyKey
    fact_texts: tuple[str, ...] = ()
    # The number of facts that are not named.
    unnamed_count: int = 0
    # The numbers of facts and turns that a question is about.
    counts: tuple[int, int] = (0, 0)
    # The ids of the named facts, also of one that was remembered.
    named_fact_ids: tuple[int, ...] = field(default=(), compare=False)
    forgotten_rows: LostRows | None = None
    # Called if the person agrees.
    on_yes: Callable[[Memory], MemoryReply] | None = field(default=None, compare=False)
    # The replies that follow this one.
    others: tuple[MemoryReply, ...] = ()


def remember_statement(
    memory: Memory,
    speaker: Speaker,
    text: str,
    quote: str,
    *,
    source: str = "said",
    replaces: str = "",
    search_words: str | None = None,
    is_private: bool | None = None,
) -> MemoryReply:
    """Remember a fact: as the speaker's own and private if it says "I" or "my", else as a fact of the home.

    `is_private` is whether the speaker wants it so, if they say that. `replaces` is the fact that it updates, if known.
    Raises `ValueError` if the text has no words.
    """
    fact = _build_stated_fact(speaker, text, quote, source, is_private)
    if fact is None:
        return MemoryReply(ReplyKey.UNKNOWN_SPEAKER)
    return remember_fact(memory, speaker, replace(fact, search_words=search_words), replaces)


def remember_fact(memory: Memory, speaker: Speaker, fact: FactStatement, replaces: str = "") -> MemoryReply:
    """Remember a fact whose owner the caller has determined; otherwise like `remember_statement`.

    It replaces the fact of the same owner, or else of the home, that `replaces` names, or else the one that it updates.
    A named fact is replaced only if both are about the same thing, in words of the speaker. If a speaker's own request
    may update a fact, they are asked.
    """
    text, words = clean_fact(fact.text), speaker.build_words()
    for owner in dict.fromkeys((fact.person, None)) if replaces else ():
        named = find_matching_facts(memory, speaker, replaces, owner)
        if len(named) == 1 and shares_subject(text, named[0].text, speaker.language, words, speaker.text):
            return _store_fact(memory, speaker, _assign_to(fact, owner), named[0])
    update = _find_update(memory, speaker, text, fact.person)
    if update is None or update.is_sure:
        return _store_fact(memory, speaker, fact, update.fact if update else None)
    reply = _store_fact(memory, speaker, fact, None)
    if reply.phrase is ReplyKey.MEMORY_FULL or fact.source != "said":
        return reply
    question = MemoryReply(ReplyKey.ASK_TO_REPLACE, say_facts(memory, [update.fact], speaker.language))
    on_yes = partial(_replace_fact, update.fact, reply.named_fact_ids[0], speaker.language)
    return replace(reply, on_yes=on_yes, others=(question,))


def find_corrected_fact(memory: Memory, speaker: Speaker, text: str, owner: str | None) -> RecallHit | None:
    """Return the fact of an owner that a text surely updates, or None."""
    update = _find_update(memory, speaker, text, owner)
    return update.fact if update is not None and update.is_sure else None


def _find_update(memory: Memory, speaker: Speaker, text: str, owner: str | None) -> FoundUpdate | None:
    words = speaker.build_words()
    return find_update(text, _find_similar_facts(memory, speaker, text, owner, words), speaker.language, words)


def _find_similar_facts(
    memory: Memory, speaker: Speaker, text: str, owner: str | None, words: Words
) -> list[RecallHit]:
    """Return the facts of an owner that share words with a text, best first; the newest if it has no subject.

    A suggestion is none of them: it waits for its owner.
    """
    if query := build_search_query(text, speaker.language, words):
        found = _search_facts(memory, speaker, query, owner)
    else:
        found = _recall(memory, speaker, None, kinds=("fact",), limit=_MAX_WORDLESS_CANDIDATES)
        found = [each for each in found if each.person == owner]
    return [each for each in found if not each.is_suggestion]


def find_earlier_facts(memory: Memory, fact: Fact, language: str) -> tuple[RecallHit, ...]:
    """Return up to three facts that a told one may replace, as far as a model can say, and nobody was asked about."""
    speaker, words = Speaker(fact.text, language, fact.person, is_alone=True), Words((language, "en"))
    if fact.source not in _TOLD_SOURCES:
        return ()
    earlier = [
        each
        for each in _find_similar_facts(memory, speaker, fact.text, fact.person, words)
        if each.time < fact.at
        and may_replace(fact.text, each.text, language, words)
        and (fact.source != "said" or find_update(fact.text, [each], language, words) is None)
    ]
    return tuple(earlier[:_MAX_EARLIER_FACTS])


def _replace_fact(old: RecallHit, by: int, language: str, memory: Memory) -> MemoryReply:
    said = say_facts(memory, [old], language)
    phrase = ReplyKey.REPLACES if memory.replace_fact(old.id, by) else ReplyKey.NOT_FOUND
    return MemoryReply(phrase, said, named_fact_ids=(by,))


def _assign_to(fact: FactStatement, owner: str | None) -> FactStatement:
    """Return a fact that corrects one of this owner: a correction of the home's fact is the home's, also with "I"."""
    return replace(fact, person=owner, private=fact.private and owner is not None)


def correct_fact(
    memory: Memory, speaker: Speaker, text: str, *, is_sure: bool, named: tuple[int, ...] = ()
) -> MemoryReply | None:
    """Remember a fact and replace the one that it corrects, which was likely in `named`, the facts of the last answer.

    Return None if no such fact is known and `is_sure` is false, because the speaker may have corrected something else.
    """
    fact = _build_stated_fact(speaker, text, speaker.text, "said")
    if fact is None:
        return MemoryReply(ReplyKey.UNKNOWN_SPEAKER) if is_sure else None
    for owner in dict.fromkeys((fact.person, None)):
        if old := _find_corrected_fact(memory, speaker, text, owner, named):
            return _store_fact(memory, speaker, _assign_to(fact, owner), old)
    return _store_fact(memory, speaker, fact, None) if is_sure else None


def _find_corrected_fact(
    memory: Memory, speaker: Speaker, text: str, owner: str | None, named: tuple[int, ...]
) -> RecallHit | None:
    words, found = speaker.build_words(), _search_facts(memory, speaker, text, owner)
    # the facts that were named just now are preferred
    for candidates in ([each for each in found if each.id in named], found):
        if update := find_update(clean_fact(text), candidates, speaker.language, words):
            return update.fact
        similar = _select_matches(text, candidates, words, _MIN_CORRECTION_SHARE)
        if len(similar) == 1:
            return similar[0]
    return None


def undo_correction(memory: Memory, speaker: Speaker, named: tuple[int, ...]) -> MemoryReply | None:
    """Bring back the fact that the newest of the named facts replaced in the last day. Return None if there is none."""
    recent = memory.get_replacements(speaker.person, private=speaker.is_alone)
    undone = next((each for each in recent if each.id in named), None)
    if undone is None or not memory.undo_replacement(undone):
        return None
    phrase = ReplyKey.REMEMBERED_HOME if undone.person is None else ReplyKey.REMEMBERED_OWN
    replaced = MemoryReply(ReplyKey.REPLACES, (undone.text,))
    return MemoryReply(phrase, (undone.replaced_text,), named_fact_ids=(undone.replaced_id,), others=(replaced,))


def list_facts(memory: Memory, speaker: Speaker, start: int = 0) -> MemoryReply:
    """List the newest facts from index `start` on: the speaker's own, then the home's. Ask whether to continue."""
    confirmed = [fact for fact in memory.get_facts(speaker.person, private=speaker.is_alone) if fact.turn is None]
    facts = sorted(confirmed, key=lambda fact: fact.person is None)
    end = start + _MAX_FACTS_READ
    page = facts[start:end]
    if not page:
        return MemoryReply(ReplyKey.NOTHING_KNOWN)
    own, homes = _say_facts_by_owner(memory, page, speaker.language)
    replies = [MemoryReply(ReplyKey.KNOWN_OWN, own)] if own else []
    if not own and not start and speaker.person is not None:
        replies.append(MemoryReply(ReplyKey.NOTHING_KNOWN_OWN))
    if homes:
        replies.append(MemoryReply(ReplyKey.KNOWN_HOME, homes))
    then = None
    if end < len(facts):
        replies.append(MemoryReply(ReplyKey.ASK_TO_CONTINUE, unnamed_count=len(facts) - end))
        then = partial(list_facts, speaker=speaker, start=end)
    return replace(replies[0], named_fact_ids=tuple(fact.id for fact in page), on_yes=then, others=tuple(replies[1:]))


def recall_facts(memory: Memory, speaker: Speaker, query: str) -> MemoryReply | None:
    """Read out the facts that match a query best. Return None if there are none."""
    found = [fact for fact in find_matching_facts(memory, speaker, query) if not fact.is_suggestion][:_MAX_FACTS_READ]
    own, homes = _say_facts_by_owner(memory, found, speaker.language)
    if not found:
        return None
    sides = ((ReplyKey.KNOWN_OWN, own), (ReplyKey.KNOWN_HOME, homes))
    first, *rest = [MemoryReply(phrase, some) for phrase, some in sides if some]
    return replace(first, named_fact_ids=tuple(fact.id for fact in found), others=tuple(rest))


def list_listeners(memory: Memory, speaker: Speaker, query: str, named: tuple[int, ...]) -> MemoryReply | None:
    """List the people who can hear a fact, or the facts in `named`. Return None if no fact matches `query`."""
    if query:
        named = tuple(fact.id for fact in find_matching_facts(memory, speaker, query))
        if not named:
            return None
    facts = memory.get_facts(speaker.person, private=speaker.is_alone)
    shown = [fact for fact in facts if fact.id in named]
    own, homes = _say_facts_by_owner(memory, shown, speaker.language)
    alone = ReplyKey.HEARD_AT_DEVICE if speaker.owns_device else ReplyKey.HEARD_OWN
    replies = [MemoryReply(phrase, some) for phrase, some in ((alone, own), (ReplyKey.HEARD_HOME, homes)) if some]
    first, *rest = replies or [MemoryReply(ReplyKey.HEARD_GENERAL)]
    return replace(first, named_fact_ids=named, others=tuple(rest))


def _say_facts_by_owner(memory: Memory, facts: Collection[Fact | RecallHit], language: str) -> list[tuple[str, ...]]:
    """Return the texts of a person's facts, and of the home's."""
    parts = [[fact for fact in facts if (fact.person is None) is is_home] for is_home in (False, True)]
    return [say_facts(memory, each, language) for each in parts]


def say_facts(memory: Memory, facts: Collection[Fact | RecallHit], language: str) -> tuple[str, ...]:
    """Return the texts of facts as they are said on their own."""
    quotes = {fact.id: fact.quote for fact in memory.facts}
    return tuple([say_clause(fact.text, quotes.get(fact.id, ""), language) for fact in facts])


def say_clause(text: str, quote: str, language: str) -> str:
    """Return a text from a quote as a main clause, or after its conjunction if the main clause is not known."""
    conjunction = re.search(_CONJUNCTION_TEMPLATE.format(re.escape(text)), " ".join(quote.split()), re.IGNORECASE)
    if conjunction is None:
        return text
    for pattern, order in load_language(language).get("memory", {}).get("main_clauses", {}).items():
        clause, count = re.subn(pattern, order, text)
        if count:
            return str(clause)
    return f"{conjunction[1].casefold()} {text}"


def recall_lines(
    memory: Memory,
    speaker: Speaker,
    query: str,
    zone: tzinfo,
    *,
    since: float | None = None,
    until: float | None = None,
) -> tuple[str, ...]:
    """Return lines for a model: the memories that match a query and that the speaker may know, best match first.

    Without a query, they are the newest memories of the time.
    """
    found = _recall(memory, speaker, query.strip() or None, limit=_MAX_HITS, since=since, until=until)
    in_order = [each for group in group_alike(found) for each in sorted(group, key=lambda hit: -hit.time)]
    return tuple(_format_recalled_line(recalled, speaker, zone) for recalled in in_order)


def _format_recalled_line(recalled: RecallHit, speaker: Speaker, zone: tzinfo) -> str:
    who = HOME_LABEL if recalled.person is None else speaker.name or recalled.person
    if recalled.kind == "summary":
        who = f"{who}, {SUMMARY_LABEL}"
    if recalled.is_suggestion:
        who += MENTIONED
    text = join_lines((recalled.excerpt or recalled.text).replace("\n", " / "), _MAX_LINE_CHARS)
    return f"{datetime.fromtimestamp(recalled.time, zone):%Y-%m-%d}, {who}: {quote_text(text)}"


def find_matching_facts(
    memory: Memory, speaker: Speaker, query: str, owner: str | EllipsisType | None = ...
) -> list[RecallHit]:
    """Return the facts that match a query best, limited to one owner if one is given."""
    return _select_matches(query, _search_facts(memory, speaker, query, owner), speaker.build_words(), _MIN_MATCH_SHARE)


def find_only_fact(memory: Memory, speaker: Speaker) -> int | None:
    """Return the id of the only fact that has any of the speaker's words, or None if there is none or another one."""
    words, text = speaker.build_words(), speaker.text
    wanted = set(words.search_terms(text).words)
    found = [each.id for each in _search_facts(memory, speaker, text, ...) if wanted & words.build_term_set(each.text)]
    return found[0] if len(found) == 1 else None


def _search_facts(memory: Memory, speaker: Speaker, query: str, owner: str | EllipsisType | None) -> list[RecallHit]:
    found = _recall(memory, speaker, query, kinds=("fact",), limit=_MAX_CANDIDATES)
    return [fact for fact in found if owner is ... or fact.person == owner]


def _recall(memory: Memory, speaker: Speaker, query: str | None, **conditions: Any) -> list[RecallHit]:
    return memory.recall(query, person=speaker.person, speaker=speaker.name, private=speaker.is_alone, **conditions)


def _select_matches(query: str, facts: list[RecallHit], words: Words, least: float) -> list[RecallHit]:
    """Return the facts with the exact text of a query, or else those that contain most of its words."""
    same = [fact for fact in facts if clean_text(fact.text) == clean_text(query)]
    wanted = set(words.search_terms(query).words)
    if same or not wanted:
        return same
    shares = [len(wanted & words.build_term_set(fact.text)) / len(wanted) for fact in facts]
    best = max(shares, default=0.0)
    return [fact for fact, share in zip(facts, shares, strict=True) if share == best >= least]


def _build_stated_fact(
    speaker: Speaker, text: str, quote: str, source: str, is_private: bool | None = None
) -> FactStatement | None:
    """Return a fact with its owner, or None if it is about the speaker, or for them only, and the speaker is unknown.

    In a request, "for me" may only be polite, so the fact alone tells whether it is about the speaker. A model rewords
    it, so there the user's words tell that, too.
    """
    is_about = is_about_speaker(text, speaker.language)
    is_about |= source != "said" and is_about_speaker(quote, speaker.language)
    if (is_about or is_private) and speaker.person is None:
        return None
    if is_about and is_private is False and speaker.name:
        # everybody has to hear whose fact it is
        text = f"{speaker.name}: {text}"
    is_own, now = is_about if is_private is None else is_private, time.time()
    return FactStatement(text, speaker.person if is_own else None, is_own, source, quote, now, now)


def _store_fact(memory: Memory, speaker: Speaker, fact: FactStatement, old: RecallHit | None) -> MemoryReply:
    replaced = say_facts(memory, [old], speaker.language) if old else ()
    try:
        stored = memory.store_fact(
            fact, old.id if old else None, teller=speaker.person, conversation=speaker.conversation
        )
    except MemoryFull:
        return MemoryReply(ReplyKey.MEMORY_FULL)
    phrase = ReplyKey.REMEMBERED_HOME if fact.person is None else ReplyKey.REMEMBERED_OWN
    rest = (MemoryReply(ReplyKey.REPLACES, replaced),) if old else ()
    said = say_clause(clean_fact(fact.text), fact.quote, speaker.language)
    return MemoryReply(phrase, (said,), named_fact_ids=(stored,), others=rest)
