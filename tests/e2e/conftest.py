"""A real Home Assistant for the whole run, and a headless Chromium that is logged in to it.

Runs in .venv/demo, without the pytest plugin of Home Assistant: nothing in here is simulated.
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

# Seconds between the words of the model, so that an answer can be seen growing.
_DELAY = 0.02


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have all tests share the event loop of the home's connection."""
    for item in items:
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    """The scripted model, which refuses a request that breaks a rule of its format."""
    async with ModelServer(delay=_DELAY, strict=True) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def whole_run(tmp_path_factory, model) -> AsyncIterator[House]:
    """The home with the agent, started once."""
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
    # once more when everything is written, the messages of the end included
    tales = tell_tales(home_assistant.output.read_text(), said)
    assert not tales, f"in {home_assistant.output}: {tales}"


@pytest_asyncio.fixture(loop_scope="session")
async def house(whole_run) -> AsyncIterator[House]:
    """The home for one test: everything is off, and the log of the test tells no tales."""
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
    """Headless Chromium, the system's."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "there is no Chromium: run scripts/setup browser"
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=found, headless=True, args=list(ARGUMENTS))
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser, house) -> AsyncIterator[Page]:
    """A page that is logged in; an error in its scripts fails the test."""
    errors: list[str] = []
    context = await logged_in(browser, house.client)
    new = await context.new_page()
    new.on("pageerror", lambda error: errors.append(str(error)))
    yield new
    await context.close()
    assert not errors
