"""Tests for the forms that add and change an agent, their errors, and the use of their values by the agent."""

from dataclasses import replace
from typing import Any

from homeassistant.components.conversation import ConversationEntityFeature
from homeassistant.config_entries import ConfigSubentryData
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType, InvalidData
from homeassistant.helpers import llm
from homeassistant.helpers.selector import TextSelector
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.config import DEFAULT_INSTRUCTIONS, DEFAULT_POLICY
from custom_components.windowed_conversation.const import (
    CONF_ASK_BEFORE_OPENING,
    CONF_CAMERAS,
    CONF_COMPACTION,
    CONF_CONTEXT_PLACEMENT,
    CONF_CONTEXT_TOKENS,
    CONF_DEPLOYMENT,
    CONF_EFFORT,
    CONF_EXACT_COUNTING,
    CONF_FALLBACK_AGENTS,
    CONF_FAMILY,
    CONF_IMAGES,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_OPENING_CODE,
    CONF_PROVIDER,
    CONF_RECORD,
    CONF_ROUTING,
    CONF_SCOPE,
    CONF_STATES,
    CONF_TEMPERATURE,
    CONF_TURN_TIMEOUT,
    CONF_WEB_SEARCH,
    DOMAIN,
    PROVIDER_NONE,
    SUBENTRY_CONVERSATION,
)
from demo.model_server import ModelServer

from .account_kinds import AZURE_RESPONSES, COMPATIBLE, KINDS, Kind
from .agent_forms import FRIDAY, get_selectors, open_agent_form, open_new, suggested
from .conftest import AGENT, Page, SayFn, SetUpFn, Submit, get_speech, list_sections
from .states import get_state

TWO_MILLION = "2,000,000"

OPENAI = KINDS[0]


@pytest.fixture
async def new_form(home: HomeAssistant, entry) -> Submit:
    """Open the form for a new agent of an account with a model, and return it."""
    return await open_new(home, entry)


@pytest.fixture
async def edit_agent_form(home: HomeAssistant, entry) -> Submit:
    """Open the form that changes the agent Ada, and return it."""
    return await open_agent_form(home, entry)


async def test_new_agent_is_suggested_what_most_want(new_form: Submit) -> None:
    assert suggested(new_form) == {
        CONF_NAME: "scripted",
        CONF_PROMPT: DEFAULT_INSTRUCTIONS,
        CONF_LLM_HASS_API: ["assist"],
        CONF_ROUTING: "local_first",
    }


@pytest.mark.parametrize("name", ["OpenAI conversation", "OpenAI Conversation"])
async def test_suggested_name_is_one_that_no_conversation_agent_has(
    home: HomeAssistant, set_up, model_server: ModelServer, name: str
) -> None:
    entry = await set_up(account=OPENAI.account(model_server))
    home.states.async_set("conversation.another", "unknown", {"friendly_name": name})

    form = await open_new(home, entry)

    assert suggested(form)[CONF_NAME] == "OpenAI conversation 2"


async def test_models_and_tools_are_offered(new_form: Submit, model_server: ModelServer) -> None:
    fields = get_selectors(new_form)

    assert fields[CONF_MODEL].config["options"] == model_server.settings.list_model_ids()
    assert fields[CONF_LLM_HASS_API].config["options"] == [{"label": "Assist", "value": "assist"}]


async def test_deployment_is_asked_for_by_its_own_words(home: HomeAssistant, set_up, model_server) -> None:
    form = await open_new(home, await set_up(account=AZURE_RESPONSES.account(model_server)))

    assert isinstance(get_selectors(form)[CONF_DEPLOYMENT], TextSelector)
    assert form.shown["errors"] == {}


async def test_model_is_typed_and_the_name_may_stay_empty_where_the_server_lists_none(
    home: HomeAssistant, set_up, page: Page
) -> None:
    address = await page('{"object": "list", "data": []}', "application/json")
    entry = await set_up(account={CONF_URL: f"{address}/v1"})
    form = await open_new(home, entry)
    assert isinstance(get_selectors(form)[CONF_MODEL], TextSelector)
    assert form.shown["errors"] == {CONF_MODEL: "no_models"}

    await form(**{field: value for field, value in FRIDAY.items() if field != CONF_NAME} | {CONF_MODEL: "qwen3:8b"})

    assert [agent.title for agent in entry.subentries.values()] == ["Ada", "qwen3"]


