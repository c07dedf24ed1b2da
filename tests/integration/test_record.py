"""Tests for the data of a turn in its event, trace and sensor: agent, failures, usage, and prompt cache."""

from dataclasses import fields
from typing import Any

from homeassistant.components.conversation.trace import async_get_traces
from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_PROVIDER,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.providers.events import Usage
from demo.model_server import ModelServer

from .conftest import AGENT, SayFn, SetUpFn, get_speech
from .more_agents import add_account
from .states import get_state

MODEL, HAIKU, FLASH = "gpt-4o-mini", "claude-haiku-4-5", "gemini-2.5-flash"
GRACE = "conversation.grace"
LONG = f"consider that the word is pelican {'Ada ' * 3000}"


def traced() -> dict[str, Any]:
    """Return the data of our last turn in the traces."""
    events = [event.data for trace in async_get_traces() for event in trace._events]
    return [details for details in events if details and "route" in details][-1]


@pytest.fixture(autouse=True)
async def other(home: HomeAssistant, model_server: ModelServer) -> None:
    """Add models with a prompt cache, and an Anthropic account with another agent at the same server."""
    model_server.change(models=("scripted", MODEL, HAIKU, FLASH))
    account = {CONF_PROVIDER: PROVIDER_ANTHROPIC, CONF_URL: model_server.address}
    await add_account(home, "Grace", account, **{CONF_MODEL: HAIKU})


@pytest.fixture
async def ours(other: None, set_up: SetUpFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an OpenAI account whose agent has the Anthropic agent as its fallback agent."""
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    return await set_up(account=account, **{CONF_MODEL: MODEL, CONF_FALLBACK_AGENTS: [GRACE]})


@pytest.mark.long
async def test_event_tells_who_answered_and_all_that_was_used(
    home: HomeAssistant, ours: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    events = async_capture_events(home, f"{DOMAIN}_turn")

    await say(LONG)
    await say("what is the word?")

    used = model_server.requests[-1].usage
    told = events[-1].data
    assert (told["answered_by"], told["failures"]) == (AGENT, [])
    assert told["usage"].keys() == {field.name for field in fields(Usage)}
    assert (told["usage"]["input"], told["usage"]["cached"]) == (used["prompt"], used["cached"])
    assert (told["usage"]["output"], told["usage"]["reasoning"]) == (used["completion"], used["reasoning"])
    assert used["cached"] > 0


@pytest.mark.parametrize(("fault", "error"), [("429", "rate_limited"), ("404", "model_not_found")])
async def test_hand_over_is_told_by_event_trace_and_sensor(
    *, home: HomeAssistant, ours: MockConfigEntry, say: SayFn, model_server: ModelServer, fault: str, error: str
) -> None:
    events = async_capture_events(home, f"{DOMAIN}_turn")
    model_server.fault(fault, 1)

    assert "Ada" in get_speech(await say("my name is Ada"))

    expected = {
        "reason": error,
        "answered_by": GRACE,
        "failures": [{"agent": AGENT, "error": error}],
    }
    shown = get_state(home, "sensor.ada_last_route")
    assert shown.state == "fallback"
    for told in (events[-1].data, traced(), shown.attributes):
        assert {key: told[key] for key in expected} == expected


async def test_error_the_sentence_that_was_spoken_and_all_who_failed_are_told(
    home: HomeAssistant, ours: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    events = async_capture_events(home, f"{DOMAIN}_turn")
    model_server.fault("quota")

    spoken = get_speech(await say("my name is Ada"))

    assert get_state(home, "sensor.ada_last_route").state == "error"
    shown = get_state(home, "sensor.ada_last_route").attributes
    assert (shown["error"], shown["message"]) == ("quota_error", spoken)
    assert (shown["answered_by"], shown["failures"]) == (None, [{"agent": AGENT, "error": "quota_error"}])
    assert (events[-1].data["error"], traced()["error"]) == ("quota_error", "quota_error")


async def test_error_is_past_when_the_next_turn_is_answered(
    home: HomeAssistant, ours: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.fault("quota", 2)
    await say("my name is Ada")

    await say("my name is Ada")

    shown = get_state(home, "sensor.ada_last_route").attributes
    assert (shown["error"], shown["message"]) == (None, None)


async def test_stranger_is_told_by_its_entity(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.home_assistant"], CONF_ROUTING: "model_only"})
    model_server.fault("500")

    await say("turn on the kitchen light")

    assert traced()["answered_by"] == "conversation.home_assistant"


async def test_agent_is_told_by_the_name_that_its_entity_was_given(
    home: HomeAssistant, ours: MockConfigEntry, say: SayFn
) -> None:
    er.async_get(home).async_update_entity(AGENT, new_entity_id="conversation.lovelace")
    await home.async_block_till_done()

    await say("my name is Ada", agent_id="conversation.lovelace")

    assert traced()["answered_by"] == "conversation.lovelace"


async def test_local_turn_was_answered_by_no_agent(home: HomeAssistant, ours: MockConfigEntry, say: SayFn) -> None:
    await say("turn on kitchen light")

    assert (traced()["answered_by"], traced()["failures"], traced()["cache"]) == (None, [], None)
    shown = get_state(home, "sensor.ada_last_route").attributes
    assert (shown["reason"], shown["answered_by"], shown["failures"]) == ("local_match", None, [])


@pytest.mark.parametrize("routing", ["local_first", "local_only"])
@pytest.mark.parametrize(
    "text", ["remember that my bike is red", "forget that my bike is red", "what do you know about me?"]
)
async def test_reason_of_an_answer_of_memory_is_the_request_to_it(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, routing: str, text: str
) -> None:
    await set_up(**{CONF_ROUTING: routing})

    await say(text)

    shown = get_state(home, "sensor.ada_last_route")
    assert (shown.state, shown.attributes["reason"], shown.attributes["error"]) == ("local", "memory_request", None)


@pytest.mark.long
async def test_trace_tells_what_openai_was_asked_to_cache_and_did(
    ours: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await say(LONG)
    await say("what is the word?")

    (agent_id,) = ours.subentries
    request = model_server.requests[-1]
    assert traced()["cache"]["asked"] == {"prompt_cache_key": agent_id} | {
        name: request.body[name] for name in request.body if name.startswith("prompt_cache")
    }
    assert traced()["cache"]["billed"]["cached"] == request.usage["cached"] > 0


async def test_trace_tells_where_anthropic_was_asked_to_cache_and_did(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    account = {CONF_PROVIDER: PROVIDER_ANTHROPIC, CONF_URL: model_server.address}
    await set_up(account=account, **{CONF_MODEL: HAIKU})

    await say(LONG)

    assert traced()["cache"]["asked"]["cache_control"] == {"type": "ephemeral"}
    assert "tools" in traced()["cache"]["asked"]["breakpoints"]
    used = model_server.requests[-1].usage
    assert traced()["cache"]["billed"] == {
        "input": used["prompt"],
        "cached": used["cached"],
        "cache_written": used["written"],
    }
    assert used["written"] > 0


async def test_record_holds_no_text(
    home: HomeAssistant, ours: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    events = async_capture_events(home, f"{DOMAIN}_turn")
    model_server.fault("500", 1)

    await say(LONG)

    told = f"{events[-1].data} {traced()} {get_state(home, 'sensor.ada_last_route').attributes}"
    assert "pelican" not in told
    assert "key'" not in told.replace("prompt_cache_key'", "")
