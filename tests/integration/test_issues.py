"""Tests for the repair issues about a window: each appears, and disappears when its cause is resolved."""

from collections.abc import Callable

from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.agents.issues import async_list_issues
from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_HISTORY_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
    DOMAIN,
)

from .conftest import SayFn, SetUpFn, get_speech, start, stop
from .more_agents import change_agent

SMALL = {CONF_HISTORY_TOKENS: 100}
LARGE = {CONF_HISTORY_TOKENS: 8000}
LONG = "tell me a story about the sea in 300 words"


@pytest.fixture
def issues(home: HomeAssistant) -> Callable[[], list[ir.IssueEntry]]:
    """Return a function that lists our repair issues."""

    def issues() -> list[ir.IssueEntry]:
        return [issue for (domain, _), issue in ir.async_get(home).issues.items() if domain == DOMAIN]

    return issues


@pytest.mark.rule("repair-issues")
async def test_window_that_one_exchange_overfills_raises_an_issue(set_up: SetUpFn, say: SayFn, issues, figure) -> None:
    entry = await set_up(options=SMALL)

    await say(LONG)

    (issue,) = issues()
    assert issue.issue_id == f"window_too_small_{next(iter(entry.subentries))}"
    assert issue.translation_key == "window_too_small"
    assert issue.severity is ir.IssueSeverity.WARNING
    assert not issue.is_fixable
    assert issue.translation_placeholders == {"agent": "Ada", "needed": figure("window_tokens"), "window": "100"}


async def test_issue_goes_when_the_next_exchange_fits(set_up: SetUpFn, say: SayFn, issues) -> None:
    await set_up(options=SMALL)
    await say(LONG)

    await say("who am I?")

    assert issues() == []


async def test_issue_goes_and_comes_with_the_size_of_the_window(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues
) -> None:
    entry = await set_up(options=SMALL)
    await say(LONG)

    home.config_entries.async_update_entry(entry, options=LARGE)
    assert issues() == []

    home.config_entries.async_update_entry(entry, options=SMALL)
    assert len(issues()) == 1


async def test_model_that_is_too_small_for_prompt_and_entities_raises_an_issue_with_the_numbers(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues
) -> None:
    await set_up(**{CONF_CONTEXT_TOKENS: 1000, CONF_MAX_ANSWER_TOKENS: 500})

    assert "Ada" in get_speech(await say("my name is Ada"))

    (issue,) = issues()
    told = issue.translation_placeholders
    assert issue.translation_key == "model_too_small"
    assert (told["agent"], told["entities"], told["context"]) == ("Ada", "2", "1,000")
    assert int(told["needed"].replace(",", "")) > 1000


async def test_issue_goes_when_the_model_is_large_enough(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues
) -> None:
    entry = await set_up(**{CONF_CONTEXT_TOKENS: 1000})
    await say("my name is Ada")

    await change_agent(home, entry, **{CONF_CONTEXT_TOKENS: 100_000})
    await say("what is my name?")

    assert issues() == []


async def test_issue_of_before_a_restart_is_no_finding(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, hass_storage: dict[str, object]
) -> None:
    entry = await set_up(**{CONF_CONTEXT_TOKENS: 1000})
    await say("my name is Ada")
    (agent_id,) = entry.subentries
    found = async_list_issues(home, agent_id)
    registry = ir.async_get(home)
    await registry._store.async_save(registry._data_to_save())
    await stop(home, entry)

    await registry.async_load()
    await start(home, entry)

    assert [issue.active for issue in registry.issues.values()] == [False]
    assert (found, async_list_issues(home, agent_id)) == (["model_too_small"], [])
