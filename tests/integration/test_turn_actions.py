"""Tests for the actions on the record of turns: responses, permissions, and errors."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import stat
from typing import Any
from zoneinfo import ZoneInfo

from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import ServiceValidationError, Unauthorized
import probatio
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.record import TurnRecord
from tests.record.recorded import SYSTEM, TOOLS, record, request, whole, writes
from tests.window.turns import begin_turn

from .actions import act
from .conftest import AGENT, SetUpFn, flush_store
from .remembered import memory_of
from .states import add_satellite
from .test_memory_actions import People, folder, people

__all__ = ["folder", "people"]

# The turns are from last night, because older ones may have expired.
NIGHT = datetime.now(UTC).replace(hour=3, minute=0, second=0, microsecond=0) - timedelta(days=1)
ADAS, GRACES, NOBODYS, EARLIER = "turn-0003", "turn-0002", "turn-0001", "turn-0000"
ALL_TURN_IDS = [ADAS, GRACES, NOBODYS, EARLIER]
# A word that occurs only in the texts of one turn, and the id of that turn.
WORDS = {"pelican": ADAS, "heron": GRACES, "ibis": NOBODYS}


def later(seconds: int) -> str:
    """Return the time this number of seconds after the start of the night, in ISO 8601 format."""
    return (NIGHT + timedelta(seconds=seconds)).isoformat()


@pytest.fixture
def agent_id(entry: MockConfigEntry) -> str:
    """Return the id of the agent."""
    return next(iter(entry.subentries))


@pytest.fixture
async def turn_records(home: HomeAssistant, agent_id: str, people: People) -> list[TurnRecord]:
    """Record a turn of Ada's, of Grace's and of an unknown speaker with texts, and an earlier turn without texts."""
    at, answered = NIGHT.timestamp(), {"agent": agent_id, "answered_by": agent_id, "failures": []}
    turns = [
        record(0, **answered, time=at - 60, route="local", reason="local_match", attempts=[], tools=[]),
        whole(1, "feed the ibis", **answered, time=at),
        whole(2, "feed the heron", **answered, time=at + 60, person=people.grace.user_id),
        whole(
            3,
            "feed the pelican",
            **answered,
            time=at + 120,
            person=people.ada.user_id,
            device=add_satellite(home, "Garage satellite"),
            cost="0.0012",
            conversation_id="adas",
        ),
    ]
    await keep(home, *turns)
    return turns


@pytest.fixture
def open_turn(get_agent, entry: MockConfigEntry) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Return a function that opens a turn, so that an action is called as a model's tool would call it."""
    return lambda: begin_turn(get_agent(entry).windows, "everyone's")


async def keep(home: HomeAssistant, *turns: TurnRecord) -> None:
    """Add turns to the record and write them to disk."""
    memory_of(home).writer.put(*writes(*turns))
    await flush_store(home)


async def list_turn_ids(home: HomeAssistant, context: Context | None = None, **data: Any) -> list[str]:
    """Return the ids of the turns that `list_turns` returns."""
    return [each["turn_id"] for each in (await act(home, "list_turns", context, **data))["turns"]]


async def read_texts(home: HomeAssistant, context: Context | None = None) -> dict[str, str]:
    """Return the texts that `get_turn` shows to this caller, by turn id."""
    shown = {}
    for turn_id in ALL_TURN_IDS:
        with suppress(ServiceValidationError):
            shown[turn_id] = (await act(home, "get_turn", context, turn_id=turn_id))["text"]
    return shown


async def read_file(home: HomeAssistant, file: Path) -> str:
    """Return the text of a file."""
    return await home.async_add_executor_job(file.read_text)


async def test_list_has_the_figures_of_a_turn_and_no_word(
    home: HomeAssistant, turn_records: list[TurnRecord], people: People
) -> None:
    await home.config.async_set_time_zone("Asia/Tokyo")

    response = await act(home, "list_turns", people.ada, person="person.ada")

    assert response == {
        "turns": [
            {
                "turn_id": ADAS,
                "time": (NIGHT + timedelta(minutes=2)).astimezone(ZoneInfo("Asia/Tokyo")).isoformat(),
                "entity_id": AGENT,
                "conversation_id": "adas",
                "person": "Ada",
                "known_by": "login",
                "device": "Garage satellite",
                "automation": None,
                "route": "model",
                "reason": "model_only",
                "outcome": "answered",
                "error": None,
                "answered_by": AGENT,
                "failures": [],
                "tools": ["HassTurnOn"],
                "failed_tool_calls": 1,
                "memory_late": True,
                "requests": 1,
                "usage": {
                    "input": 100,
                    "cached": 80,
                    "output": 20,
                    "cache_written": 5,
                    "reasoning": 3,
                    "cleared": 1,
                    "searches": 0,
                },
                "cost": 0.0012,
                "time_to_first_token": 0.5,
                "duration": 2.0,
                "summarizes_turn": None,
                "has_text": True,
            }
        ],
        "next_after": None,
    }


