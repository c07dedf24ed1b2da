"""Tests for the clicks from *Add integration* to the first answer, in the browser, on a desktop and on a phone.

Core's OpenAI integration is set up beside ours in the same Home Assistant. A field that is typed includes the tap into
it. The question is not counted.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, Locator, Page, expect
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
        await self.click(self.page.get_by_text(name, exact=True))

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


@pytest_asyncio.fixture(loop_scope="session")
async def assistant(home: tuple[str, Client], model: ModelServer) -> AsyncIterator[str]:
    """Yield the id of the preferred assistant, which has a voice and Home Assistant's own agent before each test."""
    model.reset()
    model.change(models=("gpt-5-mini", "gpt-4o-mini"), strict=True)
    client = home[1]
    pipeline = await ensure_pipeline(client, "conversation.home_assistant", "Home Assistant voice")
    await client.send_command("assist_pipeline/pipeline/set_preferred", pipeline_id=pipeline)
    yield pipeline
    for domain in DOMAINS:
        for entry in await client.send_command("config_entries/get", domain=domain):
            await client.delete(f"/api/config/config_entries/entry/{entry['entry_id']}")


@pytest_asyncio.fixture(loop_scope="session", params=SIZES, ids=lambda size: size)
async def hand(request, browser: Browser, home: tuple[str, Client], model: ModelServer) -> AsyncIterator[Hand]:
    """Yield a hand in a new page of this size."""
    context = await logged_in(browser, home[1])
    page = await context.new_page()
    await page.set_viewport_size(SIZES[request.param])
    yield Hand(page, model)
    await save_screenshot(page, f"first-answer-{request.node.callspec.id}")
    await context.close()


@pytest.mark.parametrize("add", [add_server, add_openai, add_core_openai])
async def test_first_answer_takes_eight_clicks_and_two_fields(
    hand: Hand, home: tuple[str, Client], assistant: str, add: Callable[[Hand, str], Awaitable[None]]
) -> None:
    await add(hand, home[0])

    await hand.open_agent()
    question = hand.page.locator("ha-assist-chat").locator("input, textarea").first
    await question.fill("my name is Ada")
    await question.press("Enter")

    await expect(hand.page.get_by_text("Nice to meet you, Ada.").first).to_be_visible()
    assert hand.clicks <= 8
    assert hand.fields <= 2


@pytest.mark.parametrize("add", [add_server, add_openai])
async def test_preferred_assistant_speaks_the_agent_s_answer_after_the_last_click(
    hand: Hand, home: tuple[str, Client], assistant: str, add: Callable[[Hand, str], Awaitable[None]]
) -> None:
    await add(hand, home[0])
    spoken = bytearray()

    def on_event(kind: str, value: Any) -> None:
        spoken.extend(value if kind == "audio" else b"")

    turn = await take_voice_turn(home[1], "my name is Ada", pipeline=assistant, watch=on_event)

    assert spoken
    assert turn.speech == "Nice to meet you, Ada."
    assert hand.clicks <= 8
    assert hand.fields <= 2
