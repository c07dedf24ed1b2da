"""A person's use of Home Assistant's frontend: the Assist dialog, a device's page, and the forms.

Home Assistant's elements are found by their names, through their shadow roots.
"""

import asyncio
import json
import os
import time

from playwright.async_api import Browser, BrowserContext, Locator, Page

from demo.client import Client
from demo.home_assistant import REPOSITORY

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_SCREENSHOTS = REPOSITORY / ".demo" / "screenshots"

# Milliseconds for a page of the frontend on a busy machine of two cores.
_PATIENCE = 60_000
_GROWING = "…"


async def logged_in(browser: Browser, client: Client, *, scale: float = 1) -> BrowserContext:
    """Return a context in which the login of `client` is remembered, as after ticking "keep me logged in"."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 900}, device_scale_factor=scale, service_workers="block"
    )
    context.set_default_timeout(_PATIENCE)
    tokens = {
        **client.tokens,
        "hassUrl": client.url,
        "clientId": f"{client.url}/",
        "expires": int(time.time() + client.tokens["expires_in"]) * 1000,
    }
    await context.add_init_script(f"localStorage.setItem('hassTokens', {json.dumps(json.dumps(tokens))})")
    return context


class AssistDialog:
    """The dialog that one talks in, with the preferred pipeline."""

    def __init__(self, page: Page) -> None:
        """Keep the page; `open` opens it."""
        self._page = page
        self._chat = page.locator("ha-assist-chat")
        self._shown = 0

    async def open(self, url: str) -> None:
        """Go to the overview and open the dialog with the key for it."""
        await self._page.goto(f"{url}/home/overview")
        await self._page.get_by_text("Welcome").first.wait_for()
        # a key that comes before the page listens is lost
        while not await self._chat.count():
            await self._page.locator("body").press("a")
            await asyncio.sleep(0.5)
        await self._input.wait_for()

    async def say(self, text: str) -> None:
        """Type it and press Enter."""
        self._shown = len(await self.messages())
        await self._input.fill(text)
        await self._input.press("Enter")

    async def messages(self) -> list[str]:
        """Return the texts in the dialog, oldest first: greeting, inputs and answers."""
        texts: list[str] = await self._chat.evaluate(
            """chat => [...chat.shadowRoot.querySelectorAll('.message')].map(message =>
                (message.querySelector('ha-markdown')?.content ?? message.innerText).trim())"""
        )
        return texts

    async def answer(self) -> list[str]:
        """Return the stages of the growing answer to the last input, the whole one last. Raises TimeoutError.

        An answer that is still growing ends with an ellipsis of the frontend's, which is left out.
        """
        looks: list[str] = []
        async with asyncio.timeout(_PATIENCE / 1000):
            while not looks or looks[-1].endswith(_GROWING):
                newest = (await self.messages())[self._shown + 1 :]
                if newest and newest[-1:] != looks[-1:]:
                    looks.append(newest[-1])
                await asyncio.sleep(0.01)
        return [look.removesuffix(_GROWING).strip() for look in looks]

    @property
    def _input(self) -> Locator:
        return self._chat.locator("input, textarea").first


class DevicePage:
    """The page of the agent's device, with its sensors."""

    def __init__(self, page: Page) -> None:
        """Keep the page; `open` goes there."""
        self._page = page

    async def open(self, url: str, device_id: str) -> None:
        """Go there and wait for the sensors."""
        await self._page.goto(f"{url}/config/devices/device/{device_id}")
        await self._rows.last.wait_for()

    async def figures(self) -> dict[str, str]:
        """Return the text shown for each sensor, with its unit, by entity id."""
        figures: dict[str, str] = await self._rows.evaluate_all(
            "rows => Object.fromEntries(rows.map(row => [row._config.entity, row.shadowRoot.textContent]))"
        )
        return {entity_id: " ".join(shown.split()) for entity_id, shown in figures.items()}

    @property
    def _rows(self) -> Locator:
        return self._page.locator("hui-sensor-entity-row")


class AccountForm:
    """The forms of a new account."""

    def __init__(self, page: Page) -> None:
        """Keep the page; `open` goes there."""
        self._page = page
        self._form = page.locator("step-flow-form").first

    async def open(self, url: str, kind: str) -> None:
        """Add the integration and choose a kind of account from the menu."""
        await self._page.goto(f"{url}/config/integrations/dashboard/add?domain=windowed_conversation")
        await self._page.get_by_role("button", name="OK").click()
        await self._page.locator("step-flow-menu").get_by_text(kind, exact=True).click()
        await self.key.wait_for()

    async def enter(self, address: str, key: str) -> None:
        """Enter a key and an address, which may be in the section of rare options."""
        await self.key.fill(key)
        url = self._form.locator("input[type=url]")
        if not await url.is_visible():
            await self._form.locator("ha-form-expandable").locator("#summary, .top").first.click()
        await url.fill(address)
        await self.submit()

    async def type_model(self, name: str) -> None:
        """Type the name of a model, or of a deployment, that no list offers."""
        await self._form.locator("ha-selector-text input").last.fill(name)

    async def submit(self) -> None:
        """Send it."""
        await self._page.get_by_role("button", name="Submit").click()

    async def done(self) -> None:
        """Wait for the end of the forms."""
        await self._page.locator("step-flow-create-entry").wait_for()

    @property
    def page(self) -> Locator:
        """The form, with its title and its texts."""
        return self._form

    @property
    def mistakes(self) -> Locator:
        """The messages about mistakes."""
        return self._form.locator("ha-alert")

    @property
    def model(self) -> Locator:
        """The field for the model."""
        return self._form.locator("ha-selector-select")

    @property
    def key(self) -> Locator:
        """The field for the key."""
        return self._form.locator("input[type=password]")


class AgentForm:
    """The form that changes an agent."""

    def __init__(self, page: Page) -> None:
        """Keep the page; `open` goes there."""
        self._page = page
        self._form = page.locator("step-flow-form").first

    async def open(self, url: str) -> None:
        """Go to the page of the integration and open the form of its first agent."""
        await self._page.goto(f"{url}/config/integrations/integration/windowed_conversation")
        # the first button of a row folds it
        await self._page.locator("ha-config-sub-entry-row").first.locator("ha-icon-button").nth(1).click()
        await self._sections.last.wait_for()

    async def toggle(self, section: str) -> None:
        """Open a section, or close it."""
        await self.section(section).locator("#summary, .top").first.click()

    def section(self, name: str) -> Locator:
        """Return a section by its name."""
        return self._sections.filter(has_text=name)

    def field(self, label: str) -> Locator:
        """Return the field for a number by its label."""
        return self._form.locator("ha-selector-number").filter(has_text=label).locator("input")

    @property
    def mistakes(self) -> Locator:
        """The messages about mistakes."""
        return self._form.locator("ha-alert")

    async def submit(self) -> None:
        """Send it."""
        await self._page.get_by_role("button", name="Submit").click()

    async def done(self) -> None:
        """Wait for the end of the form."""
        await self._page.get_by_text("Reconfiguration was successful").wait_for()

    @property
    def _sections(self) -> Locator:
        return self._form.locator("ha-form-expandable")


async def save_screenshot(page: Page, name: str) -> None:
    """Save a picture of the page to .demo/screenshots where the environment has SCREENSHOTS set."""
    if os.environ.get("SCREENSHOTS"):
        _SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=_SCREENSHOTS / f"{name}.png")
