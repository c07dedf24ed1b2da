"""Problems of an agent's windows appear under Repairs and at the sensor, say what changed, and disappear again."""

from collections.abc import Callable
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.agents.cache_health import UNEXPLAINED_MISSES
from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_MAX_WINDOWS, CONF_TRIM_SHARE, DOMAIN
from demo.model_server import ModelServer

from .actions import act
from .conftest import LONG, Say, SetUp

# So long that losing them is more than a cache may lose.


@pytest.fixture
def reports(home: HomeAssistant) -> Callable[[], dict[str, dict[str, str] | None]]:
    """Return what lists the placeholders of our repair issues by their translation keys."""

    def reports() -> dict[str, dict[str, str] | None]:
        issues = [issue for (domain, _), issue in ir.async_get(home).issues.items() if domain == DOMAIN]
        assert {issue.severity for issue in issues} <= {ir.IssueSeverity.WARNING}
        return {str(issue.translation_key): issue.translation_placeholders for issue in issues}

    return reports


@pytest.fixture
def warnings(home: HomeAssistant) -> Callable[[], list[dict[str, Any]]]:
    """Return what reads the sensor's attribute."""

    def warnings() -> list[dict[str, Any]]:
        state = home.states.get("sensor.ada_window_utilization")
        assert state is not None
        return state.attributes["warnings"]

    return warnings


async def test_nothing_is_wrong_with_a_conversation_of_commands_and_questions(
    set_up: SetUp, say: Say, reports, warnings
) -> None:
    await set_up(prompt=LONG)

    for text in ("turn on the kitchen light", "my name is Ada", "I would like the hall light switched on", "who am I?"):
        await say(text)

    assert reports() == {}
    assert warnings() == []


async def test_cache_that_is_lost_to_changing_instructions_is_told_and_goes(
    home: HomeAssistant, set_up: SetUp, say: Say, reports, warnings
) -> None:
    home.states.async_set("sensor.weather", "sunny")
    await set_up(prompt="It is {{ states('sensor.weather') }}. " + LONG)
    await say("my name is Ada")
    await say("who am I?")
    assert reports() == {}

    home.states.async_set("sensor.weather", "rainy")
    await say("who am I?")

    (warning,) = warnings()
    assert (warning["warning"], warning["changed"]) == ("cache_collapsed", ["instructions"])
    assert warning["expected_tokens"] > warning["cached_tokens"] + 2000
    told = {key: f"{warning[f'{key}_tokens']:,}" for key in ("expected", "cached")}
    assert reports() == {"cache_lost_to_instructions": {"agent": "Ada", **told}}
    await say("who am I?")
    assert (reports(), warnings()) == ({}, [])


async def test_cache_that_is_lost_to_changing_entities_is_told(
    home: HomeAssistant, set_up: SetUp, say: Say, reports, warnings
) -> None:
    for number in range(120):
        name = f"input_boolean.lamp_{number}"
        home.states.async_set(name, "on", {"friendly_name": f"lamp number {number} on the far side of the garden"})
        async_expose_entity(home, "conversation", name, should_expose=True)
    await set_up()
    await say("my name is Ada")
    await say("who am I?")

    async_expose_entity(home, "conversation", "input_boolean.kitchen", should_expose=False)
    await say("who am I?")

    assert reports().keys() == {"cache_lost_to_entities"}
    assert warnings()[0]["changed"] == ["entities"]


async def test_cache_that_is_lost_to_changed_tools_is_told(
    home: HomeAssistant, set_up: SetUp, say: Say, reports, warnings
) -> None:
    entry = await set_up(prompt=LONG)
    await say("my name is Ada")
    await say("who am I?")

    (subentry,) = entry.subentries.values()
    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, "llm_hass_api": []})
    await home.async_block_till_done()
    await say("who am I?")

    assert {"cache_lost_to_tools"} <= reports().keys()
    assert "tools" in warnings()[0]["changed"]


async def test_cache_that_a_server_loses_by_itself_is_told_when_it_goes_on_so(
    set_up: SetUp, say: Say, model_server: ModelServer, reports, warnings
) -> None:
    await set_up(prompt=LONG)
    await say("my name is Ada")
    await say("who am I?")

    for _ in range(UNEXPLAINED_MISSES):
        assert reports() == {}
        model_server.cache.clear()
        await say("who am I?")

    assert reports().keys() == {"cache_lost"}
    assert warnings()[0]["changed"] == []
    await say("who am I?")
    assert (reports(), warnings()) == ({}, [])


async def test_nobody_is_warned_of_a_trim(set_up: SetUp, say: Say, reports, figure) -> None:
    await set_up(prompt=LONG, **{CONF_HISTORY_TOKENS: 300})

    for number in range(15):
        await say(f"consider that the locker number {number} is the {number} times seventh on the left")
        assert reports() == {}

    assert int(figure("evicted_messages")) > 0


@pytest.mark.long
async def test_window_that_stays_full_is_told_until_there_is_room(
    home: HomeAssistant, set_up: SetUp, say: Say, reports, warnings
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 900, CONF_TRIM_SHARE: 0})
    for number in range(32):
        await say(f"consider that {number} is odd")

    assert reports().keys() == {"window_stays_full"}
    assert reports()["window_stays_full"]["window"] == "900"
    assert warnings()[0]["warning"] == "window_stays_full"

    home.config_entries.async_update_entry(entry, options={CONF_HISTORY_TOKENS: 8000})
    await home.async_block_till_done()
    assert (reports(), warnings()) == ({}, [])


@pytest.mark.long
async def test_window_of_important_exchanges_stays_full(home: HomeAssistant, set_up: SetUp, say: Say, reports) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 900})
    for number in range(32):
        await say(f"consider that {number} is odd")
        await act(home, "tag_exchange", add=["important"])

    assert reports().keys() == {"window_stays_full"}
    assert int(reports()["window_stays_full"]["protected"]) > 850


async def test_conversations_that_go_too_early_are_told_until_more_are_kept(
    home: HomeAssistant, set_up: SetUp, say: Say, reports, warnings
) -> None:
    entry = await set_up(options={CONF_MAX_WINDOWS: 2})
    await say("my name is Ada", "one")
    await say("my name is Ada", "two")
    assert reports() == {}

    await say("my name is Ada", "three")

    assert reports() == {"too_few_conversations": {"agent": "Ada", "conversations": "1", "most": "2"}}
    assert warnings() == [{"warning": "too_few_conversations", "dropped_early": 1}]

    home.config_entries.async_update_entry(entry, options={CONF_MAX_WINDOWS: 3})
    await home.async_block_till_done()
    assert (reports(), warnings()) == ({}, [])


async def test_what_is_wrong_is_withdrawn_with_the_agent(home: HomeAssistant, set_up: SetUp, say: Say, reports) -> None:
    entry = await set_up(options={CONF_MAX_WINDOWS: 1})
    await say("my name is Ada", "one")
    await say("my name is Ada", "two")
    assert len(reports()) == 1

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert reports() == {}


async def test_warnings_hold_nothing_that_was_said(
    home: HomeAssistant, set_up: SetUp, say: Say, reports, warnings
) -> None:
    home.states.async_set("sensor.weather", "sunny")
    await set_up(prompt="It is {{ states('sensor.weather') }}. " + LONG)
    await say("my name is Pelican")
    await say("my name is Pelican")

    home.states.async_set("sensor.weather", "rainy")
    await say("my name is Pelican")

    assert len(warnings()) == 1
    assert "Pelican" not in str((reports(), warnings()))
    assert "sunny" not in str((reports(), warnings()))
