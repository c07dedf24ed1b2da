"""The evidence and the tokens that learning from conversations adds to requests.

    .venv/test/bin/python -m benchmarks.learned            (--quick: only what expires, and one half of each household)

Two households tell a home facts over 200 days, see `benchmarks.recalled`. Every second one is remembered as a fact. The
others are only mentioned, in conversations like all others. Each half is mentioned once, and the counts are sums.
Everybody is known when they speak. On day 210, people ask their questions, and say commands and small talk. Turns older
than 90 days have expired, or with *kept* none.

The integration reads each ended conversation of two turns or more, with the data of an extractor that is right: it
quotes what was only mentioned in the person's own words, and its summary is what was said in the last two turns, so it
loses nothing that a model's summary may lose. *Summaries* and *facts* are the values of the option, *facts only* has no
summaries, and with *facts again* the extractor also quotes what was remembered before. *All told* is a home that learns
nothing because everything was remembered.

*Evidence* is the share of questions whose answer is in the request: among the facts of the system prompt or the
recalled lines, as said, as remembered, or as learned. *Gain* is its difference to learning nothing, in points. *Proved*
is the number of mentioned sentences of which the integration stored a fact. *Outdated* counts questions about a
corrected fact with the old one in the request, and *leaked* those with what somebody else may not know, or what was to
be forgotten. *Lines* and *facts* are the average tokens of both in a request, for a question or another sentence; a
token is four characters. *Missed* says why an answer is missing: nothing was learned of its sentence, its fact belongs
to somebody else, or it is not in the request.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
import itertools
from itertools import product
import json
import math
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.household import SEARCH_WORDS, START_TIMESTAMP
from benchmarks.recalled import HOUSEHOLD_NAMES, NAME_BY_PERSON, RecallingHome, contains_any, list_new_sentences
from benchmarks.workload import estimate_tokens

if TYPE_CHECKING:
    from custom_components.windowed_conversation.agents import learning
    from custom_components.windowed_conversation.memory import PastTurn
    from custom_components.windowed_conversation.turn.speaker import Speaker
else:
    learning = import_module("windowed_conversation.agents.learning")
    PastTurn, Speaker = learning.PastTurn, learning.Speaker

_AGENT = "agent"
_DAY_SECONDS = 86_400.0
_QUESTION_DAY = 210
_RETENTION_DAYS = 90
_COMMANDS_PER_DAY = 5

# The time, the text, and the answer of a turn.
type _Said = tuple[float, str, str]


class LearningArm(NamedTuple):
    """The memories that a home stores of ended conversations.

    `quotes_remembered` is whether the extractor quotes what was remembered before, and `remembers_all` whether nothing
    is only mentioned.
    """

    facts: bool = False
    summaries: bool = False
    quotes_remembered: bool = False
    remembers_all: bool = False

    @property
    def is_learning(self) -> bool:
        """Whether ended conversations are read."""
        return self.facts or self.summaries


ARM_BY_NAME = {
    "off": LearningArm(),
    "summaries": LearningArm(summaries=True),
    "facts only": LearningArm(facts=True),
    "facts": LearningArm(facts=True, summaries=True),
    "facts again": LearningArm(facts=True, summaries=True, quotes_remembered=True),
    "all told": LearningArm(remembers_all=True),
}


@dataclass(slots=True)
class EvidenceCounts:
    """Counts of mentioned and proved sentences, of questions with an answer, and of tokens of all sentences."""

    mentioned_count: int = 0
    proved_count: int = 0
    question_count: int = 0
    evidence_count: int = 0
    outdated_count: int = 0
    leaked_count: int = 0
    sentence_count: int = 0
    line_tokens: int = 0
    fact_tokens: int = 0
    missed: Counter[str] = field(default_factory=Counter)

    @property
    def evidence_share(self) -> float:
        """The share of questions whose answer is in the request."""
        return self.evidence_count / self.question_count


class MentioningHome(RecallingHome):
    """A home in which every second fact is only mentioned, and which may learn from its conversations."""

    def __init__(self, path: Path, name: str, half: int, arm: LearningArm) -> None:
        super().__init__(path)
        self.household: dict[str, Any] = json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
        self._told_by_text = {told["text"]: told for told in self.household["told"]}
        self._search_words: Mapping[str, str] = SEARCH_WORDS[name]["capable"]
        in_order = sorted(self.household["told"], key=lambda told: told["day"])
        self.mentioned = set() if arm.remembers_all else {told["id"] for told in in_order[half::2]}
        self.learned: dict[str, tuple[str, str]] = {}
        self._turn_ids: dict[str, int] = {}
        self._arm = arm
        for number, (person, said) in enumerate(_iter_conversations(self.household)):
            self._hold_conversation(f"c{number}", person, said)
        deleted = self.household["deleted"]
        self.memory_store.forget(ids=[("turn", self._turn_ids[name]) for name in deleted])
        self.memory_store.forget(ids=[("fact", self.fact_ids[name]) for name in deleted if name in self.fact_ids])

    def expire_turns(self, days: float) -> None:
        """Forget the turns that are older than this many days on the day of the questions."""
        self.memory_store.forget_expired({}, START_TIMESTAMP + (_QUESTION_DAY - days) * _DAY_SECONDS)

    def _hold_conversation(self, conversation: str, person: str | None, said: list[_Said]) -> None:
        at = 0.0
        for at, text, answer in said:
            told = self._told_by_text.get(text)
            is_fact = told is not None and told["id"] not in self.mentioned
            row = self.memory_store.add_turn(
                PastTurn(
                    conversation,
                    at,
                    text,
                    answer,
                    agent=_AGENT,
                    person=person,
                    tools=("remember",) if is_fact else (),
                    unread_language=(told["lang"] if told else "en") if self._arm.is_learning else None,
                )
            )
            if told:
                self._turn_ids[told["id"]] = row
            if told and is_fact:
                self.remember(told, at, self._search_words.get(told["id"]))
        while turns := self.memory_store.take_ended_turns(_AGENT, at + 1):
            self._learn(turns)

    def _learn(self, turns: Sequence[PastTurn]) -> None:
        """Store what the extractor returns for an ended conversation, as `agents.learning.Learner` does."""
        last = turns[-1]
        name, language = NAME_BY_PERSON[last.person], last.unread_language or ""
        speaker = Speaker("", language, last.person, name, is_alone=True, conversation=last.conversation)
        # only the last turn tells something
        told = self._told_by_text.get(last.said)
        summary = " ".join([_end_sentence(turn.said) for turn in turns[-2:]]) if self._arm.summaries else ""
        data = {"summary": summary, "facts": self._quote(len(turns), told) if told and self._arm.facts else []}
        store_data = learning._store_data  # noqa: SLF001 - everything before it is the request to the model
        stored, _ = store_data(speaker, turns, data, self.memory_store)
        for row, learned in stored.items():
            told_id = self._told_by_text[last.said]["id"]
            self.learned[told_id] = learned
            self.fact_ids.setdefault(told_id, row)

    def _quote(self, number: int, told: dict[str, Any]) -> list[dict[str, Any]]:
        if told["id"] not in self.mentioned and not self._arm.quotes_remembered:
            return []
        quote, subject = told.get("quote", told["text"]), told.get("subject", "")
        return [{"number": number, "quote": quote, "subject": subject, "words": self._search_words.get(told["id"], "")}]


def _end_sentence(text: str) -> str:
    return text if text.endswith(("?", "？", "。")) else f"{text}."


def _iter_conversations(household: dict[str, Any]) -> Iterator[tuple[str | None, list[_Said]]]:
    """Yield the person and the turns of each conversation: one of commands each day, and two turns for each fact."""
    commands = itertools.cycle(household["commands"])
    for day in range(201):
        at = START_TIMESTAMP + day * _DAY_SECONDS
        yield None, [(at + number * 60, *next(commands)) for number in range(_COMMANDS_PER_DAY)]
        for number, told in enumerate([told for told in household["told"] if told["day"] == day], 1):
            begin = at + number * 30_000
            yield told["who"], [(begin, *next(commands)), (begin + 60, told["text"], told["reply"])]


def _measure_evidence(counts: EvidenceCounts, home: MentioningHome) -> None:
    """Ask a home all questions, say the other sentences, and add the counts."""
    told = {told["id"]: told for told in home.household["told"]}
    counts.mentioned_count += len(home.mentioned)
    counts.proved_count += len(home.mentioned & home.learned.keys())
    for question in home.household["questions"]:
        shown = _add_sentence(counts, home, question["q"], question["who"])
        forbidden = [text for name in question["forbid"] for text in _list_wordings(home, told[name])]
        if question["kind"] == "update":
            counts.outdated_count += contains_any((shown,), forbidden)
        else:
            counts.leaked_count += contains_any((shown,), forbidden)
        if not question["want"]:
            continue
        counts.question_count += 1
        if contains_any((shown,), [text for name in question["want"] for text in _list_wordings(home, told[name])]):
            counts.evidence_count += 1
        else:
            counts.missed[_explain(home, question)] += 1
    for number, said in enumerate(list_new_sentences(home.household)):
        _add_sentence(counts, home, said, (*NAME_BY_PERSON,)[number % len(NAME_BY_PERSON)])


def _add_sentence(counts: EvidenceCounts, home: MentioningHome, text: str, who: str | None) -> str:
    """Count the tokens of a sentence's lines and facts, and return both."""
    lines, facts = home.recall(text, who)
    counts.sentence_count += 1
    counts.line_tokens += lines.tokens
    counts.fact_tokens += estimate_tokens(facts)
    return "\n".join((facts, *lines.lines))


