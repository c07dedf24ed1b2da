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
from tests.window.turns import begin_turn

from .conftest import SayFn, SetUpFn, flush_store
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

    names = {"day": today.date().isoformat(), "agent": "Ada", "person": "Ada"}
    assert await read(people.ada) == [
        {
            **names,
            "model": "gpt-5",
            "route": "summary",
            "turns": 0,
            "requests": 1,
            "input_tokens": 100,
            "cached_tokens": 80,
            "output_tokens": 20,
            "cost": 0.5,
            "without_price": 0,
            "saved": 0.0,
        },
        {
            **names,
            "model": "gpt-5",
            "route": "model",
            "turns": 2,
            "requests": 3,
            "input_tokens": 300,
            "cached_tokens": 240,
            "output_tokens": 60,
            "cost": 0.25,
            "without_price": 1,
            "saved": 0.0,
        },
        {
            **names,
            "model": None,
            "route": "model",
            "turns": 1,
            "requests": 0,
            "input_tokens": 0,
            "cached_tokens": 0,
            "output_tokens": 0,
            "cost": 0.0,
            "without_price": 0,
            "saved": 0.0,
        },
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
    for days in (0, 367, -1, 1.5, "many", None):
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
    async with begin_turn(get_agent(entry).windows, "everyone's"):
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

    assert {each["agent"] for each in await read(people.ada)} == {"Ada"}


async def test_agent_that_was_removed_is_shown_by_its_id(keep: Keep, people: People, read: Read) -> None:
    await keep((dt_util.now(), {"agent": "removed"}))

    assert [each["agent"] for each in await read(people.admin)] == ["removed"]


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


async def test_year_is_summed_by_month(keep: Keep, read: Read) -> None:
    first = dt_util.start_of_local_day().replace(day=1)
    await keep((first, {}), (first - timedelta(hours=1), {}), (first - timedelta(days=2), {}))

    rows = await read(days=366)

    assert [(each["day"], each["turns"]) for each in rows] == [
        (first.date().isoformat(), 1),
        ((first - timedelta(days=1)).date().replace(day=1).isoformat(), 2),
    ]


async def test_savings_of_the_cache_are_the_difference_of_the_prices(
    set_up: SetUpFn, say: SayFn, people: People, read: Read, *, model_server: ModelServer
) -> None:
    model_server.change(models=("gpt-4o-mini",))
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    await set_up(account=account, **{CONF_MODEL: "gpt-4o-mini", CONF_ROUTING: "model_only"})
    for _ in range(2):
        await say("tell me a story about whales", context=people.ada)

    (row,) = await read(people.ada)

    # a million tokens cost 0.15 dollars, and 0.075 dollars from the cache
    assert row["cached_tokens"] > 0
    assert row["saved"] == pytest.approx(row["cached_tokens"] * 0.075e-6)


async def test_week_has_the_figures_of_what_the_caller_may_list(
    home: HomeAssistant, keep: Keep, people: People
) -> None:
    now, ada = dt_util.now(), {"person": people.ada.user_id}
    steps = [{"step": "request", "start": 0.5, "end": 6.5}, {"step": "tool", "name": "Get", "start": 6.5, "end": 7.0}]
    await keep(
        (now - timedelta(days=7), {**ada, "cost": "5"}),
        (now - timedelta(days=6), {**ada, "route": "local", "reason": "local_match", "duration": 0.1, "cost": "0"}),
        (now, {**ada, "outcome": "error", "error": "unavailable", "duration": 7.0, "waterfall": steps, "cost": "0.25"}),
        (now, {**ada, "route": "summary", "duration": 30.0, "cost": "0.5"}),
        (now, {"person": people.grace.user_id, "cost": "9"}),
    )

    week = await read_page(home, costs.COMMANDS[1:], people.ada)

    slowest = {"turn_id": "turn-0002", "duration": 7.0, "error": "unavailable"}
    slowest |= {"step": "request", "name": None, "times": 1, "step_duration": 6.0}
    assert week == {
        "questions": 2,
        "local": 1,
        "failed": 1,
        "cost": 0.75,
        "currency": "USD",
        "slowest": slowest,
    }


def _step(step: str, start: float, end: float, name: str | None = None) -> dict[str, Any]:
    return {"step": step, "start": start, "end": end} | ({"name": name} if name else {})


_REQUESTS = (_step("request", 0.0, 2.0), _step("request", 5.0, 7.0))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param((*_REQUESTS, _step("tool", 2.0, 5.0, "Get")), ("request", None, 2, 4.0), id="two requests"),
        pytest.param(
            (*_REQUESTS, _step("tool", 2.0, 4.5, "Get"), _step("tool", 2.5, 5.0, "Get")),
            ("request", None, 2, 4.0),
            id="tools at the same time",
        ),
        pytest.param((_step("tool", 1.0, 3.0, "Get"),), (None, None, 0, None), id="mostly unknown"),
        pytest.param((), (None, None, 0, None), id="no step"),
    ],
)
async def test_slowest_question_has_the_work_that_took_the_longest(
    home: HomeAssistant,
    keep: Keep,
    people: People,
    steps: tuple[dict[str, Any], ...],
    expected: tuple[str | None, str | None, int, float | None],
) -> None:
    await keep((dt_util.now(), {"person": people.ada.user_id, "duration": 7.0, "waterfall": [*steps]}))

    slowest = (await read_page(home, costs.COMMANDS[1:], people.ada))["slowest"]

    assert tuple(slowest[each] for each in ("step", "name", "times", "step_duration")) == expected


async def test_record_that_cannot_be_read_is_an_error(home: HomeAssistant, keep: Keep, read: Read) -> None:
    await keep((dt_util.now(), {}))
    await home.async_add_executor_job(memory_of(home).writer.close, 60.0)

    with pytest.raises(HomeAssistantError) as refused:
        await read()

    assert refused.value.translation_key == "memory_unavailable"
