"""Take the pictures of README from a real Home Assistant: .venv/demo/bin/python -m scripts.screenshots."""

import asyncio
from pathlib import Path
import shutil
import tempfile

from playwright.async_api import Page, async_playwright

from demo.client import Client, enter
from demo.home import furnish
from demo.home_assistant import REPOSITORY, HomeAssistant, free_port
from demo.model_server import ModelServer
from demo.providers import scripted_model
from demo.setup_agent import change_options, create_account, prefer_agent
from tests.e2e.browser import ARGUMENTS, AssistDialog, DevicePage, logged_in

_PICTURES = REPOSITORY / "docs"
_SAID = (
    "turn on the kitchen light",
    "my name is Ada",
    "switch on the coffee machine and the bedroom light",
    "what is my name?",
)
_WINDOW = 1000
# One with a price, so that the page shows what it costs.
_MODEL = "gpt-5-mini"


async def _take(folder: Path) -> None:
    async with ModelServer(delay=0.01, models=(_MODEL,)) as model, HomeAssistant(folder, free_port()) as home:
        tokens = await enter(home.url, "demo", "demo")
        async with Client(home.url, tokens) as client, async_playwright() as playwright:
            await client.wait_until_running()
            await furnish(client)
            account = await create_account(client, scripted_model(model, "responses", _MODEL))
            await change_options(client, account, {"history_tokens": _WINDOW})
            await prefer_agent(client, account.agent_id)
            chromium = shutil.which("chromium")
            browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
            page = await (await logged_in(browser, client)).new_page()
            await _talk(page, home.url)
            await page.set_viewport_size({"width": 1280, "height": 1240})
            await DevicePage(page).open(home.url, account.device_id)
            # the icons come a moment after the figures
            await asyncio.sleep(1)
            await page.screenshot(path=_PICTURES / "device.png")
            await browser.close()


async def _talk(page: Page, url: str) -> None:
    dialog = AssistDialog(page)
    await dialog.open(url)
    for text in _SAID:
        await dialog.say(text)
        await dialog.answer()
    await page.locator("ha-assist-chat").screenshot(path=_PICTURES / "assist.png")


def main() -> None:
    """Take them all."""
    _PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_take(Path(folder)))


if __name__ == "__main__":
    main()
