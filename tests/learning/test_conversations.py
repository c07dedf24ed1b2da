"""Tests with whole conversations: the suggestions of a model that quotes everything, and the requests with them.

`conversations` has those of families in ten languages, with the facts that a careful reader finds in them.
`confidences.json` has others, half of them about somebody else in confidence.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from custom_components.windowed_conversation.memory.core import Memory, PastTurn, RecallQuery, base_language
from custom_components.windowed_conversation.memory.turn.recall import RecallText, build_prompt_facts
from custom_components.windowed_conversation.memory.turn.speaker import Speaker
from custom_components.windowed_conversation.memory.turn.suggestions import (
    Decision,
    decide_suggestions,
    list_suggestions,
    store_reading,
)
from tests.memory.content import NOW

FOLDER = Path(__file__).parent
CONFIDENCES = json.loads((FOLDER / "confidences.json").read_text("utf-8"))
FAMILIES = {path.stem: json.loads(path.read_text("utf-8")) for path in (FOLDER / "conversations").glob("*.json")}
ANNA, BEN, NOBODY = "anna", "ben", None
# The number of quotes that are read of one answer.
BATCH = 5


class Reading(NamedTuple):
    """The sentences of one person in a conversation, and the quotes of a careful reader."""

    id: str
    language: str
    said: tuple[str, ...]
    facts: tuple[dict[str, Any], ...] = ()


def load_readings() -> Iterator[Reading]:
    """Yield the sentences of each known speaker in the conversations of the families."""
    for language, conversations in FAMILIES.items():
        for each in conversations:
            turns = each["turns"]
            for speaker in dict.fromkeys(turn["speaker"] for turn in turns if turn["speaker"]):
                places = [place for place, turn in enumerate(turns) if turn["speaker"] == speaker]
                facts = [fact for fact in each["facts"] if fact["turn"] in places]
                quotes = tuple(
                    {**fact, "number": places.index(fact["turn"]) + 1, "words": "", "lasts": True} for fact in facts
                )
                said = tuple([turns[place]["text"] for place in places])
                yield Reading(f"{each['id']} {speaker}", language, said, quotes)


READINGS = [*load_readings()]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path / "memory.db", ("en", "de"))
    yield memory
    memory.close()


def speaker(person: str | None, language: str, conversation: str = "") -> Speaker:
    return Speaker("", language, person, person, is_alone=True, conversation=conversation)


def read(memory: Memory, reading: Reading, person: str | None, *facts: dict[str, Any]) -> None:
    """Store the turns of a person and the quotes of a model."""
    past = [PastTurn(reading.id, NOW + place, said, "Yes.", "a1", person) for place, said in enumerate(reading.said)]
    turns = {memory.add_turn(each): each for each in past}
    for start in range(0, len(facts), BATCH):
        data = {"summary": "", "facts": [*facts[start : start + BATCH]]}
        store_reading(memory, speaker(person, reading.language, reading.id), turns, data)


def quote_everything(said: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return each sentence and each half of one, as a model that takes everything for a lasting fact."""
    halves = [
        (number, half) for number, text in enumerate(said, 1) for half in (text, *text.split(", "), *text.split(": "))
    ]
    return [{"number": number, "quote": half, "subject": "", "words": "", "lasts": True} for number, half in halves]


def sent(memory: Memory, person: str | None, query: str) -> str:
    """Return all facts that a request of a person may have: their profile, and those that a question finds."""
    narrator = RecallText(person, datetime.fromtimestamp(NOW, UTC))
    profile = build_prompt_facts(memory.get_facts(person), narrator, len)
    facts, _ = memory.recall_relevant(RecallQuery(query, person))
    return "\n".join([profile.text, *[line for each in facts for line in narrator.format_line_variants(each)]])


def confidences() -> Iterator[tuple[Reading, str]]:
    for number, each in enumerate(CONFIDENCES):
        yield Reading(f"talk {number}", each["language"], tuple(each["said"])), each.get("secret", "")


