"""Tests for the integration's page in a real browser, in Home Assistant's own frontend. Actions check its buttons."""

from collections.abc import AsyncIterator
from dataclasses import replace
import json
from typing import Any

from playwright.async_api import BrowserContext, expect
import pytest
import pytest_asyncio

from demo.client import Client, RefusedError
from demo.model_server import call, words
from demo.people import PersonClients
from demo.setup_agent import DOMAIN, ModelAccess, add_account, remove_account
from tests.e2e.browser import logged_in
from tests.e2e.house import House, wait_for
from tests.e2e.page import HOSTILE_WORDS, PagePanel, Visibility, perform_action


@pytest_asyncio.fixture(loop_scope="session")
async def quick_house(house) -> House:
    """Return the home with a model that answers at once."""
    house.model.change(delay=0)
    return house


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser, shared_house) -> AsyncIterator[BrowserContext]:
    """Yield a browser context for one test, because a test sets the clock of its context."""
    context = await logged_in(browser, shared_house.client)
    yield context
    await context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tab(browser, shared_house) -> AsyncIterator[PagePanel]:
    """Yield a tab of the browser, which stays open for all tests that need no new one."""
    context = await logged_in(browser, shared_house.client)
    yield PagePanel(await context.new_page(), shared_house.url)
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def panel(tab, quick_house) -> AsyncIterator[PagePanel]:
    """Yield the integration's page. An error in the console, a dialog or a request to another host fails the test."""
    yield tab
    assert tab.traffic.take_complaints() == []


@pytest_asyncio.fixture(loop_scope="session")
async def new_panel(page, quick_house) -> AsyncIterator[PagePanel]:
    """Yield the page of the integration in a new tab, where it is not open yet."""
    panel = PagePanel(page, quick_house.url)
    yield panel
    assert panel.traffic.take_complaints() == []


async def read(house: House, conversation_id: str, content: str = "messages", **more: Any) -> Any:
    """Return the content of a conversation, as the action does. Raises RefusedError."""
    ids = {"entity_id": house.account.agent_id, "conversation_id": conversation_id}
    return (await perform_action(house.client, "get_conversation", content=content, **ids, **more))[content]


async def open_conversation(panel: PagePanel, house: House, conversation_id: str, *said: str) -> None:
    """Say something in a conversation, and open it on the page."""
    for text in said:
        await house.say(text, conversation_id)
    await panel.open_conversation(house.account.agent_id, conversation_id)


async def test_bar_and_exchanges_grow_without_a_reload_while_one_talks(panel, quick_house):
    await open_conversation(panel, quick_house, "growing", "my name is Ada")
    before = await panel.used_tokens()
    await panel.page.evaluate("window.isSamePage = true")
    await quick_house.say("what is my name?", "growing")

    await expect(panel.exchanges).to_have_count(2)
    await expect(panel.exchanges.last).to_contain_text("Your name is Ada.")
    assert await panel.used_tokens() > before
    assert await panel.page.evaluate("window.isSamePage")


@pytest_asyncio.fixture(loop_scope="session")
async def small_house(quick_house) -> AsyncIterator[House]:
    """Yield the home with a window of 300 tokens."""
    await quick_house.change_options(history_tokens=300)
    yield quick_house
    await quick_house.change_options(history_tokens=8000)


async def test_window_of_300_tokens_trims_where_the_line_was_drawn(panel, small_house):
    await open_conversation(panel, small_house, "trimmed", "the word is herring 0")
    number, trims, above = 0, 0, []
    said = await panel.said()
    while not trims:
        number, above, before = number + 1, await panel.exchanges_above_the_line(), said
        await small_house.say(f"the word is herring {number}", "trimmed")
        await expect(panel.exchanges.last).to_contain_text(f"herring {number}")
        trims, said = (await read(small_house, "trimmed", "statistics"))["trims"], await panel.said()

    assert 0 < len(above) < len(before)
    assert [text for text in before if text not in said] == above


