"""Tests for model settings and fallback agents in an agent's form: requests use them, and they can be removed."""

from typing import Any

from homeassistant.const import CONF_API_KEY
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.const import (
    CONF_EFFORT,
    CONF_FALLBACK_AGENTS,
    CONF_FAMILY,
    CONF_TEMPERATURE,
)
from custom_components.windowed_conversation.providers.events import DEFAULT_SETTINGS
from demo.model_server import ModelServer

from .account_forms import open_account
from .account_kinds import AZURE_RESPONSES, COMPATIBLE, KINDS, Kind
from .agent_forms import get_default, get_selectors, open_agent_form, suggested
from .conftest import AGENT, SayFn, SetUpFn, Submit, get_speech
from .rows import Row, row

__all__ = ["row"]

OPENAI, OPENAI_CHAT, GEMINI, ANTHROPIC = KINDS[0], KINDS[1], KINDS[-2], KINDS[-1]
CHOICES = (CONF_FAMILY, CONF_EFFORT, CONF_TEMPERATURE)
# The account has no key.
AT_HOME = {CONF_API_KEY: None}
ADA: dict[str, Any] = {"name": "Ada", "routing": "model_only", "llm_hass_api": ["assist"]}


def list_choices(form: Submit) -> list[str]:
    """Return the model settings that the form offers."""
    return [field for field in get_selectors(form) if field in CHOICES]


OFFERED_CHOICES: list[tuple[Kind, list[str]]] = [
    (OPENAI, [CONF_EFFORT, CONF_TEMPERATURE]),
    (AZURE_RESPONSES, [CONF_FAMILY, CONF_EFFORT, CONF_TEMPERATURE]),
    (GEMINI, [CONF_EFFORT, CONF_TEMPERATURE]),
    (ANTHROPIC, [CONF_EFFORT, CONF_TEMPERATURE]),
    (COMPATIBLE, [CONF_EFFORT, CONF_TEMPERATURE]),
]


async def test_what_a_model_may_take_is_asked(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    for kind, choices in OFFERED_CHOICES:
        with subtests.test(kind.name):
            form = await open_agent_form(home, await set_up(account=kind.account(model_server)))

            assert list_choices(form) == choices


async def test_reasoning_of_a_model_at_home_can_be_turned_off(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    form = await open_agent_form(home, await set_up(account=AT_HOME))

    await form(**ADA, model="scripted", effort="none")
    await say("hello")

    assert model_server.requests[-1].body["reasoning_effort"] == "none"


async def test_temperature_at_home_suits_tools_and_can_be_changed(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    form = await open_agent_form(home, await set_up(account=AT_HOME))
    await say("I would like to know what is going on")
    assert model_server.requests[-1].body["temperature"] == get_default(form, CONF_TEMPERATURE) == 0.6

    await form(**ADA, model="scripted", temperature=1.0)
    await say("hello")

    assert model_server.requests[-1].body["temperature"] == 1.0


async def test_vendors_and_gateways_choose_their_temperature(
    row: Row, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    for kind in (COMPATIBLE, OPENAI, OPENAI_CHAT, GEMINI, ANTHROPIC):
        async with row(kind.name):
            await set_up(account=kind.account(model_server))

            await say("I would like to know what is going on", kind.name)

            body = model_server.requests[-1].body
            assert "temperature" not in body | body.get("generationConfig", {})


async def test_families_are_models_to_talk_to(home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> None:
    form = await open_agent_form(home, await set_up(account=AZURE_RESPONSES.account(model_server)))

    field = get_selectors(form)[CONF_FAMILY]
    assert {"gpt-4o", "gpt-5-mini", "o3"} <= set(field.config["options"])
    assert not {"whisper-1", "gpt-image-1", "text-embedding-3-small"} & set(field.config["options"])
    assert field.config["custom_value"]


async def test_first_agent_of_azure_says_what_its_deployment_runs(
    home: HomeAssistant, model_server: ModelServer
) -> None:
    form = await open_account(home, "azure")
    await form(**AZURE_RESPONSES.entered(model_server))

    result = await form(name="Ada", model="scripted", model_family=" gpt-5-mini ")

    (agent,) = result["result"].runtime_data.agents.values()
    assert (agent.config.model, agent.config.family) == ("scripted", "gpt-5-mini")


async def test_effort_reaches_the_model(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    entry = await set_up(account=AZURE_RESPONSES.account(model_server))
    form = await open_agent_form(home, entry)

    await form(**ADA, model="scripted", model_family="gpt-5", effort="low", temperature=0.3)
    await say("hello")

    body = model_server.requests[-1].body
    assert body["reasoning"]["effort"] == "low"
    # this model family supports none
    assert "temperature" not in body


async def test_temperature_reaches_the_model(
    *, home: HomeAssistant, row: Row, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    for kind in (OPENAI_CHAT, AZURE_RESPONSES, GEMINI, ANTHROPIC):
        async with row(kind.name):
            form = await open_agent_form(home, await set_up(account=kind.account(model_server)))

            await form(**ADA, model="scripted", temperature=0.3)
            await say("hello", kind.name)

            body = model_server.requests[-1].body
            assert (body | body.get("generationConfig", {}))["temperature"] == 0.3


async def test_choices_can_be_taken_back(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    choices = {
        CONF_FAMILY: "gpt-5",
        CONF_EFFORT: "low",
        CONF_FALLBACK_AGENTS: ["conversation.other"],
        CONF_TEMPERATURE: 0.3,
    }
    entry = await set_up(account=AZURE_RESPONSES.account(model_server), **choices)
    form = await open_agent_form(home, entry)
    assert {name: suggested(form)[name] for name in choices} == choices

    await form(**ADA, model="scripted", model_family=" ")
    await say("hello")

    (agent,) = entry.runtime_data.agents.values()
    config = agent.config
    assert (config.family, config.settings, config.fallback_agents) == ("", DEFAULT_SETTINGS, ())
    assert model_server.requests[-1].body.keys().isdisjoint({"reasoning", "temperature"})


async def test_agent_is_not_asked_after_itself(home: HomeAssistant, entry) -> None:
    form = await open_agent_form(home, entry)

    assert get_selectors(form)[CONF_FALLBACK_AGENTS].config["exclude_entities"] == [AGENT]


async def test_fallback_agents_are_asked_in_their_order(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, say: SayFn
) -> None:
    gemini, anthropic = ModelServer(strict=True), ModelServer(strict=True)
    async with gemini, anthropic:
        entry = await set_up()
        await set_up(account=GEMINI.account(gemini))
        await set_up(account=ANTHROPIC.account(anthropic))
        form = await open_agent_form(home, entry)
        await form(**ADA, model="scripted", fallback_agents=["conversation.ada_3", "conversation.ada_2"])
        model_server.fault("500")
        anthropic.fault("500")

        result = await say("my name is Grace")

    assert "Grace" in get_speech(result)
    arrivals = sorted((server.requests[-1].arrived_ns, server) for server in (model_server, anthropic, gemini))
    assert [server for _, server in arrivals] == [model_server, anthropic, gemini]