async def test_turn_has_its_requests_and_words(home: HomeAssistant, turn_records, people: People) -> None:
    turn = await act(home, "get_turn", people.ada, turn_id=ADAS)

    assert (turn["person"], turn["text"], turn["message"]) == ("Ada", "shown", None)
    assert (turn["said"], turn["answer"]) == ("feed the pelican", "Done.")
    assert turn["tool_calls"] == [{"name": "HassTurnOn", "arguments": {"name": "hall"}, "result": '{"success": true}'}]
    (attempt,) = turn["attempts"]
    assert (attempt["purpose"], attempt["provider"], attempt["model"]) == ("answer", "openai", "gpt-5")
    assert (attempt["outcome"], attempt["finish"], attempt["error"]) == ("answered", "stop", None)
    assert (attempt["parameters"], attempt["tools"]) == ({"effort": "low"}, ["HassTurnOn"])
    assert attempt["usage"]["input"] == 100
    assert "sent" not in turn


async def test_request_is_returned_as_it_was_sent_if_its_number_is_given(
    home: HomeAssistant, turn_records, people: People
) -> None:
    turn = await act(home, "get_turn", people.ada, turn_id=ADAS, request=1)

    assert turn["sent"] == {
        "system": SYSTEM,
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "feed the pelican"}],
        "omitted_messages": 0,
    }


async def test_turn_of_which_only_figures_are_kept_says_so(home: HomeAssistant, turn_records) -> None:
    turn = await act(home, "get_turn", turn_id=EARLIER)

    assert (turn["route"], turn["reason"], turn["text"]) == ("local", "local_match", "not_kept")
    assert turn.keys().isdisjoint({"said", "answer", "tool_calls", "sent"})


LISTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"since": later(60)}, [ADAS, GRACES]),
    ({"until": later(0)}, [NOBODYS, EARLIER]),
    ({"since": later(-30), "until": later(30).removesuffix("+00:00")}, [NOBODYS]),
    ({"entity_id": AGENT}, ALL_TURN_IDS),
    ({"person": "person.ada"}, [ADAS]),
    ({"route": "local"}, [EARLIER]),
    ({"route": "summary"}, []),
    ({"outcome": "answered"}, ALL_TURN_IDS),
    ({"outcome": "cancelled"}, []),
    ({"tool": "HassTurnOn"}, [ADAS, GRACES, NOBODYS]),
    ({"tool": "HassTurnOff"}, []),
    ({"conversation_id": "adas"}, [ADAS]),
    ({"limit": 2}, [ADAS, GRACES]),
    ({"after": GRACES}, [NOBODYS, EARLIER]),
]


async def test_turns_are_listed_that_meet_the_conditions(
    home: HomeAssistant, turn_records, subtests: pytest.Subtests
) -> None:
    await home.config.async_set_time_zone("UTC")

    for conditions, turn_ids in LISTS:
        with subtests.test(conditions=conditions):
            assert await list_turn_ids(home, **conditions) == turn_ids


async def test_pages_of_the_list_hold_every_turn_once(home: HomeAssistant, turn_records) -> None:
    first = await act(home, "list_turns", limit=3)
    second = await act(home, "list_turns", limit=3, after=first["next_after"])

    assert [each["turn_id"] for page in (first, second) for each in page["turns"]] == ALL_TURN_IDS
    assert second["next_after"] is None


async def test_error_has_the_name_that_automations_know(home: HomeAssistant, turn_records, agent_id: str) -> None:
    failures = [{"agent": "conversation.other", "error": "rate_limited"}, {"agent": agent_id, "error": "unexpected"}]
    await keep(
        home,
        record(9, agent=agent_id, outcome="error", error="unavailable", message="no route", failures=failures),
    )

    (turn,) = (await act(home, "list_turns", outcome="error"))["turns"]

    assert (turn["turn_id"], turn["outcome"], turn["error"]) == ("turn-0009", "error", "unavailable")
    assert turn["failures"] == [
        {"agent": "conversation.other", "error": "rate_limited"},
        {"agent": AGENT, "error": "unexpected"},
    ]
    assert (await act(home, "get_turn", turn_id="turn-0009"))["message"] == "no route"


