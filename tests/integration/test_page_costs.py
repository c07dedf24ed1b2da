"""Tests for the use and the costs by day, agent and person: the sums, and the rows that each caller sees."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError, Unauthorized
from homeassistant.util import dt as dt_util
import probatio
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_PROVIDER, CONF_ROUTING, PROVIDER_OPENAI
from custom_components.windowed_conversation.page import costs
from demo.model_server import ModelServer
from tests.record.recorded import record, request, writes

from .conftest import AGENT, SayFn, SetUpFn, flush_store
from .page_reads import read_page
from .remembered import memory_of
from .test_memory_actions import People, people

__all__ = ["people"]

type Read = Callable[..., Coroutine[Any, Any, list[dict[str, Any]]]]
type Keep = Callable[..., Coroutine[Any, Any, None]]


@pytest.fixture
def read(home: HomeAssistant) -> Read:
    """Return a function that reads the rows as a caller."""

    async def read(context: Context | None = None, **data: Any) -> list[dict[str, Any]]:
        return (await read_page(home, costs.COMMANDS, context, **data))["rows"]

    return read


@pytest.fixture
def keep(home: HomeAssistant, entry: MockConfigEntry) -> Keep:
    """Return a function that records turns of the agent, each given as its time and its other fields."""
    agent_id = next(iter(entry.subentries))

    async def keep(*turns: tuple[datetime, dict[str, Any]]) -> None:
        for number, (at, fields) in enumerate(turns):
            turn = record(number, **{"agent": agent_id, **fields, "time": at.timestamp()})
            memory_of(home).writer.put(*writes(turn))
        await flush_store(home)

    return keep


@pytest.fixture
async def of_each(keep: Keep, people: People) -> None:
    """Record a turn of Ada's, of Grace's, and of an unknown speaker."""
    now = dt_util.now()
    await keep(*[(now, {"person": who and who.user_id}) for who in (people.ada, people.grace, None)])


async def test_turns_are_summed_with_their_requests(people: People, keep: Keep, read: Read) -> None:
    today = dt_util.start_of_local_day()
    ada = {"person": people.ada.user_id}
    await keep(
        (today, {**ada, "attempts": [request(), request()], "cost": "0.25"}),
        (today, {**ada, "attempts": [], "cost": "0"}),
        (today, {**ada, "cost": None}),
        (today, {**ada, "route": "summary", "cost": "0.5"}),
    )

    assert await read(people.ada) == [
        {
            "day": today.date().isoformat(),
            "entity_id": AGENT,
            "agent": "Ada",
            "person": "Ada",
            "turns": 3,
            "requests": 4,
            "input_tokens": 400,
            "cached_tokens": 320,
            "output_tokens": 80,
            "cost": 0.75,
            "without_price": 1,
        }
    ]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [({"attempts": [request()]}, None), ({"attempts": []}, 0.0), ({"attempts": [request()], "cost": "1E-7"}, 1e-7)],
)
async def test_cost_is_unknown_only_if_a_request_has_no_price(
    keep: Keep, read: Read, fields: dict[str, Any], shown: float | None
) -> None:
    await keep((dt_util.now(), fields))

    assert [each["cost"] for each in await read()] == [shown]


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns", "Europe/Berlin"])
async def test_day_begins_at_midnight_of_the_home(home: HomeAssistant, keep: Keep, read: Read, zone: str) -> None:
    await home.config.async_set_time_zone(zone)
    midnight = dt_util.start_of_local_day()
    await keep((midnight, {}), (midnight - timedelta(seconds=1), {}))

    days = [each["day"] for each in await read()]

    assert days == [midnight.date().isoformat(), (midnight.date() - timedelta(days=1)).isoformat()]


async def test_only_the_last_days_are_shown(keep: Keep, read: Read) -> None:
    first = dt_util.start_of_local_day() - timedelta(days=6)
    await keep((first, {}), (first - timedelta(seconds=1), {}))

    assert [each["day"] for each in await read(days=7)] == [first.date().isoformat()]


async def test_number_of_days_is_limited(entry: MockConfigEntry, read: Read, subtests: pytest.Subtests) -> None:
    for days in (0, 93, -1, 1.5, "many", None):
        with subtests.test(days=days), pytest.raises(probatio.Invalid):
            await read(days=days)


async def test_oldest_rows_are_left_out_of_too_many(keep: Keep, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_MAX_ROWS", 2)
    today = dt_util.now()
    await keep(*[(today - timedelta(days=ago), {}) for ago in range(3)])

    assert [each["day"] for each in await read()] == [
        (today - timedelta(days=ago)).date().isoformat() for ago in range(2)
    ]


VISIBLE_PEOPLE = {
    "ada": {"Ada", None},
    "grace": {"Grace", None},
    "guest": {None},
    "admin": {"Ada", "Grace", None},
    "automation": {"Ada", "Grace", None},
}


@pytest.mark.usefixtures("of_each")
async def test_caller_sees_the_turns_that_they_may_list(read: Read, people: People, subtests: pytest.Subtests) -> None:
    for caller, names in VISIBLE_PEOPLE.items():
        with subtests.test(caller):
            assert {each["person"] for each in await read(getattr(people, caller))} == names


@pytest.mark.usefixtures("of_each")
async def test_turn_sees_no_person_that_an_automation_sees(entry: MockConfigEntry, get_agent, read: Read) -> None:
    async with get_agent(entry).windows.begin_turn("everyone's"):
        rows = await read()

    assert [each["person"] for each in rows] == [None]


@pytest.mark.usefixtures("of_each")
async def test_user_who_may_use_no_agent_is_refused(home: HomeAssistant, read: Read) -> None:
    stranger = await home.auth.async_create_user("Stranger")

    with pytest.raises(Unauthorized):
        await read(Context(user_id=stranger.id))


@pytest.mark.usefixtures("of_each")
async def test_account_that_is_not_loaded_keeps_its_rows(
    home: HomeAssistant, entry: MockConfigEntry, people: People, read: Read
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    assert {(each["entity_id"], each["agent"]) for each in await read(people.ada)} == {(AGENT, "Ada")}


async def test_agent_that_was_removed_is_shown_by_its_id(keep: Keep, people: People, read: Read) -> None:
    await keep((dt_util.now(), {"agent": "removed"}))

    assert [(each["entity_id"], each["agent"]) for each in await read(people.admin)] == [("removed", "removed")]


async def test_turn_that_was_said_is_in_the_sums(
    set_up: SetUpFn, say: SayFn, people: People, read: Read, *, model_server: ModelServer
) -> None:
    model_server.change(models=("gpt-4o-mini",))
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    await set_up(account=account, **{CONF_MODEL: "gpt-4o-mini", CONF_ROUTING: "model_only"})
    await say("tell me a story about whales", context=people.ada)

    (row,) = await read(people.ada)

    used = model_server.requests[-1].usage
    assert (row["person"], row["turns"], row["requests"], row["without_price"]) == ("Ada", 1, 1, 0)
    assert (row["input_tokens"], row["output_tokens"]) == (used["prompt"], used["completion"])
    assert 0 < row["cost"] < 0.01


async def test_record_that_cannot_be_read_is_an_error(home: HomeAssistant, keep: Keep, read: Read) -> None:
    await keep((dt_util.now(), {}))
    await home.async_add_executor_job(memory_of(home).writer.close, 60.0)

    with pytest.raises(HomeAssistantError) as refused:
        await read()

    assert refused.value.translation_key == "memory_unavailable"
