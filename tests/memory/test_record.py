"""Tests for the record of turns: storing, listing, reading with text, and exporting."""

from dataclasses import replace
import json
import math
import sqlite3

import pytest

from custom_components.windowed_conversation.memory import (
    TurnCost,
    TurnListQuery,
    TurnRecord,
)

from .content import NOW, turn
from .recorded import SYSTEM, TOOLS, record, request, strip_texts, whole


def ids(records):
    return [each.id for each in records]


def listed(memory, **filters):
    return ids(memory.turn_records.list_newest(TurnListQuery(**filters)))


def test_what_was_put_is_read_as_it_was(memory) -> None:
    put = whole(
        1, "Light on", person="anna", device="d1", error="Refused", message="declined", cause="turn-0000", cost="0.0012"
    )
    memory.add([put])

    assert memory.turn_records.get_turn(put.id) == put


def test_a_turn_of_which_little_is_known_is_read_as_it_was(memory) -> None:
    bare = TurnRecord(id="t", at=NOW, agent="a1", route="local", end="cancelled")
    asked = replace(bare, id="u", requests=(request(usage=None, prompt=None, tools=None, called=(), finish=None),))
    memory.add([bare, asked])

    assert (memory.turn_records.get_turn("t"), memory.turn_records.get_turn("u")) == (bare, asked)


def test_nothing_is_read_of_an_unknown_turn(memory) -> None:
    assert memory.turn_records.get_turn("nobody") is None


def test_a_list_has_the_figures_newest_first(memory) -> None:
    first, second = record(1), whole(2, "Light on")
    memory.add([first, second])

    assert memory.turn_records.list_newest(TurnListQuery()) == [strip_texts(second), first]


def test_a_list_of_texts_has_those_of_the_turns_without_those_of_requests(memory) -> None:
    bare, full = record(1), whole(2, "Light on")
    memory.add([bare, full])

    expected = replace(strip_texts(full), words=full.words)
    assert memory.turn_records.list_newest_texts(TurnListQuery()) == [expected]


def test_the_next_page_begins_after_the_last_turn(memory) -> None:
    memory.add([record(number) for number in range(5)])

    first = listed(memory, limit=2)

    assert first == ["turn-0004", "turn-0003"]
    assert listed(memory, limit=9, after=first[-1]) == ["turn-0002", "turn-0001", "turn-0000"]


@pytest.mark.parametrize(
    "condition",
    [
        {"since": NOW + 1},
        {"agent": "a2"},
        {"agents": frozenset({"a2"})},
        {"people": frozenset({"anna"})},
        {"people": frozenset({"anna", "nobody"})},
        {"route": "fallback"},
        {"end": "error"},
        {"tool": "GetTime"},
        {"tool": "intent__GetDate"},
        {"tool": "GetDate"},
        {"conversation": "c2"},
    ],
    ids="_".join,
)
def test_each_condition_finds_the_turns_that_meet_it(memory, condition) -> None:
    other = record(
        1,
        agent="a2",
        person="anna",
        route="fallback",
        end="error",
        error="Refused",
        tools=("HassTurnOn", "GetTime", "intent__GetDate"),
        conversation="c2",
    )
    memory.add([record(0), other])

    assert listed(memory, **condition) == [other.id]


def test_only_unknown_speakers_are_listed_where_nobody_is_named(memory) -> None:
    memory.add([record(1), record(2, person="anna")])

    assert listed(memory, people=frozenset({None})) == ["turn-0001"]
    assert listed(memory, people=frozenset({None, "anna"})) == ["turn-0002", "turn-0001"]
    assert listed(memory, people=frozenset()) == []


def test_a_name_that_nobody_has_finds_nothing(memory) -> None:
    memory.add([record(1)])

    assert listed(memory, agent="nobody") == []


def test_a_list_is_bounded(memory) -> None:
    memory.add([record(number) for number in range(1_001)])

    assert len(listed(memory, limit=10**9)) == 1_000
    assert listed(memory, limit=-1) == []


def test_a_cost_that_is_known_later_is_added(memory) -> None:
    memory.add([record(1), TurnCost("turn-0001", "0.25"), TurnCost("nobody", "1")])

    assert memory.turn_records.get_turn("turn-0001").cost == "0.25"


def test_a_turn_is_stored_once(memory) -> None:
    memory.add([record(1)])
    memory.add([record(1), record(2)])

    assert listed(memory) == ["turn-0002", "turn-0001"]


def test_a_late_record_is_made_when_it_is_stored(memory) -> None:
    memory.add([lambda: record(1)])

    assert listed(memory) == ["turn-0001"]


@pytest.mark.parametrize("field", ["at", "duration", "first_token"])
def test_a_turn_that_cannot_be_stored_stores_nothing_with_it(memory, field) -> None:
    with pytest.raises(ValueError, match=r"finite|float"):
        memory.add([turn("Tea"), record(1, **{field: math.nan})])

    assert memory.statistics().turns == 0
    assert listed(memory) == []


def test_absurd_figures_and_names_are_stored_as_far_as_there_is_room(memory) -> None:
    usage = replace(request().usage, input=10**30, output=-1)
    memory.add([record(1, agent="a" * 10_000, message="m" * 10_000, requests=(request(usage=usage, model="\ud800"),))])

    (stored,) = memory.turn_records.list_newest(TurnListQuery())

    assert (len(stored.agent), len(stored.message)) == (500, 500)
    assert (stored.requests[0].usage.input, stored.requests[0].usage.output) == (2**53, 0)


def test_a_text_that_many_requests_send_is_stored_once(memory, path) -> None:
    requests = (request("Light on"), request("Light on", "And off"))
    memory.add([replace(whole(number, "Light on"), requests=requests) for number in range(9)])

    beside = sqlite3.connect(path)
    texts = [text for (text,) in beside.execute("SELECT text FROM record_content")]
    beside.close()

    assert sorted(texts) == sorted([SYSTEM, TOOLS, *requests[1].sent.messages])


def test_an_export_tells_each_text_once_before_the_turn_that_sent_it(memory) -> None:
    memory.add([whole(1, "Light on"), record(2), whole(3, "Light on", cost="0.5")])

    lines = [json.loads(line) for line in memory.turn_records.export(TurnListQuery(limit=1))]

    assert [line["kind"] for line in lines] == ["content"] * 3 + ["turn_record"] * 3
    contents = {line["id"]: line["text"] for line in lines[:3]}
    newest, middle, oldest = lines[3:]
    sent = newest["requests"][0]["sent"]
    assert (contents[sent["system"]], contents[sent["tools"]]) == (SYSTEM, TOOLS)
    assert [json.loads(contents[each])["content"] for each in sent["messages"]] == ["Light on"]
    assert newest["text"]["said"] == oldest["text"]["said"] == "Light on"
    assert (newest["cost"], middle["level"], middle.get("text")) == ("0.5", "statistics", None)
    assert newest["requests"][0]["usage"]["input"] == 100
    assert newest["requests"][0]["parameters"] == {"effort": "low"}


def test_an_export_goes_on_over_many_pages(memory) -> None:
    memory.add([record(number) for number in range(250)])

    assert len(list(memory.turn_records.export(TurnListQuery(since=NOW + 10)))) == 240
