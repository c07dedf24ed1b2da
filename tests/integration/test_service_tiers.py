"""Tests that OpenAI's flexible tier is only asked for by requests that nobody waits for, and is paid for as such."""

from typing import Any

from genai_prices import Usage as PricedUsage, calc_price
from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_FORMAT,
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    CONF_SUMMARIZE,
    PROVIDER_OPENAI,
)
from demo.model_server import ModelServer

from .account_kinds import KINDS
from .actions import act
from .ai_tasks import TASK, SetUpTask, attach
from .conftest import SayFn, SetUpFn, flush_store
from .satellite import SATELLITE

MODEL = "gpt-6-luna"


@pytest.fixture
async def entry(set_up: SetUpFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an OpenAI account whose agent writes summaries."""
    model_server.change(models=("scripted", MODEL))
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url, CONF_FORMAT: "responses"}
    options = {CONF_HISTORY_TOKENS: 600, CONF_SUMMARIZE: True}
    return await set_up(account=account, options=options, **{CONF_MODEL: MODEL})


def get_tiers(model_server: ModelServer) -> list[str | None]:
    return [request.body.get("service_tier") for request in model_server.requests]


async def fill_window(home: HomeAssistant, agent: Agent, say: SayFn) -> None:
    """Speak to the agent until exchanges were evicted and summarized."""
    while not sum(window.stats().trims for window in agent.windows.loaded_windows().values()):
        await say("tell me a story in 120 words")
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)


async def test_summary_asks_for_the_flexible_tier_and_turns_do_not(
    home: HomeAssistant, entry: MockConfigEntry, get_agent: Any, say: SayFn, model_server: ModelServer
) -> None:
    await fill_window(home, get_agent(entry), say)

    *turns, summary = get_tiers(model_server)
    assert (set(turns), summary) == ({None}, "flex")


async def test_summary_costs_what_the_flexible_tier_costs(
    home: HomeAssistant, entry: MockConfigEntry, get_agent: Any, say: SayFn, model_server: ModelServer
) -> None:
    agent = get_agent(entry)
    await fill_window(home, agent, say)

    usage = model_server.requests[-1].usage
    used = PricedUsage(
        input_tokens=usage["prompt"],
        cache_read_tokens=usage["cached"],
        cache_write_tokens=usage["written"],
        output_tokens=usage["completion"],
    )
    flexible = calc_price(used, MODEL, provider_id="openai", price_context={"service_tier": "flex"}).total_price
    (turn,) = (await act(home, "list_turns", route="summary"))["turns"]
    assert flexible > 0
    assert float(turn["cost"]) == pytest.approx(float(flexible))


async def test_summary_that_an_action_waits_for_does_not_ask_for_the_flexible_tier(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await say("my name is Ada")
    await say("what is my name?")

    await act(home, "summarize_conversation", keep=1)

    assert get_tiers(model_server) == [None, None, None]


async def test_only_what_a_satellite_says_is_short(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await say("my name is Ada", satellite_id=SATELLITE)
    await say("what is my name?")

    assert [request.body.get("text") for request in model_server.requests] == [{"verbosity": "low"}, None]


async def test_task_asks_for_the_flexible_tier_unless_somebody_may_wait(
    home: HomeAssistant, set_up_task: SetUpTask, model_server: ModelServer
) -> None:
    await set_up_task(next(kind for kind in KINDS if kind.name == "openai_responses"), **{CONF_MODEL: MODEL})
    person = Context(user_id=MockUser(name="Ada", is_owner=True).add_to_hass(home).id)
    fields = {"entity_id": TASK, "task_name": "door", "instructions": "Who is at the door?"}

    for context, more in ((Context(), {}), (person, {}), (Context(), {"attachments": attach("door.jpg")})):
        await home.services.async_call(
            "ai_task", "generate_data", {**fields, **more}, blocking=True, return_response=True, context=context
        )

    assert get_tiers(model_server) == ["flex", None, None]
