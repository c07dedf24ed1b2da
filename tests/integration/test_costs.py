"""Tests for the cost of turns in US dollars: exact with known prices, unknown without them, and 0 without a request."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from decimal import Decimal
import json
from typing import Any

from genai_prices import Usage as PricedUsage, calc_price
from homeassistant.components.sensor import DATA_COMPONENT
from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.bridge.account import ModelUsage, async_calculate_cost
from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_FAMILY,
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    CONF_SUMMARIZE,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.models import Vendor
from custom_components.windowed_conversation.sensor import AgentSensor, AgentSensorDescription
from demo.model_server import ModelServer, call, words

from .conftest import SayFn, SetUpFn, flush_store, get_speech, start, stop, until
from .more_agents import add_account
from .states import get_state
from .store_file import Disk

MINI, HAIKU, FLASH = "gpt-4o-mini", "claude-haiku-4-5", "gemini-2.5-flash"
COST_OF_A_TURN = AgentSensorDescription(key="turn_cost", value_fn=lambda agent: agent.statistics.costs.last_turn)
TURN_COST, TOTAL_COST = "sensor.ada_last_turn_cost", "sensor.ada_total_cost"


@pytest.fixture(autouse=True)
def models(model_server: ModelServer) -> None:
    """Configure the server to offer models with a known price and one without."""
    model_server.change(models=("scripted", MINI, HAIKU, FLASH, "kitchen"))


@pytest.fixture
def openai(model_server: ModelServer) -> dict[str, Any]:
    """Return the data of an OpenAI account."""
    return {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}


@pytest.fixture
def get_cost(home: HomeAssistant) -> Callable[[str], Decimal]:
    """Return a function that returns the state of a cost sensor in US dollars."""

    def get_cost(entity_id: str) -> Decimal:
        state = get_state(home, entity_id)
        assert state.attributes["unit_of_measurement"] == "USD"
        return Decimal(state.state)

    return get_cost


@pytest.fixture
def count_unpriced(home: HomeAssistant) -> Callable[[], int]:
    """Return a function that returns the number of turns and summaries without a known price."""
    return lambda: get_state(home, TOTAL_COST).attributes["without_price"]


def prices(model_server: ModelServer, vendor: str, model: str) -> Iterator[Decimal]:
    """Yield the cost of each request, calculated from the usage in the server's log."""
    for request in model_server.requests:
        used = request.usage
        written = used["written"] if vendor == "anthropic" else 0
        usage = PricedUsage(
            input_tokens=used["prompt"],
            cache_read_tokens=used["cached"],
            cache_write_tokens=written,
            output_tokens=used["completion"],
        )
        yield calc_price(usage, model, provider_id=vendor).total_price


@pytest.mark.parametrize(
    ("provider", "vendor", "model"),
    [
        (PROVIDER_OPENAI, "openai", MINI),
        (PROVIDER_ANTHROPIC, "anthropic", HAIKU),
        (PROVIDER_GEMINI, "google", FLASH),
    ],
)
async def test_turns_cost_what_the_vendor_asks_for_them(
    *,
    provider: str,
    vendor: str,
    model: str,
    set_up: SetUpFn,
    say: SayFn,
    get_cost,
    count_unpriced,
    model_server: ModelServer,
) -> None:
    url = model_server.url if provider == PROVIDER_OPENAI else model_server.address
    await set_up(account={CONF_PROVIDER: provider, CONF_URL: url}, **{CONF_MODEL: model})

    await say(f"my name is {'Ada ' * 3000}")
    model_server.script(call("HassTurnOn", name="kitchen light"), words(""))
    await say("I would like the kitchen light switched on")

    first, *second = prices(model_server, vendor, model)
    assert sum(request.usage["cached"] for request in model_server.requests) > 0
    assert len(second) == 2
    assert get_cost(TURN_COST) == sum(second)
    assert get_cost(TOTAL_COST) == first + sum(second) > 0
    assert count_unpriced() == 0


async def test_deployment_costs_what_the_model_costs_that_the_user_names(
    set_up: SetUpFn, say: SayFn, get_cost, model_server: ModelServer
) -> None:
    account = {CONF_PROVIDER: PROVIDER_AZURE, CONF_URL: model_server.azure_url}
    await set_up(account=account, **{CONF_MODEL: "kitchen", CONF_FAMILY: MINI})

    await say("my name is Ada")

    assert get_cost(TURN_COST) == get_cost(TOTAL_COST) == sum(prices(model_server, "azure", MINI)) > 0


async def test_deployment_of_nobody_knows_what_has_no_price(
    set_up: SetUpFn, say: SayFn, home: HomeAssistant, count_unpriced, model_server: ModelServer
) -> None:
    model_server.change(models=(MINI,))
    account = {CONF_PROVIDER: PROVIDER_AZURE, CONF_URL: model_server.azure_url}
    await set_up(account=account, **{CONF_MODEL: MINI})

    await say("my name is Ada")

    assert get_state(home, TURN_COST).state == get_state(home, TOTAL_COST).state == "unknown"
    assert count_unpriced() == 1


