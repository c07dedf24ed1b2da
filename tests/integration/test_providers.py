"""Tests for each provider: streaming, tool calls, memory, fallback after a failure, and reauthentication."""

from collections.abc import Callable, Coroutine
from itertools import product
import math
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import (
    CONF_EFFORT,
    CONF_FALLBACK_AGENTS,
    CONF_FAMILY,
    CONF_FORMAT,
    CONF_MAX_ANSWER_TOKENS,
    CONF_PROVIDER,
    CONF_TURN_TIMEOUT,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
)
from custom_components.windowed_conversation.providers.models import ReasoningStyle
from custom_components.windowed_conversation.turn import asking, limits
from demo.model_server import ModelServer
from demo.model_server.anthropic_models import OUTPUT_TOKENS

from .conftest import SayFn, SetUpFn, get_speech
from .dashboard import PipelineClient, ending, streamed
from .rows import Row, row

__all__ = ["row"]

# The provider, the account data that selects its wire format, and the path of the server's URL.
_ACCOUNTS = {
    "responses": (PROVIDER_OPENAI, {CONF_FORMAT: "responses"}, "/v1"),
    "chat": (PROVIDER_OPENAI, {CONF_FORMAT: "chat"}, "/v1"),
    "azure": (PROVIDER_AZURE, {CONF_FORMAT: "responses"}, ""),
    "gemini": (PROVIDER_GEMINI, {}, ""),
    "anthropic": (PROVIDER_ANTHROPIC, {}, ""),
    "server": (PROVIDER_OPENAI_CHAT, {}, "/v1"),
}
_MODELS = {
    "responses": "gpt-5-mini",
    "chat": "gpt-4o-mini",
    "azure": "our-deployment",
    "gemini": "gemini-2.5-flash",
    "anthropic": "claude-haiku-4-5",
    "server": "scripted",
}

# The tokens added for reasoning to each model's answer limit: by default, and with low effort.
_ROOM = {
    "responses": (8192, 4096),
    "chat": (0, 0),
    "azure": (0, 0),
    "gemini": (8192, 4096),
    "anthropic": (0, 4096),
    "server": (0, 0),
}
_LIMITS = ("max_output_tokens", "max_completion_tokens", "max_tokens")

# The model family that the Azure deployment runs.
_FAMILY = "gpt-4.1-mini"

# The wire format of the requests to the server.
_FORMATS = {
    "responses": "openai_responses",
    "chat": "openai_chat",
    "azure": "openai_responses",
    "gemini": "gemini",
    "anthropic": "anthropic",
    "server": "openai_chat",
}

# The idle timeout of the first provider, and the time within which the second must then answer, in seconds.
_IDLE_TIMEOUT = 0.3
_HAND_OVER = 1.0

_SECOND = "conversation.ada_2"
_LIGHT = "input_boolean.kitchen"

type SetUpFirst = Callable[..., Coroutine[Any, Any, MockConfigEntry]]
type SetUpSecond = Callable[[str, ModelServer], Coroutine[Any, Any, None]]


def account(provider: str, server: ModelServer) -> dict[str, Any]:
    """Return the data of an account with this provider, whose URL is the scripted server."""
    kind, more, path = _ACCOUNTS[provider]
    return {CONF_PROVIDER: kind, CONF_URL: f"{server.address}{path}", CONF_API_KEY: "key", **more}


def build_server() -> ModelServer:
    """Return a server that has the models of all providers."""
    return ModelServer(strict=True, models=tuple(_MODELS.values()))