@pytest.mark.parametrize(("button", "tag"), [("Pin", "important"), ("Drop first", "ephemeral")])
async def test_button_tags_an_exchange(panel, quick_house, button, tag):
    await open_conversation(panel, quick_house, f"tagged {tag}", "my name is Ada", "what is my name?")
    await panel.press(button)
    await panel.done("Done.")

    tagged = await read(quick_house, f"tagged {tag}", "messages", tags=[tag])
    without = await read(quick_house, f"tagged {tag}", "messages", exclude_tags=[tag])
    assert (len(tagged), len(without)) == (3, 3)
    assert "what is my name?" in without[1]["content"]


async def test_button_unpins_an_exchange(panel, quick_house):
    await open_conversation(panel, quick_house, "unpinned", "my name is Ada")
    await panel.press("Pin")
    await panel.done("Done.")
    await panel.press("Unpin")
    await expect(panel.locator.get_by_role("button", name="Pin", exact=True)).to_be_visible()

    assert "important" not in (await read(quick_house, "unpinned", "statistics"))["tags"]


async def test_button_shows_the_whole_text(panel, quick_house):
    text = "consider that " + "the locker is blue and " * 20 + "this is the end"
    await open_conversation(panel, quick_house, "long", text)
    await expect(panel.exchanges).not_to_contain_text("this is the end")
    await panel.press("Show all")

    await expect(panel.exchanges.first).to_contain_text("this is the end")


async def test_button_summarizes_the_older_exchanges(panel, quick_house):
    said = [f"consider that locker {number} is the blue one beside number {number}" for number in range(8)]
    await open_conversation(panel, quick_house, "summarized", *said)
    await panel.press("Summarize")
    await panel.done("Done.")

    assert (await read(quick_house, "summarized", "statistics"))["exchanges"] < len(said)


async def test_button_copies_a_conversation(panel, quick_house):
    await open_conversation(panel, quick_house, "forked", "my name is Ada")
    await panel.press("Copy")
    await panel.answer("Copy", "the copy of it")
    await panel.done("Done.")

    copied, original = [await read(quick_house, name) for name in ("the copy of it", "forked")]
    assert [each["content"] for each in copied] == [each["content"] for each in original]


async def test_exported_file_is_that_of_the_action(panel, quick_house, tmp_path):
    await open_conversation(panel, quick_house, "exported", "my name is Ada")
    async with panel.page.expect_download() as download:
        await panel.press("Export")
    await (await download.value).save_as(tmp_path / "exported.json")

    assert json.loads((tmp_path / "exported.json").read_text()) == await read(quick_house, "exported", "export")


async def test_imported_conversation_continues(panel, quick_house, tmp_path):
    await open_conversation(panel, quick_house, "before the import", "my name is Ada")
    exported = await read(quick_house, "before the import", "export")
    (tmp_path / "import.json").write_text(json.dumps(exported | {"conversation_id": "imported"}))
    await panel.locator.locator("summary").get_by_text("Import a conversation").click()
    await panel.locator.locator("input[type=file]").set_input_files(tmp_path / "import.json")
    await panel.press("Import a conversation")
    await panel.done("Done.")

    assert (await quick_house.say("what is my name?", "imported")).speech == "Your name is Ada."


async def test_conversation_that_is_forgotten_is_gone(panel, quick_house):
    await open_conversation(panel, quick_house, "forgotten", "my name is Ada")
    await panel.press("Forget")
    await panel.answer("Forget")
    await panel.done("Done.")

    with pytest.raises(RefusedError):
        await read(quick_house, "forgotten")


async def test_conversation_is_not_forgotten_if_the_question_is_cancelled(panel, quick_house):
    await open_conversation(panel, quick_house, "not forgotten", "my name is Ada")
    await panel.press("Forget")
    await panel.answer("Cancel")
    await expect(panel.dialog).to_have_count(0)

    assert (await read(quick_house, "not forgotten"))[-1]["content"] == "Nice to meet you, Ada."


