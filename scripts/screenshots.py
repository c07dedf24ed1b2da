"""Take the screenshots of README and docs from a real Home Assistant: .venv/demo/bin/python -m scripts.screenshots."""

import asyncio
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
import shutil
import tempfile

from playwright.async_api import Browser, Page, async_playwright

from demo import dashboard
from demo.automation import save_automation
from demo.client import Client, enter
from demo.home import GOOD_NIGHT, furnish
from demo.home_assistant import REPOSITORY, HomeAssistant, free_port
from demo.model_server import ModelServer
from demo.providers import model_name, scripted_model
from demo.setup_agent import Account, create_account, prefer_agent, sensors
from demo.turns import states_when
from tests.e2e.browser import ARGUMENTS, AssistDialog, DevicePage, logged_in

_PICTURES = REPOSITORY / "docs"
_SAID = (
    "turn on the kitchen light",
    "my name is Ada",
    "switch on the coffee machine and the bedroom light",
    "what is my name?",
)
# Sentences before those of `_SAID`, repeated so that the window fills up and is trimmed more than once.
_SAID_BEFORE = (
    "turn on the bedroom light",
    "tell me a story in 90 words",
    "turn off the bedroom light",
    "which devices are on?",
    "turn on the garage light",
    "remember that the wifi password is swordfish",
    "turn off the garage light",
    "what is the wifi password?",
    "turn on the coffee machine",
    "look at the clock",
    "turn off the coffee machine",
)
_ROUNDS = 5
# Seconds between two turns. The graph on the dashboard covers the last few minutes.
_PAUSE = 4.0
_PROVIDER = "responses"
_WINDOW = 1000
_SCALE = 1.5
_PATIENCE = 15.0

# The dashboard on a desktop and, in front of it, the dialog on a phone. The phone covers a card that is empty until the
# next day.
_FIRST_LOOK = """
<body style="margin: 0"><div id="all" style="position: relative; width: 1208px; height: 816px; background: #dfe9f0">
  <img src="{desk}" style="position: absolute; left: 24px; top: 24px; width: 1140px; border-radius: 14px;
    box-shadow: 0 6px 24px #0004">
  <img src="{phone}" style="position: absolute; left: 794px; top: 312px; width: 364px; border-radius: 34px;
    border: 9px solid #1c1c1e; box-shadow: 0 10px 32px #0007">
</div></body>
"""
_DESK = {"width": 1220, "height": 740}
_PHONE = {"width": 390, "height": 490}


async def _take(folder: Path) -> None:
    name = model_name(_PROVIDER)
    async with ModelServer(delay=0.01, models=(name,)) as model, HomeAssistant(folder, free_port()) as home:
        tokens = await enter(home.url, "demo", "demo")
        async with Client(home.url, tokens) as client, async_playwright() as playwright:
            await client.wait_until_running()
            await furnish(client)
            account = await create_account(client, scripted_model(model, _PROVIDER, name, window=_WINDOW))
            await dashboard.save_dashboard(client, await sensors(client))
            await save_automation(client, account.agent_id)
            await prefer_agent(client, account.agent_id)
            chromium = shutil.which("chromium")
            browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
            await _take_dialog_and_device(browser, client, account)
            await _take_first_look(browser, client)
            await browser.close()


async def _take_dialog_and_device(browser: Browser, client: Client, account: Account) -> None:
    page = await (await logged_in(browser, client)).new_page()
    await _talk(page, client.url, _SAID)
    await page.locator("ha-assist-chat").screenshot(path=_PICTURES / "assist.png")
    # the sensors show totals as stored on disk, so wait until they include all turns
    turns = (await sensors(client))["turns_model"]
    await states_when(client, lambda states: states[turns]["state"] == "3", _PATIENCE)
    await page.set_viewport_size({"width": 1280, "height": 1060})
    await DevicePage(page).open(client.url, account.device_id)
    # the icons appear shortly after the values
    await asyncio.sleep(1)
    await page.screenshot(path=_PICTURES / "device.png")


async def _take_first_look(browser: Browser, client: Client) -> None:
    await client.call("input_button.press", GOOD_NIGHT)
    context = await logged_in(browser, client, scale=_SCALE)
    await context.add_init_script("localStorage.setItem('dockedSidebar', JSON.stringify('always_hidden'))")
    phone = await context.new_page()
    await phone.set_viewport_size(_PHONE)
    await _talk(phone, client.url, _SAID_BEFORE * _ROUNDS + _SAID, _PAUSE)
    desk = await context.new_page()
    await desk.set_viewport_size(_DESK)
    await desk.goto(f"{client.url}/{dashboard.PATH}")
    await desk.locator("hui-history-graph-card canvas").wait_for()
    await asyncio.sleep(2)
    both = await context.new_page()
    await both.set_content(_FIRST_LOOK.format(desk=await _inline(desk), phone=await _inline(phone)))
    await both.locator("#all").screenshot(path=_PICTURES / "first-look.png")


async def _inline(page: Page) -> str:
    return f"data:image/png;base64,{b64encode(await page.screenshot()).decode()}"


async def _talk(page: Page, url: str, said: Iterable[str], pause: float = 0) -> None:
    dialog = AssistDialog(page)
    await dialog.open(url)
    for text in said:
        await dialog.say(text)
        await dialog.answer()
        await asyncio.sleep(pause)


def main() -> None:
    """Take all screenshots."""
    _PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_take(Path(folder)))


if __name__ == "__main__":
    main()
