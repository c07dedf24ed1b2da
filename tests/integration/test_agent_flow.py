"""The forms of an agent: added, changed, and every mistake told; what they hold reaches the agent."""

from typing import Any

from homeassistant.components.conversation import ConversationEntityFeature
from homeassistant.config_entries import SOURCE_USER
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType, InvalidData
from homeassistant.helpers import llm
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_COUNTING,
    CONF_FIRST_WORD_TIMEOUT,
    CONF_HISTORY_TOKENS,
    CONF_LEFT_OUT,
    CONF_LIMITS,
    CONF_REPLY_TOKENS,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_TOOL_ITERATIONS,
    CONF_TURN_TIMEOUT,
    DEFAULT_AGENT_NAME,
    DEFAULT_LIMITS,
    DEFAULT_POLICY,
    SUBENTRY_CONVERSATION,
)
from custom_components.windowed_conversation.turn.deadlines import Limits
from demo.model_server import ModelServer

from .conftest import AGENT, Say, Submit, speech

LIMITS = {CONF_FIRST_WORD_TIMEOUT: 5, CONF_TURN_TIMEOUT: 30, CONF_TOOL_ITERATIONS: 3}
FRIDAY: dict[str, Any] = {
    CONF_NAME: "Friday",
    CONF_MODEL: "scripted",
    CONF_PROMPT: "You are {{ 'Friday' }}.",
    CONF_LLM_HASS_API: ["assist"],
    CONF_ROUTING: "llm_only",
    CONF_SCOPE: "device",
    CONF_LEFT_OUT: ["route:local"],
    CONF_CONTEXT_PLACEMENT: "system",
    CONF_REPLY_TOKENS: 500,
    CONF_COUNTING: "estimate",
    CONF_LIMITS: LIMITS,
}