def _list_wordings(home: MentioningHome, told: dict[str, Any]) -> list[str]:
    """Return a fact in the words of the person, as it was remembered, and as it was learned."""
    _, learned = home.learned.get(told["id"], ("", told["text"]))
    return [told["text"], told["fact"], learned]


def _explain(home: MentioningHome, question: dict[str, Any]) -> str:
    """Return why an answer is missing."""
    missing = [name for name in question["want"] if name in home.mentioned]
    if not missing:
        return "not sent"
    owners = [home.learned[name][0] for name in missing if name in home.learned]
    if not owners:
        return "not learned"
    return "not sent" if {*owners} & {"", NAME_BY_PERSON[question["who"]]} else "somebody else's"


def measure_arm(name: str, arm: LearningArm, days: float, halves: Iterable[int]) -> EvidenceCounts:
    """Return the sum of the counts of homes of a household in which these halves are mentioned, 0 or 1."""
    counts = EvidenceCounts()
    for half in halves:
        with TemporaryDirectory() as folder:
            home = MentioningHome(Path(folder) / "memory.db", name, half, arm)
            home.expire_turns(days)
            _measure_evidence(counts, home)
            home.memory_store.close()
    return counts


def main() -> None:
    """Run the benchmark and print the results."""
    is_quick = "--quick" in sys.argv[1:]
    print(
        f"{'household':46}{'proved':>9}{'evidence':>10}{'gain':>7}{'outdated':>10}{'leaked':>8}{'lines':>8}{'facts':>8}"
        f"{'both':>8}  missed"
    )
    for name, days in product(HOUSEHOLD_NAMES, (_RETENTION_DAYS,) if is_quick else (_RETENTION_DAYS, math.inf)):
        base = 0.0
        for label, arm in ARM_BY_NAME.items():
            counts = measure_arm(name, arm, days, range(1 if is_quick else 2))
            base = base or counts.evidence_share
            print(_format_row(f"{name}, {'kept' if math.isinf(days) else f'{days} days'}, {label}", counts, base))


def _format_row(label: str, counts: EvidenceCounts, base: float) -> str:
    proved = f"{counts.proved_count} of {counts.mentioned_count}" if counts.mentioned_count else ""
    lines, facts = (each / counts.sentence_count for each in (counts.line_tokens, counts.fact_tokens))
    missed = ", ".join([f"{count} {why}" for why, count in counts.missed.most_common()])
    return (
        f"{label:46}{proved:>9}{counts.evidence_share:10.1%}{100 * (counts.evidence_share - base):+7.1f}"
        f"{counts.outdated_count:10}{counts.leaked_count:8}{lines:8.1f}{facts:8.1f}{lines + facts:8.1f}  {missed}"
    )


if __name__ == "__main__":
    main()
