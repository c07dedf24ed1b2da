"""Tests for the clicks from *Add integration* to the first answer, in the browser, on a desktop and on a phone.

Core's OpenAI integration is set up beside ours in the same Home Assistant. A field that is typed includes the tap into
it. The question is not counted.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, expect
import pytest
import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.setup_agent import ensure_pipeline
from demo.voice import take_voice_turn
from tests.e2e.browser import logged_in, save_screenshot

SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
DOMAINS = ("windowed_conversation", "openai_conversation")


@dataclass(slots=True)
class Hand:
    """A person's hand in the browser, which counts its clicks and the fields in which it types."""

    page: Page
    model: ModelServer
    clicks: int = 0
    fields: int = 0

    async def click(self, target: Locator) -> None:
        self.clicks += 1
        await target.first.click()

    async def type(self, field: Locator, text: str) -> None:
        self.fields += 1
        await field.first.fill(text)

    async def select_integration(self, url: str, words: str, name: str) -> None:
        """Open the form of an integration from the integrations dashboard."""
        await self.page.goto(f"{url}/config/integrations/dashboard")
        await self.click(self.page.get_by_role("button", name="Add integration"))
        await self.type(self.page.get_by_placeholder("Search for a brand name"), words)
        await self.click(self.page.locator("dialog-add-integration").get_by_text(name, exact=True))

    async def submit(self) -> None:
        await self.click(self.page.get_by_role("button", name="Submit"))

    async def finish(self) -> None:
        """Close the last step, which leads to the page of the integration."""
        await self.click(self.page.get_by_role("button", name="Skip and finish"))

    async def open_agent(self) -> None:
        """Open the device page of the agent, and talk to it there."""
        agent = self.page.locator("ha-config-sub-entry-row").filter(has_text="Conversation agent")
        await self.click(agent.locator("ha-config-entry-device-row"))
        card = self.page.locator("ha-device-entities-card").filter(has_text="Assist")
        await self.click(card.get_by_text("Unknown"))


@dataclass(frozen=True, slots=True)
class Addition:
    """An account that a hand has added, and the id of the assistant that was the preferred one before."""

    hand: Hand
    client: Client
    assistant: str


async def add_server(hand: Hand, url: str) -> None:
    """Add an account with a compatible server."""
    await hand.select_integration(url, "windowed", "Windowed Conversation")
    await hand.click(hand.page.locator("step-flow-menu").get_by_text("OpenAI-compatible server", exact=True))
    await hand.type(hand.page.locator("step-flow-form input[type=url]"), hand.model.url)
    await hand.submit()
    await expect(hand.page.get_by_text("Use in the preferred assistant").first).to_be_visible()
    await hand.submit()
    await hand.finish()


async def add_openai(hand: Hand, url: str) -> None:
    """Add an account with OpenAI. The URL is not counted, because a person leaves it as it is."""
    await hand.select_integration(url, "windowed", "Windowed Conversation")
    await hand.click(hand.page.locator("step-flow-menu").get_by_text("OpenAI", exact=True))
    await hand.type(hand.page.locator("step-flow-form input[type=password]"), "key")
    await hand.page.locator("ha-form-expandable").locator("#summary, .top").first.click()
    await hand.page.locator("step-flow-form input[type=url]").fill(hand.model.url)
    await hand.submit()
    await expect(hand.page.get_by_text("Use in the preferred assistant").first).to_be_visible()
    await hand.submit()
    await hand.finish()


async def add_core_openai(hand: Hand, url: str) -> None:
    """Add core's integration for OpenAI, whose requests the server does not check."""
    hand.model.change(strict=False)
    await hand.select_integration(url, "openai", "OpenAI")
    await hand.type(hand.page.locator("step-flow-form input[type=password], step-flow-form input"), "key")
    await hand.submit()
    await hand.finish()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def home(tmp_path_factory, model: ModelServer) -> AsyncIterator[tuple[str, Client]]:
    """Yield the URL of a home and a connection to it; core's integration uses the scripted server, too."""
    environment = {"OPENAI_BASE_URL": model.url}
    process = HomeAssistantProcess(tmp_path_factory.mktemp("first"), find_free_port(), environment=environment)
    async with process, Client(process.url, await log_in_or_onboard(process.url, "demo", "demo")) as client:
        await client.wait_until_running()
        await set_up_home(client)
        yield process.url, client


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def context(browser: Browser, home: tuple[str, Client]) -> AsyncIterator[BrowserContext]:
    """Yield a browser context, which keeps the files of the frontend."""
    context = await logged_in(browser, home[1])
    yield context
    await context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def addition(
    request, context: BrowserContext, home: tuple[str, Client], model: ModelServer
) -> AsyncIterator[Addition]:
    """Add an account in a new page of a size, while the preferred assistant is Home Assistant's own with a voice."""
    size, add = request.param
    model.reset()
    model.change(models=("gpt-5-mini", "gpt-4o-mini"), strict=True)
    url, client = home
    assistant = await ensure_pipeline(client, "conversation.home_assistant", "Home Assistant voice")
    await client.send_command("assist_pipeline/pipeline/set_preferred", pipeline_id=assistant)
    page = await context.new_page()
    await page.set_viewport_size(SIZES[size])
    hand = Hand(page, model)
    await add(hand, url)
    yield Addition(hand, client, assistant)
    await save_screenshot(page, f"first-answer-{size}-{add.__name__}")
    await page.close()
    for domain in DOMAINS:
        for entry in await client.send_command("config_entries/get", domain=domain):
            await client.delete(f"/api/config/config_entries/entry/{entry['entry_id']}")


OURS = [pytest.param(each, id=f"{each[0]}-{each[1].__name__}") for each in product(SIZES, (add_server, add_openai))]
CORES = [pytest.param((size, add_core_openai), id=f"{size}-add_core_openai") for size in SIZES]


@pytest.mark.parametrize("addition", [*OURS, *CORES], indirect=True)
async def test_first_answer_takes_eight_clicks_and_two_fields(addition: Addition) -> None:
    hand = addition.hand
    await hand.open_agent()
    question = hand.page.locator("ha-assist-chat").locator("input, textarea").first
    await question.fill("my name is Ada")
    await question.press("Enter")

    await expect(hand.page.get_by_text("Nice to meet you, Ada.").first).to_be_visible()
    assert hand.clicks <= 8
    assert hand.fields <= 2


@pytest.mark.parametrize("addition", OURS, indirect=True)
async def test_preferred_assistant_speaks_the_agent_s_answer_after_the_last_click(addition: Addition) -> None:
    spoken = bytearray()

    def on_event(kind: str, value: Any) -> None:
        spoken.extend(value if kind == "audio" else b"")

    turn = await take_voice_turn(addition.client, "my name is Ada", pipeline=addition.assistant, watch=on_event)

    assert spoken
    assert turn.speech == "Nice to meet you, Ada."
    assert addition.hand.clicks <= 8
    assert addition.hand.fields <= 2
