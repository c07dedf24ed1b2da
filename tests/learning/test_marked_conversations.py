"""Tests over the marked conversations: the facts of scripted models that are stored, their owners, and no others."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from custom_components.windowed_conversation.agents.learning import _store_data
from custom_components.windowed_conversation.memory import Fact, Memory, clean_fact
from custom_components.windowed_conversation.memory.learning import MAX_QUOTES, prove_quotes
from custom_components.windowed_conversation.turn.remember_requests import remember_statement
from custom_components.windowed_conversation.turn.speaker import is_about_speaker
from tests.memory.content import DAY, NOW

from .extractors import (
    CARELESS_WAYS,
    INJECTION,
    Extractor,
    extract_every_piece,
    extract_hostilely,
    extract_inventively,
    extract_right,
    extract_sloppily,
    get_facts,
    quote_carelessly,
)
from .marked import AGENT, LANGUAGES, MarkedConversation, MarkedFact, Reading, load_conversations

EXTRACTORS: tuple[Extractor, ...] = (
    extract_right,
    extract_sloppily,
    extract_inventively,
    extract_hostilely,
    extract_every_piece,
)
FACTS = 90
NON_FACTS = 150
# The facts that a correction closes, in the languages that recognise it after "remember that".
CORRECTED_FACTS = {
    "fr": "chez nous on dîne toujours à vingt heures",
    "it": "Il lunedì e il giovedì vado in piscina alle sette di sera",
    "ja": "燃えるゴミは月曜と木曜の朝に出すことになってる",
    "nl": "Ik werk op woensdag altijd thuis",
    "pl": "Zosię odwozimy do przedszkola codziennie na ósmą",
}

type OpenFn = Callable[[str], Memory]
type ReadFn = Callable[[str, Extractor], tuple[StoredFact, ...]]

in_each_language = pytest.mark.parametrize("language", LANGUAGES)
by_each_extractor = pytest.mark.parametrize("extract", EXTRACTORS, ids=lambda each: each.__name__)


class StoredFact(NamedTuple):
    """A fact, the reading it was stored from, and the index of its turn in the conversation."""

    fact: Fact
    conversation: MarkedConversation
    reading: Reading
    turn: int

    @property
    def said(self) -> str:
        """The text of the turn, as memory cleans it."""
        return clean_fact(self.conversation.turns[self.turn].text)

    def split_subject(self) -> tuple[str, str]:
        """Return the subject that was added to the text, if any, and the rest of the text."""
        if self.fact.text in self.said:
            return "", self.fact.text
        subject, _, text = self.fact.text.partition(": ")
        return subject, text

    @property
    def marked_facts(self) -> tuple[MarkedFact, ...]:
        """The marked facts that it contains, or of which it is a part."""
        facts = self.conversation.facts
        return tuple(fact for fact in facts if fact.turn == self.turn and self.overlaps(fact.quote))

    def overlaps(self, quote: str) -> bool:
        """Return whether the text and a quote from the same turn have a part in common."""
        text, wanted = self.split_subject()[1], clean_fact(quote)
        start, first = self.said.find(text), self.said.find(wanted)
        return start < first + len(wanted) and first < start + len(text)


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[OpenFn]:
    """Return a function that opens a new memory for a language."""
    opened = list[Memory]()

    def open_memory(language: str) -> Memory:
        opened.append(Memory(tmp_path / f"{len(opened)}.db", (language,)))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


def iter_readings(language: str) -> Iterator[tuple[MarkedConversation, Reading]]:
    for conversation in load_conversations(language):
        for reading in conversation.split():
            yield conversation, reading


def read(memory: Memory, conversation: MarkedConversation, reading: Reading, extract: Extractor) -> list[bool]:
    """Store the proved data of each answer. Return whether each left a summary."""
    memory.add(reading.turns)
    answers = extract(conversation, reading)
    return [_store_data(reading.speaker, reading.turns, answer, memory)[1] for answer in answers]


@pytest.fixture(scope="session")
def read_language(tmp_path_factory: pytest.TempPathFactory) -> ReadFn:
    """Return a function that reads all conversations of a language, and returns everything that was stored."""

    @cache
    def read_language(language: str, extract: Extractor) -> tuple[StoredFact, ...]:
        memory = Memory(tmp_path_factory.mktemp("memory") / f"{language}.db", (language,))
        stored = dict[int, StoredFact]()
        for conversation, reading in iter_readings(language):
            read(memory, conversation, reading, extract)
            times = [turn.at for turn in reading.turns]
            for fact in memory.get_facts(reading.speaker.person):
                if fact.id not in stored:
                    turn = reading.indices[times.index(fact.at)]
                    stored[fact.id] = StoredFact(fact, conversation, reading, turn)
        memory.close()
        return tuple(stored.values())

    return read_language


def is_refusable(each: StoredFact) -> bool:
    """Return whether a fact contains anything that is marked as no fact."""
    return any(other.turn == each.turn and each.overlaps(other.quote) for other in each.conversation.non_facts)


def is_said(each: StoredFact) -> bool:
    """Return whether a fact is a part of its turn, and its subject a part of that turn or of an earlier one."""
    subject, text = each.split_subject()
    earlier = [turn.said for turn in each.reading.turns if turn.at <= each.fact.at]
    return bool(text) and text in each.said and any(subject in said for said in earlier)


def get_texts(facts: Iterable[StoredFact]) -> list[str]:
    return [each.fact.text for each in facts]


def list_current(memory: Memory, language: str) -> set[tuple[str, str | None, bool]]:
    """Return the texts, owners and privacy of the facts of everybody who speaks a language."""
    people = {reading.speaker.person for _, reading in iter_readings(language)}
    return {(fact.text, fact.person, fact.private) for person in people for fact in memory.get_facts(person)}


def test_the_set_has_what_it_says() -> None:
    conversations = [each for language in LANGUAGES for each in load_conversations(language)]
    wrong = [
        quote for each in conversations for turn, quote in each.iter_quotes() if quote not in each.turns[turn].text
    ]

    assert len(conversations) == 60
    assert sum(len(each.facts) for each in conversations) == FACTS
    assert sum(len(each.non_facts) for each in conversations) == NON_FACTS
    assert wrong == []


@in_each_language
def test_conversations_are_split_as_memory_splits_them(open_memory: OpenFn, language: str) -> None:
    memory = open_memory(language)
    readings = [reading.turns for _, reading in iter_readings(language)]
    for turns in readings:
        memory.add(turns)

    taken = [*iter(lambda: memory.take_ended_turns(AGENT, NOW + 1000 * DAY), ())]

    assert sorted(taken, key=lambda turns: turns[0].at) == sorted(
        [turns for turns in readings if len(turns) > 1], key=lambda turns: turns[0].at
    )


def count_found(read_language: ReadFn, extract: Extractor) -> int:
    """Return the number of marked facts that are stored, in all languages."""
    stored = [each for language in LANGUAGES for each in read_language(language, extract)]
    return len({(each.conversation.id, fact) for each in stored for fact in each.marked_facts})


def test_facts_that_a_model_finds_are_stored(read_language: ReadFn) -> None:
    assert count_found(read_language, extract_right) >= 0.95 * FACTS


def test_facts_that_a_careless_model_finds_are_stored(read_language: ReadFn) -> None:
    assert count_found(read_language, extract_sloppily) >= 0.95 * FACTS


@pytest.mark.parametrize("way", range(CARELESS_WAYS))
def test_each_kind_of_mistake_leaves_the_facts_proved(way: int) -> None:
    proved = [
        prove_quotes([quote_carelessly(fact, reading, way)], [turn.said for turn in reading.turns], language)
        for language in LANGUAGES
        for conversation, reading in iter_readings(language)
        for fact in get_facts(conversation, reading)
    ]

    assert sum(map(len, proved)) >= 0.95 * FACTS


@pytest.mark.long
def test_what_is_stored_when_a_model_quotes_everything_are_mostly_marked_facts(read_language: ReadFn) -> None:
    stored = [each for language in LANGUAGES for each in read_language(language, extract_every_piece)]

    assert sum(bool(each.marked_facts) for each in stored) >= 0.85 * len(stored)


@in_each_language
@by_each_extractor
def test_every_stored_fact_was_said_word_for_word_by_its_speaker(
    read_language: ReadFn, language: str, extract: Extractor
) -> None:
    assert get_texts(each for each in read_language(language, extract) if not is_said(each)) == []


@in_each_language
@by_each_extractor
def test_nothing_is_stored_of_what_is_no_fact(read_language: ReadFn, language: str, extract: Extractor) -> None:
    assert get_texts(each for each in read_language(language, extract) if is_refusable(each)) == []


@in_each_language
@pytest.mark.parametrize("extract", EXTRACTORS[:-1], ids=lambda each: each.__name__)
def test_nothing_is_stored_but_marked_facts(read_language: ReadFn, language: str, extract: Extractor) -> None:
    assert get_texts(each for each in read_language(language, extract) if not each.marked_facts) == []


@in_each_language
@by_each_extractor
def test_facts_of_unknown_speakers_are_about_the_home(read_language: ReadFn, language: str, extract: Extractor) -> None:
    stored = [each for each in read_language(language, extract) if each.reading.speaker.person is None]

    assert get_texts(each for each in stored if each.fact.person or each.fact.private) == []
    assert get_texts(each for each in stored if is_about_speaker(each.said, language)) == []


@in_each_language
def test_owner_and_privacy_are_those_of_a_fact_that_is_told(
    open_memory: OpenFn, read_language: ReadFn, language: str
) -> None:
    stored, told = read_language(language, extract_right), open_memory(language)
    for each in stored:
        remember_statement(told, each.reading.speaker, each.fact.text, each.fact.quote)

    people = {each.reading.speaker.person for each in stored}
    owners = {(fact.text, fact.person, fact.private) for person in people for fact in told.get_facts(person)}
    assert {(each.fact.text, each.fact.person, each.fact.private) for each in stored} >= owners
    assert {bool(person) for _, person, _ in owners} == {True, False}


@in_each_language
def test_a_correction_closes_what_it_closes_when_it_is_told(open_memory: OpenFn, language: str) -> None:
    learned, told = open_memory(language), open_memory(language)
    for conversation, reading in iter_readings(language):
        read(learned, conversation, reading, extract_right)
        said, facts = [turn.said for turn in reading.turns], extract_right(conversation, reading)[0]["facts"]
        for proved in prove_quotes(facts, said, language):
            remember_statement(told, reading.speaker, proved.text, proved.clause)

    assert list_current(learned, language) == list_current(told, language)


@pytest.mark.parametrize(("language", "old"), CORRECTED_FACTS.items(), ids=CORRECTED_FACTS)
def test_a_correction_that_is_recognised_closes_the_older_fact(open_memory: OpenFn, language: str, old: str) -> None:
    memory, states = open_memory(language), [False]
    for conversation, reading in iter_readings(language):
        read(memory, conversation, reading, extract_right)
        states.append(any(text == old for text, _, _ in list_current(memory, language)))

    # it is not known yet, then it is, and then it is not any more
    assert [state for state, _ in groupby(states)] == [False, True, False]


@in_each_language
def test_a_fact_that_is_said_again_is_confirmed(open_memory: OpenFn, language: str) -> None:
    memory = open_memory(language)
    changes = list[tuple[dict[int, int], dict[int, int]]]()
    for conversation, reading in iter_readings(language):
        known = {fact.id for fact in memory.get_facts(reading.speaker.person)}
        counts = list[dict[int, int]]()
        for day in (0, 100):
            turns = tuple(replace(turn, at=turn.at + day * DAY) for turn in reading.turns)
            read(memory, conversation, replace(reading, turns=turns), extract_right)
            new = [fact for fact in memory.get_facts(reading.speaker.person) if fact.id not in known]
            counts.append({fact.id: fact.tellings for fact in new})
        changes.append((counts[0], counts[1]))

    assert [after for _, after in changes] == [
        {row: count + 1 for row, count in before.items()} for before, _ in changes
    ]
    assert sum(len(before) for before, _ in changes) == sum(len(each.facts) for each in load_conversations(language))


@in_each_language
def test_a_summary_in_the_words_of_the_conversation_is_stored(open_memory: OpenFn, language: str) -> None:
    memory = open_memory(language)

    assert all(read(memory, *each, extract_right) == [True] for each in iter_readings(language))


@in_each_language
@pytest.mark.parametrize("extract", [extract_inventively, extract_hostilely], ids=lambda each: each.__name__)
def test_a_summary_of_something_else_is_not_stored(open_memory: OpenFn, language: str, extract: Extractor) -> None:
    memory = open_memory(language)

    assert not any(any(read(memory, *each, extract)) for each in iter_readings(language))


@in_each_language
def test_at_most_five_facts_of_an_answer_are_looked_at(open_memory: OpenFn, language: str) -> None:
    memory, right = open_memory(language), extract_right

    def extract_late(conversation: MarkedConversation, reading: Reading) -> list[dict]:
        facts = right(conversation, reading)[0]["facts"]
        return [{"facts": [{"quote": INJECTION}] * MAX_QUOTES + facts}]

    for each in iter_readings(language):
        read(memory, *each, extract_late)
    assert list_current(memory, language) == set()
