"""Page objects for Home Assistant's frontend: the Assist dialog, a device's page, and the forms.

Home Assistant's elements are located by their tag names, through their shadow roots.
"""

import asyncio
from contextlib import suppress
import json
import os
import time

from playwright.async_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    TimeoutError as LocatorTimeout,
    ViewportSize,
    expect,
)

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

_NEW_TAB = "about:blank"

# Milliseconds to wait for a page of the frontend on a busy machine with two cores.
_TIMEOUT_MS = 60_000
# A dialog is closed within as many clicks, and that time.
_CLICKS = 6
_GROWING = "…"

expect.set_options(timeout=_TIMEOUT_MS)


# What the frontend itself does when a link of it is followed.
_NAVIGATE = """url => {
  history.pushState(null, "", url);
  window.dispatchEvent(new CustomEvent("location-changed"));
}"""


async def logged_in(browser: Browser, client: Client, *, scale: float = 1, has_motion: bool = False) -> BrowserContext:
    """Return a browser context that has stored the login of `client`, as after ticking "keep me logged in".

    Without motion, the frontend omits its animations, whose frames cost more than all else that the browser does.
    """
    context = await browser.new_context(
        viewport={"width": 1280, "height": 900},
        device_scale_factor=scale,
        reduced_motion="no-preference" if has_motion else "reduce",
        service_workers="block",
    )
    context.set_default_timeout(_TIMEOUT_MS)
    tokens = {
        **client.tokens,
        "hassUrl": client.url,
        "clientId": f"{client.url}/",
        "expires": int(time.time() + client.tokens["expires_in"]) * 1000,
    }
    await context.add_init_script(f"localStorage.setItem('hassTokens', {json.dumps(json.dumps(tokens))})")
    return context


async def navigate(page: Page, url: str) -> None:
    """Go to another page of the frontend, which is not loaded again."""
    await page.evaluate(_NAVIGATE, url)


async def close_dialog(page: Page) -> None:
    """Close the open dialog. A click while its content changes has no effect, so it is repeated."""
    button = page.locator("[data-dialog=close]").locator("visible=true").last
    for _ in range(_CLICKS):
        await button.click()
        with suppress(LocatorTimeout):
            await button.wait_for(state="hidden", timeout=_TIMEOUT_MS / _CLICKS)
            return
    raise AssertionError("the dialog stays open")


_READ_MESSAGES = """chat => [...chat.shadowRoot.querySelectorAll('.message')].map(message =>
  (message.querySelector(':scope > ha-markdown')?.content ?? message.innerText).trim())"""

# Watches in the browser, because a question to it takes longer than a word of the answer.
_WATCH_ANSWER = f"""async (chat, shown) => {{
  const readMessages = {_READ_MESSAGES};
  const looks = [];
  while (!looks.length || looks.at(-1).endsWith("{_GROWING}")) {{
    const newest = readMessages(chat).slice(shown).at(-1);
    if (newest && newest !== looks.at(-1)) looks.push(newest);
    await new Promise(done => setTimeout(done, 10));
  }}
  return looks;
}}"""


class AssistDialog:
    """The Assist dialog, with the preferred pipeline."""

    def __init__(self, page: Page) -> None:
        """Store the page; `open` opens the dialog."""
        self._page = page
        self._chat = page.locator("ha-assist-chat")
        self._shown = 0

    async def open(self, url: str) -> None:
        """Go to the overview page and open the dialog."""
        await self._page.goto(f"{url}/home/overview")
        await self._page.get_by_text("Welcome").first.wait_for()
        await self.press_key()

    async def press_key(self) -> None:
        """Open the dialog with its keyboard shortcut."""
        # The page ignores keys that are pressed before it has loaded its keyboard handler.
        while not await self._chat.count():
            await self._page.locator("body").press("a")
            await asyncio.sleep(0.5)
        await self._input.wait_for()

    async def say(self, text: str) -> None:
        """Type the text and press Enter."""
        self._shown = len(await self.messages())
        await self._input.fill(text)
        await self._input.press("Enter")

    async def messages(self) -> list[str]:
        """Return the texts in the dialog, oldest first: the greeting, inputs and answers."""
        texts: list[str] = await self._chat.evaluate(_READ_MESSAGES)
        return texts

    async def answer(self) -> list[str]:
        """Return the visible stages of the answer to the last input, the complete one last. Raises TimeoutError.

        The frontend ends an incomplete answer with an ellipsis, which is removed here.
        """
        async with asyncio.timeout(_TIMEOUT_MS / 1000):
            looks: list[str] = await self._chat.evaluate(_WATCH_ANSWER, self._shown + 1)
        return [look.removesuffix(_GROWING).strip() for look in looks]

    async def follow(self, link: str) -> None:
        """Open the details of the last answer, and follow one of their links."""
        await self._chat.locator("button.thinking-header").last.click()
        await self._chat.get_by_role("link", name=link).last.click()

    @property
    def _input(self) -> Locator:
        return self._chat.locator("input, textarea").first


