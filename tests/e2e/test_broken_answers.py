"""An answer that breaks off, in Home Assistant's own dialog: the failure is shown once, after the words."""

from tests.e2e.browser import AssistDialog, save_screenshot

UNREACHABLE = "The model's server cannot be reached right now."


async def test_an_answer_that_breaks_off_is_shown_once_with_the_failure_on_its_own(page, house):
    dialog = AssistDialog(page)
    await dialog.open(house.url)
    greeting = await dialog.messages()
    house.model.fault("cut_mid_stream", after_words=5)
    await dialog.say("tell me a story about the sea")
    await dialog.answer()
    await save_screenshot(page, "broken-off")
    assert (await dialog.messages())[len(greeting) :] == [
        "tell me a story about the sea",
        f"Once upon a time there …\n\n{UNREACHABLE}",
    ]


async def test_a_failure_without_words_is_shown_once(page, house):
    dialog = AssistDialog(page)
    await dialog.open(house.url)
    greeting = await dialog.messages()
    house.model.fault("503")
    await dialog.say("tell me a story about the sea")
    await dialog.answer()
    await save_screenshot(page, "failure")
    assert (await dialog.messages())[len(greeting) :] == ["tell me a story about the sea", UNREACHABLE]