async def test_turn_that_asked_no_model_has_cost_nothing(set_up: SetUpFn, say: SayFn, openai, get_cost) -> None:
    await set_up(account=openai, **{CONF_MODEL: MINI})
    await say("my name is Ada")
    total = get_cost(TOTAL_COST)

    await say("turn on kitchen light")

    assert get_cost(TURN_COST) == 0
    assert get_cost(TOTAL_COST) == total > 0


async def test_cost_of_a_turn_that_ends_before_its_sensor_is_added_is_shown(
    home: HomeAssistant, entry: MockConfigEntry, get_agent
) -> None:
    (subentry,) = entry.subentries.values()
    sensor = AgentSensor(get_agent(entry), subentry, COST_OF_A_TURN)
    get_agent(entry).statistics.on_cost(Decimal("0.25"), of_turn=True)

    await home.data[DATA_COMPONENT].async_add_entities([sensor])

    assert get_state(home, sensor.entity_id).state == "0.25"


@pytest.fixture
async def other(home: HomeAssistant, model_server: ModelServer) -> None:
    """Add an account for Anthropic, with another agent, on the same server."""
    account = {CONF_PROVIDER: PROVIDER_ANTHROPIC, CONF_URL: model_server.address}
    await add_account(home, "Grace", account, **{CONF_MODEL: HAIKU})


async def test_each_request_has_its_own_price(home: HomeAssistant) -> None:
    long = ModelUsage(Vendor.GOOGLE, "gemini-2.5-pro", Usage(input=150_000))
    longer = ModelUsage(Vendor.GOOGLE, "gemini-2.5-pro", Usage(input=300_000))

    one, two, other = [await async_calculate_cost(home, uses) for uses in ((long,), (long, long), (longer,))]
    assert one is not None
    assert two is not None
    assert other is not None
    assert two == 2 * one
    assert two < other


@pytest.mark.usefixtures("other")
async def test_answer_of_a_fallback_agent_costs_what_its_model_costs(
    *, set_up: SetUpFn, say: SayFn, home: HomeAssistant, openai, get_cost, model_server: ModelServer
) -> None:
    await set_up(account=openai, **{CONF_MODEL: MINI, CONF_FALLBACK_AGENTS: ["conversation.grace"]})
    model_server.fault("500", 1)

    assert "Ada" in get_speech(await say("my name is Ada"))

    failed, answered = model_server.requests
    model_server.log.records.remove(failed)
    assert (failed.usage, answered.format) == ({}, "anthropic")
    assert get_cost(TURN_COST) == get_cost(TOTAL_COST) == sum(prices(model_server, "anthropic", HAIKU)) > 0
    assert Decimal(get_state(home, "sensor.grace_total_cost").state) == 0


async def test_answer_of_a_stranger_costs_nobody_knows_what(
    *, set_up: SetUpFn, say: SayFn, home: HomeAssistant, openai, count_unpriced, model_server: ModelServer
) -> None:
    await set_up(account=openai, **{CONF_MODEL: MINI, CONF_FALLBACK_AGENTS: ["conversation.home_assistant"]})
    model_server.fault("500")

    await say("quietly, what time is it now?")

    assert get_state(home, "sensor.ada_last_route").state == "fallback"
    assert get_state(home, TURN_COST).state == "unknown"
    assert count_unpriced() == 1


async def test_answer_that_breaks_off_costs_nobody_knows_what(
    *, set_up: SetUpFn, say: SayFn, home: HomeAssistant, openai, get_cost, count_unpriced, model_server: ModelServer
) -> None:
    await set_up(account=openai, **{CONF_MODEL: MINI})
    await say("my name is Ada")
    total = get_cost(TOTAL_COST)
    model_server.fault("cut_mid_stream", after_words=3)

    await say("tell me a story about the sea")

    assert get_state(home, TURN_COST).state == "unknown"
    assert get_cost(TOTAL_COST) == total > 0
    assert count_unpriced() == 1


@pytest.mark.long
async def test_question_that_is_refused_at_once_has_cost_nothing(
    *, set_up: SetUpFn, say: SayFn, openai, get_cost, count_unpriced, model_server: ModelServer
) -> None:
    await set_up(account=openai, **{CONF_MODEL: MINI})
    model_server.fault("429")

    await say("my name is Ada")

    assert get_cost(TURN_COST) == get_cost(TOTAL_COST) == 0
    assert count_unpriced() == 0


