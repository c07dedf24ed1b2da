"""Suggestions from conversations that have ended: the proof of a model's quotes, and the decisions of their owner.

The model's own words never become a fact. Functions with a `Memory` parameter block on disk I/O.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
import re
from typing import Any

from ...turn.routing import is_question
from ..core import (
    MAX_QUOTE_CHARS,
    Fact,
    FactStatement,
    Memory,
    MemoryFull,
    PastTurn,
    RecallHit,
    Summary,
    add_suggestion,
    confirm_suggestion,
    delete_suggestion,
    join_lines,
    take_talk_back,
)
from .evidence import SENTENCE_PATTERN, find_statement
from .remember_requests import MemoryReply, ReplyKey, find_corrected_fact
from .speaker import Speaker, get_word_boundary, is_supported_by

# A conversation has ended if nothing was said in it for this long.
QUIET_SECONDS = 600.0
MAX_QUOTES = 5
_MAX_SUBJECT_CHARS = 60
_MAX_SUMMARY_CHARS = 400
# How many are read out at a time.
_MAX_READ = 3


class Decision(StrEnum):
    """The decisions of the owner of a suggestion, named like their phrases in `languages/`."""

    KEEP = "keep"
    SHARE = "share"
    DISMISS = "dismiss"


def _prove(found: Mapping[Any, Any], turns: Mapping[int, PastTurn], language: str) -> FactStatement | None:
    """Return the suggestion that a quote of one person's turns proves, or None.

    `found` has the "number" of a turn (from 1), a "quote" from it, the "subject" of a quote with a pronoun, and other
    "words" for searches. The text is the whole clause, after its subject, and the quote the sentence that it is from.
    Questions, requests, and words between quotation marks prove nothing.
    """
    rows, said = list(turns), [turn.said for turn in turns.values()]
    quote, subject = join_lines(str(found.get("quote")), MAX_QUOTE_CHARS), str(found.get("subject") or "").strip()
    # models miscount, so the other turns are searched as well
    for place in sorted(range(len(said)), key=lambda index: index + 1 != found.get("number")):
        if (clause := find_statement(quote, said[place], language)) is None:
            continue
        start = said[place].find(clause)
        sentences = [each for each in SENTENCE_PATTERN.finditer(said[place]) if each.end() > start]
        sentence = " ".join([each.group().strip() for each in sentences if each.start() < start + len(clause)])
        named = _find_subject(subject, clause, [*said[:place], said[place][:start]], language)
        if named is None or is_question(sentence):
            return None
        row, turn, words = rows[place], turns[rows[place]], str(found.get("words") or "")
        text = f"{named}: {clause}" if named else clause
        return FactStatement(
            text, turn.person, True, "learned", sentence, turn.at, turn.at, search_words=words, turn=row
        )
    return None


def _find_subject(subject: str, clause: str, before: Sequence[str], language: str) -> str | None:
    """Return the subject as the person said it last before the clause, "" without one, or None if nobody said it."""
    if not subject or subject.casefold() in clause.casefold():
        return ""
    if len(subject) > _MAX_SUBJECT_CHARS:
        return None
    edge = get_word_boundary(language)
    pattern = re.compile(f"{edge}{re.escape(subject)}{edge}", re.IGNORECASE)
    return next((found.group() for text in reversed(before) if (found := pattern.search(text))), None)


def store_reading(memory: Memory, speaker: Speaker, turns: Mapping[int, PastTurn], data: Mapping[str, Any]) -> None:
    """Store the proved part of the data that a model returned for the turns of a person in an ended conversation.

    Its "facts" have to be a list of objects, see `_prove`, of which those that "last" are suggestions. At least half of
    the words of a summary must have been said in the conversation. An unknown speaker leaves nothing else, because
    nobody could decide about it.
    """
    last, facts = [*turns.values()][-1], data.get("facts")
    for each in facts[:MAX_QUOTES] if isinstance(facts, list) and speaker.person else ():
        if isinstance(each, dict) and each.get("lasts") is True and (proved := _prove(each, turns, speaker.language)):
            with suppress(MemoryFull):
                add_suggestion(memory, proved, last.conversation)
    summary = join_lines(text if isinstance(text := data.get("summary"), str) else "", _MAX_SUMMARY_CHARS)
    everything = " ".join([f"{turn.said} {turn.answer}" for turn in turns.values()])
    if summary and is_supported_by(summary, everything, speaker.name, speaker.build_words()):
        said = tuple([turn.said for turn in turns.values()])
        first = next(iter(turns.values()))
        memory.add([Summary(last.conversation, first.at, last.at, summary, last.agent, last.person, said)])


def keep_private(memory: Memory, speaker: Speaker, now: float, *, deletes: bool = True) -> MemoryReply:
    """Let nobody read this conversation, and forget the turns of the speaker in it, unless `deletes` is false.

    The caller makes sure that nothing more of it is kept.
    """
    take_talk_back(memory, (speaker.conversation or "", speaker.person), now, QUIET_SECONDS, deletes=deletes)
    return MemoryReply(ReplyKey.PRIVATE)


def list_suggestions(memory: Memory, speaker: Speaker) -> list[Fact]:
    """Return the speaker's suggestions, newest first. In a shared window there are none."""
    return [fact for fact in memory.get_facts(speaker.person, private=speaker.is_alone) if fact.turn is not None]


