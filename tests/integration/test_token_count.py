"""Tests for the token count of a conversation's next request: the provider's, returned with our own."""

from collections.abc import Callable
from itertools import product
from typing import Any

from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.actions import conversations
from custom_components.windowed_conversation.const import (
    CONF_PROVIDER,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
)
from demo.model_server import ModelServer

from .actions import act
from .conftest import SayFn, SetUpFn
from .more_agents import change_agent
from .rows import Row, row

__all__ = ["row"]

QUESTION = "what is my name?"
# The most tokens that the beginning of a user message takes, which contains the time, the speaker and the place.
CONTEXT_TOKENS = 60
COUNTING = (PROVIDER_OPENAI, PROVIDER_ANTHROPIC, PROVIDER_GEMINI)


async def count_tokens(home: HomeAssistant) -> Any:
    """Return the counts of the conversation's next request."""
    return (await act(home, "get_conversation", content="token_count"))["token_count"]


@pytest.fixture
def account(set_up: SetUpFn, model_server: ModelServer) -> Callable[..., Any]:
    """Return a function that sets up an account with the given provider."""

    async def account(provider: str, **agent: Any) -> MockConfigEntry:
        url = model_server.url if provider == PROVIDER_OPENAI else model_server.address
        return await set_up(account={CONF_PROVIDER: provider, CONF_URL: url}, **agent)

    return account


@pytest.mark.parametrize("provider", COUNTING)
async def test_next_request_is_counted_as_it_will_be_sent(
    home: HomeAssistant, account, say: SayFn, model_server: ModelServer, provider: str
) -> None:
    await account(provider)
    await say("I would like the kitchen light switched on")

    counts = await count_tokens(home)
    counting_request = list(model_server.log.records)[-1]
    await say(QUESTION)

    turn_request = model_server.requests[-1]
    assert (counting_request.for_answer, counting_request.violations) == (False, [])
    assert 0 < turn_request.usage["prompt"] - counts["counted"] < CONTEXT_TOKENS
    assert counts["estimated"] == pytest.approx(counts["counted"], rel=0.4)
    assert counts["difference"] == round(100 * (counts["estimated"] - counts["counted"]) / counts["counted"], 1)


@pytest.mark.parametrize("provider", COUNTING)
async def test_what_the_tools_take_is_counted(home: HomeAssistant, account, say: SayFn, provider: str) -> None:
    await account(provider)
    await say("my name is Ada")
    with_tools = await count_tokens(home)

    (entry,) = home.config_entries.async_entries(DOMAIN)
    await change_agent(home, entry, **{CONF_LLM_HASS_API: []})
    without = await count_tokens(home)

    assert with_tools["counted"] - without["counted"] > 500
    assert with_tools["estimated"] - without["estimated"] > 500


async def test_count_leaves_the_conversation_as_it_was(home: HomeAssistant, account, say: SayFn, get_agent) -> None:
    agent = get_agent(await account(PROVIDER_OPENAI))
    await say("my name is Ada")
    (window,) = agent.windows.loaded_windows().values()
    before = window.snapshot()

    await count_tokens(home)

    assert window.snapshot() == before


async def test_server_that_cannot_count_is_told(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("my name is Ada")

    with pytest.raises(HomeAssistantError, match="cannot count tokens"):
        await count_tokens(home)


async def test_failure_of_the_provider_is_told(
    home: HomeAssistant, row: Row, account, say: SayFn, model_server: ModelServer
) -> None:
    texts = {
        "401": "did not accept the API key",
        "429": "try again in 7 seconds",
        "500": "cannot be reached right now",
        "html": "cannot be reached right now",
    }
    for provider, (fault, text) in product(COUNTING, texts.items()):
        async with row(f"{provider} {fault}"):
            await account(provider)
            await say("my name is Ada")
            model_server.fault(fault, retry_after=7)

            with pytest.raises(HomeAssistantError, match=text):
                await count_tokens(home)


async def test_provider_that_does_not_answer_is_not_waited_for(
    home: HomeAssistant, account, say: SayFn, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "_COUNT_TIMEOUT", 0.2)
    await account(PROVIDER_OPENAI)
    await say("my name is Ada")
    model_server.fault("no_answer")

    with pytest.raises(HomeAssistantError, match="did not answer in time"):
        await count_tokens(home)


async def test_agent_that_answers_locally_has_nothing_to_count(home: HomeAssistant, account, say: SayFn) -> None:
    await account(PROVIDER_OPENAI, **{CONF_ROUTING: "local_only"})
    await say("turn on kitchen light")

    with pytest.raises(ServiceValidationError, match="does not use a model"):
        await count_tokens(home)


async def test_tools_that_are_not_there_are_told(home: HomeAssistant, account, say: SayFn, get_agent) -> None:
    await account(PROVIDER_OPENAI, **{CONF_MODEL: "scripted", CONF_LLM_HASS_API: ["gone"]})
    await say("turn on kitchen light")

    with pytest.raises(HomeAssistantError, match="tools"):
        await count_tokens(home)