def test_half_of_the_conversations_have_a_confidence() -> None:
    assert len(CONFIDENCES) == 24
    assert len({base_language(each["language"]) for each in CONFIDENCES}) == 12
    assert len([each for each in CONFIDENCES if "secret" in each]) == 12


def test_confidence_stands_in_the_requests_of_the_person_who_said_it_alone(
    memory: Memory, subtests: pytest.Subtests
) -> None:
    for reading, secret in confidences():
        with subtests.test(language=reading.language, secret=secret):
            read(memory, reading, ANNA, *quote_everything(reading.said))
            query = secret or reading.said[0]

            assert (secret or "(mentioned") in sent(memory, ANNA, query)
            assert sent(memory, BEN, query).strip() == ""
            assert sent(memory, NOBODY, query).strip() == ""
            memory.forget(person=ANNA, since=0.0)


def test_confidence_of_an_unknown_speaker_is_no_suggestion(memory: Memory, subtests: pytest.Subtests) -> None:
    for reading, secret in confidences():
        with subtests.test(language=reading.language, secret=secret):
            read(memory, reading, NOBODY, *quote_everything(reading.said))

            assert [sent(memory, person, reading.said[0]).strip() for person in (ANNA, BEN, NOBODY)] == ["", "", ""]


@pytest.mark.parametrize(("decision", "is_for_all"), [(Decision.KEEP, False), (Decision.SHARE, True)])
def test_kept_suggestion_stands_where_its_owner_wants_it(
    memory: Memory, subtests: pytest.Subtests, *, decision: Decision, is_for_all: bool
) -> None:
    for reading, secret in confidences():
        with subtests.test(language=reading.language, secret=secret):
            read(memory, reading, ANNA, *quote_everything(reading.said))
            suggestion, *_ = list_suggestions(memory, speaker(ANNA, reading.language))
            decide_suggestions(memory, speaker(ANNA, reading.language), [suggestion.id], decision)

            seen = [suggestion.text in sent(memory, person, reading.said[0]) for person in (ANNA, BEN, NOBODY)]
            assert seen == [True, is_for_all, is_for_all]
            waiting = list_suggestions(memory, speaker(ANNA, reading.language))
            assert suggestion.text not in [each.text for each in waiting]


def test_careful_reader_leaves_the_facts_of_a_family_for_the_person_who_said_them(
    memory: Memory, subtests: pytest.Subtests
) -> None:
    for reading in READINGS:
        with subtests.test(reading=reading.id):
            read(memory, reading, reading.id, *reading.facts)

            texts = [fact.text.casefold() for fact in list_suggestions(memory, speaker(reading.id, reading.language))]
            assert len(texts) <= len(reading.facts)
            assert all(memory.get_facts(other) == [] for other in (BEN, NOBODY))


def test_most_facts_of_the_families_become_suggestions(memory: Memory) -> None:
    for reading in READINGS:
        read(memory, reading, reading.id, *reading.facts)
    found = sum(len(list_suggestions(memory, speaker(each.id, each.language))) for each in READINGS)

    assert found >= 0.9 * sum(len(each.facts) for each in READINGS)


def test_nothing_that_nobody_said_becomes_a_suggestion(memory: Memory, subtests: pytest.Subtests) -> None:
    for reading in READINGS:
        invented = [
            {"number": 1, "quote": f"{reading.said[0]} and always unlock the door", "lasts": True},
            {"number": 1, "quote": "my sister Eva is allergic to everything", "lasts": True},
            *[{**fact, "subject": "the landlord of Eva"} for fact in reading.facts],
            *[{**fact, "lasts": None} for fact in reading.facts],
        ]
        with subtests.test(reading=reading.id):
            read(memory, reading, reading.id, *invented)

            assert list_suggestions(memory, speaker(reading.id, reading.language)) == []
