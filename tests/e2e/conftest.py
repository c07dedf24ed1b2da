"""Fixtures: a real Home Assistant for the complete test run, and a headless Chromium that is logged in to it.

The tests run in .venv/demo, without the pytest plugin for Home Assistant, and nothing is simulated.
"""

from collections.abc import AsyncIterator
import shutil

from playwright.async_api import Browser, Page, async_playwright
import pytest
import pytest_asyncio

from demo.client import Client, enter
from demo.home import EXPOSED, furnish
from demo.home_assistant import HomeAssistant, free_port
from demo.model_server import ModelServer
from demo.setup_agent import Model, create_account, prefer_agent, sensors
from tests.e2e.browser import ARGUMENTS, logged_in
from tests.e2e.house import House, tell_tales

# Seconds between the words of the model, so that tests can observe an answer while it grows.
_DELAY = 0.02


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests in the event loop of the connection to the home."""
    for item in items:
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    """Yield the scripted model server, which refuses each request that violates a rule of its format."""
    async with ModelServer(delay=_DELAY, strict=True) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def whole_run(tmp_path_factory, model) -> AsyncIterator[House]:
    """Yield the demo home with the agent, which is started once per test run."""
    home_assistant = HomeAssistant(tmp_path_factory.mktemp("home"), free_port())
    said: list[str] = []
    async with home_assistant:
        tokens = await enter(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            await furnish(client)
            account = await create_account(client, Model(url=model.url, model="scripted"))
            pipeline = await prefer_agent(client, account.agent_id)
            yield House(home_assistant, model, client, account, pipeline, await sensors(client), said)
    # Check the log again when it is complete, including the messages of the shutdown.
    tales = tell_tales(home_assistant.output.read_text(), said)
    assert not tales, f"in {home_assistant.output}: {tales}"


@pytest_asyncio.fixture(loop_scope="session")
async def house(whole_run) -> AsyncIterator[House]:
    """Yield the home for one test with everything off; the log of the test must not contain any forbidden text."""
    before = len(whole_run.log())
    whole_run.model.reset()
    states = await whole_run.client.states()
    for entity_id in EXPOSED:
        if states[entity_id]["state"] == "on" and entity_id.split(".")[0] in {"light", "switch"}:
            await whole_run.client.call("homeassistant.turn_off", entity_id)
    yield whole_run
    tales = tell_tales(whole_run.log()[before:], whole_run.said)
    assert not tales, f"in {whole_run.home_assistant.output}: {tales}"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Yield a headless Chromium, as installed on the system."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "there is no Chromium: run scripts/setup browser"
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=found, headless=True, args=list(ARGUMENTS))
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser, house) -> AsyncIterator[Page]:
    """Yield a page that is logged in; an error in the page's scripts fails the test."""
    errors: list[str] = []
    context = await logged_in(browser, house.client)
    new = await context.new_page()
    new.on("pageerror", lambda error: errors.append(str(error)))
    yield new
    await context.close()
    assert not errors