async def test_new_agent_is_there_at_once(home: HomeAssistant, new_form: Submit, entry, say: SayFn) -> None:
    await say("my name is Ada")

    result = await new_form(**FRIDAY)

    assert result["type"] is FlowResultType.CREATE_ENTRY
    friday = next(subentry for subentry in entry.subentries.values() if subentry.title == "Friday")
    settings = {key: value for key, value in FRIDAY.items() if key != CONF_NAME}
    # whether a model reads pictures is asked only for compatible servers
    assert friday.data == {**settings, CONF_IMAGES: False}
    assert "do not know" in get_speech(await say("what is my name?", agent_id="conversation.friday"))
    assert "Ada" in get_speech(await say("what is my name?"))


async def test_new_agent_is_as_it_was_entered(new_form: Submit, say: SayFn, model_server: ModelServer, entry) -> None:
    await new_form(**FRIDAY)
    await say("hello", agent_id="conversation.friday")

    assert model_server.requests[-1].body["messages"][0]["content"].startswith("You are Friday.")
    friday = next(agent for agent in entry.runtime_data.agents.values() if agent.config.name == "Friday")
    assert friday.config.turn_timeout == 30
    assert friday.config.routing == "model_only"
    assert friday.config.scope == "device"
    assert friday.config.context_placement == "system"
    assert replace(friday.config.policy, live_tools=frozenset(), lasting_tools=frozenset()) == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("wrong", "errors"),
    [
        ({CONF_NAME: " "}, {CONF_NAME: "name_missing"}),
        ({CONF_MODEL: ""}, {CONF_MODEL: "model_missing"}),
        ({CONF_NAME: "", CONF_MODEL: " "}, {CONF_NAME: "name_missing", CONF_MODEL: "model_missing"}),
    ],
)
async def test_mistake_is_told_beside_its_field(edit_agent_form: Submit, wrong: dict[str, str], errors) -> None:
    form = await edit_agent_form(**FRIDAY | wrong)

    assert form["errors"] == errors
    assert suggested(edit_agent_form)[CONF_ROUTING] == FRIDAY[CONF_ROUTING]
    assert (await edit_agent_form(**FRIDAY))["reason"] == "reconfigure_successful"


@pytest.mark.parametrize("name", ["scripted", "  "], ids=["suggested", "blank"])
async def test_new_agent_is_called_like_its_model_unless_a_name_is_typed(new_form: Submit, entry, name: str) -> None:
    await new_form(**FRIDAY | {CONF_NAME: name, CONF_MODEL: "llama3.2:3b"})

    assert [agent.title for agent in entry.subentries.values()] == ["Ada", "llama3.2"]


async def test_agent_keeps_its_name_when_its_model_changes(edit_agent_form: Submit, entry) -> None:
    await edit_agent_form(**FRIDAY | {CONF_NAME: "Ada", CONF_MODEL: "llama3.2:3b"})

    assert [agent.title for agent in entry.subentries.values()] == ["Ada"]


# A field, an impossible value, and the field or section at which the form shows the error.
IMPOSSIBLE_VALUES: list[tuple[str, Any, str]] = [
    (CONF_PROMPT, "{{ unclosed", CONF_PROMPT),
    (CONF_PROMPT, "{% if %}", CONF_PROMPT),
    (CONF_ROUTING, "both", CONF_ROUTING),
    (CONF_EFFORT, "much", "advanced"),
    (CONF_CONTEXT_PLACEMENT, "nowhere", "advanced"),
    (CONF_LLM_HASS_API, ["gone"], CONF_LLM_HASS_API),
    (CONF_MAX_ANSWER_TOKENS, "nan", "advanced"),
]


async def test_impossible_value_is_refused(home: HomeAssistant, entry, subtests: pytest.Subtests) -> None:
    for field, value, place in IMPOSSIBLE_VALUES:
        with subtests.test(field, value=value):
            form = await open_new(home, entry)
            with pytest.raises(InvalidData) as refused:
                await form(**FRIDAY | {field: value})

            assert list(refused.value.schema_errors) == [place]
            assert (await form(**FRIDAY))["type"] is FlowResultType.CREATE_ENTRY


# A field, a number outside its limits, and the error.
IMPOSSIBLE_NUMBERS = [
    (CONF_CONTEXT_TOKENS, 99, f"Context size: enter a number from 100 to {TWO_MILLION}."),
    (CONF_CONTEXT_TOKENS, 2_000_001, f"Context size: enter a number from 100 to {TWO_MILLION}."),
    (CONF_MAX_ANSWER_TOKENS, 0, f"Maximum tokens to return in response: enter a number from 100 to {TWO_MILLION}."),
    (CONF_TEMPERATURE, 2.1, "Temperature: enter a number from 0 to 2."),
    (CONF_TEMPERATURE, -0.1, "Temperature: enter a number from 0 to 2."),
    (CONF_TURN_TIMEOUT, 601, "Time limit for an answer: enter a number from 1 to 600."),
]


