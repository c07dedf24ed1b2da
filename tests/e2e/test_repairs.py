"""Tests for the repair flows in the browser: another model is chosen, and the settings of an agent are opened."""

from collections.abc import AsyncIterator
from functools import partial

from playwright.async_api import Page, expect
import pytest_asyncio

from demo.setup_agent import DOMAIN
from tests.e2e.browser import AgentForm, save_screenshot
from tests.e2e.house import House, wait_for


async def open_issue(page: Page, house: House, title: str) -> None:
    """Go to Repairs, and select the issue whose title has this text."""
    await page.goto(f"{house.url}/config/repairs")
    await page.locator("ha-config-repairs").get_by_text(title).click()


async def list_issues(house: House) -> list[str]:
    """Return the ids of the integration's issues that Home Assistant shows."""
    found = await house.client.send_command("repairs/list_issues")
    return [issue["issue_id"] for issue in found["issues"] if issue["domain"] == DOMAIN]


@pytest_asyncio.fixture(loop_scope="session")
async def restored(house: House) -> AsyncIterator[House]:
    """Yield the home, and restore the settings of the agent at the end."""
    yield house
    house.model.reset()
    await house.change_agent(model="scripted", max_answer_tokens=1_000)
    await house.say("who am I?")


async def test_another_model_is_chosen_and_the_conversation_continues(page: Page, restored: House) -> None:
    first = await restored.say("my name is Ada")
    restored.model.change(models=("newer",))
    await restored.say("tell me something about the sea", first.conversation_id)

    await open_issue(page, restored, "is no longer available")
    form = page.locator("step-flow-form")
    await expect(form).to_contain_text("there is no such model")
    await expect(form).to_contain_text("Choose another one.")
    await save_screenshot(page, "repair-model")
    # the only other model of the server
    await expect(form.locator("ha-selector-select")).to_contain_text("newer")
    await page.get_by_role("button", name="Submit").click()
    await page.locator("step-flow-create-entry").wait_for()
    await restored.wait_until_loaded()

    answer = await restored.say("what is my name?", first.conversation_id)
    assert await list_issues(restored) == []
    assert (answer.speech, restored.model.requests[-1].body["model"]) == ("Your name is Ada.", "newer")


async def test_settings_of_an_agent_whose_model_is_too_small_are_opened(page: Page, restored: House) -> None:
    await restored.change_agent(context_tokens=1_000, max_answer_tokens=500)
    await restored.say("tell me something about the sea")

    await open_issue(page, restored, "is too small")
    menu = page.locator("step-flow-menu")
    await expect(menu).to_contain_text("Facts from memory:")
    await expect(menu).not_to_contain_text("{")
    await save_screenshot(page, "repair-size")
    await menu.get_by_text("Open the settings of the agent").click()
    form = AgentForm(page)
    await form.toggle("Advanced")
    await save_screenshot(page, "repair-settings")
    await form.field("Context size").fill("")
    await form.submit()
    await form.done()

    await wait_for(partial(list_issues, restored), lambda found: not found)
