"""Tests that forgetting deletes the right rows and no others, and that no byte of them remains."""

from dataclasses import replace
import json
import random
import shutil
import sqlite3

import pytest

from custom_components.windowed_conversation.memory.core import LostRows, Memory, PastSummary, index, rows
from custom_components.windowed_conversation.store import Schema

from .content import DAY, NOW, indexed, insert_summary, read_all_files, stored, turn

NOTHING = LostRows(is_erased=True)


def turn_line(row, answer):
    fields = {"kind": "turn", "id": row, "at": 1.0, "conversation": "c1", "said": f"quokka{row}x", "answer": answer}
    return json.dumps(fields)


def test_a_forgotten_fact_is_gone_with_its_bytes(memory, path) -> None:
    fact = memory.add_fact("The safe code is quokka", quote="quokka")

    assert memory.forget(ids=[("fact", fact)]) == LostRows(facts=(fact,), is_erased=True)

    assert memory.recall("quokka") == memory.get_facts() == []
    assert b"quok" not in read_all_files(path)
    assert indexed(path) == set()


def test_the_names_that_nothing_else_has_are_gone_as_well(memory, path) -> None:
    memory.add_turn(turn("bread", person="quokka", conversation="wombat"))

    memory.forget(person="quokka")

    assert b"quokka" not in read_all_files(path)
    assert b"wombat" not in read_all_files(path)


def test_a_dry_run_says_what_would_go_and_leaves_it(memory) -> None:
    fact = memory.add_fact("The safe code is quokka")

    assert memory.forget(query="safe code", dry_run=True).facts == (fact,)
    assert len(memory.get_facts()) == 1


def test_with_a_fact_goes_the_turn_it_was_said_in(memory) -> None:
    source = memory.add_turn(turn("By the way, my old employer was Quokka Ltd., and I left", person="anna"))
    other = memory.add_turn(turn("Turn on the light", person="anna"))
    fact = memory.add_fact("Anna left Quokka", person="anna", quote="My old employer was quokka ltd")

    assert memory.forget(ids=[("fact", fact)]).turns == (source,)
    assert [found.id for found in memory.recall("light", person="anna")] == [other]


def test_with_a_fact_go_those_that_it_replaced(memory, path) -> None:
    old = memory.add_fact("The safe code is wombat")
    older = memory.add_fact("The safe code is dingo", replaces=old)
    new = memory.add_fact("The safe code is quokka", replaces=older)

    assert memory.forget(ids=[("fact", new)]).facts == (old, older, new)
    assert b"wombat" not in read_all_files(path)


def test_what_is_no_longer_true_is_forgotten_by_its_words(memory) -> None:
    old = memory.add_fact("The safe code is wombat")
    new = memory.add_fact("The door code is quokka", replaces=old)

    assert memory.forget(query="wombat").facts == (old,)
    assert [fact.id for fact in memory.get_facts()] == [new]


def test_by_words_goes_what_has_all_of_them(memory) -> None:
    both = memory.add_fact("The dentist is on Tuesday")
    memory.add_fact("The dentist is called Hansen")
    memory.add_fact("The choir is on Tuesday")

    assert memory.forget(query="forget the dentist on Tuesdays".removeprefix("forget ")).facts == (both,)


def test_a_question_without_words_forgets_nothing(memory) -> None:
    memory.add_fact("Bins: Friday")

    assert memory.forget(query="what is it?") == NOTHING
    assert len(memory.get_facts()) == 1


def test_nothing_said_is_refused(memory) -> None:
    with pytest.raises(ValueError, match="condition"):
        memory.forget()


@pytest.mark.parametrize("person", ["ben", None])
def test_nobody_forgets_what_they_may_not_see(memory, person) -> None:
    fact = memory.add_fact("Anna's dentist is on Tuesday", person="anna")
    row = memory.add_turn(turn("My dentist is on Tuesday", person="anna"))

    assert memory.forget(query="dentist", person=person) == NOTHING
    assert memory.forget(ids=[("fact", fact), ("turn", row)], person=person) == NOTHING
    assert len(memory.recall("dentist", person="anna")) == 2


def test_a_person_forgets_a_fact_of_the_home_by_name(memory) -> None:
    fact = memory.add_fact("The dentist is on Tuesday")

    assert memory.forget(ids=[("fact", fact)], person="anna").facts == (fact,)


def test_with_a_fact_of_a_person_go_no_turns_of_another(memory) -> None:
    fact = memory.add_fact("Anna likes quokkas", person="anna", quote="I like quokkas")
    memory.add_turn(turn("I like quokkas", person="ben"))

    assert memory.forget(ids=[("fact", fact)]).turns == ()