async def test_visit_on_the_device_page_of_an_agent_opens_what_it_did(page, new_panel, quick_house):
    await quick_house.say("my name is Ada")
    await page.goto(f"{quick_house.url}/config/devices/device/{quick_house.account.device_id}")
    await page.get_by_text("Visit").click()
    await new_panel.loaded()

    assert page.url.endswith(f"/turns?agent={quick_house.account.agent_id}")
    await expect(new_panel.main.locator(".turn").first).to_contain_text("my name is Ada")


async def test_closed_account_is_named(new_panel, quick_house):
    model = ModelAccess(url=quick_house.model.url.replace("127.0.0.1", "localhost"), model="scripted")
    other = await add_account(quick_house.client, model, "The other agent")
    await quick_house.client.send_command("config_entries/disable", entry_id=other.entry_id, disabled_by="user")
    found = await quick_house.client.send_command("config_entries/get_single", entry_id=other.entry_id)
    await new_panel.open()

    await expect(new_panel.main).to_contain_text(f"The account {found['config_entry']['title']} is not loaded")
    await remove_account(quick_house.client, other.entry_id)


async def test_page_continues_after_five_minutes_in_a_hidden_tab(page, new_panel, quick_house):
    await quick_house.say("my name is Ada", "left open")
    await quick_house.say("something newer", "newer")
    tab = Visibility(page)
    await tab.install()
    await open_conversation(new_panel, quick_house, "left open")
    address = page.url
    await tab.hide(minutes=6)
    await expect(new_panel.locator).to_have_count(0)
    await tab.show()
    await new_panel.loaded()
    await quick_house.say("what is my name?", "left open")

    await expect(new_panel.exchanges.last).to_contain_text("Your name is Ada.")
    assert (page.url, new_panel.traffic.subscriptions) == (address, 1)


async def count_subscriptions(panel: PagePanel) -> int:
    """Return the number of open subscriptions."""
    return panel.traffic.subscriptions


async def test_page_that_is_left_unsubscribes(page, new_panel, quick_house):
    await new_panel.open()
    await wait_for(lambda: count_subscriptions(new_panel), lambda open_ones: open_ones == 1)
    await page.evaluate("history.pushState(null, '', '/profile')")
    await page.evaluate("window.dispatchEvent(new CustomEvent('location-changed'))")

    assert await wait_for(lambda: count_subscriptions(new_panel), lambda open_ones: open_ones == 0) == 0


async def recall(client: Client, words: str) -> list[str]:
    """Return the facts with these words that a person may see, as the action does."""
    found = await perform_action(client, "recall", query=words, kinds=["fact"])
    return [each["text"] for each in found["memories"]]


async def test_fact_is_corrected(panel, quick_house):
    await perform_action(quick_house.client, "remember", text="My favourite fish is herring from the North Sea")
    await panel.open("memory")
    await (await panel.open_fact("herring")).get_by_role("button", name="Correct").click()
    await panel.main.get_by_label("Corrected text").fill("My favourite fish is herring from the Baltic Sea")
    await panel.press("Save")
    await panel.done("Done.")

    assert await recall(quick_house.client, "herring") == ["My favourite fish is herring from the Baltic Sea"]


