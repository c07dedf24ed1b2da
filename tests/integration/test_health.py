"""Tests that window problems appear under Repairs and in a sensor with their cause, and disappear when solved."""

from collections.abc import Callable
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_TRIM_SHARE, DOMAIN

from .conftest import LONG, SayFn, SetUpFn


@pytest.fixture
def issues(home: HomeAssistant) -> Callable[[], dict[str, dict[str, str] | None]]:
    """Return a function that lists the placeholders of our repair issues by their translation keys."""

    def issues() -> dict[str, dict[str, str] | None]:
        issues = [issue for (domain, _), issue in ir.async_get(home).issues.items() if domain == DOMAIN]
        assert {issue.severity for issue in issues} <= {ir.IssueSeverity.WARNING}
        return {str(issue.translation_key): issue.translation_placeholders for issue in issues}

    return issues


@pytest.fixture
def shown(home: HomeAssistant) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that returns the `issues` attribute of the window utilization sensor."""

    def shown() -> list[dict[str, Any]]:
        state = home.states.get("sensor.ada_last_conversation_fill_level")
        assert state is not None
        return state.attributes["issues"]

    return shown


async def test_nothing_is_wrong_with_a_conversation_of_commands_and_questions(
    set_up: SetUpFn, say: SayFn, issues, shown
) -> None:
    await set_up(prompt=LONG)

    for text in ("turn on the kitchen light", "my name is Ada", "I would like the hall light switched on", "who am I?"):
        await say(text)

    assert issues() == {}
    assert shown() == []


async def test_trim_raises_no_issue(set_up: SetUpFn, say: SayFn, issues, get_agent) -> None:
    entry = await set_up(prompt=LONG, options={CONF_HISTORY_TOKENS: 300})

    for number in range(15):
        await say(f"consider that the locker number {number} is the {number} times seventh on the left")
        assert issues() == {}

    (stats,) = get_agent(entry).windows.stats().values()
    assert stats.evicted_messages > 0


@pytest.mark.long
async def test_window_that_stays_full_is_told_until_there_is_room(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues, shown
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 900, CONF_TRIM_SHARE: 0})
    for number in range(32):
        await say(f"consider that {number} is odd")

    assert issues().keys() == {"window_stays_full"}
    assert issues()["window_stays_full"]["window"] == "900"
    assert shown()[0]["issue"] == "window_stays_full"

    home.config_entries.async_update_entry(entry, options={CONF_HISTORY_TOKENS: 8000})
    await home.async_block_till_done()
    assert (issues(), shown()) == ({}, [])
