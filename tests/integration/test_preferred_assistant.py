"""Tests for the switch that makes a new account's agent the one of the preferred assistant."""

from homeassistant.components.assist_pipeline.pipeline import Pipeline, async_get_pipeline, async_update_pipeline
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.setup import async_setup_component
import pytest

from demo.model_server import ModelServer
from tests.repository_files import TEXTS

from .account_forms import open_account
from .conftest import AGENT, SetUpFn, Submit, list_fields

NEW_AGENT = {"name": "Ada", "model": "scripted"}


@pytest.fixture
async def assistant(home: HomeAssistant) -> Pipeline:
    """Return the preferred assistant, which prefers to handle commands locally as a new one does."""
    await async_update_pipeline(home, async_get_pipeline(home), prefer_local_intents=True)
    return async_get_pipeline(home)


async def test_preferred_assistant_gets_the_agent_and_passes_it_every_sentence(
    home: HomeAssistant, assistant: Pipeline, server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url)

    await server_form(**NEW_AGENT, use_in_assistant=True)

    now = async_get_pipeline(home)
    assert (now.id, now.conversation_engine, now.prefer_local_intents) == (assistant.id, AGENT, False)


async def test_last_step_names_the_assistant_that_uses_the_agent(
    assistant: Pipeline, server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url)

    made = await server_form(**NEW_AGENT, use_in_assistant=True)

    text = TEXTS["config"]["create_entry"][made["description"]]
    assert text.format(**made["description_placeholders"]).startswith(f"*{assistant.name}* now answers with this agent")


async def test_assistant_stays_as_it_is_if_the_switch_is_off(
    home: HomeAssistant, assistant: Pipeline, server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url)

    made = await server_form(**NEW_AGENT, use_in_assistant=False)

    assert (made["type"], made["description"]) == (FlowResultType.CREATE_ENTRY, None)
    assert async_get_pipeline(home) == assistant


async def test_switch_is_off_at_first_if_the_assistant_already_has_one_of_our_agents(
    home: HomeAssistant, set_up: SetUpFn, assistant: Pipeline, server_form: Submit, model_server: ModelServer
) -> None:
    await set_up(account={CONF_URL: f"{model_server.url}/"})
    await async_update_pipeline(home, assistant, conversation_engine=AGENT)

    form = await server_form(url=model_server.url, api_key="key")

    assert form["data_schema"]({})["use_in_assistant"] is False


@pytest.mark.usefixtures("assistant")
async def test_switch_says_which_assistant_it_changes(server_form: Submit, model_server: ModelServer) -> None:
    form = await server_form(url=model_server.url)

    text = TEXTS["config"]["step"]["model"]["data_description"]["use_in_assistant"]
    assert "*Home Assistant*" in text.format(**form["description_placeholders"])


async def test_home_without_assistants_is_not_offered_one(hass: HomeAssistant, model_server: ModelServer) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    form = await open_account(hass)

    await form(url=model_server.url)

    assert list(list_fields(form)) == ["name", "model"]
