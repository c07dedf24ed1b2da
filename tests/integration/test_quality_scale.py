"""Tests for the rules of Home Assistant's integration quality scale that are about the behavior of the integration.

One short test for each rule, on accounts with a compatible server; the tests of each subject have the details.
"""

from collections.abc import Callable
import json
import logging
from typing import Any

from homeassistant.config_entries import SOURCE_REAUTH, ConfigEntryState
from homeassistant.const import CONF_API_KEY, CONF_URL, STATE_UNAVAILABLE, EntityCategory, Platform
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.exceptions import ServiceValidationError
from homeassistant.helpers import device_registry as dr, entity_registry as er, issue_registry as ir
from homeassistant.helpers.entity import Entity
from homeassistant.helpers.entity_platform import async_get_platforms
from homeassistant.helpers.httpx_client import HassHttpXAsyncClient
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry
from pytest_homeassistant_custom_component.components.diagnostics import get_diagnostics_for_config_entry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from custom_components.windowed_conversation.agents.agent import AccountData
from custom_components.windowed_conversation.agents.store import async_get_store
from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_PROVIDER, DOMAIN
from demo.model_server import ModelServer
from tests.repository_files import ACTIONS, TEXTS

from .account_forms import reconfigure
from .conftest import AGENT, SayFn, SetUpFn, Submit, list_fields, listed
from .more_agents import add_agent, remove_agent
from .states import get_state

LOGGER = "custom_components.windowed_conversation"


@pytest.fixture
async def entities(
    home: HomeAssistant, every_sensor: None, server_form: Submit, model_server: ModelServer
) -> list[Entity]:
    """Add an account as a user does, and return its entities."""
    await server_form(url=model_server.url)
    await server_form(name="Ada", model="scripted")
    return [entity for platform in async_get_platforms(home, DOMAIN) for entity in platform.entities.values()]


@pytest.fixture
def list_devices(home: HomeAssistant, entry: MockConfigEntry) -> Callable[[], dict[str | None, dr.DeviceEntry]]:
    """Return a function that returns the devices of the account by name."""

    def list_devices() -> dict[str | None, dr.DeviceEntry]:
        return {device.name: device for device in dr.async_entries_for_config_entry(dr.async_get(home), entry.entry_id)}

    return list_devices


@pytest.mark.rule("action-setup")
async def test_actions_are_there_without_an_account(home: HomeAssistant) -> None:
    assert await async_setup_component(home, DOMAIN, {})

    assert home.services.async_services_for_domain(DOMAIN).keys() == ACTIONS.keys()


@pytest.mark.rule("appropriate-polling")
def test_no_entity_is_polled(entities: list[Entity]) -> None:
    assert [entity.entity_id for entity in entities if entity.should_poll] == []


@pytest.mark.rule("config-flow")
async def test_account_is_added_in_the_interface_and_each_field_is_explained(
    server_form: Submit, model_server: ModelServer
) -> None:
    shown = {"server": list_fields(server_form)}
    await server_form(url=model_server.url, api_key="key")
    shown["model"] = list_fields(server_form)
    made = await server_form(name="Ada", model="scripted")

    steps = TEXTS["config"]["step"]
    assert {step: {*fields} - steps[step]["data_description"].keys() for step, fields in shown.items()} == {
        "server": set(),
        "model": set(),
    }
    assert made["type"] is FlowResultType.CREATE_ENTRY
    assert made["result"].data.keys() == {CONF_PROVIDER, CONF_URL, CONF_API_KEY}


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
    assert {entity.entity_id.partition(".")[0] for entity in entities} == {"ai_task", "conversation", "sensor"}
    assert len(registered) == len(entities)


@pytest.mark.rule("has-entity-name")
def test_each_entity_has_a_name_of_its_own_beside_that_of_its_device(entities: list[Entity]) -> None:
    assert [entity.entity_id for entity in entities if not entity.has_entity_name] == []


