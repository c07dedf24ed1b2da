"""Record the animation of README: four sentences on a phone, with the home beside it, as an animated GIF."""

import asyncio
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont
from playwright.async_api import Browser, Page

from demo.client import Client
from tests.e2e.browser import AssistDialog, logged_in

_DASHBOARD_PATH = "demo-tiles"
_TILES = ("light.kitchen_light", "light.bedroom_light", "cover.garage_door", "sensor.kitchen_temperature")
_HOME_VIEWPORT = {"width": 330, "height": 470}
_PHONE_VIEWPORT = {"width": 390, "height": 470}
_CAPTION_HEIGHT = 40
_MARGIN = 12
_BACKGROUND, _TEXT = "#dfe9f0", "#1c1c1e"
_COLOR_COUNT = 96
# Milliseconds that a frame is shown: while an answer grows, and after it is complete.
_GROWING_MS, _COMPLETE_MS = 90, 2600
# Seconds between two frames of an answer that grows.
_FRAME_SECONDS = 0.09


class _Scene(NamedTuple):
    """A sentence, and the caption above it. A sentence of the next day begins a new conversation."""

    text: str
    caption: str
    is_next_day: bool = False


_SCENES = (
    _Scene("turn on the kitchen light", "Commands are carried out locally, in milliseconds."),
    _Scene("is the garage closed?", "A question about the home takes one request."),
    _Scene("remember that the bins go out on Friday", "What you ask it to remember stays in your home."),
    _Scene("when do the bins go out?", "The next day, in a new conversation.", is_next_day=True),
)


async def record_animation(browser: Browser, client: Client, path: Path) -> None:
    """Take the turns of the scenes in a real browser and write the animation."""
    await _save_tiles(client)
    context = await logged_in(browser, client, has_motion=True)
    await context.add_init_script("localStorage.setItem('dockedSidebar', JSON.stringify('always_hidden'))")
    home, phone = await context.new_page(), await context.new_page()
    await home.set_viewport_size(_HOME_VIEWPORT)
    await phone.set_viewport_size(_PHONE_VIEWPORT)
    await home.goto(f"{client.url}/{_DASHBOARD_PATH}?kiosk")
    await home.locator("hui-tile-card").first.wait_for()
    dialog = AssistDialog(phone)
    await dialog.open(client.url)
    frames: list[tuple[Image.Image, int]] = []
    for scene in _SCENES:
        if scene.is_next_day:
            await dialog.open(client.url)
        frames += await _record_scene(home, phone, dialog, scene)
    first, *others = [image.quantize(_COLOR_COUNT, dither=Image.Dither.NONE) for image, _ in frames]
    durations = [duration for _, duration in frames]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    await context.close()


async def _save_tiles(client: Client) -> None:
    await client.send_command(
        "lovelace/dashboards/create", url_path=_DASHBOARD_PATH, title="Home", icon="mdi:home", mode="storage"
    )
    cards = [{"type": "tile", "entity": entity, "grid_options": {"columns": "full"}} for entity in _TILES]
    view = {"title": "Home", "type": "sections", "max_columns": 1, "sections": [{"type": "grid", "cards": cards}]}
    await client.send_command("lovelace/config/save", url_path=_DASHBOARD_PATH, config={"views": [view]})


async def _record_scene(home: Page, phone: Page, dialog: AssistDialog, scene: _Scene) -> list[tuple[Image.Image, int]]:
    frames = [(await _take_frame(home, phone, scene.caption), _GROWING_MS)]
    await dialog.say(scene.text)
    answer = asyncio.create_task(dialog.answer())
    while not answer.done():
        frames.append((await _take_frame(home, phone, scene.caption), _GROWING_MS))
        await asyncio.sleep(_FRAME_SECONDS)
    await answer
    # the tile of a device follows its state with a transition
    await asyncio.sleep(1)
    return [*frames, (await _take_frame(home, phone, scene.caption), _COMPLETE_MS)]


async def _take_frame(home: Page, phone: Page, caption: str) -> Image.Image:
    pictures = [Image.open(BytesIO(await page.screenshot())).convert("RGB") for page in (home, phone)]
    size = (
        sum(each.width for each in pictures) + 3 * _MARGIN,
        max(each.height for each in pictures) + _CAPTION_HEIGHT + _MARGIN,
    )
    frame = Image.new("RGB", size, _BACKGROUND)
    left = _MARGIN
    for picture in pictures:
        frame.paste(picture, (left, _CAPTION_HEIGHT))
        left += picture.width + _MARGIN
    ImageDraw.Draw(frame).text((_MARGIN + 4, 10), caption, fill=_TEXT, font=ImageFont.load_default(18))
    return frame