@pytest.fixture
def set_up_first(set_up: SetUpFn, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> SetUpFirst:
    """Return a function that sets up an account with a provider, whose agent has a fallback agent at a second one."""

    async def set_up_first(provider: str, server: ModelServer = model_server) -> MockConfigEntry:
        server.change(models=tuple(_MODELS.values()))
        monkeypatch.setattr(limits, "IDLE_TIMEOUT", _IDLE_TIMEOUT)
        monkeypatch.setattr(asking, "_FALLBACK_TIMEOUT", _IDLE_TIMEOUT)
        return await set_up(
            account=account(provider, server),
            **{
                CONF_MODEL: _MODELS[provider],
                CONF_TURN_TIMEOUT: 5,
                CONF_FALLBACK_AGENTS: [_SECOND],
                CONF_FAMILY: _FAMILY,
            },
        )

    return set_up_first


@pytest.fixture
def set_up_second(set_up: SetUpFn) -> SetUpSecond:
    """Return a function that sets up an account with the provider that follows the first one in the list."""

    async def set_up_second(first: str, server: ModelServer) -> None:
        names = list(_ACCOUNTS)
        provider = names[(names.index(first) + 1) % len(names)]
        await set_up(account=account(provider, server), **{CONF_MODEL: _MODELS[provider]})

    return set_up_second


async def test_answer_is_streamed(
    home: HomeAssistant, row: Row, set_up_first: SetUpFirst, model_server: ModelServer, hass_ws_client
) -> None:
    dashboard = PipelineClient(await hass_ws_client(home))
    pipeline = await dashboard.create(prefer_local_intents=False)
    for provider in _ACCOUNTS:
        async with row(provider):
            await set_up_first(provider)

            events = await dashboard.run(pipeline, "tell me a story about the sea")

            assert len(streamed(events)) > 20
            assert "".join(streamed(events)) == ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"]
            assert [request.format for request in model_server.requests] == [_FORMATS[provider]]


async def test_tool_call_changes_the_home(
    home: HomeAssistant, row: Row, set_up_first: SetUpFirst, say: SayFn, model_server: ModelServer
) -> None:
    for provider in _ACCOUNTS:
        async with row(provider):
            await set_up_first(provider)
            await home.services.async_call("input_boolean", "turn_off", {"entity_id": _LIGHT}, blocking=True)

            result = await say("I would like the kitchen light switched on")

            assert home.states.is_state(_LIGHT, "on")
            assert "kitchen light" in get_speech(result)
            assert [request.violations for request in model_server.requests] == [[], []]


async def test_script_without_a_lower_limit_costs_no_turn(
    home: HomeAssistant, row: Row, set_up_first: SetUpFirst, say: SayFn, model_server: ModelServer
) -> None:
    endless = {"name": "Level", "selector": {"number": {"min": -math.inf, "max": 10, "mode": "box"}}}
    script = {"alias": "Dim", "description": "Dims the lamp", "fields": {"level": endless}, "sequence": []}
    assert await async_setup_component(home, "script", {"script": {"dim": script}})
    async_expose_entity(home, "conversation", "script.dim", should_expose=True)
    for provider in _ACCOUNTS:
        async with row(provider):
            await set_up_first(provider)

            result = await say("I would like the kitchen light switched on")

            assert "kitchen light" in get_speech(result)
            assert b'"level"' in model_server.requests[-1].raw
            assert b"Infinity" not in model_server.requests[-1].raw


async def test_limit_of_the_answer_is_sent(row: Row, set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> None:
    for provider, effort in product(_ACCOUNTS, (None, "low")):
        async with row(f"{provider} {effort}"):
            model_server.change(models=tuple(_MODELS.values()))
            settings = {CONF_MAX_ANSWER_TOKENS: 700, CONF_FAMILY: _FAMILY} | ({CONF_EFFORT: effort} if effort else {})
            await set_up(account=account(provider, model_server), **{CONF_MODEL: _MODELS[provider], **settings})

            await say("what is the capital of France?")

            request = model_server.requests[-1]
            limits = [request.body.get(name) for name in _LIMITS]
            limits.append(request.body.get("generationConfig", {}).get("maxOutputTokens"))
            assert [limit for limit in limits if limit is not None] == [700 + _ROOM[provider][bool(effort)]]
            assert request.violations == []


async def test_follow_up_knows_what_was_said_and_done(
    row: Row, set_up_first: SetUpFirst, say: SayFn, model_server: ModelServer
) -> None:
    for provider in _ACCOUNTS:
        async with row(provider):
            await set_up_first(provider)
            await say("my name is Ada")
            await say("I would like the kitchen light switched on")

            assert get_speech(await say("what is my name?")) == "Your name is Ada."
            assert all(request.violations == [] for request in model_server.requests)


async def test_facts_are_remembered_by_a_tool_and_known_in_another_conversation(
    row: Row, set_up_first: SetUpFirst, say: SayFn, model_server: ModelServer
) -> None:
    for provider in _ACCOUNTS:
        async with row(provider):
            await set_up_first(provider)

            confirmation = get_speech(await say("let memory hold that the bins go out on Friday"))

            assert confirmation == "I have put it into my memory."
            assert get_speech(await say("when do the bins go out?", "another")) == "The bins go out on Friday."
            assert all(request.violations == [] for request in model_server.requests)


@pytest.mark.parametrize(
    ("fault", "failed_after", "reason"),
    [
        ("503", 0.0, "unavailable"),
        (None, 0.0, "unavailable"),
        ("no_answer", _IDLE_TIMEOUT, "deadline_exceeded"),
    ],
    ids=["503", "down", "no answer"],
)
async def test_second_is_heard_within_a_second_of_the_failure(
    *,
    home: HomeAssistant,
    row: Row,
    set_up_first: SetUpFirst,
    set_up_second: SetUpSecond,
    say: SayFn,
    get_agent: Callable[[MockConfigEntry], Agent],
    fault: str | None,
    failed_after: float,
    reason: str,
) -> None:
    for provider in _ACCOUNTS:
        async with row(provider), build_server() as first_server, build_server() as second_server:
            entry = await set_up_first(provider, first_server)
            await set_up_second(provider, second_server)
            await say("my name is Ada")
            turns = async_capture_events(home, EVENT_TURN)
            if fault:
                first_server.fault(fault)
            else:
                await first_server.stop()
            began = home.loop.time()

            assert get_speech(await say("what is my name?")) == "Your name is Ada."

            assert home.loop.time() - began - failed_after < _HAND_OVER
            assert get_agent(entry).statistics.time_to_first_token is not None
            assert [(event.data["route"], event.data["reason"]) for event in turns] == [("fallback", reason)]
            assert [request.violations for request in second_server.requests] == [[]]


async def test_first_goes_on_with_what_the_second_answered(
    row: Row, set_up_first: SetUpFirst, set_up_second: SetUpSecond, say: SayFn, model_server: ModelServer
) -> None:
    for provider in _ACCOUNTS:
        async with row(provider), build_server() as second_server:
            await set_up_first(provider)
            await set_up_second(provider, second_server)
            model_server.fault("503", 1)
            await say("my name is Ada")
            second_server.log.clear()

            assert get_speech(await say("what is my name?")) == "Your name is Ada."
            assert model_server.requests[-1].violations == []
            assert second_server.requests == []


async def test_models_of_anthropic_have_the_capabilities_that_the_server_lists(set_up_first: SetUpFirst) -> None:
    entry = await set_up_first("anthropic")

    (agent,) = entry.runtime_data.agents.values()

    # its family has a thinking budget, but the scripted server lists adaptive thinking
    assert agent.model.profile.reasoning is ReasoningStyle.ADAPTIVE
    assert agent.model.profile.output_tokens == OUTPUT_TOKENS