async def test_preview_of_forgetting_shows_what_goes_and_then_it_goes(panel, quick_house):
    await perform_action(quick_house.client, "remember", text="I have a red canoe")
    await panel.open("memory")
    await (await panel.open_fact("canoe")).get_by_role("button", name="Forget").click()
    await expect(panel.dialog).to_contain_text("I have a red canoe")
    await expect(panel.dialog).to_contain_text("facts: 1")
    await panel.answer("Forget")
    await panel.done("Done.")

    assert await recall(quick_house.client, "canoe") == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guest(shared_house) -> AsyncIterator[House]:
    """Yield the home as a person sees it who is no administrator."""
    async with PersonClients(shared_house.home_assistant) as people:
        yield replace(shared_house, client=await people.get_client("Berta"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guest_panel(browser, guest) -> AsyncIterator[PagePanel]:
    """Yield the page in the browser of that person."""
    context = await logged_in(browser, guest.client)
    panel = PagePanel(await context.new_page(), guest.url)
    yield panel
    await context.close()
    assert panel.traffic.take_complaints() == []


async def test_person_without_rights_sees_their_own_conversation_and_no_other(guest_panel, guest, quick_house):
    await quick_house.say("consider that the treasure is below the oak", "of the owner")
    await guest.say("consider that the cake is in the oven", "of the guest")
    await guest_panel.open("conversation")

    await expect(guest_panel.exchanges).to_contain_text(["the cake is in the oven"])
    names = await guest_panel.locator.locator(".list").inner_text()
    # conversations of automations are everybody's
    assert "Berta" in names
    assert "consider that the cake is in the oven" in names
    assert "Demo" not in names


async def test_person_without_rights_forgets_one_of_their_facts_and_sees_no_other(guest_panel, guest, quick_house):
    await perform_action(quick_house.client, "remember", text="I buried the treasure")
    await perform_action(guest.client, "remember", text="I baked the cake")
    await perform_action(guest.client, "remember", text="My bread is fresh")
    await guest_panel.open("memory")
    await expect(guest_panel.fact("My bread is fresh")).to_be_visible()
    await expect(guest_panel.main).not_to_contain_text("treasure")
    await (await guest_panel.open_fact("cake")).get_by_role("button", name="Forget").click()
    await guest_panel.answer("Forget")
    await guest_panel.done("Done.")

    assert await recall(guest.client, "bread cake") == ["My bread is fresh"]


async def test_person_without_rights_finds_the_page_in_the_sidebar_and_has_two_tabs(guest_panel, guest):
    page = guest_panel.page
    await page.goto(f"{guest.url}/profile")
    await page.locator("ha-sidebar").get_by_text("Windowed Conversation").click()
    await guest_panel.loaded()

    assert await guest_panel.locator.locator("nav.tabs a").all_inner_texts() == ["Memory", "What it did"]


async def test_person_without_rights_sees_their_own_last_turns_only(guest_panel, guest, quick_house):
    await quick_house.say("consider that the silver is below the floor", "of the owner")
    await guest.say("consider that the sugar is in the jar", "of the guest")
    await guest_panel.open("turns")

    await expect(guest_panel.main).to_contain_text("the sugar is in the jar")
    await expect(guest_panel.main).not_to_contain_text("silver")


async def test_three_clicks_show_a_person_without_rights_what_is_known_and_why_it_was_done(guest_panel, guest):
    await guest.say("remember that my honey is in the jar", "of the guest")
    await guest.say("consider that the honey is golden", "of the guest")
    page = guest_panel.page
    await page.goto(f"{guest.url}/profile")

    await page.locator("ha-sidebar").get_by_text("Windowed Conversation").click()
    await expect(guest_panel.fact("My honey is in the jar")).to_be_visible()
    await guest_panel.locator.get_by_role("link", name="What it did").click()
    await guest_panel.open_turn("the honey is golden")

    await expect(guest_panel.main.locator(".details")).to_contain_text("Home Assistant has no sentence for this")


async def test_three_clicks_show_the_owner_the_cost_of_a_month(panel, quick_house):
    await quick_house.say("consider that the honey is golden", "of the owner")
    await panel.page.goto(f"{quick_house.url}/profile")

    await panel.page.locator("ha-sidebar").get_by_text("Windowed Conversation").click()
    await panel.locator.get_by_role("link", name="Costs").click()
    await panel.main.get_by_label("Time span").select_option("Last 12 months")

    await expect(panel.main.locator(".names span").last).not_to_be_empty()
    await expect(panel.main).to_contain_text("By month")


async def attempt(client: Client, command: str, **fields: Any) -> str:
    """Return the answer to a command of the page as text, or why it was refused."""
    try:
        return json.dumps(await client.send_command(f"{DOMAIN}/{command}", **fields))
    except RefusedError as refusal:
        return str(refusal)


async def test_commands_written_by_hand_neither_read_nor_change_what_is_of_another_person(guest, quick_house):
    owner = (await quick_house.client.send_command("auth/current_user"))["id"]
    fact = (await perform_action(quick_house.client, "remember", text="I hid the pearls"))["id"]
    await quick_house.say("consider that the pearls are in the piano", "secret")
    turn = (await quick_house.client.send_command(f"{DOMAIN}/turns"))["turns"][0]["turn_id"]
    before = [await read(quick_house, "secret", "export"), await recall(quick_house.client, "pearls")]
    secret = {"entity_id": quick_house.account.agent_id, "conversation_id": "secret"}
    attempts = [
        *[await attempt(guest.client, name, **secret) for name in ("conversation", "delete_conversation")],
        *[await attempt(guest.client, name, **secret) for name in ("summarize_conversation", "get_conversation")],
        await attempt(guest.client, "get_conversation", content="export", **secret),
        await attempt(guest.client, "exchange", number=0, **secret),
        await attempt(guest.client, "exchange", number=1, **secret),
        await attempt(guest.client, "tag_exchange", exchange=1, add=["important"], **secret),
        await attempt(guest.client, "list_turns", filename="media/turns.jsonl"),
        await attempt(guest.client, "get_turn", turn_id=turn),
        await attempt(guest.client, "get_turn", turn_id=turn, request=1),
        await attempt(guest.client, "list_turns", person=owner),
        await attempt(guest.client, "recall", person=owner),
        await attempt(guest.client, "remember", text="The pearls are glass", person=owner),
        await attempt(guest.client, "forget", ids=[fact]),
        await attempt(guest.client, "forget", everything=True, person=owner),
        await attempt(guest.client, "forget", everything=True, everyone=True),
        await attempt(guest.client, "export_memories"),
        await attempt(guest.client, "turns", turn_id=turn, background=True),
        *[await attempt(guest.client, name) for name in ("conversations", "turns", "about_me", "list_turns")],
        *[await attempt(guest.client, name) for name in ("week", "costs", "health", "model_commands")],
    ]

    assert [answer for answer in attempts if "pearls" in answer or '"conversation_id": "secret"' in answer] == []
    assert [await read(quick_house, "secret", "export"), await recall(quick_house.client, "pearls")] == before


async def test_markup_that_is_said_stays_text(panel, quick_house):
    await open_conversation(panel, quick_house, "<img src=x onerror=alert(2)>", *HOSTILE_WORDS)

    assert await panel.said() == [*HOSTILE_WORDS]
    assert await panel.locator.locator("img, script, iframe, strong, a[href^='javascript']").count() == 0


async def test_markup_that_a_model_answers_stays_text(panel, quick_house):
    quick_house.model.script(call("HassTurnOn", name=HOSTILE_WORDS[0]), words(HOSTILE_WORDS[1] + HOSTILE_WORDS[0]))
    await open_conversation(panel, quick_house, "hostile answer", "what would you write on a wall?")
    # a picture has been taken out of the answer, and the tool's argument is shown as it is
    await expect(panel.exchanges).to_contain_text("alert(1)")
    await panel.press("Show all")
    await panel.follow("turns")
    await panel.open_turn("what would you write")
    await panel.open_all()

    assert await panel.locator.locator("img, script, iframe").count() == 0


async def test_page_shows_a_megabyte(panel, quick_house):
    await open_conversation(panel, quick_house, "a megabyte", "my name is Ada", "<b>herring</b> " * 70_000)
    await panel.follow("turns")
    await panel.open_turn("herring")
    await panel.open_all()
    await panel.follow("conversation")

    await expect(panel.exchanges.first).to_be_visible()
