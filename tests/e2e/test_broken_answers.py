"""Tests for answers that fail, in Home Assistant's own dialog: the error is shown once, after the text."""

from tests.e2e.browser import AssistDialog, save_screenshot

UNREACHABLE = "The model's server cannot be reached right now."
STORY = "tell me a story about the sea"


async def test_a_failure_is_shown_once_after_words_and_without_them(page, house):
    dialog = AssistDialog(page)
    await dialog.open(house.url)
    greeting = await dialog.messages()
    for fault, options in (("cut_mid_stream", {"after_words": 5}), ("503", {})):
        house.model.fault(fault, **options)
        await dialog.say(STORY)
        await dialog.answer()
    await save_screenshot(page, "failures")
    assert (await dialog.messages())[len(greeting) :] == [
        STORY,
        f"Once upon a time there …\n\n{UNREACHABLE}",
        STORY,
        UNREACHABLE,
    ]
