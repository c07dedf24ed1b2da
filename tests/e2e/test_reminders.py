"""Tests for reminders with a separate Home Assistant: it is killed before one is due, and a browser edits the list."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from playwright.async_api import expect
import pytest_asyncio

from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.voice import SATELLITE_ENTITY_ID
from tests.e2e.browser import save_screenshot
from tests.e2e.house import House, wait_for
from tests.e2e.test_restart import run_house

_LIST = "todo.reminders"
_LIGHT = "light.kitchen_light"
_DELIVERED = "gave a reminder"


@dataclass(slots=True)
class Announced:
    """The last announcement after each start, and the rows of the activity log."""

    announcements: list[str]
    rows: list[str]


async def _add(house: House, text: str, seconds: float) -> None:
    due = datetime.now(UTC) + timedelta(seconds=seconds)
    await house.client.call_action("todo.add_item", _LIST, item=text, due_datetime=due.isoformat())


async def _wait_for_announcement(house: House, text: str) -> str:
    async def fetch_answer() -> str:
        state = await house.client.get(f"/api/states/{SATELLITE_ENTITY_ID}")
        return str(state["attributes"].get("answer", ""))

    return await wait_for(fetch_answer, lambda answer: text in answer)


async def _fetch_rows(house: House, since: datetime) -> list[str]:
    rows = await house.client.send_command("logbook/get_events", start_time=since.isoformat(), entity_ids=[_LIST])
    return [row["message"] for row in rows if "message" in row]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def announced(tmp_path_factory) -> Announced:
    """Kill Home Assistant while a reminder waits, start it, kill it after the reminder, and start it again."""
    home_assistant, since = (
        HomeAssistantProcess(tmp_path_factory.mktemp("reminded"), find_free_port()),
        datetime.now(UTC),
    )
    announcements = []
    async with ModelServer() as model:
        async with run_house(home_assistant, model, []) as house:
            await _add(house, "water the plants", 5)
            await home_assistant.kill()
        async with run_house(home_assistant, model, []) as house:
            announcements.append(await _wait_for_announcement(house, "water the plants"))
            await wait_for(lambda: _fetch_rows(house, since), lambda rows: _DELIVERED in rows)
            await home_assistant.kill()
        async with run_house(home_assistant, model, []) as house:
            await _add(house, "feed the cat", 3)
            announcements.append(await _wait_for_announcement(house, "feed the cat"))
            rows = await wait_for(lambda: _fetch_rows(house, since), lambda rows: rows.count(_DELIVERED) > 1)
    return Announced(announcements, rows)


async def test_a_reminder_outlives_a_kill_and_comes_once(announced):
    assert announced.announcements[0].startswith("A reminder")
    assert announced.announcements[1] == "A reminder: feed the cat."
    assert announced.rows.count(_DELIVERED) == 2


@pytest_asyncio.fixture(loop_scope="session")
async def automation(house: House) -> AsyncIterator[None]:
    """Add an automation that turns on the kitchen light with each reminder."""
    automation = {
        "alias": "Reminded",
        "triggers": [{"trigger": "event", "event_type": "windowed_conversation_reminder"}],
        "actions": [{"action": "light.turn_on", "target": {"entity_id": _LIGHT}}],
    }
    await house.client.call_action("light.turn_off", _LIGHT)
    await house.client.post("/api/config/automation/config/reminded", automation)
    await wait_for(house.client.fetch_states, lambda states: "automation.reminded" in states)
    yield
    await house.client.delete("/api/config/automation/config/reminded")


async def test_an_item_that_was_added_and_edited_in_the_browser_is_spoken_when_it_is_due(page, house, automation):
    await page.goto(f"{house.url}/todo?entity_id={_LIST}")
    await page.get_by_placeholder("Add item").fill("call Ada")
    await page.keyboard.press("Enter")
    await page.get_by_text("call Ada").click()
    await page.get_by_role("textbox", name="Task name").fill("call Grace")
    await page.get_by_role("button", name="Save item").click()
    await expect(page.get_by_text("call Grace")).to_be_visible()
    await save_screenshot(page, "reminders")
    due = datetime.now(UTC) + timedelta(seconds=2)
    await house.client.call_action("todo.update_item", _LIST, item="call Grace", due_datetime=due.isoformat())

    assert await _wait_for_announcement(house, "call Grace") == "A reminder: call Grace."
    assert await wait_for(lambda: house.get_state(_LIGHT), lambda state: state == "on")

    await house.client.call_action("todo.remove_item", _LIST, item="call Grace")
    await expect(page.get_by_text("call Grace")).to_be_hidden()