@pytest.mark.rule("runtime-data")
def test_account_has_its_data_in_its_entry(entry: MockConfigEntry) -> None:
    assert isinstance(entry.runtime_data, AccountData)
    assert entry.runtime_data.agents.keys() == entry.subentries.keys()


@pytest.mark.rule("test-before-configure")
async def test_server_that_does_not_answer_is_not_added(
    home: HomeAssistant, server_form: Submit, unused_tcp_port: int
) -> None:
    shown = await server_form(url=f"http://127.0.0.1:{unused_tcp_port}/v1")

    assert (shown["step_id"], shown["errors"]) == ("server", {"base": "cannot_connect"})


@pytest.mark.rule("test-before-configure")
async def test_key_that_a_model_refuses_is_not_added(server_form: Submit, model_server: ModelServer) -> None:
    await server_form(url=model_server.url, api_key="key")
    model_server.fault("401", 1)

    shown = await server_form(name="Ada", model="scripted")

    assert (shown["type"], shown["errors"]) == (FlowResultType.FORM, {"base": "invalid_auth"})


@pytest.mark.rule("test-before-setup")
async def test_settings_that_cannot_work_stop_the_set_up(set_up: SetUpFn) -> None:
    entry = await set_up(account={CONF_URL: "http://[::1"})

    assert entry.state is ConfigEntryState.SETUP_ERROR
    assert entry.error_reason_translation_key in TEXTS["exceptions"]


@pytest.mark.rule("test-before-setup")
async def test_key_that_is_refused_at_the_set_up_is_asked_for(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer
) -> None:
    model_server.change(key="new")

    entry = await set_up()

    assert [*entry.async_get_active_flows(home, {SOURCE_REAUTH})] != []


@pytest.mark.rule("unique-config-entry")
async def test_same_account_is_not_added_twice(
    entry: MockConfigEntry, server_form: Submit, model_server: ModelServer
) -> None:
    again = await server_form(url=model_server.url, api_key="key")

    assert (again["type"], again["reason"]) == (FlowResultType.ABORT, "already_configured")


@pytest.mark.rule("action-exceptions")
async def test_action_refuses_a_mistake_with_an_error(home: HomeAssistant, entry: MockConfigEntry) -> None:
    data = {"entity_id": AGENT, "conversation_id": "nobody's"}

    with pytest.raises(ServiceValidationError) as refused:
        await home.services.async_call(DOMAIN, "get_conversation", data, blocking=True, return_response=True)

    assert (refused.value.translation_domain, refused.value.translation_key) == (DOMAIN, "unknown_conversation")


@pytest.mark.rule("config-entry-unloading")
async def test_account_is_unloaded_and_loaded_again(home: HomeAssistant, entry: MockConfigEntry) -> None:
    assert await home.config_entries.async_unload(entry.entry_id)
    unloaded = entry.state
    assert await home.config_entries.async_setup(entry.entry_id)

    assert (unloaded, entry.state) == (ConfigEntryState.NOT_LOADED, ConfigEntryState.LOADED)


@pytest.mark.rule("entity-unavailable")
@pytest.mark.rule("log-when-unavailable")
async def test_server_that_is_away_is_logged_once_and_leaves_the_entities_as_they_are(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    async with ModelServer(port=unused_tcp_port) as server:
        await set_up(account={CONF_URL: server.url})
        await server.stop()
        caplog.clear()
        await say("my name is Grace")
        await say("my name is Grace")
        states = {state.state for state in home.states.async_all(["conversation", "sensor"])}
        await server.start()
        await say("my name is Grace")
        await listed(home)

    told = [record for record in caplog.records if record.name.startswith(LOGGER) and "server" in record.getMessage()]
    assert [(record.levelno, record.getMessage().partition(":")[0]) for record in told] == [
        (logging.WARNING, "The server of Server cannot be reached"),
        (logging.INFO, "The server of Server answers again"),
    ]
    assert STATE_UNAVAILABLE not in states


@pytest.mark.rule("reauthentication-flow")
async def test_new_key_is_asked_for_and_used(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer
) -> None:
    model_server.change(key="new")
    form = Submit(home, home.config_entries.flow, await entry.start_reauth_flow(home))

    done = await form(api_key="new")

    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "reauth_successful")
    assert entry.data[CONF_API_KEY] == "new"


