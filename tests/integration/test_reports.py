"""Issues about a window: each appears, and disappears when there is nothing left to do."""

from collections.abc import Callable

from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_HISTORY_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
    DOMAIN,
)

from .conftest import Say, SetUp, speech

SMALL = {CONF_HISTORY_TOKENS: 100}
LARGE = {CONF_HISTORY_TOKENS: 8000}
LONG = "tell me a story about the sea in 300 words"


@pytest.fixture
def reports(home: HomeAssistant) -> Callable[[], list[ir.IssueEntry]]:
    """Return what lists our repair issues."""

    def reports() -> list[ir.IssueEntry]:
        return [issue for (domain, _), issue in ir.async_get(home).issues.items() if domain == DOMAIN]

    return reports


async def test_window_that_one_exchange_overfills_is_reported(set_up: SetUp, say: Say, reports, figure) -> None:
    entry = await set_up(options=SMALL)

    await say(LONG)

    (report,) = reports()
    assert report.issue_id == f"window_too_small_{next(iter(entry.subentries))}"
    assert report.translation_key == "window_too_small"
    assert report.severity is ir.IssueSeverity.WARNING
    assert not report.is_fixable
    assert report.translation_placeholders == {"agent": "Ada", "needed": figure("window_tokens"), "window": "100"}


async def test_window_that_is_only_full_is_not_reported(set_up: SetUp, say: Say, reports, figure) -> None:
    await set_up(options=SMALL)

    for _ in range(10):
        await say("who am I?")

    assert int(figure("evicted_messages")) > 0
    assert reports() == []


async def test_report_goes_when_the_next_exchange_fits(set_up: SetUp, say: Say, reports) -> None:
    await set_up(options=SMALL)
    await say(LONG)

    await say("who am I?")

    assert reports() == []


async def test_report_goes_when_the_window_is_made_larger(
    home: HomeAssistant, set_up: SetUp, say: Say, reports
) -> None:
    entry = await set_up(options=SMALL)
    await say(LONG)

    home.config_entries.async_update_entry(entry, options=LARGE)

    assert reports() == []


async def test_report_comes_when_the_window_is_made_smaller(
    home: HomeAssistant, set_up: SetUp, say: Say, reports
) -> None:
    entry = await set_up(options=LARGE)
    await say(LONG)
    assert reports() == []

    home.config_entries.async_update_entry(entry, options=SMALL)

    assert len(reports()) == 1


async def test_report_goes_when_the_agent_gets_a_larger_window(
    home: HomeAssistant, set_up: SetUp, say: Say, reports
) -> None:
    entry = await set_up(options=SMALL)
    await say(LONG)
    (subentry,) = entry.subentries.values()

    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, **LARGE})
    await home.async_block_till_done()

    assert reports() == []


async def test_model_that_is_too_small_for_prompt_and_entities_is_reported_with_the_numbers(
    home: HomeAssistant, set_up: SetUp, say: Say, reports
) -> None:
    await set_up(**{CONF_CONTEXT_TOKENS: 1000, CONF_MAX_ANSWER_TOKENS: 500})

    assert "Ada" in speech(await say("my name is Ada"))

    (report,) = reports()
    told = report.translation_placeholders
    assert report.translation_key == "model_too_small"
    assert (told["agent"], told["entities"], told["context"]) == ("Ada", "2", "1,000")
    assert int(told["needed"].replace(",", "")) > 1000


async def test_report_goes_when_the_model_is_large_enough(
    home: HomeAssistant, set_up: SetUp, say: Say, reports
) -> None:
    entry = await set_up(**{CONF_CONTEXT_TOKENS: 1000})
    await say("my name is Ada")
    (subentry,) = entry.subentries.values()

    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, CONF_CONTEXT_TOKENS: 100_000})
    await home.async_block_till_done()
    await say("what is my name?")

    assert reports() == []
