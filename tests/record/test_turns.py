"""Tests for the record of turns: storing, listing, reading with text, and exporting."""

from contextlib import closing
from functools import partial
import json
import math
import sqlite3

import pytest

from custom_components.windowed_conversation.record import EMPTY_TURN, TurnListQuery, TurnRecord, store_turn_cost
from custom_components.windowed_conversation.store import WriteJob, file
from tests.memory.content import NOW, turn

from .recorded import SYSTEM, TOOLS, USAGE, record, request, strip_texts, whole, writes


def listed(turns, **filters):
    return [each["turn_id"] for each in turns.list_newest(TurnListQuery(**filters))]


def test_what_was_put_is_read_as_it_was(memory, turns) -> None:
    waterfall = [{"step": "request", "start": 0.0, "first_byte": None, "first_token": 0.5, "end": 1.5}]
    more = {"error": "refused", "message": "declined", "summarizes_turn": "turn-0000", "cost": "0.0012"}
    put = whole(1, "Light on", person="anna", device="d1", waterfall=waterfall, **more)
    memory.add(writes(put))

    assert turns.get_turn("turn-0001") == put


def test_a_turn_of_which_little_is_known_is_read_as_it_was(memory, turns) -> None:
    bare: TurnRecord = {**EMPTY_TURN, "turn_id": "t", "time": NOW, "route": "local", "outcome": "cancelled"}
    attempt = request(usage=None, prompt=None, tool_list=None, tools=[], finish=None)
    asked: TurnRecord = {**bare, "turn_id": "u", "attempts": [attempt]}
    memory.add(writes(bare, asked))

    assert (turns.get_turn("t"), turns.get_turn("u")) == (bare, asked)


def test_nothing_is_read_of_an_unknown_turn(turns) -> None:
    assert turns.get_turn("nobody") is None


def test_a_list_has_the_figures_newest_first(memory, turns) -> None:
    first, second = record(1), whole(2, "Light on")
    memory.add(writes(first, second))

    assert turns.list_newest(TurnListQuery()) == [strip_texts(second), first]


def test_a_list_with_text_has_that_of_the_turns_without_that_of_requests(memory, turns) -> None:
    bare, full = record(1), whole(2, "Light on")
    memory.add(writes(bare, full))

    expected = strip_texts(full) | {name: full[name] for name in ("said", "answer", "tool_calls")}
    assert turns.list_newest(TurnListQuery(), with_text=True) == [expected, bare]


def test_the_next_page_begins_after_the_last_turn(memory, turns) -> None:
    memory.add(writes(*(record(number) for number in range(5))))

    first = listed(turns, limit=2)

    assert first == ["turn-0004", "turn-0003"]
    assert listed(turns, limit=9, after=first[-1]) == ["turn-0002", "turn-0001", "turn-0000"]


@pytest.mark.parametrize(
    "condition",
    [
        {"since": NOW + 1},
        {"agents": frozenset({"a2"})},
        {"people": frozenset({"anna"})},
        {"people": frozenset({"anna", "nobody"})},
        {"routes": frozenset({"fallback"})},
        {"outcome": "error"},
        {"tool": "GetTime"},
        {"tool": "intent__GetDate"},
        {"tool": "GetDate"},
        {"conversation_id": "c2"},
    ],
    ids="_".join,
)
def test_each_condition_finds_the_turns_that_meet_it(memory, turns, condition) -> None:
    other = record(
        1,
        agent="a2",
        person="anna",
        route="fallback",
        outcome="error",
        error="refused",
        tools=["HassTurnOn", "GetTime", "intent__GetDate"],
        conversation_id="c2",
    )
    memory.add(writes(record(0), other))

    assert listed(turns, **condition) == ["turn-0001"]


def test_only_unknown_speakers_are_listed_where_nobody_is_named(memory, turns) -> None:
    memory.add(writes(record(1), record(2, person="anna")))

    assert listed(turns, people=frozenset({None})) == ["turn-0001"]
    assert listed(turns, people=frozenset({None, "anna"})) == ["turn-0002", "turn-0001"]
    assert listed(turns, people=frozenset()) == []


def test_a_name_that_nobody_has_finds_nothing(memory, turns) -> None:
    memory.add(writes(record(1)))

    assert listed(turns, agents=frozenset({"nobody"})) == []


def test_a_list_is_bounded(memory, turns) -> None:
    memory.add(writes(*(record(number) for number in range(1_001))))

    assert len(listed(turns, limit=10**9)) == 1_000
    assert listed(turns, limit=-1) == []