@pytest.mark.rule("devices")
def test_agent_is_a_device(entry: MockConfigEntry, list_devices) -> None:
    (agent_id,) = entry.subentries
    device = list_devices()["Ada"]

    assert device.identifiers == {(DOMAIN, agent_id)}
    assert (device.manufacturer, device.model) == ("Windowed Conversation", "scripted")
    assert device.entry_type is dr.DeviceEntryType.SERVICE


@pytest.mark.rule("diagnostics")
async def test_diagnostics_have_the_account_without_its_key(
    home: HomeAssistant, set_up: SetUpFn, hass_client: ClientSessionGenerator
) -> None:
    entry = await set_up(account={CONF_API_KEY: "sk-never-shown"})

    found: Any = await get_diagnostics_for_config_entry(home, hass_client, entry)

    assert found["account"]["state"] == "loaded"
    assert "sk-never-shown" not in json.dumps(found)


@pytest.mark.rule("dynamic-devices")
async def test_agent_that_is_added_has_its_device_at_once(
    home: HomeAssistant, entry: MockConfigEntry, list_devices
) -> None:
    await add_agent(home, entry, "Friday")

    assert "Friday" in list_devices()
    assert get_state(home, "conversation.friday").state != STATE_UNAVAILABLE


@pytest.mark.rule("stale-devices")
async def test_agent_that_is_removed_takes_its_device_along(
    home: HomeAssistant, entry: MockConfigEntry, list_devices
) -> None:
    before = list_devices().keys()
    friday = await add_agent(home, entry, "Friday")

    await remove_agent(home, entry, friday)

    assert list_devices().keys() == before


@pytest.mark.rule("entity-category")
def test_figures_are_diagnostic_and_agents_are_not(entities: list[Entity]) -> None:
    by_platform: dict[str, set[Any]] = {}
    for entity in entities:
        by_platform.setdefault(entity.entity_id.partition(".")[0], set()).add(entity.entity_category)

    assert by_platform == {
        Platform.SENSOR: {EntityCategory.DIAGNOSTIC},
        Platform.CONVERSATION: {None},
        Platform.AI_TASK: {None},
    }


@pytest.mark.rule("entity-disabled-by-default")
async def test_figures_that_few_people_need_are_disabled_at_first(
    home: HomeAssistant, server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url)
    await server_form(name="Ada", model="scripted")

    ours = [each for each in er.async_get(home).entities.values() if each.platform == DOMAIN]
    disabled = {str(each.translation_key) for each in ours if each.disabled_by is er.RegistryEntryDisabler.INTEGRATION}
    assert {"active_conversations", "requests", "time_to_first_token"} <= disabled
    assert len(disabled) < len(ours) / 2


@pytest.mark.rule("reconfiguration-flow")
async def test_address_of_an_account_is_changed(
    home: HomeAssistant, set_up: SetUpFn, unused_tcp_port: int, model_server: ModelServer
) -> None:
    entry = await set_up(account={CONF_URL: f"http://127.0.0.1:{unused_tcp_port}/v1"})
    form = await reconfigure(home, entry)

    done = await form(url=model_server.url)

    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "reconfigure_successful")
    assert entry.data[CONF_URL] == model_server.url


@pytest.mark.rule("repair-issues")
async def test_window_that_is_too_small_is_an_issue_that_says_what_to_do(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn
) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 100})

    await say("tell me a story about the sea in 300 words")

    (issue,) = [issue for (domain, _), issue in ir.async_get(home).issues.items() if domain == DOMAIN]
    assert "Choose a larger window" in TEXTS["issues"][issue.translation_key]["description"]


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