async def test_error_of_a_number_names_the_field_and_its_limits(
    home: HomeAssistant, entry, subtests: pytest.Subtests
) -> None:
    for field, number, error in IMPOSSIBLE_NUMBERS:
        with subtests.test(field, number=number):
            form = await open_new(home, entry)
            with pytest.raises(InvalidData) as refused:
                await form(**FRIDAY | {field: number})

            assert refused.value.schema_errors == {"advanced": error}


async def test_model_can_be_chosen_or_typed_while_the_server_is_away(
    home: HomeAssistant, entry, model_server: ModelServer
) -> None:
    model_server.fault("500", 1)

    form = await open_new(home, entry)

    assert get_selectors(form)[CONF_MODEL].config["options"] == model_server.settings.list_model_ids()
    result = await form(**FRIDAY | {CONF_MODEL: " my-own-model "})
    assert result["type"] is FlowResultType.CREATE_ENTRY
    assert "my-own-model" in [agent.config.model for agent in entry.runtime_data.agents.values()]


async def test_account_that_goes_away_meanwhile_takes_no_agent(home: HomeAssistant, new_form: Submit, entry) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    assert (await new_form(**FRIDAY))["reason"] == "entry_not_loaded"
    assert len(entry.subentries) == 1


async def test_nine_fields_are_in_sight_and_the_others_in_a_closed_section(
    home: HomeAssistant, set_up, model_server
) -> None:
    form = await open_agent_form(home, await set_up(account=AZURE_RESPONSES.account(model_server)))

    fields = form.shown["data_schema"].schema
    assert [str(field) for field in fields] == [
        CONF_NAME,
        CONF_DEPLOYMENT,
        CONF_FAMILY,
        CONF_PROMPT,
        CONF_LLM_HASS_API,
        CONF_WEB_SEARCH,
        CONF_CAMERAS,
        CONF_ROUTING,
        CONF_FALLBACK_AGENTS,
        CONF_MEMORY,
        "advanced",
    ]
    assert list(list_sections(form)["advanced"]) == [
        CONF_EFFORT,
        CONF_TEMPERATURE,
        CONF_CONTEXT_TOKENS,
        CONF_MAX_ANSWER_TOKENS,
        CONF_EXACT_COUNTING,
        CONF_COMPACTION,
        CONF_SCOPE,
        CONF_CONTEXT_PLACEMENT,
        CONF_STATES,
        CONF_IMAGES,
        CONF_TURN_TIMEOUT,
        CONF_ASK_BEFORE_OPENING,
        CONF_OPENING_CODE,
        CONF_RECORD,
    ]
    assert fields["advanced"].options["collapsed"]


async def test_all_that_was_stored_is_suggested_and_stored_again(home: HomeAssistant, set_up, model_server) -> None:
    settings = {
        **{key: value for key, value in FRIDAY.items() if key != CONF_NAME},
        CONF_FALLBACK_AGENTS: ["conversation.other"],
        CONF_EFFORT: "low",
        CONF_TEMPERATURE: 0.3,
        CONF_CONTEXT_TOKENS: 9000,
        CONF_COMPACTION: True,
        CONF_WEB_SEARCH: True,
    }
    entry = await set_up(account=OPENAI.account(model_server), **settings)
    form = await open_agent_form(home, entry)
    assert suggested(form) == {CONF_NAME: "Ada", **settings}

    await form(**suggested(form))

    (subentry,) = entry.subentries.values()
    assert (subentry.title, subentry.data) == ("Ada", settings)


CHANGING = (
    "It is {{ now().strftime('%H:%M') }}.",
    "{% if states('sensor.rain') == 'on' %}Wet.{% endif %}",
    "{{ states.light }}",
)


async def test_form_warns_once_of_instructions_that_change_often(new_form: Submit, subtests: pytest.Subtests) -> None:
    for instructions in CHANGING:
        with subtests.test(instructions):
            form = await new_form(**FRIDAY | {CONF_PROMPT: instructions})

            assert form["errors"] == {CONF_PROMPT: "instructions_change"}

    assert (await new_form(**FRIDAY | {CONF_PROMPT: CHANGING[-1]}))["type"] is FlowResultType.CREATE_ENTRY


async def test_form_says_at_once_that_its_instructions_change_often(home: HomeAssistant, set_up: SetUpFn) -> None:
    form = await open_agent_form(home, await set_up(prompt=CHANGING[0]))

    assert form.shown["errors"] == {CONF_PROMPT: "instructions_change"}
    assert (await form(**suggested(form)))["type"] is FlowResultType.ABORT


async def test_form_accepts_instructions_that_only_name_the_time_or_what_seldom_changes(new_form: Submit) -> None:
    instructions = "Say what now() is. {{ user_name }} may ask for states (on or off)."

    form = await new_form(**FRIDAY | {CONF_PROMPT: instructions})

    assert form["type"] is FlowResultType.CREATE_ENTRY