def find_told_facts(memory: Memory, speaker: Speaker, fact: Fact) -> Iterator[RecallHit]:
    """Yield the facts that a suggestion would correct: the speaker's if they keep it, the home's if they share it."""
    for owner in (speaker.person, None):
        if (old := find_corrected_fact(memory, speaker, fact.text, owner)) is not None:
            yield old


def read_suggestions(memory: Memory, speaker: Speaker) -> MemoryReply:
    """Read out the newest suggestions of the speaker, and ask whether to keep them."""
    page = list_suggestions(memory, speaker)[:_MAX_READ]
    if not page:
        return MemoryReply(ReplyKey.NOTHING_LEARNED)
    rows = tuple([fact.id for fact in page])
    keep = partial(_keep_and_read_on, speaker=speaker, rows=rows)
    return MemoryReply(ReplyKey.LEARNED, tuple([fact.text for fact in page]), named_fact_ids=rows, on_yes=keep)


def decide_and_read_on(memory: Memory, speaker: Speaker, rows: Sequence[int], decision: Decision) -> MemoryReply | None:
    """Decide about the suggestions that were read out, and read out the next ones. See `decide_suggestions`."""
    reply = decide_suggestions(memory, speaker, rows, decision)
    following = read_suggestions(memory, speaker)
    if reply is None or following.on_yes is None:
        return reply
    named = (*following.named_fact_ids, *reply.named_fact_ids)
    return replace(reply, named_fact_ids=named, on_yes=following.on_yes, others=(*reply.others, following))


def _keep_and_read_on(memory: Memory, speaker: Speaker, rows: Sequence[int]) -> MemoryReply:
    reply = decide_and_read_on(memory, speaker, rows, Decision.KEEP)
    return reply or MemoryReply(ReplyKey.NOTHING_LEARNED)


def decide_suggestions(memory: Memory, speaker: Speaker, rows: Sequence[int], decision: Decision) -> MemoryReply | None:
    """Keep suggestions of the speaker's, for them or for everybody, or delete them. Return None if there are none.

    A suggestion replaces the fact that it corrects only here, once its owner keeps it.
    """
    suggestions = [fact for fact in list_suggestions(memory, speaker) if fact.id in rows]
    if not suggestions or speaker.person is None:
        return None
    if decision is Decision.DISMISS:
        for fact in suggestions:
            delete_suggestion(memory, fact.id, speaker.person)
        return MemoryReply(ReplyKey.ALL_RIGHT)
    for_all, confirmed, replaced = decision is Decision.SHARE, list[int](), list[str]()
    for fact in suggestions:
        old = find_corrected_fact(memory, speaker, fact.text, None if for_all else speaker.person)
        row = confirm_suggestion(memory, fact.id, speaker.person, for_all=for_all, replaces=old.id if old else None)
        confirmed += [] if row is None else [row]
        replaced += [old.text] if old else []
    phrase = ReplyKey.REMEMBERED_HOME if for_all else ReplyKey.REMEMBERED_OWN
    others = (MemoryReply(ReplyKey.REPLACES, tuple(replaced)),) if replaced else ()
    texts = tuple([fact.text for fact in suggestions])
    return MemoryReply(phrase, texts, named_fact_ids=tuple(confirmed), others=others)
