"""What the demo adds to its home to show the agent: a dashboard, and an automation that asks it."""

from playwright.async_api import expect

from demo import dashboard
from demo.automation import save_automation
from demo.home import GOOD_NIGHT
from tests.e2e.browser import save_screenshot
from tests.e2e.house import wait_for


async def test_the_dashboard_shows_the_window_and_no_card_is_broken(page, house):
    await dashboard.save_dashboard(house.client, house.sensors)
    await page.goto(f"{house.url}/{dashboard.PATH}")
    await expect(page.locator("hui-gauge-card")).to_contain_text("%")
    await expect(page.locator("hui-distribution-card")).to_contain_text("Home Assistant")
    await save_screenshot(page, "dashboard")
    await expect(page.locator("hui-error-card, hui-warning")).to_have_count(0)


async def test_a_button_has_the_agent_asked_and_its_answer_shown(house):
    await save_automation(house.client, house.account.agent_id)

    async def automations() -> list[str]:
        return [entity_id for entity_id in await house.client.states() if entity_id.startswith("automation.")]

    # Home Assistant loads it after it has answered the editor
    await wait_for(automations, bool)
    await house.client.call("switch.turn_on", "switch.coffee_machine")
    await house.client.call("input_button.press", GOOD_NIGHT)

    async def notifications() -> list[tuple[str, str]]:
        shown = await house.client.command("persistent_notification/get")
        return [(each["title"], each["message"]) for each in shown if each["notification_id"] == "good_night"]

    assert await wait_for(notifications, bool) == [("Good night", "These are on: Coffee machine.")]
