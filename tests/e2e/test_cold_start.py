"""A Home Assistant of its own that starts while none of its accounts' servers can be reached."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
import re
import time

import pytest_asyncio

from demo.client import Client, Json, enter
from demo.home_assistant import HomeAssistant, free_port
from demo.model_server import ModelServer
from demo.providers import scripted_model
from demo.setup_agent import DOMAIN, add_account
from tests.e2e.house import tell_tales

_PROVIDERS = ("responses", "azure", "gemini", "anthropic")

# How long the servers stay away, in seconds: Home Assistant's own tries would be after 5 and 15 of them.
_AWAY = 30.0
_A_MINUTE = 60.0

_DOWN = re.compile(r"windowed_conversation integration not ready yet|The server of .* cannot be reached")


@dataclass(frozen=True, slots=True)
class Start:
    """What was seen: the states of accounts and agents while the servers were away, and when all were back."""

    accounts_away: list[str]
    agents_away: list[str]
    seconds_until_back: float
    agents_back: list[str]
    log: str


async def accounts(client: Client) -> list[Json]:
    """Return the accounts."""
    found: list[Json] = await client.command("config_entries/get", domain=DOMAIN)
    return found


async def agent_states(client: Client) -> list[str]:
    """Return the states of the agents."""
    entities = await client.command("config/entity_registry/list")
    ours = [e["entity_id"] for e in entities if e["platform"] == DOMAIN and e["entity_id"].startswith("conversation.")]
    return [(await client.get(f"/api/states/{entity_id}"))["state"] for entity_id in ours]


async def seconds_until_loaded(client: Client) -> float:
    """Return how long it takes until all accounts are set up, in seconds; looks for two minutes."""
    began = time.monotonic()
    while {entry["state"] for entry in await accounts(client)} != {"loaded"}:
        assert time.monotonic() - began < 2 * _A_MINUTE
        await asyncio.sleep(0.2)
    return time.monotonic() - began


@asynccontextmanager
async def running(home_assistant: HomeAssistant) -> AsyncIterator[Client]:
    """Start and log in, then stop."""
    async with home_assistant:
        tokens = await enter(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            yield client


@asynccontextmanager
async def reachable(servers: Iterable[ModelServer]) -> AsyncIterator[None]:
    """Have the servers answer at their addresses, then not."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def seen(tmp_path_factory) -> Start:
    """Add an account with each provider, start again without their servers, and have the servers come up late."""
    home_assistant = HomeAssistant(tmp_path_factory.mktemp("cold"), free_port())
    servers = {name: ModelServer(strict=True, port=free_port()) for name in _PROVIDERS}
    async with running(home_assistant) as client, reachable(servers.values()):
        for name, server in servers.items():
            await add_account(client, scripted_model(server, name, "scripted"), f"By {name}")
    async with running(home_assistant) as client:
        await asyncio.sleep(_AWAY)
        accounts_away = [entry["state"] for entry in await accounts(client)]
        agents_away = await agent_states(client)
        async with reachable(servers.values()):
            seconds = await seconds_until_loaded(client)
            agents_back = await agent_states(client)
    return Start(accounts_away, agents_away, seconds, agents_back, home_assistant.output.read_text())


async def test_accounts_and_agents_wait_for_their_servers(seen: Start):
    assert seen.accounts_away == ["setup_retry"] * len(_PROVIDERS)
    assert seen.agents_away == ["unavailable"] * len(_PROVIDERS)


async def test_each_account_that_waits_is_one_line_in_the_log(seen: Start):
    assert len(_DOWN.findall(seen.log)) == len(_PROVIDERS)
    assert seen.log.count("answers again") == len(_PROVIDERS)


async def test_all_are_back_within_a_minute(seen: Start):
    assert seen.seconds_until_back < _A_MINUTE
    assert "unavailable" not in seen.agents_back


async def test_start_without_servers_blocks_nothing(seen: Start):
    assert tell_tales(seen.log, []) == []
