"""Tests for the account forms, from the menu to a working agent. Every mistake shows a message and can be corrected."""

import logging
from typing import Any

from homeassistant.config_entries import SOURCE_USER, ConfigEntryState
from homeassistant.const import CONF_API_KEY, CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers.selector import TextSelector
import probatio
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.config import DEFAULT_INSTRUCTIONS
from custom_components.windowed_conversation.const import (
    CONF_PROVIDER,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_NONE,
    PROVIDER_OPENAI_CHAT,
)
from custom_components.windowed_conversation.flows import account
from custom_components.windowed_conversation.flows.fields import suggest_agent_name
from demo.model_server import ModelServer
from tests.model_lists import OLLAMA, OPENAI, ROUTER
from tests.repository_files import TEXTS

from .account_forms import open_account
from .conftest import Page, SayFn, Submit
from .remembered import list_facts
from .rows import Row, row

__all__ = ["row"]


async def test_menu_asks_who_is_to_answer(home: HomeAssistant) -> None:
    menu = await home.config_entries.flow.async_init(DOMAIN, context={"source": SOURCE_USER})

    assert menu["type"] is FlowResultType.MENU
    assert menu["menu_options"] == ["openai", "azure", "gemini", "anthropic", "server", "local"]


def test_form_of_the_first_agent_says_that_it_remembers_and_for_how_long() -> None:
    described = TEXTS["config"]["step"]["model"]["description"]

    assert "It remembers" in described
    assert "{memory_days} days" in described
    assert "*Memory*" in described


async def test_days_that_the_form_of_the_first_agent_names_are_those_of_an_account(
    server_form: Submit, model_server: ModelServer
) -> None:
    form = await server_form(**{CONF_URL: model_server.url})

    assert form["description_placeholders"] == {"memory_days": "90", "assistant": "Home Assistant"}


async def test_agent_without_a_model_remembers_facts_as_the_form_says(
    home: HomeAssistant, entry_without_model: MockConfigEntry, say: SayFn
) -> None:
    await say("remember that the bins go out on Friday")

    assert [fact.text for fact in await list_facts(home)] == ["the bins go out on Friday"]
    assert "facts" in TEXTS["config"]["step"]["local"]["description"]


async def test_server_form_suggests_no_address_and_has_examples(server_form: Submit) -> None:
    (address, key) = server_form.shown["data_schema"].schema

    assert (address, key) == (CONF_URL, CONF_API_KEY)
    assert address.description == {"suggested_value": ""}
    assert {"ollama", "llama_cpp", "lm_studio"} <= server_form.shown["description_placeholders"].keys()


async def test_models_of_the_server_are_offered(server_form: Submit, model_server: ModelServer) -> None:
    form = await server_form(url=model_server.url)

    assert form["step_id"] == "model"
    fields = form["data_schema"].schema
    assert fields[CONF_MODEL].config["options"] == model_server.settings.list_model_ids()
    assert form["data_schema"]({}) == {
        CONF_NAME: "scripted",
        CONF_MODEL: "scripted",
        "use_in_assistant": True,
    }


@pytest.mark.rule("config-flow")
async def test_account_and_its_first_agent_are_made(server_form: Submit, model_server: ModelServer) -> None:
    await server_form(url=model_server.url, api_key="key")

    made = await server_form(name="Ada", model="scripted")

    assert made["type"] is FlowResultType.CREATE_ENTRY
    entry = made["result"]
    assert entry.title == model_server.address.removeprefix("http://")
    assert entry.data == {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: model_server.url, CONF_API_KEY: "key"}
    agent, task = entry.subentries.values()
    assert (task.title, task.subentry_type, task.data) == ("scripted AI Task", "ai_task_data", {CONF_MODEL: "scripted"})
    assert agent.title == "Ada"
    assert agent.data == {
        CONF_MODEL: "scripted",
        CONF_PROMPT: DEFAULT_INSTRUCTIONS,
        CONF_LLM_HASS_API: ["assist"],
        CONF_ROUTING: "local_first",
    }


async def test_model_can_be_typed(server_form: Submit, model_server: ModelServer) -> None:
    await server_form(url=model_server.url)

    made = await server_form(name="Ada", model=" my-own-model ")

    agent, _ = made["result"].subentries.values()
    assert agent.data[CONF_MODEL] == "my-own-model"