def test_with_a_fact_goes_the_summary_of_the_conversation_in_which_it_was_told(memory) -> None:
    fact = memory.add_fact("The safe code is quokka", teller="anna", conversation="c1", at=NOW)
    for since, at, conversation, person in (
        (NOW - 9, NOW + 9, "c1", "anna"),
        (NOW - 9, NOW + 9, "c1", None),
        (NOW - 9, NOW + 9, "c1", "ben"),
        (NOW - 9, NOW + 9, "c2", "anna"),
        (NOW + 1, NOW + 9, "c1", "anna"),
        (NOW - 9, NOW - 1, "c1", "anna"),
    ):
        insert_summary(memory, PastSummary(conversation, since, at, "They spoke of a marsupial", person=person))

    assert memory.forget(ids=[("fact", fact)]).summaries == (1, 2)


def test_with_all_of_a_person_goes_that_they_told_a_fact_of_the_home(memory, path) -> None:
    memory.add_fact("Tea at five", teller="quokka")
    assert memory.get_owner_ids() == {"quokka"}

    memory.forget(person="quokka")

    assert (len(memory.get_facts()), memory.get_owner_ids()) == (1, frozenset())
    assert b"quokka" not in read_all_files(path)


def test_by_person_goes_what_is_theirs_and_nothing_of_the_home(memory) -> None:
    memory.add_fact("Anna likes tea", person="anna")
    memory.add_fact("Ben likes tea", person="ben")
    memory.add_fact("The tea is green")
    memory.add_turn(turn("tea please", person="anna"))

    assert memory.forget(person="anna").facts == (1,)
    assert sorted(fact.text for fact in memory.get_facts("ben")) == ["Ben likes tea", "The tea is green"]
    assert memory.recall("tea", person="anna", kinds=("turn",)) == []


def test_nobody_known_forgets_nothing_of_the_home_at_once(memory) -> None:
    memory.add_fact("The tea is green")

    assert memory.forget(person=None) == NOTHING


def test_by_time_goes_what_is_older(memory) -> None:
    old = memory.add_turn(turn("bread", at=NOW - DAY))
    new = memory.add_turn(turn("bread", at=NOW))
    memory.add_fact("Bread at five", at=NOW - DAY)

    assert memory.forget(before=NOW, kinds=("turn", "summary")) == LostRows(turns=(old,), is_erased=True)
    assert [found.id for found in memory.recall("bread", kinds=("turn",))] == [new]
    assert len(memory.get_facts()) == 1


def test_what_was_moved_between_pages_leaves_no_copy(memory, path) -> None:
    chance = random.Random(23)
    ids = chance.sample(range(1_000_000), 300)
    kept = set()
    left = list[int]()
    for start in range(0, len(ids), 30):
        added = ids[start : start + 30]
        memory.load_lines(turn_line(row, "bread " * chance.randrange(300)) for row in added)
        kept.update(added)
        gone = chance.sample(sorted(kept), 25)
        memory.forget(ids=[("turn", row) for row in gone])
        kept.difference_update(gone)
        left.extend(row for row in gone if f"quokka{row}x".encode() in read_all_files(path))

    assert left == []


def test_many_rows_at_once_leave_as_little(memory, path, monkeypatch) -> None:
    monkeypatch.setattr(index, "_REBUILD", 10)
    for number in range(60):
        memory.add_turn(turn(f"quokka{number}x bread", at=NOW + number))

    memory.forget(before=NOW + 50)

    assert indexed(path) == stored(path, ("en", "de"))
    assert b"quokka49x" not in read_all_files(path)
    assert b"quokka50x" in read_all_files(path)


def test_what_is_deleted_and_not_erased_when_it_is_killed_is_erased_later(
    memory, path, tmp_path_factory, monkeypatch
) -> None:
    monkeypatch.setattr(memory, "erase", lambda: False)
    memory.forget(ids=[("fact", memory.add_fact("The safe code is quokka"))])
    killed = tmp_path_factory.mktemp("killed") / path.name
    for each in path.parent.iterdir():
        shutil.copy(each, killed.with_name(each.name))
    assert b"quokka" in read_all_files(killed)

    again = Memory(killed, ("en", "de"))
    assert again.forget_expired({}, 0.0).is_erased

    assert b"quokka" not in read_all_files(killed)
    again.close()


def test_what_another_process_still_reads_is_erased_later(memory, path) -> None:
    fact = memory.add_fact("The safe code is quokka")
    beside = sqlite3.connect(path, isolation_level=None)
    beside.execute("BEGIN")
    beside.execute("SELECT text FROM fact").fetchall()
    memory.database._write_connection.execute("PRAGMA busy_timeout = 0")

    assert not memory.forget(ids=[("fact", fact)]).is_erased
    assert memory.get_facts() == []

    beside.close()
    assert memory.forget_expired({}, 0.0).is_erased
    assert b"quokka" not in read_all_files(path)


def test_what_made_room_is_gone_from_the_index(memory, path, monkeypatch) -> None:
    monkeypatch.setitem(rows.MAX_ROWS_BY_KIND, "turn", 1)
    monkeypatch.setattr(rows, "_ROWS_PER_LIMIT_CHECK", 1)
    memory.add_turn(turn("quokka", at=NOW))
    memory.add_turn(turn("bread", at=NOW + 1))

    assert {place[4] for place in indexed(path)} == {"bread"}


