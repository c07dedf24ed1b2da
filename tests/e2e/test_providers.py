"""Tests for each provider in a real Home Assistant, added through its account form and with a fallback agent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from demo.client import Json
from demo.home_assistant import find_free_port
from demo.model_server import ModelServer
from demo.providers import build_scripted_model
from demo.setup_agent import add_account, ensure_pipeline, find_sensor_ids, remove_account, submit_new_key
from demo.turns import Turn
from tests.e2e.house import House, wait_for
from tests.price_list import price

# Seconds between the words of the scripted models.
_DELAY = 0.005

# The maximum time in seconds after the first provider's failure until text of the second arrives.
_HAND_OVER = 1.0

_EVENT = "windowed_conversation_turn"


@dataclass(frozen=True, slots=True)
class Case:
    """A provider: its agent's model or deployment, the vendor whose prices apply, and the model of a deployment."""

    model: str
    vendor: str
    family: str | None = None


_CASES = {
    "responses": Case("gpt-5-mini", "openai"),
    "openai-chat": Case("gpt-4o-mini", "openai"),
    "azure": Case("our-deployment", "azure", family="gpt-4.1-mini"),
    "gemini": Case("gemini-2.5-flash", "google"),
    "anthropic": Case("claude-haiku-4-5", "anthropic"),
}


async def add_house(stack: AsyncExitStack, home: House, name: str, case: Case) -> House:
    """Add an agent whose model has a separate server to the home, and return the home with this agent."""
    server = await stack.enter_async_context(ModelServer(port=find_free_port(), delay=_DELAY, models=(case.model,)))
    account = await add_account(home.client, build_scripted_model(server, name, case.model), f"By {name}")
    stack.push_async_callback(remove_account, home.client, account.entry_id)
    pipeline = await ensure_pipeline(home.client, account.agent_id, account.agent_id)
    known = await find_sensor_ids(home.client, account.entry_id)
    return replace(home, model=server, account=account, pipeline=pipeline, sensors=known)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def houses(shared_house) -> AsyncIterator[dict[str, House]]:
    """Yield the home with an agent of each provider; each agent has the next one in the list as its fallback agent."""
    async with AsyncExitStack() as stack:
        made = {name: await add_house(stack, shared_house, name, case) for name, case in _CASES.items()}
        following = [*list(made.values())[1:], next(iter(made.values()))]
        for case, house, after in zip(_CASES.values(), made.values(), following, strict=True):
            family = {"model_family": case.family} if case.family else {}
            await house.change_agent(fallback_agents=[after.account.agent_id], **family)
        for house in made.values():
            await set_up(house)
        yield made


@pytest.fixture(params=list(_CASES))
def name(request) -> str:
    return request.param


@pytest_asyncio.fixture(loop_scope="session")
async def asked(house, houses, name) -> AsyncIterator[House]:
    """Yield the home with the agent under test; afterwards check that all requests were valid and reset the servers."""
    servers = [each.model for each in houses.values()]
    for server in servers:
        server.reset()
    yield houses[name]
    broken = [request.violations for server in servers for request in server.requests if request.violations]
    for server in servers:
        server.reset()
    assert broken == []


@pytest.fixture
def second(houses, name) -> House:
    """Return the home with the fallback agent of the agent under test."""
    names = list(_CASES)
    return houses[names[(names.index(name) + 1) % len(names)]]


async def get_entry_state(house: House) -> str:
    """Return the state of the account's config entry."""
    entry = await house.client.send_command("config_entries/get_single", entry_id=house.account.entry_id)
    return str(entry["config_entry"]["state"])


async def set_up(house: House) -> None:
    """Wait until the account is set up."""
    await wait_for(lambda: get_entry_state(house), lambda state: state == "loaded")


async def say_and_hear(house: House, *said: str) -> tuple[Turn, Json]:
    """Send the text and return the turn, and the data of the event that the integration fires for the turn."""
    events = house.client.iter_events("subscribe_events", event_type=_EVENT)
    told = asyncio.ensure_future(anext(events))
    # The response to the following command arrives after Home Assistant has processed the subscription.
    await asyncio.sleep(0)
    await house.client.send_command("get_config")
    try:
        turn = await house.say(*said)
        return turn, (await told)["data"]
    finally:
        await events.aclose()


async def renewals(house: House) -> list[Json]:
    """Return the reauthentication flows of the account."""
    flows = await house.client.send_command("config_entries/flow/progress")
    entry_id = house.account.entry_id
    return [flow for flow in flows if flow["context"].get("entry_id") == entry_id]


async def test_answer_is_streamed(asked):
    turn = await asked.say("tell me a story about the sea")
    assert turn.error == ""
    assert len(turn.pieces) > 50
    (first, _), *_, (last, _) = turn.pieces
    # The text must arrive as slowly as the model writes it, and not all at once at the end.
    assert last - first > len(turn.pieces) * _DELAY / 2


async def test_tool_call_changes_the_home_and_a_follow_up_knows_what_was_said_and_done(asked):
    told = await asked.say("my name is Ada")
    turn = await asked.say("I would like the kitchen light switched on", told.conversation_id)
    assert [call.has_failed for call in turn.calls.values()] == [False]
    assert await asked.get_state("light.kitchen_light") == "on"
    assert (await asked.say("what is my name?", told.conversation_id)).speech == "Your name is Ada."


async def test_second_is_heard_within_a_second_when_the_first_is_down(asked, second):
    told = await asked.say("my name is Ada")
    await asked.model.stop()
    try:
        turn, event = await say_and_hear(asked, "what is my name?", told.conversation_id)
    finally:
        await asked.model.start()
    assert turn.speech == "Your name is Ada."
    assert turn.first_token is not None
    assert turn.first_token < _HAND_OVER
    assert (event["route"], event["reason"]) == ("fallback", "unavailable")
    assert await asked.sensor("last_route") == "fallback"
    assert len(second.model.requests) == 1


async def test_refused_key_is_renewed_by_the_user(asked, second):
    asked.model.change(key="renewed")
    assert (await asked.say("my name is Ada")).speech == "Nice to meet you, Ada."
    assert len(second.model.requests) == 1
    (flow,) = await wait_for(lambda: renewals(asked), lambda flows: len(flows) == 1)
    await submit_new_key(asked.client, flow["flow_id"], "renewed")
    await set_up(asked)
    assert await renewals(asked) == []
    assert (await asked.say("my name is Ada")).speech == "Nice to meet you, Ada."
    assert len(second.model.requests) == 1


async def test_cost_is_what_the_price_list_says(asked, name):
    case = _CASES[name]
    await asked.say("my name is Ada")
    (request,) = asked.model.requests
    expected = price(case.vendor, case.family or case.model, request.usage)
    # known a little later than the turn
    await asked.wait_for_sensor("turn_cost", lambda cost: float(cost) == pytest.approx(expected))
