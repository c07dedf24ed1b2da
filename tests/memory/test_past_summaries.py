"""Tests for the summaries that memory stores."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.memory.core import Memory, PastSummary, Summary
from custom_components.windowed_conversation.memory.core.search import MAX_EXCERPT_CHARS, extract_excerpt

from .content import NOW, insert_summary, turn

SAID = ("We fly to Porto", "Book a hotel in Porto")
ANNAS = Summary("c1", NOW - 10, NOW + 3, "They planned a trip to Portugal.", "a1", "anna", SAID)


@pytest.fixture
def turn_ids(memory: Memory) -> list[int]:
    """Store the turns that the summaries are about, and return their ids."""
    spoken = [turn(said, at=NOW + at, person="anna") for at, said in enumerate(SAID)]
    return [memory.add_turn(replace(each, agent="a1")) for each in spoken]


def add_summary(memory: Memory, summary: Summary) -> int | None:
    """Store a summary, and return the id of the new summary, or None if there is none."""
    newest = max(ids(memory), default=0)
    memory.add([summary])
    return max((row for row in ids(memory) if row > newest), default=None)


def ids(memory: Memory) -> list[int]:
    return [found.id for found in memory.recall(person="anna", kinds=("summary",))]


def spans(memory: Memory) -> list[tuple[float, float, str]]:
    """Return the start, end and text of each summary."""
    with memory.database.read_transaction() as connection:
        return connection.execute("SELECT since, at, text FROM summary ORDER BY id").fetchall()


def test_a_summary_covers_its_turns_and_what_was_said_beside_them(memory, turn_ids) -> None:
    row = add_summary(memory, ANNAS)

    assert spans(memory) == [(NOW - 10, NOW + 3, ANNAS.text)]
    (found,) = memory.recall("Portugal", person="anna")
    assert (found.kind, found.id, found.person, found.excerpt) == ("summary", row, "anna", ANNAS.text)
    assert memory.recall("Portugal") == []


def test_a_later_summary_takes_the_place_of_the_earlier_one(memory, turn_ids) -> None:
    add_summary(memory, ANNAS)
    memory.add_turn(replace(turn("Pack the quokka", at=NOW + 5, person="anna"), agent="a1"))

    add_summary(
        memory,
        replace(ANNAS, user_texts=("Pack the quokka",), text="They packed for Portugal.", earlier_text=ANNAS.text),
    )

    assert spans(memory) == [(NOW - 10, NOW + 5, "They packed for Portugal.")]


def test_a_summary_of_nothing_but_the_earlier_one_has_its_times(memory, turn_ids) -> None:
    add_summary(memory, ANNAS)

    add_summary(memory, replace(ANNAS, user_texts=(), text="Portugal.", earlier_text=ANNAS.text))

    assert spans(memory) == [(NOW - 10, NOW + 3, "Portugal.")]


@pytest.mark.parametrize(
    "summary",
    [
        replace(ANNAS, user_texts=(*SAID, "My code is 4711")),
        replace(ANNAS, user_texts=()),
        replace(ANNAS, earlier_text="They spoke."),
        replace(ANNAS, since=NOW + 0.5),
        replace(ANNAS, conversation="c2"),
        replace(ANNAS, agent="a2"),
        replace(ANNAS, agent=None),
        replace(ANNAS, person="ben"),
        replace(ANNAS, person=None),
    ],
    ids=["not kept", "nothing", "no earlier one", "too old", "conversation", "agent", "no agent", "person", "home"],
)
def test_a_summary_of_what_is_not_kept_is_not_stored(memory, turn_ids, summary: Summary) -> None:
    assert add_summary(memory, summary) is None
    assert spans(memory) == []


def test_a_summary_of_what_was_forgotten_is_not_stored(memory, turn_ids) -> None:
    memory.forget(ids=[("turn", turn_ids[0])])

    assert add_summary(memory, ANNAS) is None


def test_a_summary_is_forgotten_with_any_of_its_turns(memory, turn_ids) -> None:
    row = add_summary(memory, ANNAS)

    assert memory.forget(ids=[("turn", turn_ids[1])]).summaries == (row,)


def test_a_summary_of_another_person_or_agent_stays_when_a_turn_is_forgotten(memory, turn_ids) -> None:
    others = [
        insert_summary(memory, PastSummary("c1", NOW - 5, NOW + 5, "They spoke", agent=agent, person=person))
        for agent, person in (("a1", "ben"), ("a1", None), ("a2", "anna"))
    ]
    row = add_summary(memory, ANNAS)

    assert memory.forget(ids=[("turn", turn_ids[0])]).summaries == (row,)
    assert memory.statistics().summaries == len(others)


def test_a_summary_stays_when_its_turns_expire(memory, turn_ids) -> None:
    row = add_summary(memory, ANNAS)

    assert memory.forget_expired({}, NOW + 9).summaries == ()
    (found,) = memory.recall("Portugal", person="anna")
    assert (found.kind, found.id) == ("summary", row)


def test_a_summary_that_outlived_its_turns_is_forgotten_by_its_words(memory, turn_ids) -> None:
    row = add_summary(memory, ANNAS)
    memory.forget_expired({}, NOW + 9)

    assert memory.forget(query="Portugal", person="anna").summaries == (row,)


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        (("dentist",), "Anna's dentist is Hansen. Filler one."),
        (("geese",), "She fears geese! 她怕鹅。 Filler one."),
        (("鹅",), "她怕鹅。 Filler one."),
        ((), "Filler one."),
    ],
)
def test_an_excerpt_begins_with_the_sentence_that_has_most_of_the_words(wanted: tuple[str, ...], part: str) -> None:
    filler = "Filler one. " + "x" * 290 + ". "
    text = f"{filler}Anna's dentist is Hansen. {filler}She fears geese! 她怕鹅。{filler}"

    assert extract_excerpt(text, wanted) == part


def test_an_excerpt_is_bounded() -> None:
    assert len(extract_excerpt("word " * 1_000, ("word",))) <= MAX_EXCERPT_CHARS