VISIBLE_TURNS = {
    "admin": {ADAS: "private", GRACES: "private", NOBODYS: "shown", EARLIER: "not_kept"},
    "ada": {ADAS: "shown", NOBODYS: "shown", EARLIER: "not_kept"},
    "grace": {GRACES: "shown", NOBODYS: "shown", EARLIER: "not_kept"},
    "guest": {NOBODYS: "shown", EARLIER: "not_kept"},
    "automation": {ADAS: "private", GRACES: "private", NOBODYS: "shown", EARLIER: "not_kept"},
}


async def test_figures_and_words_are_shown_to_those_who_may_see_them(
    home: HomeAssistant, turn_records, people: People, subtests: pytest.Subtests
) -> None:
    for who, texts in VISIBLE_TURNS.items():
        with subtests.test(who):
            assert await list_turn_ids(home, getattr(people, who)) == list(texts)
            assert await read_texts(home, getattr(people, who)) == texts


VISIBLE_TO_A_TOOL = {
    "admin": {NOBODYS: "private", EARLIER: "not_kept"},
    "ada": {ADAS: "private", NOBODYS: "private", EARLIER: "not_kept"},
    "automation": {NOBODYS: "private", EARLIER: "not_kept"},
}


async def test_tool_of_a_model_is_shown_no_words_and_no_figures_of_others(
    *, home: HomeAssistant, turn_records, people: People, open_turn, subtests: pytest.Subtests
) -> None:
    for who, texts in VISIBLE_TO_A_TOOL.items():
        async with open_turn():
            with subtests.test(who):
                assert await list_turn_ids(home, getattr(people, who)) == list(texts)
                assert await read_texts(home, getattr(people, who)) == texts


@pytest.mark.parametrize(("who", "turn"), [("admin", ADAS), ("grace", NOBODYS), ("automation", GRACES)])
async def test_response_holds_no_word_that_is_private(
    home: HomeAssistant, turn_records, people: People, who: str, turn: str
) -> None:
    response = await act(home, "get_turn", getattr(people, who), turn_id=turn, request=1)

    shown_words = {word for word in WORDS if word in json.dumps(response)}
    assert shown_words == ({"ibis"} if turn == NOBODYS else set())


@pytest.mark.parametrize("who", ["admin", "automation"])
async def test_administrators_and_automations_may_name_a_person(
    home: HomeAssistant, turn_records, people: People, who: str
) -> None:
    assert await list_turn_ids(home, getattr(people, who), person="person.ada") == [ADAS]
    assert await list_turn_ids(home, getattr(people, who), person=people.grace.user_id) == [GRACES]


async def test_people_name_nobody_but_themselves(home: HomeAssistant, turn_records, people: People) -> None:
    with pytest.raises(Unauthorized):
        await list_turn_ids(home, people.grace, person="person.ada")


@pytest.mark.parametrize("who", ["admin", "automation"])
async def test_tool_of_a_model_names_nobody_else(
    home: HomeAssistant, turn_records, people: People, open_turn, who: str
) -> None:
    async with open_turn():
        with pytest.raises(Unauthorized):
            await list_turn_ids(home, getattr(people, who), person="person.ada")


async def test_turns_of_an_agent_are_for_those_who_may_read_it(
    home: HomeAssistant, turn_records, set_up: SetUpFn
) -> None:
    other = await set_up()
    await keep(home, whole(5, "the other one", agent=next(iter(other.subentries))))
    limited = MockUser(name="Leo").add_to_hass(home)
    limited.mock_policy({"entities": {"entity_ids": {AGENT: {"read": True}}}})
    context = Context(user_id=limited.id)

    assert await list_turn_ids(home, context) == [NOBODYS, EARLIER]
    assert await list_turn_ids(home) == ["turn-0005", *ALL_TURN_IDS]
    with pytest.raises(Unauthorized):
        await list_turn_ids(home, context, entity_id="conversation.ada_2")
    with pytest.raises(ServiceValidationError) as refused:
        await act(home, "get_turn", context, turn_id="turn-0005")
    assert refused.value.translation_key == "unknown_turn"


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("get_turn", {"turn_id": "nobody"}, "unknown_turn"),
    ("get_turn", {"turn_id": NOBODYS, "request": 2}, "unknown_request"),
    ("get_turn", {"turn_id": EARLIER, "request": 1}, "unknown_request"),
    ("list_turns", {"filename": "exports/turns.yaml"}, "file_not_allowed"),
    ("list_turns", {"filename": "/etc/turns.jsonl"}, "file_not_allowed"),
    ("list_turns", {"filename": "www/turns.jsonl"}, "file_not_allowed"),
]


@pytest.mark.usefixtures("turn_records", "folder")
async def test_mistake_is_told(home: HomeAssistant, subtests: pytest.Subtests) -> None:
    for action, data, key in MISTAKES:
        with subtests.test(action=action, data=data):
            with pytest.raises(ServiceValidationError) as refused:
                await act(home, action, **data)

            assert refused.value.translation_key == key


IMPOSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("list_turns", {"limit": 0}),
    ("list_turns", {"limit": 101}),
    ("list_turns", {"route": "error"}),
    ("list_turns", {"since": "yesterday"}),
    ("list_turns", {"tool": "x" * 256}),
    ("get_turn", {}),
    ("get_turn", {"turn_id": "x" * 65}),
    ("get_turn", {"turn_id": ADAS, "request": 0}),
    ("list_turns", {"filename": ""}),
]


async def test_impossible_field_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, subtests: pytest.Subtests
) -> None:
    for action, data in IMPOSSIBLE:
        with subtests.test(action=action, data=data), pytest.raises(probatio.Invalid):
            await act(home, action, **data)


async def test_response_is_bounded_and_says_what_is_missing(home: HomeAssistant, turn_records, agent_id: str) -> None:
    calls = [{"name": "HassTurnOn", "arguments": {"name": "x" * 20_000}, "result": "y" * 20_000}] * 200
    sent = request(*("z" * 300_000 for _ in range(5)))
    await keep(home, whole(7, "feed everybody", agent=agent_id, tool_calls=calls, attempts=[sent]))

    turn = await act(home, "get_turn", turn_id="turn-0007", request=1)

    assert len(turn["tool_calls"]) == 100
    assert {len(each["arguments"]) for each in turn["tool_calls"]} == {10_001}
    assert {each["result"] for each in turn["tool_calls"]} == {"y" * 10_000 + "…"}
    assert (len(turn["sent"]["messages"]), turn["sent"]["omitted_messages"]) == (3, 2)


async def test_every_turn_is_exported_to_a_private_file(
    home: HomeAssistant, turn_records, people: People, folder: Path
) -> None:
    file = folder / "turns.jsonl"
    done = await act(home, "list_turns", people.admin, filename="exports/turns.jsonl")

    assert done == {"filename": str(file), "written": 4}
    text = await read_file(home, file)
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["turn_id"] for line in lines] == ALL_TURN_IDS
    assert {word for word in WORDS if word in text} == set(WORDS)
    assert stat.S_IMODE((await home.async_add_executor_job(file.stat)).st_mode) == 0o600


async def test_export_of_a_person_and_a_time_holds_no_other_turn(
    home: HomeAssistant, turn_records, people: People, folder: Path
) -> None:
    of_ada = await act(home, "list_turns", filename="exports/ada.jsonl", person="person.ada")
    late = await act(home, "list_turns", filename="exports/late.jsonl", since=later(90), entity_id=AGENT)

    assert (of_ada["written"], late["written"]) == (1, 1)
    for name in ("ada", "late"):
        text = await read_file(home, folder / f"{name}.jsonl")
        assert {word for word in WORDS if word in text} == {"pelican"}


@pytest.mark.parametrize("who", ["ada", "guest"])
async def test_people_export_nothing(home: HomeAssistant, turn_records, people: People, folder: Path, who: str) -> None:
    with pytest.raises(Unauthorized):
        await act(home, "list_turns", getattr(people, who), filename="exports/turns.jsonl")

    assert await home.async_add_executor_job(lambda: list(folder.iterdir())) == []


async def test_turns_that_are_forgotten_are_in_no_response_and_no_export(
    home: HomeAssistant, turn_records, people: People, folder: Path
) -> None:
    await act(home, "forget", people.ada, everything=True)

    assert await list_turn_ids(home, people.ada) == [NOBODYS, EARLIER]
    with pytest.raises(ServiceValidationError):
        await act(home, "get_turn", people.ada, turn_id=ADAS)
    await act(home, "list_turns", filename="exports/turns.jsonl")
    assert "pelican" not in await read_file(home, folder / "turns.jsonl")


async def test_words_of_a_turn_go_with_what_is_forgotten_by_its_words(
    home: HomeAssistant, turn_records, people: People, folder: Path
) -> None:
    await act(home, "forget", people.ada, query="pelican")

    turn = await act(home, "get_turn", people.ada, turn_id=ADAS, request=1)
    assert (turn["tools"], turn["text"]) == (["HassTurnOn"], "not_kept")
    assert "pelican" not in json.dumps(turn)
    await act(home, "list_turns", filename="exports/turns.jsonl")
    assert "pelican" not in await read_file(home, folder / "turns.jsonl")


async def test_empty_record_is_listed_and_exported(home: HomeAssistant, entry: MockConfigEntry, folder: Path) -> None:
    assert await list_turn_ids(home) == []
    assert (await act(home, "list_turns", filename="exports/turns.jsonl"))["written"] == 0