async def open_new(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form of a new agent."""
    flows = home.config_entries.subentries
    kind = (entry.entry_id, SUBENTRY_CONVERSATION)
    return Submit(home, flows, await flows.async_init(kind, context={"source": SOURCE_USER}))


async def open_change(home: HomeAssistant, entry: MockConfigEntry) -> Submit:
    """Open the form that changes the account's only agent."""
    (subentry_id,) = entry.subentries
    shown = await entry.start_subentry_reconfigure_flow(home, subentry_id)
    return Submit(home, home.config_entries.subentries, shown)


@pytest.fixture
async def new_form(home: HomeAssistant, entry) -> Submit:
    """Open the form of a new agent on an account with a model."""
    return await open_new(home, entry)


@pytest.fixture
async def change_form(home: HomeAssistant, entry) -> Submit:
    """Open the form that changes Ada."""
    return await open_change(home, entry)


def suggested(form: Submit) -> dict[str, Any]:
    """Return what the form suggests, by field."""
    fields = form.shown["data_schema"].schema
    return {str(field): field.description["suggested_value"] for field in fields if field.description}


async def test_new_agent_is_suggested_what_most_want(new_form: Submit) -> None:
    assert suggested(new_form) == {
        CONF_NAME: DEFAULT_AGENT_NAME,
        CONF_PROMPT: llm.DEFAULT_INSTRUCTIONS_PROMPT,
        CONF_LLM_HASS_API: ["assist"],
        CONF_ROUTING: "local_first",
    }


async def test_models_and_tools_are_offered(new_form: Submit, model_server: ModelServer) -> None:
    fields = new_form.shown["data_schema"].schema

    assert fields[CONF_MODEL].config["options"] == model_server.settings.listed_models()
    assert fields[CONF_LLM_HASS_API].config["options"] == [{"label": "Assist", "value": "assist"}]


async def test_new_agent_is_there_at_once(home: HomeAssistant, new_form: Submit, entry, say: Say) -> None:
    await say("my name is Ada")

    made = await new_form(**FRIDAY)

    assert made["type"] is FlowResultType.CREATE_ENTRY
    friday = next(subentry for subentry in entry.subentries.values() if subentry.title == "Friday")
    assert friday.data == {key: value for key, value in FRIDAY.items() if key != CONF_NAME}
    assert "do not know" in speech(await say("what is my name?", agent_id="conversation.friday"))
    assert "Ada" in speech(await say("what is my name?"))


async def test_new_agent_is_as_it_was_entered(new_form: Submit, say: Say, model_server: ModelServer, entry) -> None:
    await new_form(**FRIDAY)
    await say("hello", agent_id="conversation.friday")

    assert model_server.requests[-1].body["messages"][0]["content"].startswith("You are Friday.")
    friday = next(agent for agent in entry.runtime_data.agents.values() if agent.config.name == "Friday")
    assert friday.config.limits == Limits(silence=5, turn=30, tool_iterations=3)
    assert friday.config.routing == "llm_only"
    assert friday.config.scope == "device"
    assert friday.config.context_placement == "system"
    assert friday.config.policy == DEFAULT_POLICY


async def test_limits_are_the_default_where_nothing_is_entered(new_form: Submit, entry) -> None:
    await new_form(**FRIDAY | {CONF_LIMITS: {}})

    assert [agent.config.limits for agent in entry.runtime_data.agents.values()] == [DEFAULT_LIMITS] * 2


@pytest.mark.parametrize(
    ("wrong", "errors"),
    [
        ({CONF_NAME: " "}, {CONF_NAME: "name_missing"}),
        ({CONF_MODEL: ""}, {CONF_MODEL: "model_missing"}),
        ({CONF_NAME: "", CONF_MODEL: " "}, {CONF_NAME: "name_missing", CONF_MODEL: "model_missing"}),
    ],
)
async def test_mistake_is_told_beside_its_field(new_form: Submit, wrong: dict[str, str], errors) -> None:
    form = await new_form(**FRIDAY | wrong)

    assert form["errors"] == errors
    assert suggested(new_form)[CONF_ROUTING] == FRIDAY[CONF_ROUTING]
    assert (await new_form(**FRIDAY))["type"] is FlowResultType.CREATE_ENTRY


@pytest.mark.parametrize(
    ("wrong", "told_at"),
    [
        ({CONF_PROMPT: "{{ unclosed"}, CONF_PROMPT),
        ({CONF_PROMPT: "{% if %}"}, CONF_PROMPT),
        ({CONF_ROUTING: "both"}, CONF_ROUTING),
        ({CONF_COUNTING: "p50k_base"}, CONF_COUNTING),
        ({CONF_CONTEXT_PLACEMENT: "nowhere"}, CONF_CONTEXT_PLACEMENT),
        ({CONF_LLM_HASS_API: ["gone"]}, CONF_LLM_HASS_API),
        ({CONF_HISTORY_TOKENS: 99}, CONF_HISTORY_TOKENS),
        ({CONF_HISTORY_TOKENS: "nan"}, CONF_HISTORY_TOKENS),
        ({CONF_HISTORY_TOKENS: 2_000_001}, CONF_HISTORY_TOKENS),
        ({CONF_LIMITS: LIMITS | {CONF_FIRST_WORD_TIMEOUT: 0}}, "base"),
        ({CONF_LIMITS: LIMITS | {CONF_FIRST_WORD_TIMEOUT: 301}}, "base"),
        ({CONF_LIMITS: LIMITS | {CONF_TURN_TIMEOUT: 601}}, "base"),
        ({CONF_LIMITS: LIMITS | {CONF_TOOL_ITERATIONS: 51}}, "base"),
    ],
)
async def test_impossible_value_is_refused(new_form: Submit, wrong: dict[str, Any], told_at: str) -> None:
    with pytest.raises(InvalidData) as refused:
        await new_form(**FRIDAY | wrong)

    assert list(refused.value.schema_errors) == [told_at]
    assert (await new_form(**FRIDAY))["type"] is FlowResultType.CREATE_ENTRY


async def test_model_can_be_typed_while_the_server_is_away(
    home: HomeAssistant, entry, model_server: ModelServer
) -> None:
    model_server.fault("500", 1)

    form = await open_new(home, entry)

    assert form.shown["data_schema"].schema[CONF_MODEL].config["options"] == []
    made = await form(**FRIDAY | {CONF_MODEL: " my-own-model "})
    assert made["type"] is FlowResultType.CREATE_ENTRY
    assert "my-own-model" in [agent.config.model for agent in entry.runtime_data.agents.values()]


async def test_account_that_is_away_takes_no_agent(home: HomeAssistant, entry) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    form = await open_new(home, entry)

    assert (form.shown["type"], form.shown["reason"]) == (FlowResultType.ABORT, "entry_not_loaded")


async def test_account_that_goes_away_meanwhile_takes_no_agent(home: HomeAssistant, new_form: Submit, entry) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    assert (await new_form(**FRIDAY))["reason"] == "entry_not_loaded"
    assert len(entry.subentries) == 1


async def test_change_suggests_what_is_known(home: HomeAssistant, set_up) -> None:
    entry = await set_up(**{CONF_PROMPT: "Be brief.", CONF_ROUTING: "llm_only", CONF_HISTORY_TOKENS: 600})

    form = await open_change(home, entry)

    assert suggested(form) == {
        CONF_NAME: "Ada",
        CONF_MODEL: "scripted",
        CONF_PROMPT: "Be brief.",
        CONF_LLM_HASS_API: ["assist"],
        CONF_ROUTING: "llm_only",
        CONF_HISTORY_TOKENS: 600,
    }


async def test_change_suggests_the_limits_that_are_known(home: HomeAssistant, set_up) -> None:
    form = await open_change(home, await set_up(**{CONF_LIMITS: LIMITS}))

    fields = form.shown["data_schema"].schema[CONF_LIMITS].schema.schema
    assert {str(field): field.description["suggested_value"] for field in fields} == LIMITS


async def test_tools_that_are_gone_are_not_suggested(home: HomeAssistant, set_up) -> None:
    form = await open_change(home, await set_up(**{CONF_LLM_HASS_API: ["gone", "assist"]}))

    assert suggested(form)[CONF_LLM_HASS_API] == ["assist"]


async def test_changed_agent_is_the_same_one(home: HomeAssistant, change_form: Submit, entry, say: Say) -> None:
    await say("my name is Ada")
    before = list(entry.subentries)

    done = await change_form(**FRIDAY | {CONF_NAME: " Grace "})

    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "reconfigure_successful")
    assert list(entry.subentries) == before
    assert home.states.get(AGENT).name == "Grace"
    assert "Ada" in speech(await say("what is my name?"))


