"""Tests for the suggestions on the page: by keyboard, on a phone, and for a person who is no administrator."""

from collections.abc import AsyncIterator
from dataclasses import replace
import time

from playwright.async_api import expect
import pytest
import pytest_asyncio

from demo.people import PersonClients
from tests.e2e.browser import logged_in, save_screenshot
from tests.e2e.house import House
from tests.e2e.page import PagePanel, perform_action

PILLS = "Tom takes antidepressants every morning"
CONFIDENCE = f"Don't tell anybody, but {PILLS}."
BOILER = "our boiler is serviced in May"
DENTIST = "my dentist is called Doctor Hansen"
TABLETS = "my tablet is due at 9"
DAY = 86_400.0


async def mention(house: House, *texts: tuple[str, str, float], person: str) -> None:
    """Import turns of a person, each with a suggestion, given as its text, the sentence, and its age in days."""
    lines = []
    for number, (text, said, days) in enumerate(texts, int(time.time())):
        at = time.time() - days * DAY
        shared = {"id": number, "at": at, "person": person}
        lines += [
            {**shared, "kind": "turn", "conversation": "mentioned", "said": said, "answer": "I see."},
            {
                **shared,
                "kind": "fact",
                "private": True,
                "text": text,
                "source": "learned",
                "quote": said,
                "confirmed": at,
                "told": 1,
                "turn": number,
            },
        ]
    await perform_action(house.client, "import_memories", memories=lines)


async def recall(house: House, query: str) -> list[tuple[str, str | None]]:
    """Return the facts that match a query, with the people that they belong to, as the action does."""
    found = await perform_action(house.client, "recall", query=query, kinds=["fact"])
    return [(each["text"], each["person"]) for each in found["memories"]]


async def user_id(house: House) -> str:
    return (await house.client.send_command("auth/current_user"))["id"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guest(shared_house) -> AsyncIterator[House]:
    """Yield the home as a person sees it who is no administrator."""
    async with PersonClients(shared_house.home_assistant) as people:
        yield replace(shared_house, client=await people.get_client("Berta"))


@pytest_asyncio.fixture(loop_scope="session")
async def panel(browser, house) -> AsyncIterator[PagePanel]:
    """Yield the page with suggestions of this week and one that is older."""
    owner = await user_id(house)
    await perform_action(house.client, "remember", text="my tablet is due at 8", private=True)
    await mention(
        house,
        (PILLS, CONFIDENCE, 0),
        (BOILER, f"By the way, {BOILER}, so be patient", 1),
        (TABLETS, f"{TABLETS}, remind me please", 2),
        (DENTIST, DENTIST, 30),
        person=owner,
    )
    context = await logged_in(browser, house.client)
    panel = PagePanel(await context.new_page(), house.url)
    await panel.open("memory")
    yield panel
    await context.close()
    await perform_action(house.client, "forget", everything=True)
    assert panel.traffic.take_complaints() == []


async def press_by_keyboard(panel: PagePanel, name: str) -> None:
    """Go to a button with the keyboard alone, from the top of the view, and press it."""
    button = panel.main.get_by_role("button", name=name)
    await panel.main.locator("h2").first.click()
    for _ in range(60):
        await panel.page.keyboard.press("Tab")
        if await button.evaluate("element => element.getRootNode().activeElement === element"):
            break
    await expect(button).to_be_focused()
    await panel.page.keyboard.press("Enter")


async def test_suggestions_come_first_with_their_quotes_and_days(panel):
    titles = await panel.main.locator("h2").all_text_contents()

    assert titles[:3] == ["Learned this week", "Learned earlier", "What it knows about me"]
    await expect(panel.fact(PILLS)).to_contain_text(CONFIDENCE)
    await expect(panel.fact(PILLS)).to_contain_text("because it was mentioned")
    await expect(panel.main.locator("section").nth(1)).to_contain_text(DENTIST)


async def test_suggestion_says_what_it_would_replace(panel):
    await expect(panel.fact(TABLETS)).to_contain_text('It would replace "my tablet is due at 8".')


async def test_suggestions_are_decided_by_keyboard(panel, house, guest):
    await press_by_keyboard(panel, f"For me: {PILLS}")
    await panel.done("Done.")
    await press_by_keyboard(panel, f"For everybody: {BOILER}")
    await panel.done("Done.")
    await press_by_keyboard(panel, f"Wrong: {DENTIST}")
    await panel.done("Done.")

    await panel.open_fact(PILLS)
    await expect(panel.main.get_by_role("button", name=f"Correct: {PILLS}")).to_be_visible()
    assert {*await recall(house, "antidepressants boiler dentist")} == {(BOILER, None), (PILLS, "Demo")}
    assert await recall(guest, "antidepressants boiler dentist") == [(BOILER, None)]


async def test_kept_suggestion_replaces_what_it_corrects(panel, house):
    await press_by_keyboard(panel, f"For me: {TABLETS}")
    await panel.done("Done.")

    assert await recall(house, "tablet due") == [(TABLETS, "Demo")]


async def test_person_without_rights_sees_and_decides_only_their_own(browser, panel, house, guest):
    await mention(house, ("I sing in a choir", "well, I sing in a choir", 0), person=await user_id(guest))
    context = await logged_in(browser, guest.client)
    guest_panel = PagePanel(await context.new_page(), guest.url)
    await guest_panel.open("memory")

    await expect(guest_panel.fact("choir")).to_be_visible()
    await expect(guest_panel.main).not_to_contain_text("antidepressants")
    await expect(panel.main).not_to_contain_text("choir")
    await press_by_keyboard(guest_panel, "For me: I sing in a choir")
    await guest_panel.done("Done.")

    assert await recall(guest, "choir") == [("I sing in a choir", "Berta")]
    assert guest_panel.traffic.take_complaints() == []
    await perform_action(guest.client, "forget", everything=True)
    await context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)], ids=["wide", "phone"])
async def test_suggestions_can_be_read_and_pressed(panel, width, height):
    flaws = list[str]()
    await panel.page.set_viewport_size({"width": width, "height": height})
    for scheme in ("light", "dark"):
        await panel.main.locator("h2").first.scroll_into_view_if_needed()
        await panel.page.emulate_media(color_scheme=scheme)
        await panel.settle()
        await save_screenshot(panel.page, f"inbox-{width}-{scheme}")
        flaws += [*await panel.find_wide(), *await panel.find_tall(), *await panel.find_faint()]
        flaws += [*await panel.find_nameless(), *await panel.find_cut_rings()]

    assert flaws == []