def test_a_cost_that_is_known_later_is_added(memory, turns) -> None:
    costs = [WriteJob(partial(store_turn_cost, turn_id=each, cost="0.25")) for each in ("turn-0001", "nobody")]
    memory.add([*writes(record(1)), *costs])

    assert turns.get_turn("turn-0001")["cost"] == "0.25"


def test_a_turn_is_stored_once(memory, turns) -> None:
    memory.add(writes(record(1)))
    memory.add(writes(record(1), record(2)))

    assert listed(turns) == ["turn-0002", "turn-0001"]


@pytest.mark.parametrize("field", ["time", "duration", "time_to_first_token"])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_turn_that_cannot_be_stored_stores_nothing_with_it(memory, turns, field, number) -> None:
    with pytest.raises(ValueError, match=r"finite|float"):
        memory.add([turn("Tea"), *writes(record(1, **{field: number}))])

    assert memory.statistics().turns == 0
    assert listed(turns) == []


def test_absurd_figures_and_names_are_stored_as_far_as_there_is_room(memory, turns) -> None:
    attempt = request(usage={**USAGE, "input": 10**30, "output": -1}, model="\ud800")
    memory.add(writes(record(1, agent="a" * 10_000, message="m" * 10_000, attempts=[attempt])))

    (stored,) = turns.list_newest(TurnListQuery())

    assert (len(stored["agent"]), len(stored["message"])) == (500, 500)
    usage = stored["attempts"][0]["usage"]
    assert (usage["input"], usage["output"], stored["usage"]["input"]) == (2**53, 0, 2**53)


@pytest.mark.parametrize(
    "statistics",
    [
        "{",
        "[" * 100_000,
        "[]",
        "1",
        '{"route": 1}',
        '{"route": "local", "colour": "red"}',
        '{"attempts": {}}',
        '{"attempts": [{"model": "gpt-5"}]}',
        '{"usage": []}',
    ],
    ids=lambda text: text[:20],
)
def test_turn_whose_statistics_are_damaged_is_skipped(memory, turns, path, statistics) -> None:
    memory.add(writes(*(record(number) for number in range(3))))
    with closing(sqlite3.connect(path)) as beside, beside:
        beside.create_function("text_sum", -1, file.calculate_checksum, deterministic=True)
        beside.execute("UPDATE turn_record SET figures = ? WHERE id = 'turn-0001'", (statistics,))

    assert listed(turns) == ["turn-0002", "turn-0000"]
    assert turns.get_turn("turn-0001") is None
    assert len(list(turns.export(TurnListQuery()))) == 2


def test_a_text_that_many_requests_send_is_stored_once(memory, path) -> None:
    attempts = [request("Light on"), request("Light on", "And off")]
    memory.add(writes(*(whole(number, "Light on", attempts=attempts) for number in range(9))))

    with closing(sqlite3.connect(path)) as beside:
        texts = [text for (text,) in beside.execute("SELECT text FROM record_content")]

    assert texts.count(SYSTEM) == 1
    rest = [json.loads(each) for each in texts if each != SYSTEM]
    assert [each for each in rest if isinstance(each, list)] == [TOOLS]
    assert sorted(each["content"] for each in rest if isinstance(each, dict)) == ["And off", "Light on"]


def test_text_that_is_too_long_is_cut_where_it_ends(memory, turns) -> None:
    call = {"name": "HassTurnOn", "arguments": {"name": "a" * 200_000}, "result": "b" * 200_000}
    memory.add(writes(whole(1, "c" * 20_000, tool_calls=[call], attempts=[request("d" * 2_000_000)])))

    stored = turns.get_turn("turn-0001")

    (call,), (attempt,) = stored["tool_calls"], stored["attempts"]
    cut = [stored["said"], call["arguments"], call["result"], *attempt["sent"]["messages"]]
    assert [len(each) for each in cut] == [16_000, 100_000, 100_000, 1_000_000]
    assert {each[-1] for each in cut} == {"…"}


def test_an_export_has_each_turn_with_its_text_by_the_names_of_the_actions(memory, turns) -> None:
    newest = whole(3, "Light on", cost="0.5")
    memory.add(writes(whole(1, "Light on"), record(2), newest))

    lines = [json.loads(line) for line in turns.export(TurnListQuery(limit=1))]

    assert [line["turn_id"] for line in lines] == ["turn-0003", "turn-0002", "turn-0001"]
    assert lines[0] == {**newest, "time": "2027-01-15T08:00:03+00:00"}
    assert [line["has_text"] for line in lines] == [True, False, True]
    assert "said" not in lines[1]


def test_an_export_goes_on_over_many_pages(memory, turns) -> None:
    memory.add(writes(*(record(number) for number in range(250))))

    assert len(list(turns.export(TurnListQuery(since=NOW + 10)))) == 240