async def test_agent_that_may_use_tools_says_so(home: HomeAssistant, change_form: Submit) -> None:
    assert home.states.get(AGENT).attributes["supported_features"] == ConversationEntityFeature.CONTROL

    await change_form(**FRIDAY | {CONF_LLM_HASS_API: []})

    assert home.states.get(AGENT).attributes["supported_features"] == 0


async def test_own_window_size_goes_before_the_account_s(change_form: Submit, entry, figure) -> None:
    await change_form(**FRIDAY | {CONF_HISTORY_TOKENS: 600})

    assert figure("window_size") == "600"


async def test_own_window_size_can_be_taken_back(home: HomeAssistant, set_up, figure) -> None:
    form = await open_change(home, await set_up(options={CONF_HISTORY_TOKENS: 4000}, **{CONF_HISTORY_TOKENS: 600}))

    await form(**FRIDAY)

    assert figure("window_size") == "4000"


async def test_agent_without_a_model_has_a_name_and_a_window(home: HomeAssistant, entry_without_model, figure) -> None:
    form = await open_change(home, entry_without_model)

    assert list(form.shown["data_schema"].schema) == [CONF_NAME, CONF_SCOPE, CONF_HISTORY_TOKENS]
    await form(name="Grace", history_tokens=600)
    assert figure("window_size") == "600"


async def test_agent_without_a_model_is_added(home: HomeAssistant, entry_without_model, say: Say) -> None:
    form = await open_new(home, entry_without_model)

    await form(name="Friday")

    await say("turn on kitchen light", agent_id="conversation.friday")
    assert home.states.get("input_boolean.kitchen").state == "on"
