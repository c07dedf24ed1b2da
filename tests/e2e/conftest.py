"""Fixtures: a real Home Assistant for the complete test run, and a headless Chromium that is logged in to it.

The tests run in .venv/demo, without the pytest plugin for Home Assistant, and nothing is simulated.
"""

from collections.abc import AsyncIterator
import os
import shutil

from playwright.async_api import Browser, BrowserContext, Page, async_playwright
import pytest
import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.example_week import import_example_week
from demo.home import EXPOSED_ENTITY_IDS, set_up_home
from demo.home_assistant import RARE_COLLECTION_VARIABLE, HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.setup_agent import ModelAccess, find_sensor_ids, prefer_agent, replace_accounts
from tests.e2e.browser import ARGUMENTS, logged_in
from tests.e2e.house import House, tell_tales

# Seconds between the words of the model, so that tests can observe an answer while it grows.
_DELAY = 0.02

# also for the homes of the demo command
os.environ[RARE_COLLECTION_VARIABLE] = "1"


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
async def shared_house(tmp_path_factory, model) -> AsyncIterator[House]:
    """Yield the demo home with the agent, which is started once per test run."""
    home_assistant = HomeAssistantProcess(tmp_path_factory.mktemp("home"), find_free_port())
    said: list[str] = []
    async with home_assistant:
        tokens = await log_in_or_onboard(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            await set_up_home(client)
            account = await replace_accounts(client, ModelAccess(url=model.url, model="scripted"))
            pipeline = await prefer_agent(client, account.agent_id)
            sensors = await find_sensor_ids(client)
            # Before Home Assistant has compiled statistics of these sensors, which it does every five minutes.
            await import_example_week(client, sensors)
            yield House(home_assistant, model, client, account, pipeline, sensors, said)
    # Check the log again when it is complete, including the messages of the shutdown.
    tales = tell_tales(home_assistant.output_file.read_text(), said)
    assert not tales, f"in {home_assistant.output_file}: {tales}"


@pytest_asyncio.fixture(loop_scope="session")
async def house(shared_house) -> AsyncIterator[House]:
    """Yield the home for one test with everything off; the log of the test must not contain any forbidden text."""
    before = len(shared_house.log())
    shared_house.model.reset()
    states = await shared_house.client.fetch_states()
    for entity_id in EXPOSED_ENTITY_IDS:
        if states[entity_id]["state"] == "on" and entity_id.split(".")[0] in {"light", "switch"}:
            await shared_house.client.call_action("homeassistant.turn_off", entity_id)
    yield shared_house
    tales = tell_tales(shared_house.log()[before:], shared_house.said)
    assert not tales, f"in {shared_house.home_assistant.output}: {tales}"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Yield a headless Chromium, as installed on the system."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "there is no Chromium: run scripts/setup browser"
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=found, headless=True, args=list(ARGUMENTS))
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def context(browser, shared_house) -> AsyncIterator[BrowserContext]:
    """Yield a browser context that is logged in, and keeps the files of the frontend."""
    context = await logged_in(browser, shared_house.client)
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context, house) -> AsyncIterator[Page]:
    """Yield a new page that is logged in; an error in the page's scripts fails the test."""
    errors: list[str] = []
    new = await context.new_page()
    new.on("pageerror", lambda error: errors.append(str(error)))
    yield new
    await new.close()
    assert not errors