async def test_model_that_can_converse_is_chosen_on_any_server(
    home: HomeAssistant, row: Row, model_server: ModelServer
) -> None:
    for name, models, model in (
        ("ollama", OLLAMA, "llama3.2-vision:11b"),
        ("as openai", OPENAI, "gpt-5-mini"),
        ("router", ROUTER, "openai/gpt-5-mini"),
        ("embeddings only", ("nomic-embed-text:latest",), "nomic-embed-text:latest"),
    ):
        async with row(name):
            model_server.change(models=models)

            form = await (await open_account(home))(url=model_server.url)

            assert form["data_schema"]({})[CONF_MODEL] == model


async def test_server_without_models_lets_a_model_be_typed_and_the_name_stay_empty(
    server_form: Submit, page: Page
) -> None:
    address = await page('{"object": "list", "data": []}', "application/json")

    form = await server_form(url=f"{address}/v1")

    assert (form["step_id"], form["errors"]) == ("model", {CONF_MODEL: "no_models"})
    assert isinstance(form["data_schema"].schema[CONF_MODEL], TextSelector)
    (name,) = [field for field in form["data_schema"].schema if field == CONF_NAME]
    made = await server_form(model="qwen3:8b")
    agent, _ = made["result"].subentries.values()
    assert (type(name), agent.title) == (probatio.Optional, "qwen3")


async def test_blank_model_is_refused(server_form: Submit, model_server: ModelServer) -> None:
    await server_form(url=model_server.url)

    form = await server_form(name="Ada", model="  ")

    assert form["errors"] == {CONF_MODEL: "model_missing"}
    made = await server_form(name="Ada", model="scripted")
    assert made["type"] is FlowResultType.CREATE_ENTRY


async def test_agent_of_a_compatible_server_is_called_like_its_model(
    home: HomeAssistant, subtests: pytest.Subtests
) -> None:
    for model, name in (
        ("qwen3", "qwen3"),
        ("llama3.2:3b-instruct-q4_K_M", "llama3.2"),
        ("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", "Llama-3.2-3B-Instruct-GGUF"),
        ("deepseek/deepseek-r1:free", "deepseek-r1"),
        ("/models/phi-4.gguf", "phi-4"),
        ("C:\\models\\phi-4.gguf", "phi-4"),
        ("models/", "models/"),
        ("m" * 300, "m" * 60),
    ):
        with subtests.test(model=model):
            assert suggest_agent_name(home, {CONF_PROVIDER: PROVIDER_OPENAI_CHAT}, model) == name


@pytest.mark.parametrize(
    ("entered", "name"),
    [(" ", "qwen3"), ("llama3.2-vision", "qwen3"), ("Ada", "Ada")],
    ids=["blank", "suggested", "typed"],
)
async def test_name_follows_the_chosen_model_unless_one_is_typed(
    server_form: Submit, model_server: ModelServer, entered: str, name: str
) -> None:
    model_server.change(models=OLLAMA)
    shown = await server_form(url=model_server.url)

    made = await server_form(name=entered, model="qwen3:8b")

    agent, _ = made["result"].subentries.values()
    assert (shown["data_schema"]({})[CONF_NAME], agent.title) == ("llama3.2-vision", name)


async def test_entity_of_an_agent_is_called_like_its_model(
    home: HomeAssistant, server_form: Submit, model_server: ModelServer
) -> None:
    model_server.change(models=("llama3.2:3b",))
    shown = await server_form(url=model_server.url)

    await server_form(**shown["data_schema"]({}))

    assert "conversation.llama3_2" in home.states.async_entity_ids("conversation")


async def test_name_and_password_in_an_address_are_not_in_the_title(
    server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url.replace("//", "//ada:secret@"))

    made = await server_form(name="Ada", model="scripted")

    assert made["result"].title == model_server.address.removeprefix("http://")


@pytest.mark.parametrize(("key", "error"), [({}, "key_wanted"), ({CONF_API_KEY: "wrong"}, "invalid_auth")])
async def test_wrong_key_is_refused(
    server_form: Submit, model_server: ModelServer, key: dict[str, Any], error: str
) -> None:
    model_server.change(key="right")

    form = await server_form(url=model_server.url, **key)

    assert form["errors"] == {"base": error}
    assert (await server_form(url=model_server.url, api_key="right"))["step_id"] == "model"


