"""A Home Assistant of its own that starts while none of its accounts' servers answers.

Half of them refuse connections, the other half take them and say nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
import re
import socket
import time

import pytest_asyncio

from demo.client import Client, Json, enter
from demo.home_assistant import HomeAssistant, free_port
from demo.model_server import ModelServer
from demo.providers import scripted_model
from demo.setup_agent import DOMAIN, add_account
from tests.e2e.house import tell_tales

_PROVIDERS = ("responses", "azure", "gemini", "anthropic")

_ACCOUNTS = 2 * len(_PROVIDERS)

# How long the servers stay away when Home Assistant has started, in seconds: its own tries would be after 5 and 15 of
# them, and the first look at those that refuse connections is before they are back.
_AWAY = 18.0
_A_MINUTE = 60.0

# How long core's own integrations for OpenAI, Anthropic and Gemini have the start wait for such a server, in seconds.
_CORE_WAITS = 10.0

_DOWN = re.compile(r"windowed_conversation integration not ready yet|The server of .* cannot be reached")


@dataclass(frozen=True, slots=True)
class Start:
    """What was seen: the states of accounts and agents while the servers were away, and when all were back.

    `seconds_set_up` is how long the start was kept by us, by Home Assistant's own account.
    """

    seconds_set_up: float
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


async def seconds_set_up(client: Client) -> float:
    """Return how long the set-up of the integration took at the start, its accounts included."""
    timings = await client.command("integration/setup_info")
    (seconds,) = [float(each["seconds"]) for each in timings if each["domain"] == DOMAIN]
    return seconds


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


@asynccontextmanager
async def silent(servers: Iterable[ModelServer]) -> AsyncIterator[None]:
    """Have connections come about at the servers' addresses, and nobody who answers."""
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(socket.create_server((server.settings.host, server.settings.port)))
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def seen(tmp_path_factory) -> Start:
    """Add two accounts with each provider, start again without their servers, and have the servers come up late."""
    home_assistant = HomeAssistant(tmp_path_factory.mktemp("cold"), free_port())
    servers = [ModelServer(strict=True, port=free_port()) for _ in range(_ACCOUNTS)]
    async with running(home_assistant) as client, reachable(servers):
        for name, server in zip(2 * _PROVIDERS, servers, strict=True):
            await add_account(client, scripted_model(server, name, "scripted"), f"By {name}")
    async with AsyncExitStack() as stack:
        async with silent(servers[len(_PROVIDERS) :]):
            client = await stack.enter_async_context(running(home_assistant))
            kept = await seconds_set_up(client)
            await asyncio.sleep(_AWAY)
            accounts_away = [entry["state"] for entry in await accounts(client)]
            agents_away = await agent_states(client)
        async with reachable(servers):
            seconds = await seconds_until_loaded(client)
            agents_back = await agent_states(client)
    return Start(kept, accounts_away, agents_away, seconds, agents_back, home_assistant.output.read_text())


async def test_accounts_and_agents_wait_for_their_servers(seen: Start):
    assert seen.accounts_away == ["setup_retry"] * _ACCOUNTS
    assert seen.agents_away == ["unavailable"] * _ACCOUNTS


async def test_each_account_that_waits_is_one_line_in_the_log(seen: Start):
    assert len(_DOWN.findall(seen.log)) == _ACCOUNTS
    assert seen.log.count("answers again") == _ACCOUNTS


async def test_start_is_kept_for_less_time_than_by_core(seen: Start):
    assert seen.seconds_set_up < _CORE_WAITS


async def test_all_are_back_within_a_minute(seen: Start):
    assert seen.seconds_until_back < _A_MINUTE
    assert "unavailable" not in seen.agents_back


async def test_start_without_servers_blocks_nothing(seen: Start):
    assert tell_tales(seen.log, []) == []
