"""Tests that Home Assistant's Marketplace installs this repository as the README describes, without a restart."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio

from demo.client import Client, Json, RefusedError, log_in_or_onboard
from demo.home_assistant import SCRIPTED_VOICE_FOLDER, HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.setup_agent import ModelAccess, add_account
from tests.e2e.github import ADDRESS, INTEGRATION, MANIFEST, FakeGitHub, files
from tests.e2e.house import wait_for

_REDIRECTION = Path(__file__).with_name("github_on_loopback")
_FLOWS = "/api/config/config_entries/flow"


@dataclass(frozen=True, slots=True)
class Installation:
    """The Marketplace's responses, and the effects of the installation."""

    client: Client
    config: Path
    categories: list[str]
    repository: Json


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installation(tmp_path_factory) -> AsyncIterator[Installation]:
    """Yield the result of installing the integration into a new Home Assistant, with GitHub served on this machine."""
    config = tmp_path_factory.mktemp("marketplace")
    home_assistant = HomeAssistantProcess(config, find_free_port(), (SCRIPTED_VOICE_FOLDER, _REDIRECTION))
    async with FakeGitHub() as github, home_assistant:
        tokens = await log_in_or_onboard(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            form = await client.post(_FLOWS, {"handler": _REDIRECTION.name})
            await client.post(f"{_FLOWS}/{form['flow_id']}", {"url": github.url})
            await _open(client)
            await _connect(client)
            categories = await client.send_command("marketplace/repositories/detect", repository=ADDRESS)
            await client.send_command("marketplace/repositories/add", repository=ADDRESS, category="integration")
            (repository,) = await client.send_command("marketplace/repositories/list", categories=["integration"])
            await client.send_command("marketplace/repository/install", repository=repository["id"])
            (repository,) = await client.send_command("marketplace/repositories/list", categories=["integration"])
            yield Installation(client, config, categories["categories"], repository)


async def _open(client: Client) -> None:
    """Enable the Marketplace, which the demo disables, and accept its warning."""
    (entry,) = await client.send_command("config_entries/get", domain="marketplace")
    await client.send_command("config_entries/disable", entry_id=entry["entry_id"], disabled_by=None)
    await wait_for(lambda: _info(client), lambda info: info.get("stage") == "running")
    await client.send_command("marketplace/warning/accept")


async def _connect(client: Client) -> None:
    """Connect a GitHub account."""
    flow = await client.send_command("marketplace/github/connect")
    path = f"{_FLOWS}/{flow['flow_id']}"
    await client.post(path)

    async def look() -> Json:
        # A browser polls the flow in this way; the first request after the code was entered stores the connection.
        with suppress(RefusedError):
            await client.get(path)
        return await _info(client)

    await wait_for(look, lambda info: bool(info.get("github_connected")))


async def _info(client: Client) -> Json:
    """Return the Marketplace's information about itself, or an empty dict while it is not loaded."""
    try:
        info: Json = await client.send_command("marketplace/info")
    except RefusedError:
        return {}
    return info


async def test_the_marketplace_takes_the_repository_for_an_integration(installation: Installation):
    assert installation.categories == ["integration"]


async def test_the_marketplace_shows_its_name(installation: Installation):
    assert installation.repository["name"] == MANIFEST["name"]


async def test_the_marketplace_installs_every_file(installation: Installation):
    folder = installation.config / INTEGRATION
    there = {
        str(path.relative_to(installation.config)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    there = {path: content for path, content in there.items() if "__pycache__" not in path}
    assert there == {path: content for path, content in files().items() if path.startswith(INTEGRATION)}


async def test_the_agent_answers_without_a_restart(installation: Installation):
    async with ModelServer(strict=True) as model:
        account = await add_account(installation.client, ModelAccess(url=model.url, model="scripted"))
        turn = await installation.client.send_command(
            "conversation/process", text="my name is Ada", agent_id=account.agent_id
        )
    assert "Ada" in turn["response"]["speech"]["plain"]["speech"]
