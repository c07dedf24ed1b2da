"""The lines that memory recalls: whether the evidence for a question is among them, and how often nobody needs them.

    .venv/test/bin/python -m benchmarks.recalled

Two households tell a home facts and talk to it. Each sentence that tells a fact and each command is stored as a turn.
With *half*, every second told fact is stored as a turn only, so that turns are its only evidence. With *mentioned*,
these turns also leave suggestions in the words of the person who said them, and other people ask nothing about those,
because nobody else may hear of them. With *more*, there are 400 further facts, so that the profile of facts has room
for a few of them. Then people ask questions with and without an answer, and say commands and small talk.

*Evidence* is the share of questions whose answer is in the profile of facts or among the recalled lines. *Tokens* are
the tokens of the recalled lines for each sentence; a token is four characters. *Corrected* is the number of questions
about a corrected fact with a recalled line that tells the old one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from itertools import product
import json
from pathlib import Path
import random
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from home_assistant_intents import get_intents

from benchmarks import ours  # noqa: F401 - makes the modules of the integration importable
from benchmarks.household import SEARCH_WORDS, START_TIMESTAMP
from benchmarks.workload import estimate_tokens

if TYPE_CHECKING:
    from custom_components.windowed_conversation.memory.core import (
        FactStatement,
        Memory,
        PastTurn,
        RecallQuery,
        add_suggestion,
    )
    from custom_components.windowed_conversation.memory.turn import recall, recall_query
    from custom_components.windowed_conversation.turn import routing
else:
    memory, recall, recall_query, routing = (
        import_module(f"windowed_conversation.{name}")
        for name in ("memory.core", "memory.turn.recall", "memory.turn.recall_query", "turn.routing")
    )
    FactStatement, Memory = memory.FactStatement, memory.Memory
    PastTurn, RecallQuery = memory.PastTurn, memory.RecallQuery
    add_suggestion = memory.add_suggestion

HOUSEHOLD_NAMES = ("memory_household", "memory_second_household")
_LANGUAGES = ("en", "de", "it", "zh")
NAME_BY_PERSON = {"anna": "Anna", "ben": "Ben", None: None}
_DAY_SECONDS = 86_400.0
_SAMPLE_SIZE = 100
_VARIANTS = ("all", "half", "mentioned", "more")
_NO_SEARCH_WORDS: Mapping[str, str] = MappingProxyType({})
# The names of areas of the homes, and Home Assistant's names of the kinds of their entities.
_HOME_WORDS = (
    "kitchen bedroom bathroom office living room hall garden cellar terrace study garage leo's "
    "light blind curtain fan vacuum television thermostat lock window door battery humidity temperature power switch"
)


@dataclass(slots=True)
class RecallCounts:
    """The counts for a group of sentences: all, those with recalled lines or evidence, and the tokens of all lines."""

    sentence_count: int = 0
    recalled_count: int = 0
    evidence_count: int = 0
    token_count: int = 0
    corrected_count: int = 0

    def add(self, lines: recall.RecalledLines, *, has_evidence: bool = False, is_corrected: bool = False) -> None:
        """Add a sentence."""
        self.sentence_count += 1
        self.recalled_count += bool(lines.lines)
        self.evidence_count += has_evidence
        self.token_count += lines.tokens
        self.corrected_count += is_corrected


class RecallingHome:
    """A home on day 210 with a memory file, and the command words of its languages."""

    def __init__(self, path: Path) -> None:
        self.memory_store = Memory(path, _LANGUAGES)
        self.fact_ids: dict[str, int] = {}
        # The people whose suggestions facts are.
        self.mentioned_by: dict[str, str | None] = {}
        command_words = recall_query.iter_command_words(get_intents("en") or {})
        self._command_words = frozenset([*command_words, *_HOME_WORDS.split()]) | recall_query.get_small_talk_words(
            "en"
        )
        self._now = datetime.fromtimestamp(START_TIMESTAMP + 210 * _DAY_SECONDS, UTC)

    def remember(self, told: dict[str, Any], at: float, search_words: str | None) -> None:
        """Store a told fact. It replaces the one that it corrects."""
        owner = _get_owner(told)
        self.fact_ids[told["id"]] = self.memory_store.add_fact(
            told["fact"],
            person=owner,
            private=owner is not None,
            quote=told["text"],
            replaces=self.fact_ids.get(told["replaces"]),
            at=at,
            search_words=search_words,
        )

    def suggest(self, told: dict[str, Any], at: float, search_words: str, turn: int) -> None:
        """Store a suggestion of the person who said a sentence, in the words of the sentence."""
        self.mentioned_by[told["id"]] = told["who"]
        fact = FactStatement(
            told.get("quote") or told["text"],
            told["who"],
            private=True,
            source="learned",
            quote=told["text"],
            at=at,
            confirmed=at,
            search_words=search_words,
            turn=turn,
        )
        add_suggestion(self.memory_store, fact, f"c{turn // 3}")

    def tell_everything(self, household: dict[str, Any], variant: str, search_words: Mapping[str, str]) -> None:
        """Store the turns and facts of a household, and forget those that are marked as deleted."""
        for number, (at, said, answer, told) in enumerate(_iter_turns(household)):
            owner = _get_owner(told) if told else None
            is_fact = told is not None and not (variant in {"half", "mentioned"} and number % 2)
            is_suggestion = bool(told and told["who"]) and not is_fact and variant == "mentioned"
            turn = PastTurn(
                f"c{number // 3}",
                at,
                said,
                answer,
                person=told["who"] if told and is_suggestion else owner,
                tools=("remember",) if is_fact else (),
            )
            row = self.memory_store.add_turn(turn)
            if told and is_fact:
                self.remember(told, at, search_words.get(told["id"]))
            elif told and is_suggestion:
                self.suggest(told, at, search_words.get(told["id"], ""), row)
        for owner, fact, at in _iter_more_facts() if variant == "more" else ():
            self.memory_store.add_fact(fact, person=owner, private=owner is not None, at=at)
        self.memory_store.forget(
            ids=[("fact", self.fact_ids[name]) for name in household["deleted"] if name in self.fact_ids]
        )

    def recall(self, text: str, who: str | None) -> tuple[recall.RecalledLines, str]:
        """Return the lines recalled for a sentence, and the text of the profile."""
        narrator = recall.RecallText(NAME_BY_PERSON[who], self._now)
        facts = recall.build_prompt_facts(self.memory_store.get_facts(who), narrator, estimate_tokens)
        query = RecallQuery(
            text,
            who,
            NAME_BY_PERSON[who],
            recall.MAX_RECALL_HITS,
            command_words=self._command_words,
            is_question=routing.is_question(text),
        )
        found = self.memory_store.recall_relevant(query)
        sent = recall.build_sent_context((), facts, text)
        hits = recall.interleave_hits(*found)
        lines = recall.choose_recalled_lines(hits, sent, narrator, estimate_tokens, recall.MAX_RECALLED_TOKENS)
        return lines, facts.text


def _iter_turns(household: dict[str, Any]) -> Iterator[tuple[float, str, str, dict[str, Any] | None]]:
    """Yield the time, sentence, answer and told fact of each turn: five commands a day, and the told facts."""
    commands = household["commands"]
    for day in range(201):
        at = START_TIMESTAMP + day * _DAY_SECONDS
        for number in range(5):
            said, answer = commands[(day * 5 + number) % len(commands)]
            yield at + number * 3600, said, answer, None
        for told in household["told"]:
            if told["day"] == day:
                yield at + 60_000, told["text"], told["reply"], told


def _iter_more_facts() -> Iterator[tuple[str | None, str, float]]:
    """Yield the owner, text and time of each further fact."""
    chance = random.Random(14)
    for section in Path(__file__).with_name("memory_more_facts.txt").read_text(encoding="utf-8").split("# ")[1:]:
        name, *facts = section.splitlines()
        for fact in facts:
            yield None if name == "home" else name, fact, START_TIMESTAMP + chance.randrange(201) * _DAY_SECONDS


def _get_owner(told: dict[str, Any]) -> str | None:
    return None if told["scope"] == "house" else told["scope"]


def _measure(
    household: dict[str, Any], path: Path, variant: str, search_words: Mapping[str, str]
) -> tuple[RecallCounts, RecallCounts, RecallCounts]:
    """Return the counts of questions with an answer, questions without one, and commands."""
    home = RecallingHome(path)
    home.tell_everything(household, variant, search_words)
    with_answer, without_answer, commands = RecallCounts(), RecallCounts(), RecallCounts()
    facts = {told["id"]: told["fact"] for told in household["told"]}
    sentences = {told["id"]: told["text"] for told in household["told"]}
    for question in household["questions"]:
        if any(home.mentioned_by.get(name, question["who"]) != question["who"] for name in question["want"]):
            continue
        lines, profile = home.recall(question["q"], question["who"])
        shown = f"{profile}\n{'\n'.join(lines.lines)}"
        old = contains_any(lines.lines, [sentences[name] for name in question["forbid"]])
        if not question["want"]:
            without_answer.add(lines)
            continue
        wanted = [text for name in question["want"] for text in (facts[name], sentences[name])]
        with_answer.add(
            lines,
            has_evidence=contains_any((shown,), wanted),
            is_corrected=old and question["kind"] == "update" and variant != "half",
        )
    for number, said in enumerate(list_new_sentences(household)):
        commands.add(home.recall(said, ("anna", "ben", None)[number % 3])[0])
    home.memory_store.close()
    return with_answer, without_answer, commands


def list_new_sentences(household: dict[str, Any]) -> list[str]:
    """Return commands and small talk; in a household without new ones, those that were said before."""
    if "new_sentences" in household:
        return list(household["new_sentences"])
    return [said for said, _ in random.Random(14).sample(household["commands"], _SAMPLE_SIZE)]


def contains_any(lines: Iterable[str], texts: Iterable[str]) -> bool:
    """Return whether one of these texts is in the lines, as lines of memory write it."""
    shown = "\n".join(lines)
    return any(recall.clean_sentence(text).replace('"', "'") in shown for text in texts)


def main() -> None:
    """Run the benchmark and print the results."""
    print(
        f"{'household':44}{'evidence':>10}{'tokens':>8}{'corrected':>11}{'unanswered':>12}{'commands':>10}{'tokens':>8}"
    )
    with TemporaryDirectory() as folder:
        for name, variant, writer in product(HOUSEHOLD_NAMES, _VARIANTS, (None, "capable", "sloppy")):
            household = json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))
            search_words = SEARCH_WORDS[name][writer] if writer else _NO_SEARCH_WORDS
            path = Path(folder) / f"{name} {variant} {writer}.db"
            with_answer, without_answer, commands = _measure(household, path, variant, search_words)
            print(
                f"{f'{name}, {variant}, {writer or "no words"}':44}"
                f"{with_answer.evidence_count / with_answer.sentence_count:10.1%}"
                f"{with_answer.token_count / with_answer.sentence_count:8.1f}"
                f"{with_answer.corrected_count:11}"
                f"{f'{without_answer.recalled_count} of {without_answer.sentence_count}':>12}"
                f"{f'{commands.recalled_count} of {commands.sentence_count}':>10}"
                f"{commands.token_count / commands.sentence_count:8.1f}"
            )


if __name__ == "__main__":
    main()