async def test_section_is_open_when_there_is_a_mistake(new_form: Submit) -> None:
    form = await new_form(**FRIDAY | {CONF_MODEL: " "})

    assert not form["data_schema"].schema["advanced"].options["collapsed"]


async def test_values_of_a_section_are_kept_when_there_is_a_mistake(new_form: Submit) -> None:
    await new_form(**FRIDAY | {CONF_MODEL: " ", CONF_MAX_ANSWER_TOKENS: 1000})

    assert {field: suggested(new_form)[field] for field in (CONF_SCOPE, CONF_MAX_ANSWER_TOKENS, CONF_TURN_TIMEOUT)} == {
        CONF_SCOPE: "device",
        CONF_MAX_ANSWER_TOKENS: 1000,
        CONF_TURN_TIMEOUT: 30,
    }


async def test_agent_without_instructions_keeps_those_of_home_assistant(
    edit_agent_form: Submit, say: SayFn, model_server: ModelServer
) -> None:
    assert suggested(edit_agent_form)[CONF_PROMPT] == llm.DEFAULT_INSTRUCTIONS_PROMPT

    await say("tell me a story")

    assert model_server.requests[-1].body["messages"][0]["content"].startswith(llm.DEFAULT_INSTRUCTIONS_PROMPT.strip())


async def test_tools_that_are_gone_are_not_suggested(home: HomeAssistant, set_up) -> None:
    form = await open_agent_form(home, await set_up(**{CONF_LLM_HASS_API: ["gone", "assist"]}))

    assert suggested(form)[CONF_LLM_HASS_API] == ["assist"]


async def test_changed_agent_is_the_same_one(home: HomeAssistant, edit_agent_form: Submit, entry, say: SayFn) -> None:
    await say("my name is Ada")
    before = list(entry.subentries)

    result = await edit_agent_form(**FRIDAY | {CONF_NAME: " Grace "})

    assert (result["type"], result["reason"]) == (FlowResultType.ABORT, "reconfigure_successful")
    assert list(entry.subentries) == before
    assert get_state(home, AGENT).name == "Grace"
    assert "Ada" in get_speech(await say("what is my name?"))


async def test_agent_that_may_use_tools_says_so(home: HomeAssistant, edit_agent_form: Submit) -> None:
    assert get_state(home, AGENT).attributes["supported_features"] == ConversationEntityFeature.CONTROL

    await edit_agent_form(**FRIDAY | {CONF_LLM_HASS_API: []})

    assert get_state(home, AGENT).attributes["supported_features"] == 0


async def test_agent_without_a_model_has_a_name_a_memory_and_a_scope(
    home: HomeAssistant, entry_without_model, get_agent
) -> None:
    form = await open_agent_form(home, entry_without_model)

    gate = [CONF_ASK_BEFORE_OPENING, CONF_OPENING_CODE]
    assert list(get_selectors(form)) == [CONF_NAME, CONF_MEMORY, CONF_SCOPE, *gate, CONF_RECORD]
    await form(name="Grace", scope="device")
    assert get_agent(entry_without_model).config.scope == "device"


async def test_agent_without_the_name_of_a_model_is_changed(home: HomeAssistant, get_agent) -> None:
    agent = ConfigSubentryData(data={}, subentry_type=SUBENTRY_CONVERSATION, title="Ada", unique_id=None)
    entry = MockConfigEntry(domain=DOMAIN, data={CONF_PROVIDER: PROVIDER_NONE}, subentries_data=[agent])
    entry.add_to_hass(home)
    await home.config_entries.async_setup(entry.entry_id)
    form = await open_agent_form(home, entry)

    await form(name="Grace")

    assert get_agent(entry).config.name == "Grace"


async def test_agent_without_a_model_is_added(home: HomeAssistant, entry_without_model, say: SayFn) -> None:
    form = await open_new(home, entry_without_model)

    await form(name="Friday")

    await say("turn on kitchen light", agent_id="conversation.friday")
    assert get_state(home, "input_boolean.kitchen").state == "on"


SEARCHES: list[tuple[Kind, bool]] = [
    *((kind, True) for kind in (OPENAI, AZURE_RESPONSES, *KINDS[-2:])),
    *((kind, False) for kind in (KINDS[1], COMPATIBLE)),
]


async def test_web_search_is_an_option_where_the_provider_can(
    home: HomeAssistant, set_up, model_server, subtests: pytest.Subtests
) -> None:
    for kind, searches in SEARCHES:
        with subtests.test(kind.name):
            form = await open_agent_form(home, await set_up(account=kind.account(model_server)))

            assert (CONF_WEB_SEARCH in get_selectors(form)) is searches
