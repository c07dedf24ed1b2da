"""Tests for the repair flow of a retired model: another model is chosen, and the conversation continues."""

import asyncio
from http import HTTPStatus
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import issue_registry as ir
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_FAMILY,
    CONF_MAX_ANSWER_TOKENS,
    CONF_PROVIDER,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_AZURE,
)
from custom_components.windowed_conversation.providers import ModelNotFound
from demo.model_server import ModelServer

from .account_kinds import AZURE_RESPONSES, Kind, kind, one_of_each_vendor
from .ai_tasks import Generate, SetUpTask
from .conftest import SayFn, SetUpFn, get_speech
from .more_agents import change_agent, remove_agent
from .repair_flows import RepairFlows
from .store_file import issues, placeholders

__all__ = ["kind"]

OLD, NEW = "scripted", "newer"


def issue_of(entry: MockConfigEntry) -> str:
    """Return the id of the issue of an account's only agent."""
    (agent_id,) = entry.subentries
    return f"model_retired_{agent_id}"


def get_data(entry: MockConfigEntry) -> dict[str, Any]:
    """Return the stored data of an account's only agent."""
    (subentry,) = entry.subentries.values()
    return {**subentry.data}


@pytest.fixture
async def account(set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an account whose agent has answered once, and whose model was then retired, which a turn has found."""
    entry = await set_up(**{CONF_ROUTING: "model_only", CONF_MAX_ANSWER_TOKENS: 700})
    await say("my name is Ada")
    model_server.change(models=(NEW, "newest"))
    await say("hello")
    return entry


async def test_retired_model_raises_an_issue_that_can_be_fixed(home: HomeAssistant, account: MockConfigEntry) -> None:
    issue = ir.async_get(home).async_get_issue(DOMAIN, issue_of(account))

    assert issue is not None
    assert (issue.is_fixable, issue.is_persistent, issue.severity) == (True, False, ir.IssueSeverity.WARNING)
    assert placeholders(home) == {"model_retired": {"agent": "Ada", "model": OLD}}


async def test_conversation_continues_with_the_chosen_model(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows, say: SayFn, *, model_server: ModelServer
) -> None:
    form = await repairs.open(issue_of(account))
    result = await repairs.submit(form, model=NEW)

    answer = get_speech(await say("what is my name?"))

    assert (form["type"], form["step_id"], result["type"]) == ("form", "model", "create_entry")
    assert answer == "Your name is Ada."
    body = model_server.requests[-1].body
    assert body["model"] == NEW
    assert ["my name is Ada" in str(each["content"]) for each in body["messages"]].count(True) == 1
    assert issues(home) == set()


async def test_other_settings_of_the_agent_stay(account: MockConfigEntry, repairs: RepairFlows) -> None:
    before = get_data(account)

    await repairs.submit(await repairs.open(issue_of(account)), model=NEW)

    assert get_data(account) == {**before, CONF_MODEL: NEW}


async def test_form_offers_the_models_that_the_server_lists(account: MockConfigEntry, repairs: RepairFlows) -> None:
    form = await repairs.open(issue_of(account))

    (field,) = form["data_schema"]
    selector = field["selector"]["select"]
    assert {NEW, "newest"} <= {*selector["options"]}
    assert OLD not in selector["options"]
    assert selector["custom_value"]


@pytest.mark.parametrize("model", ["nonsense", OLD, "  "])
async def test_model_that_the_server_does_not_have_is_refused(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows, model: str
) -> None:
    before = get_data(account)

    form = await repairs.submit(await repairs.open(issue_of(account)), model=model)

    assert (form["type"], form["errors"]) == ("form", {"model": "model_refused"})
    assert (get_data(account), issues(home)) == (before, {"model_retired"})


async def test_another_model_can_be_chosen_after_a_refused_one(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows
) -> None:
    form = await repairs.submit(await repairs.open(issue_of(account)), model="nonsense")

    result = await repairs.submit(form, model=NEW)

    assert (result["type"], get_data(account)[CONF_MODEL], issues(home)) == ("create_entry", NEW, set())


async def test_input_of_another_form_is_refused(account: MockConfigEntry, repairs: RepairFlows) -> None:
    form = await repairs.open(issue_of(account))

    await repairs.submit(form, HTTPStatus.BAD_REQUEST, deployment=NEW)

    assert get_data(account)[CONF_MODEL] == OLD


async def test_choice_is_stored_while_the_server_is_away(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows, model_server: ModelServer
) -> None:
    form = await repairs.open(issue_of(account))
    model_server.fault("500")

    result = await repairs.submit(form, model=NEW)

    assert (result["type"], get_data(account)[CONF_MODEL], issues(home)) == ("create_entry", NEW, set())


@pytest.fixture
async def account_without_key(set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an account without a key, whose server does not have the agent's model, which a turn has found."""
    entry = await set_up(account={CONF_API_KEY: None}, **{CONF_ROUTING: "model_only"})
    model_server.change(models=(NEW,))
    await say("hello")
    model_server.log.clear()
    return entry


async def test_model_of_a_server_without_a_key_is_not_tried(
    home: HomeAssistant, account_without_key: MockConfigEntry, repairs: RepairFlows, model_server: ModelServer
) -> None:
    # it may have been loaded meanwhile
    result = await repairs.submit(await repairs.open(issue_of(account_without_key)), model=OLD)

    assert [record for record in model_server.log.records if record.for_answer] == []
    assert (result["type"], get_data(account_without_key)[CONF_MODEL], issues(home)) == ("create_entry", OLD, set())


async def test_server_without_a_key_needs_the_name_of_a_model(
    account_without_key: MockConfigEntry, repairs: RepairFlows
) -> None:
    form = await repairs.submit(await repairs.open(issue_of(account_without_key)), model=" ")

    assert (form["errors"], get_data(account_without_key)[CONF_MODEL]) == ({"model": "model_refused"}, OLD)


async def test_second_of_two_open_flows_changes_nothing(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows
) -> None:
    first, second = [await repairs.open(issue_of(account)) for _ in range(2)]
    await repairs.submit(first, model=NEW)

    result = await repairs.submit(second, model="newest")

    assert (result["type"], result["reason"]) == ("abort", "not_possible")
    assert (get_data(account)[CONF_MODEL], issues(home)) == (NEW, set())


async def test_one_of_two_choices_at_once_is_stored(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows
) -> None:
    first, second = [await repairs.open(issue_of(account)) for _ in range(2)]

    results = await asyncio.gather(repairs.submit(first, model=NEW), repairs.submit(second, model="newest"))

    types = [each["type"] for each in results]
    assert sorted(types) == ["abort", "create_entry"]
    assert get_data(account)[CONF_MODEL] == (NEW, "newest")[types.index("create_entry")]
    assert issues(home) == set()


async def test_solved_issue_has_no_flow(account: MockConfigEntry, repairs: RepairFlows) -> None:
    await repairs.submit(await repairs.open(issue_of(account)), model=NEW)

    error = await repairs.open(issue_of(account), HTTPStatus.BAD_REQUEST)

    assert "not found" in error["message"]


async def test_flow_that_is_open_while_the_account_is_reloaded_still_works(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows, say: SayFn
) -> None:
    form = await repairs.open(issue_of(account))
    assert await home.config_entries.async_reload(account.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    earlier_issues = issues(home)

    await repairs.submit(form, model=NEW)

    assert (earlier_issues, issues(home)) == ({"model_retired"}, set())
    assert get_speech(await say("what is my name?")) == "Your name is Ada."


async def test_nothing_can_be_chosen_while_the_account_is_not_loaded(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows
) -> None:
    form = await repairs.open(issue_of(account))
    await home.config_entries.async_unload(account.entry_id)

    results = [await repairs.submit(form, model=NEW), await repairs.open(issue_of(account))]

    assert [(each["type"], each["reason"]) for each in results] == [("abort", "not_possible")] * 2
    assert (get_data(account)[CONF_MODEL], issues(home)) == (OLD, {"model_retired"})


async def test_nothing_can_be_chosen_for_an_agent_that_was_removed(
    home: HomeAssistant, account: MockConfigEntry, repairs: RepairFlows
) -> None:
    form = await repairs.open(issue_of(account))
    (agent_id,) = account.subentries
    await remove_agent(home, account, agent_id)

    result = await repairs.submit(form, model=NEW)

    assert (result["type"], result["reason"], issues(home)) == ("abort", "not_possible", set())


async def test_issue_goes_when_the_model_answers_again(
    home: HomeAssistant, account: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.change(models=(OLD,))

    await say("hello again")

    assert issues(home) == set()


async def test_issue_goes_when_another_model_is_chosen_in_the_settings(
    home: HomeAssistant, account: MockConfigEntry
) -> None:
    await change_agent(home, account, **{CONF_MODEL: NEW})

    assert issues(home) == set()


async def test_issue_goes_when_the_model_is_not_asked_any_more(home: HomeAssistant, account: MockConfigEntry) -> None:
    await change_agent(home, account, **{CONF_ROUTING: "local_only"})

    assert issues(home) == set()


async def test_issue_stays_when_another_setting_changes(home: HomeAssistant, account: MockConfigEntry) -> None:
    await change_agent(home, account, **{CONF_MAX_ANSWER_TOKENS: 800})

    assert issues(home) == {"model_retired"}


@pytest.mark.parametrize("fault", ["500", "429", "401", "400"])
async def test_another_error_neither_raises_nor_clears_the_issue(
    home: HomeAssistant, account: MockConfigEntry, say: SayFn, fault: str, *, model_server: ModelServer
) -> None:
    model_server.fault(fault, retry_after=0.02)
    await say("hello")
    earlier_issues = issues(home)
    ir.async_delete_issue(home, DOMAIN, issue_of(account))
    await say("hello")

    assert (earlier_issues, issues(home)) == ({"model_retired"}, set())


async def test_model_that_an_agent_has_left_during_a_turn_raises_no_issue(
    home: HomeAssistant, entry: MockConfigEntry
) -> None:
    (agent,) = entry.runtime_data.agents.values()
    old_model = agent.model
    await change_agent(home, entry, **{CONF_MODEL: NEW})

    entry.runtime_data.server.on_failed(ModelNotFound("retired"), old_model, has_begun=False)

    assert issues(home) == set()


async def test_retired_model_of_a_fallback_agent_is_named(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, repairs: RepairFlows, *, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.ada_2", "conversation.ada_3"], CONF_ROUTING: "model_only"})
    second = await set_up(account={CONF_URL: f"{model_server.url}/"})
    await set_up(account={CONF_API_KEY: "another"}, **{CONF_MODEL: NEW})
    model_server.change(models=(NEW,))

    answer = get_speech(await say("my name is Grace"))
    issue_ids = {issue_id for _, issue_id in ir.async_get(home).issues}
    await repairs.submit(await repairs.open(issue_of(second)), model=NEW)

    assert answer == "Nice to meet you, Grace."
    assert issue_of(second) in issue_ids
    assert len(issue_ids) == 2
    assert get_data(second)[CONF_MODEL] == NEW
    assert issues(home) == {"model_retired"}


@pytest.fixture
async def task(set_up_task: SetUpTask, generate: Generate, model_server: ModelServer) -> MockConfigEntry:
    """Return the account of an AI task whose model was retired, which the task has found."""
    entry = await set_up_task()
    model_server.change(models=(NEW,))
    with pytest.raises(HomeAssistantError):
        await generate()
    return entry


async def test_model_of_an_ai_task_is_replaced(
    home: HomeAssistant, task: MockConfigEntry, generate: Generate, repairs: RepairFlows
) -> None:
    earlier_issues = issues(home)

    await repairs.submit(await repairs.open(issue_of(task)), model=NEW)

    assert (earlier_issues, issues(home)) == ({"model_retired"}, set())
    assert await generate()


async def test_issue_of_an_ai_task_goes_when_its_model_answers_again(
    home: HomeAssistant, task: MockConfigEntry, generate: Generate, model_server: ModelServer
) -> None:
    earlier_issues = issues(home)
    model_server.change(models=(OLD,))

    await generate()

    assert (earlier_issues, issues(home)) == ({"model_retired"}, set())


@one_of_each_vendor
async def test_retired_model_of_each_vendor_is_replaced(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, repairs: RepairFlows, kind: Kind, *, model_server: ModelServer
) -> None:
    models = {"gemini": "gemini-2.5-flash", "anthropic": "claude-haiku-4-5"}
    new = models.get(kind.name, "gpt-4o-mini")
    entry = await set_up(account=kind.account(model_server), **{CONF_ROUTING: "model_only"})
    await say("my name is Ada")
    model_server.change(models=(new,))
    await say("hello")
    earlier_issues, fields = issues(home), dict[str, Any]({kind.model_field: new})

    await repairs.submit(await repairs.open(issue_of(entry)), **fields)

    assert (earlier_issues, issues(home)) == ({"model_retired"}, set())
    assert get_speech(await say("what is my name?")) == "Your name is Ada."


async def test_model_of_the_old_deployment_is_not_that_of_the_new_one(
    set_up: SetUpFn, say: SayFn, repairs: RepairFlows, model_server: ModelServer
) -> None:
    data = AZURE_RESPONSES.account(model_server)
    assert data[CONF_PROVIDER] == PROVIDER_AZURE
    entry = await set_up(account=data, **{CONF_ROUTING: "model_only", CONF_FAMILY: "gpt-4o"})
    model_server.change(models=(NEW,))
    await say("hello")

    form = await repairs.open(issue_of(entry))
    second_form = await repairs.submit(form, deployment=OLD, model_family="gpt-5")
    await repairs.submit(second_form, deployment=NEW)

    assert [field["name"] for field in form["data_schema"]] == ["deployment", "model_family"]
    assert second_form["errors"] == {"deployment": "model_refused"}
    assert (get_data(entry)[CONF_MODEL], get_data(entry).get(CONF_FAMILY)) == (NEW, None)
