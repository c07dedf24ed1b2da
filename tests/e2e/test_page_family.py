"""Tests with a home of three months, whose three people look for reasons, facts and costs on the page."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from playwright.async_api import Browser, Locator, expect
import pytest
import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.people import PersonClients
from demo.setup_agent import ModelAccess, add_account
from tests.e2e.browser import logged_in, save_screenshot
from tests.e2e.family import FAMILY, HOME_FACTS, Member, write_family
from tests.e2e.page import PagePanel

MORNING = "7:10 AM"
CHART_PARTS = (".axis", ".plot", ".names", "figcaption")


@dataclass(frozen=True, slots=True)
class FamilyHome:
    """A home of three months, its people, and the time of day there when it was filled."""

    home_assistant: HomeAssistantProcess
    people: PersonClients
    now: datetime


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def family(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FamilyHome]:
    """Yield a home of three months."""
    home_assistant = HomeAssistantProcess(tmp_path_factory.mktemp("family"), find_free_port())
    async with ModelServer(strict=True) as model:
        async with home_assistant:
            async with Client(
                home_assistant.url, await log_in_or_onboard(home_assistant.url, "demo", "demo")
            ) as client:
                await client.wait_until_running()
                await set_up_home(client)
                account = await add_account(client, ModelAccess(url=model.url, model="scripted"))
            async with PersonClients(home_assistant) as people:
                clients = [await people.get_client(member.name) for member in FAMILY]
                users = [await each.send_command("auth/current_user") for each in clients]
        ids = {member.name: user["id"] for member, user in zip(FAMILY, users, strict=True)}
        # the page shows times in the browser's zone, which is that of this process
        now = datetime.now().astimezone()
        write_family(home_assistant.config, account.subentry_id, ids, now)
        async with home_assistant, PersonClients(home_assistant) as people:
            yield FamilyHome(home_assistant, people, now)


@dataclass(slots=True)
class Visit:
    """The page as a person of the family has it open, and how often they have clicked."""

    panel: PagePanel
    member: Member
    clicks: int = 0

    async def open_from_sidebar(self, url: str) -> None:
        """Find the page in the sidebar, from the profile."""
        await self.panel.page.goto(f"{url}/profile")
        self.clicks = 0
        await self.click(self.panel.page.locator("ha-sidebar").get_by_text("Windowed Conversation"))
        await self.panel.loaded()

    async def click(self, target: Locator) -> None:
        """Click, and count it."""
        await target.click()
        self.clicks += 1


@pytest_asyncio.fixture(params=FAMILY, ids=lambda member: member.name, loop_scope="session")
async def visit(request, browser: Browser, family: FamilyHome) -> AsyncIterator[Visit]:
    """Yield the page for each of the people."""
    context = await logged_in(browser, await family.people.get_client(request.param.name))
    panel = PagePanel(await context.new_page(), family.home_assistant.url)
    visit = Visit(panel, request.param)
    await visit.open_from_sidebar(family.home_assistant.url)
    yield visit
    complaints = panel.traffic.take_complaints()
    await context.close()
    assert complaints == []


async def take_pictures(visit: Visit, name: str) -> None:
    """Save the page on a desktop and a phone, in light and in dark. Nothing reaches beyond the screen."""
    for (width, height), scheme in product([(1280, 900), (390, 844)], ["light", "dark"]):
        await visit.panel.page.set_viewport_size({"width": width, "height": height})
        await visit.panel.page.emulate_media(color_scheme=scheme)
        await visit.panel.settle()
        await save_screenshot(visit.panel.page, f"family-{visit.member.name}-{name}-{width}-{scheme}")
        assert await visit.panel.find_wide() == []
    await visit.panel.page.set_viewport_size({"width": 1280, "height": 900})


async def test_each_person_sees_what_is_known_about_them_and_nothing_of_the_others(visit):
    main = visit.panel.main
    for text in (*visit.member.facts, *HOME_FACTS):
        await expect(main).to_contain_text(text)
    shown = await main.inner_text()

    assert [fact for other in FAMILY if other is not visit.member for fact in other.facts if fact in shown] == []
    assert visit.clicks == 1
    await take_pictures(visit, "memory")


async def test_each_person_sees_why_it_did_that_at_ten_past_seven_in_three_clicks(visit):
    main = visit.panel.main
    await visit.click(visit.panel.locator.get_by_role("link", name="What it did"))
    await expect(main.locator(".turn").filter(has_text=MORNING).first).to_be_visible()
    await take_pictures(visit, "turns")
    shown = await main.inner_text()
    await visit.click(main.locator(".turn").filter(has_text=MORNING).filter(has_text=visit.member.morning).first)

    await expect(main.locator(".details")).to_contain_text("Home Assistant has no sentence for this")
    await expect(main.locator(".details")).to_contain_text(visit.member.answer)
    assert visit.clicks == 3
    assert [other.name for other in FAMILY if other is not visit.member and other.morning in shown] == []
    await take_pictures(visit, "why")


@pytest.mark.parametrize("visit", FAMILY[:1], ids=["Demo"], indirect=True)
async def test_owner_sees_what_last_month_cost_in_three_clicks(visit, family):
    await visit.click(visit.panel.locator.get_by_role("link", name="Costs"))
    await visit.panel.loaded()
    places = [await visit.panel.main.locator(each).bounding_box() for each in CHART_PARTS]
    axis, plot, names, legend = [(each["x"], each["y"], each["y"] + each["height"]) for each in places if each]
    # the labels of the axis reach half a line beyond the bars, and the days and the legend are below
    assert axis[0] < plot[0] == names[0]
    assert axis[1] < plot[1] < plot[2] < names[1] < names[2] < legend[1]
    assert axis[2] > plot[2]
    await take_pictures(visit, "costs")
    await visit.panel.main.get_by_label("Time span").select_option("Last 12 months")
    visit.clicks += 1
    last_month = (family.now.replace(day=1) - timedelta(days=1)).strftime("%b %Y")

    row = visit.panel.main.locator("tr").filter(has_text=last_month)
    await expect(row).to_contain_text("$")
    assert visit.clicks == 3
    await take_pictures(visit, "months")
