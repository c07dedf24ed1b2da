"""Tests for the parts of the demo home that show the agent: a dashboard, and an automation that asks the agent."""

from datetime import UTC, datetime, timedelta
import re

from playwright.async_api import expect

from demo import dashboard
from demo.automation import save_automation
from demo.home import GOOD_NIGHT_BUTTON
from tests.e2e.browser import save_screenshot
from tests.e2e.house import wait_for

SUMS = ("turns_local", "turns_model", "turns_failed", "input_tokens", "output_tokens")


async def test_the_dashboard_shows_the_window_and_no_card_is_broken(page, house):
    await dashboard.save_dashboard(house.client, house.sensors)
    await page.goto(f"{house.url}/{dashboard.DASHBOARD_PATH}")
    await expect(page.locator("hui-gauge-card")).to_contain_text("%")
    await expect(page.locator("hui-distribution-card")).to_contain_text("Home Assistant")
    await save_screenshot(page, "dashboard")
    await expect(page.locator("hui-error-card, hui-warning")).to_have_count(0)


async def test_the_week_says_that_it_is_an_example_and_has_a_figure_for_each_sum(page, house):
    await dashboard.save_dashboard(house.client, house.sensors)
    await page.goto(f"{house.url}/{dashboard.DASHBOARD_PATH}/{dashboard.WEEK_VIEW_PATH}")
    figures = page.locator("hui-statistic-card")
    await expect(figures).to_have_text([re.compile(r"[1-9]")] * len(SUMS))
    await expect(page.locator("hui-statistics-graph-card canvas")).to_have_count(3)
    week = await house.client.send_command(
        "recorder/statistics_during_period",
        start_time=(datetime.now(UTC) - timedelta(days=7)).isoformat(),
        statistic_ids=[house.sensors[key] for key in SUMS],
        period="day",
        types=["change"],
    )
    assert [row for rows in week.values() for row in rows if row["change"] < 0] == []
    await expect(page.locator("hui-markdown-card")).to_contain_text("The past week is example data.")
    await save_screenshot(page, "week")
    await expect(page.locator("hui-error-card, hui-warning")).to_have_count(0)


async def test_a_button_has_the_agent_asked_and_its_answer_shown(house):
    await save_automation(house.client, house.account.agent_id)

    async def automations() -> list[str]:
        return [entity_id for entity_id in await house.client.fetch_states() if entity_id.startswith("automation.")]

    # Home Assistant loads the automation only after it has responded to the editor's request.
    await wait_for(automations, bool)
    await house.client.call_action("switch.turn_on", "switch.coffee_machine")
    await house.client.call_action("input_button.press", GOOD_NIGHT_BUTTON)

    async def notifications() -> list[tuple[str, str]]:
        shown = await house.client.send_command("persistent_notification/get")
        return [(each["title"], each["message"]) for each in shown if each["notification_id"] == "good_night"]

    assert await wait_for(notifications, bool) == [("Good night", "These are on: Coffee machine.")]