@pytest.mark.rule("test-before-configure")
async def test_server_in_trouble_is_told_and_the_form_keeps_its_values(
    home: HomeAssistant, row: Row, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for fault, error in (
        ("401", "invalid_auth"),
        ("403", "invalid_auth"),
        ("404", "not_compatible"),
        ("429", "rate_limited"),
        ("quota", "no_credit"),
        ("500", "server_failed"),
        ("html", "server_failed"),
        ("cut_before_headers", "cannot_connect"),
    ):
        async with row(fault):
            caplog.clear()
            server_form = await open_account(home)
            model_server.fault(fault, 1)

            form = await server_form(url=model_server.url, api_key="sk-typed")

            (address, key) = form["data_schema"].schema
            assert form["errors"] == {"base": error}
            assert address.description == {"suggested_value": model_server.url}
            assert key.description == {"suggested_value": "sk-typed"}
            assert "sk-typed" not in caplog.text
            assert (await server_form(url=model_server.url))["step_id"] == "model"


async def test_what_lists_no_models_is_refused(
    home: HomeAssistant, model_server: ModelServer, page: Page, subtests: pytest.Subtests
) -> None:
    answers: list[tuple[Any, ...]] = [
        ("<html><body>Welcome to my router</body></html>", "text/html"),
        ("", "text/plain"),
        ("{", "application/json"),
        ("null", "application/json"),
        ('"models"', "application/json"),
        ("[]", "application/json"),
        ('{"error": "no"}', "application/json"),
        ('{"data": null}', "application/json"),
        ('{"data": "scripted"}', "application/json"),
        ('{"data": [null]}', "application/json"),
        ('{"data": [{"id": 1}]}', "application/json"),
        ("not here", "text/plain", 404),
    ]
    for answer in answers:
        with subtests.test(answer=answer):
            server_form = await open_account(home)

            form = await server_form(url=await page(*answer))

            assert form["errors"] == {"base": "not_compatible"}
            assert (await server_form(url=model_server.url))["step_id"] == "model"


async def test_other_key_of_the_same_server_is_another_account(entry, server_form: Submit) -> None:
    form = await server_form(url=entry.data[CONF_URL], api_key="another")

    assert form["step_id"] == "model"


async def test_second_account_of_a_server_has_names_of_its_own(
    home: HomeAssistant, server_form: Submit, model_server: ModelServer
) -> None:
    await server_form(url=model_server.url)
    first = (await server_form(name=" ", model="scripted"))["result"]
    again = await open_account(home)

    form = await again(url=model_server.url, api_key="another")

    name = form["data_schema"]({})[CONF_NAME]
    assert name == "scripted 2"
    second = (await again(name=name, model="scripted"))["result"]
    assert second.title == f"{first.title} 2"


async def test_model_that_does_not_answer_in_time_can_be_tried_again(
    server_form: Submit, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "_TRIAL_TIMEOUT", 0.2)
    await server_form(url=model_server.url, api_key="key")
    model_server.fault("no_answer", 1)

    form = await server_form(name="Ada", model="scripted")

    assert (form["step_id"], form["errors"]) == ("model", {"base": "cannot_connect"})
    assert (await server_form(name="Ada", model="scripted"))["type"] is FlowResultType.CREATE_ENTRY


async def test_account_without_a_model_is_added_after_a_confirmation(home: HomeAssistant) -> None:
    confirm = await open_account(home, "local")
    assert (confirm.shown["type"], confirm.shown["step_id"]) == (FlowResultType.FORM, "local")
    assert home.config_entries.async_entries(DOMAIN) == []

    made = await confirm()
    await home.async_block_till_done()

    assert made["type"] is FlowResultType.CREATE_ENTRY
    assert made["result"].data == {CONF_PROVIDER: PROVIDER_NONE}
    assert made["result"].state is ConfigEntryState.LOADED
    (agent,) = made["result"].subentries.values()
    assert (agent.title, agent.data) == ("Local conversation", {})


async def test_second_account_without_a_model_is_none(
    home: HomeAssistant, entry_without_model: MockConfigEntry
) -> None:
    again = (await open_account(home, "local")).shown

    assert (again["type"], again["reason"]) == (FlowResultType.ABORT, "already_configured")
