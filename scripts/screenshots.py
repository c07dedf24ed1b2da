"""Take the pictures of README and docs from a real Home Assistant: .venv/demo/bin/python -m scripts.screenshots."""

import asyncio
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
import shutil
import tempfile

from playwright.async_api import Browser, Page, async_playwright

from demo import dashboard
from demo.automation import save_automation
from demo.client import Client, log_in_or_onboard
from demo.home import GOOD_NIGHT_BUTTON, set_up_home
from demo.home_assistant import REPOSITORY, HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.providers import build_scripted_model, get_model_name
from demo.setup_agent import Account, find_sensor_ids, prefer_agent, replace_accounts
from demo.turns import wait_for_states
from scripts.animation import record_animation
from tests.e2e.browser import ARGUMENTS, AssistDialog, DevicePage, logged_in

_PICTURES_FOLDER = REPOSITORY / "docs"
_SENTENCES = (
    "turn on the kitchen light",
    "my name is Ada",
    "switch on the coffee machine and the bedroom light",
    "what is my name?",
)
# Sentences before those of `_SENTENCES`, repeated so that the window fills up and is trimmed more than once.
_EARLIER_SENTENCES = (
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
_REPEAT_COUNT = 5
# Sentences that each part of the integration answers, for the pictures of the page.
_DAY = (
    "turn on the kitchen light",
    "remember that Emma has swimming on Tuesday",
    "remind me at seven in the evening to call Ada",
    "what is on the shopping list?",
    "do I need an umbrella?",
    "is everything locked?",
    "lock the side door",
    "when does Emma have swimming?",
    "did anyone leave something open?",
    "turn off the kitchen light",
)
# Seconds between two turns. The graph on the dashboard covers the last few minutes.
_PAUSE_SECONDS = 4.0
_PROVIDER = "responses"
_WINDOW_TOKENS = 1000
_DEVICE_SCALE = 1.5
_TIMEOUT_SECONDS = 15.0

# The dashboard on a desktop and, in front of it, the dialog on a phone. The phone covers a card that is empty until the
# next day.
_FIRST_LOOK_HTML = """
<body style="margin: 0"><div id="all" style="position: relative; width: 1208px; height: 816px; background: #dfe9f0">
  <img src="{desk}" style="position: absolute; left: 24px; top: 24px; width: 1140px; border-radius: 14px;
    box-shadow: 0 6px 24px #0004">
  <img src="{phone}" style="position: absolute; left: 794px; top: 312px; width: 364px; border-radius: 34px;
    border: 9px solid #1c1c1e; box-shadow: 0 10px 32px #0007">
</div></body>
"""
_DESKTOP_VIEWPORT = {"width": 1220, "height": 740}
_PAGE_VIEWPORT = {"width": 1220, "height": 900}
_PHONE_VIEWPORT = {"width": 390, "height": 490}
_PAGE_ON_PHONE_VIEWPORT = {"width": 390, "height": 560}


async def _take_screenshots(folder: Path) -> None:
    name = get_model_name(_PROVIDER)
    async with ModelServer(delay=0.01, models=(name,)) as model, HomeAssistantProcess(folder, find_free_port()) as home:
        tokens = await log_in_or_onboard(home.url, "demo", "demo")
        async with Client(home.url, tokens) as client, async_playwright() as playwright:
            await client.wait_until_running()
            await set_up_home(client)
            account = await replace_accounts(
                client, build_scripted_model(model, _PROVIDER, name, window=_WINDOW_TOKENS)
            )
            await dashboard.save_dashboard(client, await find_sensor_ids(client))
            await save_automation(client, account.agent_id)
            await prefer_agent(client, account.agent_id)
            chromium = shutil.which("chromium")
            browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
            await record_animation(browser, client, _PICTURES_FOLDER / "demo.gif")
            await _take_dialog_and_device(browser, client, account)
            await _take_page(browser, client)
            await _take_first_look(browser, client)
            await browser.close()


async def _take_dialog_and_device(browser: Browser, client: Client, account: Account) -> None:
    page = await (await logged_in(browser, client)).new_page()
    await _hold_conversation(page, client.url, _SENTENCES)
    await page.locator("ha-assist-chat").screenshot(path=_PICTURES_FOLDER / "assist.png")
    # the sensors show totals as stored on disk, so wait until they include all turns
    turns = (await find_sensor_ids(client))["turns_model"]
    await wait_for_states(client, lambda states: states[turns]["state"] == "3", _TIMEOUT_SECONDS)
    await page.set_viewport_size({"width": 1280, "height": 1060})
    await DevicePage(page).open(client.url, account.device_id)
    # the icons appear shortly after the values
    await asyncio.sleep(1)
    await page.screenshot(path=_PICTURES_FOLDER / "device.png")


async def _take_page(browser: Browser, client: Client) -> None:
    for name, scale, viewport, sentences in (
        ("page.png", _DEVICE_SCALE, _PAGE_VIEWPORT, _DAY),
        # one pixel for each of README, so that it is readable on a phone and not too large on a desktop
        ("page-phone.png", 1, _PAGE_ON_PHONE_VIEWPORT, ()),
    ):
        context = await logged_in(browser, client, scale=scale)
        await context.add_init_script("localStorage.setItem('dockedSidebar', JSON.stringify('always_hidden'))")
        page = await context.new_page()
        await _hold_conversation(page, client.url, sentences)
        await page.set_viewport_size(viewport)
        await page.goto(f"{client.url}/{dashboard.PAGE_PATH}/turns")
        await page.get_by_text(_DAY[-1]).first.wait_for()
        await page.screenshot(path=_PICTURES_FOLDER / name)


async def _take_first_look(browser: Browser, client: Client) -> None:
    await client.call_action("input_button.press", GOOD_NIGHT_BUTTON)
    context = await logged_in(browser, client, scale=_DEVICE_SCALE)
    await context.add_init_script("localStorage.setItem('dockedSidebar', JSON.stringify('always_hidden'))")
    phone = await context.new_page()
    await phone.set_viewport_size(_PHONE_VIEWPORT)
    await _hold_conversation(phone, client.url, _EARLIER_SENTENCES * _REPEAT_COUNT + _SENTENCES, _PAUSE_SECONDS)
    desk = await context.new_page()
    await desk.set_viewport_size(_DESKTOP_VIEWPORT)
    await desk.goto(f"{client.url}/{dashboard.DASHBOARD_PATH}")
    await desk.locator("hui-history-graph-card canvas").wait_for()
    await asyncio.sleep(2)
    both = await context.new_page()
    await both.set_content(
        _FIRST_LOOK_HTML.format(desk=await _take_inline_screenshot(desk), phone=await _take_inline_screenshot(phone))
    )
    await both.locator("#all").screenshot(path=_PICTURES_FOLDER / "first-look.png")


async def _take_inline_screenshot(page: Page) -> str:
    return f"data:image/png;base64,{b64encode(await page.screenshot()).decode()}"


async def _hold_conversation(page: Page, url: str, said: Iterable[str], pause: float = 0) -> None:
    dialog = AssistDialog(page)
    await dialog.open(url)
    for text in said:
        await dialog.say(text)
        await dialog.answer()
        await asyncio.sleep(pause)


def main() -> None:
    """Take all pictures."""
    _PICTURES_FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_take_screenshots(Path(folder)))


if __name__ == "__main__":
    main()
