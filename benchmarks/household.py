"""The household set: facts of two people over 200 days, and how well memory and plain FTS5 find them later."""

from collections.abc import Callable, Iterator
import json
from pathlib import Path
import random
import re
import sqlite3
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from custom_components.windowed_conversation.memory.core import Memory, PastTurn
    from custom_components.windowed_conversation.memory.core.words import get_function_words
else:
    # Importing the integration's package would import Home Assistant.
    sys.path.insert(0, str(Path(__file__).parent.parent / "custom_components" / "windowed_conversation"))
    from memory.core import Memory, PastTurn
    from memory.core.words import get_function_words

HOUSEHOLD: dict[str, Any] = json.loads(Path(__file__).with_name("memory_household.json").read_text())
# The search words of each household's facts by writer and by fact.
SEARCH_WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("memory_search_words.json").read_text())
START_TIMESTAMP = 1_700_000_000.0

_LANGUAGES = ("en", "de", "it", "zh")
_NAME_BY_PERSON = {"anna": "Anna", "ben": "Ben", None: None}
_DAY_SECONDS = 86_400.0

type SearchFunction = Callable[[str, str | None], list[str]]


class SearchScores(NamedTuple):
    """Shares of questions with a wanted result first or among the first five, and counts of stale or forbidden ones."""

    first_share: float
    top_five_share: float
    chinese_hits: str
    stale_first_count: int
    forbidden_count: int


def load_facts(folder: Path, writer: str | None = None) -> tuple[Memory, SearchFunction]:
    """Return a memory that holds the household's facts, and a function that queries it.

    `writer` is the writer of the facts' search words: "capable", "sloppy", or None for facts without them.
    """
    memory = Memory(folder / f"facts {writer}.db", _LANGUAGES)
    search_words = SEARCH_WORDS["memory_household"][writer] if writer else {}
    rows: dict[str, int] = {}
    for told in sorted(HOUSEHOLD["told"], key=lambda told: told["day"]):
        rows[told["id"]] = memory.add_fact(
            told["fact"],
            person=_get_owner(told),
            private=_get_owner(told) is not None,
            replaces=rows.get(told["replaces"]),
            at=START_TIMESTAMP + told["day"] * _DAY_SECONDS,
            search_words=search_words.get(told["id"]),
        )
    memory.forget(ids=[("fact", rows[name]) for name in HOUSEHOLD["deleted"]])
    names = {row: name for name, row in rows.items()}

    def search(question: str, who: str | None) -> list[str]:
        found = memory.recall(question, person=who, speaker=_NAME_BY_PERSON[who], kinds=("fact",), limit=60)
        return [names[recalled.id] for recalled in found]

    return memory, search


def index_facts(tokenizer: str) -> SearchFunction:
    """Return a function that queries FTS5 for those facts that are still true at the end."""
    replaced = {told["replaces"] for told in HOUSEHOLD["told"]}
    facts = [told for told in HOUSEHOLD["told"] if told["id"] not in {*replaced, *HOUSEHOLD["deleted"]}]
    owners = {told["id"]: _get_owner(told) for told in facts}
    search = create_fts_search(tokenizer, [(told["id"], told["fact"]) for told in facts])
    return lambda question, who: [name for name in search(question) if owners[name] in {None, who}]


def load_turns(folder: Path) -> tuple[Memory, SearchFunction]:
    """Return a memory that holds the household's turns, statements and commands, and a function that queries it."""
    memory = Memory(folder / "turns.db", _LANGUAGES)
    names: dict[int, str] = {}
    for number, (name, said, answer, owner) in enumerate(_iter_turns()):
        turn = PastTurn(f"c{number}", START_TIMESTAMP + number * _DAY_SECONDS / 15, said, answer, person=owner)
        names[memory.add_turn(turn)] = name
    memory.forget(ids=[("turn", row) for row, name in names.items() if name in HOUSEHOLD["deleted"]])

    def search(question: str, who: str | None) -> list[str]:
        found = memory.recall(question, person=who, speaker=_NAME_BY_PERSON[who], kinds=("turn",), limit=60)
        return [names[recalled.id] for recalled in found]

    return memory, search


def index_turns(tokenizer: str) -> SearchFunction:
    """Return a function that queries FTS5 for the household's turns."""
    turns = [turn for turn in _iter_turns() if turn[0] not in HOUSEHOLD["deleted"]]
    owners = {name: owner for name, _, _, owner in turns}
    search = create_fts_search(tokenizer, [(name, f"{said} {answer}") for name, said, answer, _ in turns])
    return lambda question, who: [name for name in search(question) if owners[name] in {None, who}]


def score_search(ask: SearchFunction) -> SearchScores:
    """Return the hits of a search function for the household's questions."""
    asked = [(question, ask(question["q"], question["who"])) for question in HOUSEHOLD["questions"]]
    wanted = [(question, found) for question, found in asked if question["want"]]
    chinese = [bool({*found[:1]} & {*question["want"]}) for question, found in wanted if question["lang"] == "zh"]
    refused = [question for question in HOUSEHOLD["questions"] if question["kind"] in {"private", "deleted"}]
    return SearchScores(
        first_share=sum(bool({*found[:1]} & {*question["want"]}) for question, found in wanted) / len(wanted),
        top_five_share=sum(bool({*found[:5]} & {*question["want"]}) for question, found in wanted) / len(wanted),
        chinese_hits=f"{sum(chinese)} of {len(chinese)}",
        stale_first_count=sum(_is_stale(question, found) for question, found in wanted if question["kind"] == "update"),
        forbidden_count=sum(bool({*found} & {*question["forbid"]}) for question, found in asked if question in refused),
    )


def create_fts_search(tokenizer: str, texts: list[tuple[str, str]]) -> Callable[[str], list[str]]:
    """Return a function that searches texts with FTS5, without stop words, and returns the names of those found."""
    index = sqlite3.connect(":memory:")
    index.execute(f"CREATE VIRTUAL TABLE texts USING fts5(name UNINDEXED, text, tokenize='{tokenizer}')")
    index.executemany("INSERT INTO texts VALUES (?, ?)", texts)
    dropped = get_function_words(_LANGUAGES, "stop")

    def search(question: str) -> list[str]:
        words = [word for word in re.findall(r"\w+", question.lower()) if word not in dropped]
        match = " OR ".join(f'"{word}"' for word in words)
        if not match:
            return []
        return [name for (name,) in index.execute("SELECT name FROM texts WHERE texts MATCH ? ORDER BY rank", (match,))]

    return search


def _iter_turns() -> Iterator[tuple[str, str, str, str | None]]:
    """Yield name, sentence, answer and owner of each turn: fifteen commands a day, and the turns that state facts."""
    chance = random.Random(14)
    for day in range(201):
        for number in range(15):
            said, answer = chance.choice(HOUSEHOLD["commands"])
            yield f"command {day} {number}", said, answer, None
        for told in HOUSEHOLD["told"]:
            if told["day"] == day:
                yield told["id"], told["text"], told["reply"], _get_owner(told)


def _get_owner(fact: dict[str, Any]) -> str | None:
    return None if fact["scope"] == "house" else fact["scope"]


def _is_stale(question: dict[str, Any], found: list[str]) -> bool:
    relevant = [name for name in found if name in {*question["want"], *question["forbid"]}]
    return bool({*relevant[:1]} & {*question["forbid"]})
