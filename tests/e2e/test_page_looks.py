"""Tests for the looks of the integration's page: sizes, contrast and names; and for its card in the card picker."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import product
import re

from playwright.async_api import Route, expect
import pytest
import pytest_asyncio

from tests.e2e.browser import logged_in, save_screenshot
from tests.e2e.page import HOSTILE_WORDS, VIEWS, DashboardEditor, PagePanel, perform_action


@dataclass(frozen=True, slots=True)
class Looks:
    """The flaws in the looks of the views, by view, and the complaints of the browser."""

    wide: dict[str, list[str]]
    tall: dict[str, list[str]]
    cut_rings: dict[str, list[str]]
    faint: dict[str, list[str]]
    nameless: dict[str, list[str]]
    complaints: list[str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def looks(browser, shared_house) -> Looks:
    """Say different things, look at each view on a wide and a narrow screen, in light and in dark."""
    house = shared_house
    house.model.reset()
    house.model.change(delay=0)
    await perform_action(house.client, "remember", text="My bicycle is blue")
    await perform_action(house.client, "remember", text="The bins go out on Friday")
    await house.change_options(history_tokens=600)
    for text in (
        "I would like the kitchen light switched on",
        *HOSTILE_WORDS,
        "tell me a story in 100 words",
        "fail with 429",
    ):
        await house.say(text, "looked at")
    await house.say("turn off the kitchen light", "looked at")
    context = await logged_in(browser, house.client)
    panel = PagePanel(await context.new_page(), house.url)
    looks = Looks({}, {}, {}, {}, {}, [])
    await panel.open_conversation(house.account.agent_id, "looked at")
    for view in VIEWS:
        await panel.follow(view)
        if view == "turns":
            await panel.open_turn("tell me a story")
        await panel.open_all()
        await look_at(panel, view, looks)
    looks.complaints.extend(panel.traffic.take_complaints())
    await context.close()
    await house.change_options(history_tokens=8000)
    return looks


async def look_at(panel: PagePanel, view: str, looks: Looks) -> None:
    """Find the flaws in the looks of a view."""
    looks.nameless[view] = await panel.find_nameless()
    looks.cut_rings[view] = await panel.find_cut_rings()
    looks.wide[view], looks.tall[view], looks.faint[view] = [], [], []
    for (width, height), scheme in product([(1280, 800), (390, 844)], ["light", "dark"]):
        await panel.page.set_viewport_size({"width": width, "height": height})
        await panel.page.emulate_media(color_scheme=scheme)
        await panel.settle()
        looks.wide[view] += [f"{width} {scheme}: {each}" for each in await panel.find_wide()]
        looks.tall[view] += [f"{width} {scheme}: {each}" for each in await panel.find_tall()]
        looks.faint[view] += [f"{width} {scheme}: {each}" for each in await panel.find_faint()]
        await save_screenshot(panel.page, f"page-{view}-{width}-{scheme}")


@pytest.mark.parametrize("view", VIEWS)
async def test_view_fits_on_the_screen(looks, view):
    assert looks.wide[view] == []


@pytest.mark.parametrize("view", VIEWS)
async def test_only_the_view_itself_scrolls(looks, view):
    assert looks.tall[view] == []


@pytest.mark.parametrize("view", VIEWS)
async def test_focus_rings_of_a_view_are_whole(looks, view):
    assert looks.cut_rings[view] == []


@pytest.mark.parametrize("view", VIEWS)
async def test_texts_of_a_view_have_the_contrast_of_aa(looks, view):
    assert looks.faint[view] == []


@pytest.mark.parametrize("view", VIEWS)
async def test_each_control_of_a_view_has_a_name(looks, view):
    assert looks.nameless[view] == []


async def test_views_write_no_error_and_ask_no_other_host(looks):
    assert looks.complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(house) -> AsyncIterator[str]:
    """Yield the path of a dashboard without cards."""
    send = house.client.send_command
    created = await send("lovelace/dashboards/create", url_path="windows-of-agents", title="Windows", mode="storage")
    view = {"title": "Windows", "type": "sections", "sections": [{"type": "grid", "cards": []}]}
    await send("lovelace/config/save", url_path="windows-of-agents", config={"views": [view]})
    yield "windows-of-agents"
    await send("lovelace/dashboards/delete", dashboard_id=created["id"])


@pytest_asyncio.fixture(loop_scope="session")
async def editor(browser, house) -> AsyncIterator[DashboardEditor]:
    """Yield a dashboard's editor. It may complain, because it shows an example of each card that Home Assistant has."""
    context = await logged_in(browser, house.client)
    yield DashboardEditor(await context.new_page())
    await context.close()


async def test_card_is_picked_for_a_dashboard_and_shows_the_newest_conversation(editor, house, dashboard):
    await house.say("my name is Ada", "on the card")
    await editor.open(house.url, dashboard)
    await editor.add_card("Windowed Conversation")
    await expect(editor.card).to_contain_text("tokens are used")
    before = await editor.card.inner_text()
    await house.say("tell me a story in 60 words", "on the card")

    await expect(editor.card).not_to_have_text(before)
    await save_screenshot(editor.page, "page-card")


async def test_card_is_shown_though_its_script_ran_before_the_frontend(page, house, dashboard):
    async def delay(route: Route) -> None:
        await asyncio.sleep(1)
        await route.continue_()

    cards = [{"type": "custom:windowed-conversation-card"}]
    config = {"views": [{"title": "Windows", "cards": cards}]}
    await house.client.send_command("lovelace/config/save", url_path=dashboard, config=config)
    await house.say("my name is Ada", "on the card")
    await page.route(re.compile(r"/frontend_latest/(app|core)\."), delay)
    await page.goto(f"{house.url}/{dashboard}")

    await expect(DashboardEditor(page).card).to_contain_text("tokens are used", timeout=20_000)


async def test_card_of_the_week_has_its_questions_and_leads_to_the_slowest_with_its_reason(page, house, dashboard):
    config = {"views": [{"title": "Week", "cards": [{"type": "custom:windowed-conversation-week-card"}]}]}
    await house.client.send_command("lovelace/config/save", url_path=dashboard, config=config)
    await house.say("tell me a story in 60 words", "on the card")
    # waits before its second request
    await house.say("fail with 429", "on the card")
    await page.goto(f"{house.url}/{dashboard}")

    card = page.locator("windowed-conversation-week-card")
    await expect(card).to_contain_text("Questions", timeout=20_000)
    await expect(card).to_contain_text("The model's server is receiving too many requests.")
    await save_screenshot(page, "page-week-card")
    await card.locator("dd a").click()
    await expect(page.locator("windowed-conversation-panel .details")).to_be_visible()


async def test_two_cards_of_a_dashboard_both_have_texts(page, house, dashboard):
    cards = [{"type": "custom:windowed-conversation-card", "title": title} for title in ("One", "Other")]
    config = {"views": [{"title": "Windows", "cards": cards}]}
    await house.client.send_command("lovelace/config/save", url_path=dashboard, config=config)
    await house.say("my name is Ada", "on the card")
    await page.goto(f"{house.url}/{dashboard}")

    shown_cards = page.locator("windowed-conversation-card")
    await expect(shown_cards).to_contain_text(["tokens are used", "tokens are used"], timeout=20_000)
    await save_screenshot(page, "page-two-cards")
