"""Tests with a separate Home Assistant that starts while no account's server answers.

Every other server refuses connections, and the rest accept them without responding.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
import socket

import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.providers import PROVIDER_NAMES, build_scripted_model
from demo.setup_agent import DOMAIN, add_account
from tests.e2e.house import tell_tales, wait_for

_LIGHT = "light.kitchen_light"
_COMMAND = "turn on the kitchen light"
_QUESTION = "my name is Grace"

_NUMBER = len(PROVIDER_NAMES)
_REFUSING = len(PROVIDER_NAMES[::2])


@dataclass(frozen=True, slots=True)
class Start:
    """The observations while the servers were unavailable, and at the first question after their return."""

    accounts: list[str]
    lights: list[str]
    answers: list[str]
    log_away: str
    log: str


@asynccontextmanager
async def running(home_assistant: HomeAssistantProcess) -> AsyncIterator[Client]:
    """Start Home Assistant, yield a logged-in client, and stop it afterwards."""
    async with home_assistant:
        tokens = await log_in_or_onboard(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            yield client


@asynccontextmanager
async def run_servers(servers: Iterable[ModelServer]) -> AsyncIterator[None]:
    """Run the servers at their addresses within the context."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server)
        yield


@asynccontextmanager
async def silent(servers: Iterable[ModelServer]) -> AsyncIterator[None]:
    """Accept connections at the servers' addresses within the context, but never respond."""
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(socket.create_server((server.settings.host, server.settings.port)))
        yield


async def said(client: Client, agent_id: str, text: str) -> str:
    """Send the text to an agent and return its answer."""
    answer = await client.send_command("conversation/process", text=text, agent_id=agent_id)
    return str(answer["response"]["speech"]["plain"]["speech"])


async def light_of(client: Client, agent_id: str) -> str:
    """Ask the agent to turn the light on, and return the state of the light afterwards."""
    await client.call_action("light.turn_off", _LIGHT)
    await said(client, agent_id, _COMMAND)
    return str((await client.get(f"/api/states/{_LIGHT}"))["state"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def seen(tmp_path_factory) -> Start:
    """Add an account of each kind, restart Home Assistant without the servers, and then start the servers again."""
    home_assistant = HomeAssistantProcess(tmp_path_factory.mktemp("away"), find_free_port())
    servers = [ModelServer(strict=True, port=find_free_port()) for _ in PROVIDER_NAMES]

    async def log() -> str:
        return home_assistant.output_file.read_text(errors="replace")

    async with running(home_assistant) as client, run_servers(servers):
        await set_up_home(client)
        models = map(build_scripted_model, servers, PROVIDER_NAMES, strict=True)
        agents = [(await add_account(client, model, f"By {model.form_name}")).agent_id for model in models]
    async with AsyncExitStack() as stack:
        async with silent(servers[1::2]):
            client = await stack.enter_async_context(running(home_assistant))
            accounts = [entry["state"] for entry in await client.send_command("config_entries/get", domain=DOMAIN)]
            lights = [await light_of(client, agent_id) for agent_id in agents]
            # Ask the agents whose servers refuse connections: each gets an answer, and no log line is repeated.
            for agent_id in agents[::2]:
                await said(client, agent_id, _QUESTION)
            log_away = await wait_for(log, lambda text: text.count("cannot be reached") >= _REFUSING)
        async with run_servers(servers):
            answers = [await said(client, agent_id, _QUESTION) for agent_id in agents]
            whole = await wait_for(log, lambda text: text.count("answers again") >= _REFUSING)
    return Start(accounts, lights, answers, log_away, whole)


async def test_accounts_are_set_up_without_their_servers(seen: Start):
    assert seen.accounts == ["loaded"] * _NUMBER


async def test_local_commands_work_without_the_servers(seen: Start):
    assert seen.lights == ["on"] * _NUMBER


async def test_first_question_after_the_servers_are_back_is_answered(seen: Start):
    assert ["Nice to meet you" in answer for answer in seen.answers] == [True] * _NUMBER


async def test_each_server_that_is_away_is_one_line(seen: Start):
    assert seen.log_away.count("cannot be reached") == _REFUSING
    assert "not ready yet" not in seen.log_away


async def test_log_tells_no_tales(seen: Start):
    assert tell_tales(seen.log, [_COMMAND, _QUESTION]) == []