async def test_summary_is_part_of_the_total(
    *, set_up: SetUpFn, say: SayFn, home: HomeAssistant, openai, get_agent, get_cost, model_server: ModelServer
) -> None:
    entry = await set_up(account=openai, options={CONF_HISTORY_TOKENS: 600, CONF_SUMMARIZE: True}, **{CONF_MODEL: MINI})
    while not sum(window.stats().trims for window in get_agent(entry).windows.loaded_windows().values()):
        await say("tell me a story in 120 words")
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    *_, last, summary = prices(model_server, "openai", MINI)
    assert get_cost(TURN_COST) == last
    assert get_cost(TOTAL_COST) == sum(prices(model_server, "openai", MINI))
    assert summary > 0


@pytest.fixture
def kept(home: HomeAssistant, disk: Disk) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return a function that restarts an account with a stored total cost and two turns without a known price."""

    async def kept(entry: MockConfigEntry, total: Any) -> None:
        await stop(home, entry)
        totals = json.dumps({"cost": total, "without_price": 2})
        disk.execute("INSERT OR REPLACE INTO value VALUES (?, 'totals', ?)", *entry.subentries, totals)
        await start(home, entry)

    return kept


async def test_total_goes_on_after_a_restart(
    *, set_up: SetUpFn, say: SayFn, openai, kept, get_cost, count_unpriced, model_server: ModelServer
) -> None:
    await kept(await set_up(account=openai, **{CONF_MODEL: MINI}), "1.25")
    model_server.log.clear()
    assert get_cost(TOTAL_COST) == Decimal("1.25")

    await say("my name is Ada")

    assert get_cost(TOTAL_COST) == Decimal("1.25") + sum(prices(model_server, "openai", MINI))
    assert count_unpriced() == 2


@pytest.mark.parametrize("total", ["0", "NaN", "Infinity", "-1", "1e999999", "much", 1.5, None, "1" * 100])
async def test_total_of_which_nothing_was_known_is_still_unknown_after_a_restart(
    *, home: HomeAssistant, set_up: SetUpFn, openai, kept, count_unpriced, total: Any
) -> None:
    await kept(await set_up(account=openai, **{CONF_MODEL: MINI}), total)

    assert get_state(home, TOTAL_COST).state == "unknown"
    assert count_unpriced() == 2


async def test_costs_are_money_on_the_agents_device(home: HomeAssistant, set_up: SetUpFn, openai) -> None:
    entry = await set_up(account=openai, **{CONF_MODEL: MINI})
    turn, total = get_state(home, TURN_COST).attributes, get_state(home, TOTAL_COST).attributes

    assert (turn["device_class"], turn.get("state_class")) == ("monetary", None)
    assert (total["device_class"], total["state_class"]) == ("monetary", "total")
    (agent_id,) = entry.subentries
    entities = [each for each in er.async_get(home).entities.values() if each.config_subentry_id == agent_id]
    assert {each.entity_id for each in entities} >= {TURN_COST, TOTAL_COST}
    assert len({entity.device_id for entity in entities}) == 1


async def cancel_turn(turn: asyncio.Task[Any], agent: Agent) -> None:
    """Cancel a turn and notify the listeners of its agent."""
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    agent.notify_listeners()


async def test_turn_that_was_cancelled_has_cost_what_nobody_knows(
    *,
    home: HomeAssistant,
    openai,
    set_up: SetUpFn,
    say: SayFn,
    get_agent,
    get_cost,
    count_unpriced,
    model_server: ModelServer,
) -> None:
    entry = await set_up(account=openai, **{CONF_MODEL: MINI})
    await say("my name is Ada")
    known = get_cost(TOTAL_COST)
    model_server.change(delay=0.05)
    turn = asyncio.create_task(say("tell me a story about the sea"))
    await until(lambda: len(model_server.requests) == 2)

    await cancel_turn(turn, get_agent(entry))
    await home.async_block_till_done()
    await flush_store(home)

    assert (count_unpriced(), get_cost(TOTAL_COST)) == (1, known)
    assert get_state(home, TURN_COST).state == "unknown"


async def test_requests_of_a_cancelled_turn_that_were_billed_are_counted(
    *, home: HomeAssistant, openai, set_up: SetUpFn, say: SayFn, get_agent, figure, model_server: ModelServer
) -> None:
    entry = await set_up(account=openai, **{CONF_MODEL: MINI})
    model_server.change(delay=0.05)
    turn = asyncio.create_task(say("I would like the kitchen light switched on"))
    await until(lambda: len(model_server.requests) == 2)

    await cancel_turn(turn, get_agent(entry))
    await home.async_block_till_done()
    await flush_store(home)

    assert figure("input_tokens") == str(model_server.requests[0].usage["prompt"])
    assert (figure("requests"), figure("tool_calls")) == ("2", "1")
    assert figure("turns_model") == figure("turns_failed") == "0"
