"""Tests for the agent in Home Assistant's own frontend, in a real browser."""

from playwright.async_api import expect
import pytest

from tests.e2e.browser import AgentForm, AssistDialog, DevicePage, save_screenshot
from tests.e2e.house import wait_for
from tests.e2e.page import PagePanel


async def test_text_appears_in_the_dialog_before_the_answer_is_complete(page, house):
    dialog = AssistDialog(page)
    await dialog.open(house.url)
    await dialog.say("tell me a story in 60 words")
    *growing, whole = await dialog.answer()
    await save_screenshot(page, "dialog")
    assert len({look for look in growing if look}) > 10
    assert all(whole.startswith(look) for look in growing)


async def test_a_follow_up_in_the_dialog_is_the_same_conversation(page, house):
    dialog = AssistDialog(page)
    await dialog.open(house.url)
    await dialog.say("my name is Ada")
    await dialog.answer()
    await dialog.say("what is my name?")
    assert (await dialog.answer())[-1] == "Your name is Ada."
    await save_screenshot(page, "follow-up")


@pytest.mark.parametrize("text", ["turn on the kitchen light", "tell me a story in 20 words"])
async def test_details_of_an_answer_in_the_dialog_lead_to_its_reason(page, house, text):
    dialog, panel = AssistDialog(page), PagePanel(page, house.url)
    await dialog.open(house.url)
    await dialog.say(text)
    answer = (await dialog.answer())[-1]
    await dialog.follow("Why this answer?")

    await expect(panel.main.locator(".turn[aria-expanded=true] .said")).to_have_text(text)
    await expect(panel.main.locator(".details .message")).to_have_text(answer)


async def test_details_of_an_answer_of_memory_lead_to_what_it_knows(page, house):
    dialog, panel = AssistDialog(page), PagePanel(page, house.url)
    await dialog.open(house.url)
    await dialog.say("remember that my canoe is red")
    await dialog.answer()
    await dialog.follow("What it knows about me")

    await expect(panel.fact("canoe")).to_be_visible()


async def test_the_sensors_change_on_the_device_page_while_one_talks(page, house):
    device = DevicePage(page)
    await device.open(house.url, house.account.device_id)
    before = await device.figures()
    await house.say("my name is Ada")
    turns = house.sensors["turns_model"]
    counted = await house.wait_for_sensor("turns_model", lambda count: f"{count} turns" != before[turns])
    after = await wait_for(device.figures, lambda shown: shown[turns] != before[turns])
    await save_screenshot(page, "device")
    assert int(after[turns].removesuffix(" turns")) >= int(counted)
    assert set(after) == set(house.sensors.values())


async def test_what_few_change_of_an_agent_is_in_closed_sections_and_a_mistake_is_told_beside_them(page, house):
    form = AgentForm(page)
    await form.open(house.url)
    await expect(form.field("Maximum tokens to return in response")).to_be_hidden()
    await form.toggle("Advanced")
    await form.field("Maximum tokens to return in response").fill("5")
    await form.toggle("Advanced")
    await form.submit()
    await expect(form.error_alerts).to_contain_text(
        "Maximum tokens to return in response: enter a number from 100 to 2,000,000."
    )
    await expect(form.error_alerts).to_be_in_viewport()
    await save_screenshot(page, "form-mistake")


async def test_a_field_in_a_section_of_the_agent_s_form_is_kept(page, house):
    form = AgentForm(page)
    await form.open(house.url)
    await form.toggle("Advanced")
    await form.field("Maximum tokens to return in response").fill("1200")
    await save_screenshot(page, "form")
    await form.submit()
    await form.done()
    await form.open(house.url)
    await form.toggle("Advanced")
    await expect(form.field("Maximum tokens to return in response")).to_have_value("1200")
    await house.change_agent(max_answer_tokens=1000)
