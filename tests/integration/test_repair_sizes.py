"""Tests for the repair flow of a model that is too small: it shows what requests weigh, and opens the settings."""

from http import HTTPStatus
import re
from typing import Any

from homeassistant.const import CONF_MODEL, CONF_NAME, CONF_PROMPT
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_ROUTING,
    CONF_STATES,
)
from tests.repository_files import TEXTS, placeholders as names_in

from .actions import act
from .conftest import SayFn, SetUpFn, get_speech
from .more_agents import change_agent, remove_agent
from .repair_flows import RepairFlows
from .store_file import issues, placeholders

TEXT = TEXTS["issues"]["model_too_small"]["fix_flow"]["step"]["init"]["description"]
PARTS = ("instructions", "home", "tools", "facts", "answer")


def issue_of(entry: MockConfigEntry) -> str:
    """Return the id of the issue of an account's only agent."""
    (agent_id,) = entry.subentries
    return f"model_too_small_{agent_id}"


@pytest.fixture
async def small(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> MockConfigEntry:
    """Return an account whose agent's requests do not fit into its model, which a turn has found."""
    settings = {CONF_CONTEXT_TOKENS: 700, CONF_MAX_ANSWER_TOKENS: 500, CONF_STATES: True}
    entry = await set_up(**settings, **{CONF_ROUTING: "model_only"})
    await act(home, "remember", text="The bins go out on Friday")
    await say("my name is Ada")
    assert issues(home) == {"model_too_small"}
    return entry


async def open_settings(repairs: RepairFlows, entry: MockConfigEntry) -> Any:
    """Open the form of the agent through the flow of the issue."""
    menu = await repairs.open(issue_of(entry))
    return await repairs.open_next(await repairs.choose(menu, "settings"))


async def save(repairs: RepairFlows, form: Any, **advanced: Any) -> Any:
    """Submit the form of the agent with some changed settings."""
    settings = {CONF_CONTEXT_TOKENS: 700, CONF_MAX_ANSWER_TOKENS: 500, **advanced}
    entered = {CONF_NAME: "Ada", CONF_MODEL: "scripted", "llm_hass_api": ["assist"], CONF_ROUTING: "model_only"}
    return await repairs.submit_next(form, **entered, advanced=settings)


async def test_flow_shows_what_the_requests_weigh(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    menu = await repairs.open(issue_of(small))

    weight = (await act(home, "get_conversation", content="statistics"))["statistics"]["request"]
    shown = menu["description_placeholders"]
    assert (menu["type"], menu["menu_options"]) == ("menu", ["settings"])
    assert {part: shown[part] for part in PARTS} == {part: f"{weight[part]:,}" for part in PARTS}
    assert min(weight["instructions"], weight["home"], weight["tools"], weight["facts"]) > 0
    assert shown == shown | (placeholders(home)["model_too_small"] or {})


async def test_text_of_the_flow_has_all_parts_of_the_weight(small: MockConfigEntry, repairs: RepairFlows) -> None:
    menu = await repairs.open(issue_of(small))

    assert names_in(TEXT) >= {*PARTS, "live_context", "needed", "context"}
    assert re.findall(r"[{}]", TEXT.format(**menu["description_placeholders"])) == []


@pytest.mark.parametrize(
    ("settings", "most"), [({}, "300"), ({CONF_MEMORY: "off"}, "200"), ({CONF_STATES: False}, "150")]
)
async def test_flow_shows_the_largest_live_context_though_there_is_no_room_for_it(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows, settings: dict[str, bool], *, most: str
) -> None:
    await change_agent(home, small, **settings)

    menu = await repairs.open(issue_of(small))

    assert menu["description_placeholders"]["live_context"] == most


async def test_weight_that_is_unknown_is_a_question_mark(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    await change_agent(home, small, **{CONF_PROMPT: "{{ 1 / 0 }}"})

    menu = await repairs.open(issue_of(small))

    assert {menu["description_placeholders"][part] for part in PARTS} == {"?"}


async def test_flow_opens_the_settings_of_the_agent(small: MockConfigEntry, repairs: RepairFlows) -> None:
    menu = await repairs.open(issue_of(small))

    step = await repairs.choose(menu, "settings")
    form = await repairs.open_next(step)

    assert (step["type"], step["reason"], step["result"]["entry_id"]) == ("abort", "settings_opened", small.entry_id)
    assert (form["type"], form["step_id"]) == ("form", "agent")
    assert form["description_placeholders"]["request_weight"].startswith("A question sends about ")


async def test_issue_stays_until_the_settings_are_saved(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    form = await open_settings(repairs, small)
    found = issues(home)

    done = await save(repairs, form, **{CONF_CONTEXT_TOKENS: 100_000})

    assert (done["type"], done["reason"]) == ("abort", "reconfigure_successful")
    assert (found, issues(home)) == ({"model_too_small"}, set())


async def test_conversation_continues_after_the_fix(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows, say: SayFn
) -> None:
    await save(repairs, await open_settings(repairs, small), **{CONF_CONTEXT_TOKENS: 100_000})

    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    assert issues(home) == set()


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({CONF_MAX_ANSWER_TOKENS: 490}, {"model_too_small"}),
        ({CONF_CONTEXT_TOKENS: 710}, {"model_too_small"}),
        ({CONF_CONTEXT_TOKENS: 3_000}, set()),
        ({CONF_CONTEXT_TOKENS: 1_600, CONF_MAX_ANSWER_TOKENS: 100}, set()),
    ],
    ids=str,
)
async def test_issue_goes_only_if_requests_fit(
    home: HomeAssistant, small: MockConfigEntry, settings: dict[str, int], found: set[str]
) -> None:
    await change_agent(home, small, **settings)
    await home.async_block_till_done(wait_background_tasks=True)

    assert issues(home) == found


async def test_issue_goes_with_the_context_size_that_was_entered(home: HomeAssistant, small: MockConfigEntry) -> None:
    (subentry,) = small.subentries.values()
    data = {name: value for name, value in subentry.data.items() if name != CONF_CONTEXT_TOKENS}
    home.config_entries.async_update_subentry(small, subentry, data=data)
    await home.async_block_till_done(wait_background_tasks=True)

    assert issues(home) == set()


async def test_issue_goes_when_the_model_is_not_asked_any_more(home: HomeAssistant, small: MockConfigEntry) -> None:
    await change_agent(home, small, **{CONF_ROUTING: "local_only"})
    await home.async_block_till_done(wait_background_tasks=True)

    assert issues(home) == set()


async def test_issue_stays_after_a_reload_without_changes(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    menu = await repairs.open(issue_of(small))
    assert await home.config_entries.async_reload(small.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)

    form = await repairs.open_next(await repairs.choose(menu, "settings"))

    assert (form["step_id"], issues(home)) == ("agent", {"model_too_small"})


async def test_second_of_two_open_flows_opens_nothing_after_the_fix(
    small: MockConfigEntry, repairs: RepairFlows
) -> None:
    second = await repairs.open(issue_of(small))
    await save(repairs, await open_settings(repairs, small), **{CONF_CONTEXT_TOKENS: 100_000})

    done = await repairs.choose(second, "settings")

    assert (done["type"], done["reason"], "next_flow" in done) == ("abort", "not_possible", False)


async def test_solved_issue_has_no_flow(small: MockConfigEntry, repairs: RepairFlows) -> None:
    await save(repairs, await open_settings(repairs, small), **{CONF_CONTEXT_TOKENS: 100_000})

    assert "not found" in (await repairs.open(issue_of(small), HTTPStatus.BAD_REQUEST))["message"]


async def test_option_that_does_not_exist_is_refused(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    menu = await repairs.open(issue_of(small))

    await repairs.choose(menu, "ignore", HTTPStatus.BAD_REQUEST)

    assert issues(home) == {"model_too_small"}


async def test_nothing_is_opened_while_the_account_is_not_loaded(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    menu = await repairs.open(issue_of(small))
    await home.config_entries.async_unload(small.entry_id)

    done = [await repairs.choose(menu, "settings"), await repairs.open(issue_of(small))]

    assert [(each["type"], each["reason"]) for each in done] == [("abort", "not_possible")] * 2


async def test_nothing_is_opened_for_an_agent_that_was_removed(
    home: HomeAssistant, small: MockConfigEntry, repairs: RepairFlows
) -> None:
    menu = await repairs.open(issue_of(small))
    (agent_id,) = small.subentries
    await remove_agent(home, small, agent_id)

    done = await repairs.choose(menu, "settings")

    assert (done["reason"], issues(home)) == ("not_possible", set())