def test_ids_are_never_given_again(memory) -> None:
    fact = memory.add_fact("The tea is green")
    memory.forget(ids=[("fact", fact)])

    assert memory.add_fact("The tea is black") > fact


def test_a_damaged_file_goes_with_what_is_forgotten(memory, path) -> None:
    aside = path.with_name("memory.db.damaged")
    aside.write_bytes(b"quokka")
    fact = memory.add_fact("Tea at five")

    memory.forget(ids=[("fact", fact)])

    assert not aside.exists()


def test_an_agent_takes_its_turns_and_their_summaries_along_and_leaves_facts_and_the_others(memory, path) -> None:
    fact = memory.add_fact("Bread is in the cellar")
    gone = memory.add_turn(replace(turn("quokka bread"), agent="a1"))
    kept = [memory.add_turn(replace(turn("bread", conversation="c2"), agent=agent)) for agent in ("a2", None)]
    summary = insert_summary(memory, PastSummary("c1", NOW - 1, NOW + 1, "They spoke of a quokka", agent="a1"))

    assert memory.forget(agent="a1") == LostRows((), (gone,), (summary,), is_erased=True)

    assert {(found.kind, found.id) for found in memory.recall("bread")} == {
        ("fact", fact),
        *(("turn", row) for row in kept),
    }
    assert b"quokka" not in read_all_files(path)


def test_turns_expire_by_the_time_of_their_agent(memory, path) -> None:
    memory.add_fact("Bread is in the cellar", at=NOW - 1_000 * DAY)
    rows = {
        (agent, days): memory.add_turn(replace(turn(f"bread {days}", at=NOW - days * DAY), agent=agent))
        for agent in ("a1", "a2", None)
        for days in (5, 50, 500)
    }

    expired = memory.forget_expired({"a1": NOW - 10 * DAY}, NOW - 100 * DAY)

    assert set(expired.turns) == {rows["a1", 50], rows["a1", 500], rows["a2", 500], rows[None, 500]}
    assert expired.is_erased
    assert memory.statistics().facts == 1
    assert indexed(path) == stored(path, ("en", "de"))
    assert memory.forget_expired({"a1": NOW - 10 * DAY}, NOW - 100 * DAY) == NOTHING


def test_by_time_goes_what_is_not_older(memory) -> None:
    memory.add_turn(turn("bread", person="anna", at=NOW))
    row = memory.add_turn(turn("butter", person="anna", at=NOW + 1))
    memory.add_turn(turn("cheese", person="anna", at=NOW + 2))

    assert memory.forget(person="anna", since=NOW + 1, before=NOW + 2).turns == (row,)


def test_by_name_goes_nothing_private_where_others_ask(memory) -> None:
    secret = memory.add_fact("Anna fears geese", person="anna", private=True)
    known = memory.add_fact("Anna keeps geese", person="anna")
    row = memory.add_turn(turn("wild geese", person="anna"))

    assert memory.forget(query="geese", person="anna", private=False).facts == (known,)
    assert memory.forget(ids=[("fact", secret), ("turn", row)], person="anna", private=False) == NOTHING


def test_a_tombstone_is_of_what_a_person_had_forgotten(memory) -> None:
    fact, old = memory.add_fact("Tea at five", at=NOW), memory.add_turn(turn("bread", at=NOW))
    memory.forget(before=NOW + 1, kinds=("turn",))
    memory.forget(ids=[("fact", fact)])
    memory.load_lines([json.dumps({"kind": "forgotten", "of": "turn", "id": old + 1, "at": NOW})])

    assert memory.get_tombstones() == {("fact", fact, NOW)}


def test_who_owns_something_is_known_until_it_is_forgotten(memory) -> None:
    memory.add_turn(turn("bread", person="anna"))
    memory.add_fact("Tea at five", person="ben")
    assert memory.get_owner_ids() == {"anna", "ben"}

    memory.forget(person="anna")

    assert memory.get_owner_ids() == {"ben"}


@pytest.mark.parametrize("dry_run", [True, False])
def test_others_forget_in_the_same_transaction_and_count_what_they_lose(path, dry_run) -> None:
    def forget(connection, erasure, lost, dry_run):
        connection.execute("DELETE FROM copy" if not dry_run else "SELECT 1")
        return replace(lost, exchange_count=lost.exchange_count + (erasure.conditions.query == "tea"))

    room = Schema("CREATE TABLE IF NOT EXISTS copy (text TEXT)")
    memory = Memory(path, ("en",), rooms=(room,), companions=(forget, forget))
    with memory.database.write_transaction() as connection:
        connection.execute("INSERT INTO copy VALUES ('Tea at five')")

    forgotten = memory.forget(query="tea", dry_run=dry_run)

    assert (forgotten.exchange_count, forgotten.has_memories) == (2, False)
    with memory.database.read_transaction() as connection:
        assert connection.execute("SELECT count(*) FROM copy").fetchone() == (int(dry_run),)
    memory.close()


def test_nothing_is_erased_from_a_file_that_is_closed(memory) -> None:
    memory.close()

    assert not memory.erase()
