"""Tests that window problems appear under Repairs and in a sensor with their cause, and disappear when solved."""

from collections.abc import Callable
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.agents.prompt_cache import UNEXPLAINED_MISS_LIMIT
from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_TRIM_SHARE, DOMAIN
from demo.model_server import ModelServer

from .conftest import LONG, SayFn, SetUpFn
from .more_agents import change_agent


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
        state = home.states.get("sensor.ada_window_utilization")
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


async def test_cache_that_is_lost_to_changing_instructions_is_told_without_their_words_and_goes(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues, shown
) -> None:
    home.states.async_set("sensor.weather", "sunny")
    await set_up(prompt="It is {{ states('sensor.weather') }}. " + LONG)
    await say("my name is Pelican")
    await say("my name is Pelican")
    assert issues() == {}

    home.states.async_set("sensor.weather", "rainy")
    await say("my name is Pelican")

    (issue,) = shown()
    assert (issue["issue"], issue["changed"]) == ("cache_lost", ["instructions"])
    assert issue["expected_tokens"] > issue["cached_tokens"] + 2000
    told = {key: f"{issue[f'{key}_tokens']:,}" for key in ("expected", "cached")}
    assert issues() == {"cache_lost": {"agent": "Ada", "changed": "Instructions", **told}}
    assert not any(word in str((issues(), shown())) for word in ("Pelican", "sunny"))
    await say("who am I?")
    assert (issues(), shown()) == ({}, [])


async def test_cache_that_is_lost_to_changing_entities_is_told(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues, shown
) -> None:
    for number in range(300):
        name = f"input_boolean.lamp_{number}"
        home.states.async_set(name, "on", {"friendly_name": f"lamp number {number} on the far side of the garden"})
        async_expose_entity(home, "conversation", name, should_expose=True)
    await set_up()
    await say("my name is Ada")
    await say("who am I?")

    async_expose_entity(home, "conversation", "input_boolean.kitchen", should_expose=False)
    await say("who am I?")

    assert issues()["cache_lost"]["changed"] == "Home"
    assert shown()[0]["changed"] == ["entities"]


async def test_cache_that_is_lost_to_changed_tools_is_told(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues, shown
) -> None:
    entry = await set_up(prompt=LONG)
    await say("my name is Ada")
    await say("who am I?")

    await change_agent(home, entry, llm_hass_api=[])
    await say("who am I?")

    assert "Tools" in issues()["cache_lost"]["changed"]
    assert "tools" in shown()[0]["changed"]


async def test_what_a_cache_is_lost_to_is_told_in_the_language_of_the_home(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, issues
) -> None:
    await home.config.async_update(language="de")
    home.states.async_set("sensor.weather", "sunny")
    entry = await set_up(prompt="It is {{ states('sensor.weather') }}. " + LONG)
    await say("my name is Ada")
    await say("who am I?")

    home.states.async_set("sensor.weather", "rainy")
    await change_agent(home, entry, llm_hass_api=[])
    await say("who am I?")

    assert issues()["cache_lost"]["changed"] == "Anweisungen, Tools, Zuhause"


async def test_cache_that_a_server_loses_by_itself_is_told_when_it_goes_on_so(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, issues, shown
) -> None:
    await set_up(prompt=LONG)
    await say("my name is Ada")
    await say("who am I?")

    for _ in range(UNEXPLAINED_MISS_LIMIT):
        assert issues() == {}
        model_server.cache.clear()
        await say("who am I?")

    assert issues()["cache_lost"]["changed"] == "None"
    assert shown()[0]["changed"] == []
    await say("who am I?")
    assert (issues(), shown()) == ({}, [])


async def test_trim_raises_no_issue(set_up: SetUpFn, say: SayFn, issues, figure) -> None:
    await set_up(prompt=LONG, **{CONF_HISTORY_TOKENS: 300})

    for number in range(15):
        await say(f"consider that the locker number {number} is the {number} times seventh on the left")
        assert issues() == {}

    assert int(figure("evicted_messages")) > 0


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
