"""Each provider in a real Home Assistant, through its own account form, with an agent of another to fall back on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from demo.client import Json
from demo.home_assistant import free_port
from demo.model_server import ModelServer
from demo.providers import scripted_model
from demo.setup_agent import add_account, pipeline_for, remove_account, renew_key, sensors
from demo.turns import Turn
from tests.e2e.house import House, wait_for
from tests.price_list import price

# Seconds between the words of the models.
_DELAY = 0.005

# How soon the second provider must be heard after the first one failed, in seconds.
_HAND_OVER = 1.0

_EVENT = "windowed_conversation_turn"


@dataclass(frozen=True, slots=True)
class Case:
    """A provider: the model that its agent asks, or the deployment of which, and the provider whose prices it has."""

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
    """Return the home as it is with another agent, whose model is at a server of its own."""
    server = await stack.enter_async_context(ModelServer(port=free_port(), delay=_DELAY, models=(case.model,)))
    account = await add_account(home.client, scripted_model(server, name, case.model), f"By {name}")
    stack.push_async_callback(remove_account, home.client, account.entry_id)
    pipeline = await pipeline_for(home.client, account.agent_id, account.agent_id)
    known = await sensors(home.client, account.entry_id)
    return replace(home, model=server, account=account, pipeline=pipeline, sensors=known)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def houses(whole_run) -> AsyncIterator[dict[str, House]]:
    """The home with an agent of each provider, in a ring: each asks the next when its own model does not answer."""
    async with AsyncExitStack() as stack:
        made = {name: await add_house(stack, whole_run, name, case) for name, case in _CASES.items()}
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
    """The home with the agent that is asked; no request breaks a rule of its format, and the servers are reset."""
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
    """The home with the agent that is asked next."""
    names = list(_CASES)
    return houses[names[(names.index(name) + 1) % len(names)]]


async def entry_state(house: House) -> str:
    """Return the state of the account's setup."""
    entry = await house.client.command("config_entries/get_single", entry_id=house.account.entry_id)
    return str(entry["config_entry"]["state"])


async def set_up(house: House) -> None:
    """Return when the account is set up."""
    await wait_for(lambda: entry_state(house), lambda state: state == "loaded")


async def say_and_hear(house: House, *said: str) -> tuple[Turn, Json]:
    """Return the turn and the data of the event that tells of it."""
    events = house.client.events("subscribe_events", event_type=_EVENT)
    told = asyncio.ensure_future(anext(events))
    # the answer to this comes after Home Assistant has subscribed
    await asyncio.sleep(0)
    await house.client.command("get_config")
    try:
        turn = await house.say(*said)
        return turn, (await told)["data"]
    finally:
        await events.aclose()


async def renewals(house: House) -> list[Json]:
    """Return the flows that ask the user for another key of the account."""
    flows = await house.client.command("config_entries/flow/progress")
    entry_id = house.account.entry_id
    return [flow for flow in flows if flow["context"].get("entry_id") == entry_id]


async def test_answer_is_streamed(asked):
    turn = await asked.say("tell me a story about the sea")
    assert turn.error == ""
    assert len(turn.pieces) > 50
    (first, _), *_, (last, _) = turn.pieces
    # as slowly as the model writes, and not all at once when it is done
    assert last - first > len(turn.pieces) * _DELAY / 2


async def test_tool_call_changes_the_home_and_a_follow_up_knows_what_was_said_and_done(asked):
    told = await asked.say("my name is Ada")
    turn = await asked.say("I would like the kitchen light switched on", told.conversation_id)
    assert [call.failed for call in turn.calls.values()] == [False]
    assert await asked.state("light.kitchen_light") == "on"
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
    await renew_key(asked.client, flow["flow_id"], "renewed")
    await set_up(asked)
    assert await renewals(asked) == []
    assert (await asked.say("my name is Ada")).speech == "Nice to meet you, Ada."
    assert len(second.model.requests) == 1


async def test_cost_is_what_the_price_list_says(asked, name):
    case = _CASES[name]
    await asked.say("my name is Ada")
    (request,) = asked.model.requests
    expected = price(case.vendor, case.family or case.model, request.usage)
    assert float(await asked.sensor("turn_cost")) == pytest.approx(expected)