class DevicePage:
    """The page of the agent's device, with its sensors."""

    def __init__(self, page: Page) -> None:
        """Store the page; `open` goes to the device."""
        self._page = page

    async def open(self, url: str, device_id: str) -> None:
        """Go to the page of the device and wait for its sensors."""
        await self._page.goto(f"{url}/config/devices/device/{device_id}")
        await self._rows.last.wait_for()

    async def figures(self) -> dict[str, str]:
        """Return the text shown for each sensor, including the unit, by entity id."""
        figures: dict[str, str] = await self._rows.evaluate_all(
            "rows => Object.fromEntries(rows.map(row => [row._config.entity, row.shadowRoot.textContent]))"
        )
        return {entity_id: " ".join(shown.split()) for entity_id, shown in figures.items()}

    @property
    def _rows(self) -> Locator:
        return self._page.locator("hui-sensor-entity-row")


class AccountForm:
    """The forms that add an account."""

    def __init__(self, page: Page) -> None:
        """Store the page; `open` opens the first form."""
        self._page = page
        self._form = page.locator("step-flow-form").first

    async def open(self, url: str, kind: str) -> None:
        """Start adding the integration and choose a kind of account from the menu."""
        go = Page.goto if self._page.url == _NEW_TAB else navigate
        await go(self._page, f"{url}/config/integrations/dashboard/add?domain=windowed_conversation")
        await self._page.get_by_role("button", name="OK").click()
        await self._page.locator("step-flow-menu").get_by_text(kind, exact=True).click()
        await self.key.wait_for()

    async def enter(self, address: str, key: str) -> None:
        """Enter a key and an address; some forms have the address in the section of rare options."""
        await self.key.fill(key)
        url = self._form.locator("input[type=url]")
        if not await url.is_visible():
            await self._form.locator("ha-form-expandable").locator("#summary, .top").first.click()
        await url.fill(address)
        await self.submit()

    async def type_model(self, name: str) -> None:
        """Type the name of a model or a deployment that is not in the list of options."""
        await self._form.locator("ha-selector-text input").last.fill(name)

    async def submit(self) -> None:
        """Submit the form."""
        await self._page.get_by_role("button", name="Submit").click()

    async def done(self) -> None:
        """Wait until the account is added, and close the dialog."""
        await self._page.locator("step-flow-create-entry").wait_for()
        await close_dialog(self._page)

    @property
    def locator(self) -> Locator:
        """The form, with its title and texts."""
        return self._form

    @property
    def error_alerts(self) -> Locator:
        """The error messages of the form."""
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
    """The form to reconfigure an agent."""

    def __init__(self, page: Page) -> None:
        """Store the page; `open` opens the form."""
        self._page = page
        self._form = page.locator("step-flow-form").first

    async def open(self, url: str) -> None:
        """Go to the page of the integration and open the form of its first agent."""
        await self._page.goto(f"{url}/config/integrations/integration/windowed_conversation")
        # The first button of a row collapses it.
        row = self._page.locator("ha-config-sub-entry-row").filter(has_text="Conversation agent").first
        await row.locator("ha-icon-button").nth(1).click()
        await self._sections.last.wait_for()

    async def toggle(self, section: str) -> None:
        """Expand or collapse a section."""
        await self.section(section).locator("#summary, .top").first.click()

    def section(self, name: str) -> Locator:
        """Return the section with this name."""
        return self._sections.filter(has_text=name)

    def field(self, label: str) -> Locator:
        """Return the number field with this label."""
        return self._form.locator("ha-selector-number").filter(has_text=label).locator("input")

    @property
    def error_alerts(self) -> Locator:
        """The error messages of the form."""
        return self._form.locator("ha-alert")

    async def submit(self) -> None:
        """Submit the form."""
        await self._page.get_by_role("button", name="Submit").click()

    async def done(self) -> None:
        """Wait until the form is closed."""
        await self._page.get_by_text("Reconfiguration was successful").wait_for()

    @property
    def _sections(self) -> Locator:
        return self._form.locator("ha-form-expandable")


async def save_screenshot(page: Page, name: str, size: ViewportSize | None = None) -> None:
    """Save a screenshot of the page to .demo/screenshots if the environment variable SCREENSHOTS is set.

    With a size, the page has that size for the screenshot.
    """
    if os.environ.get("SCREENSHOTS"):
        before = page.viewport_size
        _SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        if size:
            await page.set_viewport_size(size)
        await page.screenshot(path=_SCREENSHOTS / f"{name}.png")
        if size and before:
            await page.set_viewport_size(before)


class AutomationEditor:
    """The editor of a new automation, with the dialog that saves it."""

    def __init__(self, page: Page) -> None:
        """Store the page; `open` goes to the editor."""
        self._page = page
        self._dialog = page.locator("ha-dialog-automation-save")

    async def open(self, url: str, automation: object) -> None:
        """Enter an automation as YAML and open the dialog that saves it."""
        await self._page.goto(f"{url}/config/automation/edit/new")
        await self._page.get_by_text("Add action").wait_for()
        await self._page.locator("ha-automation-editor ha-dropdown").last.click()
        await self._page.get_by_text("Edit in YAML").click()
        await self._page.locator(".cm-content").first.click()
        await self._page.keyboard.press("Control+a")
        await self._page.keyboard.insert_text(json.dumps(automation))
        await self._page.get_by_text("Save", exact=True).last.click()
        await self._dialog.get_by_text("Suggest").wait_for()

    async def suggest(self) -> tuple[str, str]:
        """Select *Suggest* and return the name and the description that the dialog then has."""
        await self._dialog.get_by_text("Suggest").click()
        description = self._dialog.locator("textarea").first
        await expect(description).not_to_have_value("", timeout=_TIMEOUT_MS)
        return await self._dialog.locator("input").first.input_value(), await description.input_value()
