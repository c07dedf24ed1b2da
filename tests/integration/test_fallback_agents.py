"""Tests for fallback agents in a real Home Assistant: they answer in their order when an agent's model fails."""

import asyncio
from collections.abc import AsyncIterator

from homeassistant.config_entries import SOURCE_REAUTH
from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_ROUTING,
    DOMAIN,
)
from custom_components.windowed_conversation.turn import asking
from demo.model_server import ModelServer
from tests.providers.byte_server import DONE, STOP, ByteServer, text

from .conftest import SayFn, SetUpFn, get_speech

HOME_ASSISTANT = "conversation.home_assistant"
# The second agent gets a suffix, because the first one already uses the plain entity id.
SECOND = "conversation.ada_2"
LOADING_SECONDS = 1.5


@pytest.fixture
async def second_server(socket_enabled: None) -> AsyncIterator[ModelServer]:
    async with ModelServer(strict=True) as server:
        yield server


@pytest.fixture
async def both(set_up: SetUpFn, second_server: ModelServer) -> MockConfigEntry:
    """Return the first agent's account, whose fallback agent uses another account on a second server."""
    first = await set_up(**{CONF_FALLBACK_AGENTS: [SECOND], CONF_ROUTING: "model_only"})
    await set_up(account={CONF_URL: second_server.url}, **{CONF_ROUTING: "model_only"})
    second_server.log.clear()
    return first


async def test_fallback_agent_may_act_on_the_home(
    home: HomeAssistant, both: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.fault("500")

    await say("I would like the kitchen light switched on")

    state = home.states.get("input_boolean.kitchen")
    assert state is not None
    assert state.state == "on"


async def test_answer_of_a_fallback_agent_is_a_fallback_and_an_answer(
    set_up: SetUpFn, say: SayFn, figure, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: [HOME_ASSISTANT], CONF_ROUTING: "model_only"})
    model_server.fault("500", 1)

    answer = get_speech(await say("turn on the kitchen light"))
    await say("my name is Grace")

    assert answer == "Turned on the switch"
    counted = {key: figure(key) for key in ("turns_fallback", "turns_model", "turns_failed", "requests")}
    assert counted == {"turns_fallback": "1", "turns_model": "2", "turns_failed": "0", "requests": "2"}


@pytest.mark.parametrize("gone", ["conversation.nobody", "conversation.ada"])
async def test_agent_that_is_not_there_is_passed_over(
    gone: str, set_up: SetUpFn, second_server: ModelServer, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: [gone, SECOND], CONF_ROUTING: "model_only"})
    await set_up(account={CONF_URL: second_server.url})
    model_server.fault("500")

    assert get_speech(await say("my name is Grace")) == "Nice to meet you, Grace."


async def test_refused_key_of_the_first_is_asked_for_again(
    home: HomeAssistant, both: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.fault("401")

    assert get_speech(await say("my name is Grace")) == "Nice to meet you, Grace."

    (flow,) = home.config_entries.flow.async_progress_by_handler(DOMAIN)
    assert flow["context"]["source"] == SOURCE_REAUTH
    assert flow["context"]["entry_id"] == both.entry_id


@pytest.fixture
async def loading(set_up: SetUpFn, byte_server: ByteServer, monkeypatch: pytest.MonkeyPatch) -> MockConfigEntry:
    """Return the account of an agent whose server loads the model three times as long as its fallback timeout."""
    monkeypatch.setattr(asking, "_FALLBACK_TIMEOUT", LOADING_SECONDS / 3)
    settings = {CONF_FALLBACK_AGENTS: [SECOND], CONF_ROUTING: "model_only"}
    first = await set_up(account={CONF_URL: byte_server.url, CONF_API_KEY: None}, **settings)
    await set_up(**{CONF_ROUTING: "model_only"})
    byte_server.set_reply(text("The model is here."), STOP, DONE, before=LOADING_SECONDS)
    return first


@pytest.mark.long
async def test_model_at_home_is_loaded_while_a_fallback_agent_answers(
    loading: MockConfigEntry, say: SayFn, byte_server: ByteServer
) -> None:
    answers = [get_speech(await say(question)) for question in ("my name is Grace", "what is my name?")]
    await asyncio.sleep(LOADING_SECONDS)

    byte_server.set_reply(text("The model is here."), STOP, DONE)
    answers.append(get_speech(await say("hello")))

    assert answers == ["Nice to meet you, Grace.", "Your name is Grace.", "The model is here."]


@pytest.mark.long
async def test_load_ends_when_its_account_is_unloaded(
    home: HomeAssistant, loading: MockConfigEntry, say: SayFn, byte_server: ByteServer
) -> None:
    byte_server.set_reply(text("The model is here."), STOP, DONE, before=100)
    await say("my name is Grace")

    await home.config_entries.async_unload(loading.entry_id)
    await asyncio.sleep(0.1)

    assert byte_server.left == 1


@pytest.mark.long
async def test_slow_model_is_heard_if_no_fallback_agent_answers(
    loading: MockConfigEntry, say: SayFn, byte_server: ByteServer, model_server: ModelServer
) -> None:
    model_server.fault("500")

    assert get_speech(await say("hello")) == "The model is here."


async def test_own_agent_of_home_assistant_is_asked_loosely_when_nobody_else_has_answered(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, figure, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.nobody"]})
    model_server.fault("500")

    answer = get_speech(await say("turn on the kitchn light"))

    state = home.states.get("input_boolean.kitchen")
    assert state is not None
    assert (answer, state.state) == ("Turned on the switch", "on")
    counted = {key: figure(key) for key in ("turns_fallback", "turns_failed", "requests")}
    assert counted == {"turns_fallback": "1", "turns_failed": "0", "requests": "1"}


@pytest.mark.parametrize(
    ("routing", "sentence"),
    [("local_first", "what is the capital of France?"), ("model_only", "turn on the kitchen light")],
)
async def test_error_of_the_model_is_heard_if_the_own_agent_has_no_answer_or_is_not_used(
    routing: str, sentence: str, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_ROUTING: routing})
    model_server.fault("500")

    assert "cannot be reached" in get_speech(await say(sentence))


async def test_next_request_has_the_answer_of_the_own_agent(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up()
    model_server.fault("500", 1)
    await say("turn on the kitchn light")

    await say("my name is Grace")

    assert [each["role"] for each in model_server.requests[-1].body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert "Turned on the switch" in str(model_server.requests[-1].body["messages"])
