"""Tests for the rules of Home Assistant's integration quality scale that are about the behavior of the integration.

One short test for each rule, on accounts with a compatible server; the tests of each subject have the details.
"""

from typing import Any

from homeassistant.const import EntityCategory, Platform
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.entity import Entity
from homeassistant.helpers.entity_platform import async_get_platforms
from homeassistant.helpers.httpx_client import HassHttpXAsyncClient
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import AccountData
from custom_components.windowed_conversation.agents.store import async_get_store
from custom_components.windowed_conversation.const import DOMAIN
from demo.model_server import ModelServer
from tests.repository_files import ACTIONS

from .conftest import Submit, listed

LOGGER = "custom_components.windowed_conversation"


@pytest.fixture
async def entities(
    home: HomeAssistant, every_sensor: None, server_form: Submit, model_server: ModelServer
) -> list[Entity]:
    """Add an account as a user does, and return its entities."""
    await server_form(url=model_server.url)
    await server_form(name="Ada", model="scripted")
    return [entity for platform in async_get_platforms(home, DOMAIN) for entity in platform.entities.values()]


@pytest.mark.rule("action-setup")
async def test_actions_are_there_without_an_account(home: HomeAssistant) -> None:
    assert await async_setup_component(home, DOMAIN, {})

    assert home.services.async_services_for_domain(DOMAIN).keys() == ACTIONS.keys()


@pytest.mark.rule("appropriate-polling")
def test_no_entity_is_polled(entities: list[Entity]) -> None:
    assert [entity.entity_id for entity in entities if entity.should_poll] == []


@pytest.mark.rule("entity-event-setup")
async def test_entities_listen_only_while_they_are_there(
    home: HomeAssistant, entry: MockConfigEntry, get_agent
) -> None:
    agent, store = get_agent(entry), async_get_store(home)
    assert store is not None
    sources = (agent, agent.statistics, store)
    before = [len(source._listeners) for source in sources]

    await home.config_entries.async_unload(entry.entry_id)

    assert [count > 0 for count in before] == [True, True, True]
    assert [source._listeners for source in sources] == [[], [], []]


@pytest.mark.rule("entity-unique-id")
def test_each_entity_has_a_unique_id(home: HomeAssistant, entities: list[Entity]) -> None:
    registered = {each.entity_id for each in er.async_get(home).entities.values() if each.platform == DOMAIN}

    assert {entity.entity_id for entity in entities if entity.unique_id} == registered
    assert {entity.entity_id.partition(".")[0] for entity in entities} == {"ai_task", "conversation", "sensor", "todo"}
    assert len(registered) == len(entities)


@pytest.mark.rule("has-entity-name")
def test_each_entity_has_a_name_of_its_own_beside_that_of_its_device(entities: list[Entity]) -> None:
    assert [entity.entity_id for entity in entities if not entity.has_entity_name] == []


@pytest.mark.rule("runtime-data")
def test_account_has_its_data_in_its_entry(entry: MockConfigEntry) -> None:
    assert isinstance(entry.runtime_data, AccountData)
    assert entry.runtime_data.agents.keys() == entry.subentries.keys()


@pytest.mark.rule("test-before-configure")
async def test_key_that_a_model_refuses_is_not_added(server_form: Submit, model_server: ModelServer) -> None:
    await server_form(url=model_server.url, api_key="key")
    model_server.fault("401", 1)

    shown = await server_form(name="Ada", model="scripted")

    assert (shown["type"], shown["errors"]) == (FlowResultType.FORM, {"base": "invalid_auth"})


@pytest.mark.rule("unique-config-entry")
async def test_same_account_is_not_added_twice(
    entry: MockConfigEntry, server_form: Submit, model_server: ModelServer
) -> None:
    again = await server_form(url=model_server.url, api_key="key")

    assert (again["type"], again["reason"]) == (FlowResultType.ABORT, "already_configured")


@pytest.mark.rule("entity-category")
def test_figures_are_diagnostic_and_agents_are_not(entities: list[Entity]) -> None:
    by_platform: dict[str, set[Any]] = {}
    for entity in entities:
        by_platform.setdefault(entity.entity_id.partition(".")[0], set()).add(entity.entity_category)

    assert by_platform == {
        Platform.SENSOR: {EntityCategory.DIAGNOSTIC},
        Platform.CONVERSATION: {None},
        Platform.AI_TASK: {None},
        Platform.TODO: {None},
    }


@pytest.mark.rule("inject-websession")
async def test_requests_are_sent_by_a_client_of_home_assistant(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer
) -> None:
    (client,) = home.data[f"{DOMAIN}_http_clients"].values()
    sent = []

    async def record_request(request: Any) -> None:
        sent.append(request.url.path)

    client.event_hooks["request"].append(record_request)
    await home.config_entries.async_reload(entry.entry_id)
    await listed(home)

    assert isinstance(client, HassHttpXAsyncClient)
    assert sent == [record.path for record in model_server.log.records] == ["/v1/models"]
