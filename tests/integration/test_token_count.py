"""Tests for the size of a conversation's next request: its count, and how much each of its parts weighs."""

import asyncio
from collections.abc import Callable
from itertools import product
import re
from typing import Any

from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.actions import conversations
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_HISTORY_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_PROVIDER,
    CONF_ROUTING,
    CONF_STATES,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.flows import agent as agent_flow
from custom_components.windowed_conversation.window import TextKind, format_tool_definition
from demo.model_server import ModelServer

from .actions import act
from .agent_forms import open_agent_form, open_new
from .conftest import SayFn, SetUpFn
from .large_source import AddSource
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


type GetAgent = Callable[[MockConfigEntry], Agent]

BROKEN = {CONF_PROMPT: "{{ 1 / 0 }}"}


async def get_weight(home: HomeAssistant) -> Any:
    """Return the weight of a request from the action."""
    return (await act(home, "get_conversation", content="statistics"))["statistics"]["request"]


async def get_text(home: HomeAssistant, entry: MockConfigEntry) -> str:
    """Return the text on the weight of a request in the agent's form."""
    text: str = (await open_agent_form(home, entry)).shown["description_placeholders"]["request_weight"]
    return text


@pytest.fixture
async def told(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> MockConfigEntry:
    """Return an account whose agent knows the states of the home and a fact, after a request with both."""
    entry = await set_up(**{CONF_STATES: True, CONF_ROUTING: "model_only", CONF_CONTEXT_TOKENS: 6_000})
    await act(home, "remember", text="The bins go out on Friday")
    await say("hello")
    return entry


async def test_weight_of_the_prompt_is_that_of_the_prompt_that_was_sent(
    home: HomeAssistant, told: MockConfigEntry, get_agent: GetAgent, model_server: ModelServer
) -> None:
    prompt = model_server.requests[-1].body["messages"][0]["content"]
    weight = await get_weight(home)

    assert "The bins go out on Friday" in prompt
    sent = get_agent(told).counter.count_as(TextKind.FIXED, prompt)
    assert weight["instructions"] + weight["home"] + weight["facts"] == pytest.approx(sent, abs=5)
    assert min(weight["instructions"], weight["home"], weight["facts"]) > 0


async def test_weight_of_the_tools_is_that_of_the_tools_that_were_sent(
    home: HomeAssistant, told: MockConfigEntry, get_agent: GetAgent, model_server: ModelServer
) -> None:
    functions = [tool["function"] for tool in model_server.requests[-1].body["tools"]]
    texts = [format_tool_definition(each["name"], each["description"], each["parameters"]) for each in functions]

    sent = sum(get_agent(told).counter.count_as(TextKind.FIXED, text) for text in texts)
    assert (await get_weight(home))["tools"] == sent > 0


async def test_window_has_the_room_that_the_model_leaves(home: HomeAssistant, told: MockConfigEntry) -> None:
    weight = await get_weight(home)

    room = weight["model"] - weight["total"] - weight["answer"] - weight["live_context"]
    assert (weight["model"], weight["window"]) == (6_000, room)
    assert 0 < weight["live_context"] < room


async def test_window_of_a_model_of_unknown_size_has_the_size_of_the_option(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn
) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 5_000}, **{CONF_MAX_ANSWER_TOKENS: 700})
    await say("my name is Ada")

    weight = await get_weight(home)

    assert (weight["window"], weight["answer"], weight["model"]) == (5_000, 700, None)


async def test_facts_are_unknown_before_the_model_was_asked(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("turn on kitchen light")

    assert (await get_weight(home))["facts"] is None


async def test_agent_without_memory_has_no_facts(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> None:
    await set_up(**{CONF_MEMORY: "off"})
    await say("my name is Ada")

    assert (await get_weight(home))["facts"] == 0


async def test_form_says_about_how_much_a_question_sends(home: HomeAssistant, told: MockConfigEntry) -> None:
    weight, text = await get_weight(home), await get_text(home, told)

    tokens = int(re.sub(r"\D", "", text))
    assert tokens == pytest.approx(weight["total"], rel=0.05)
    assert text == f"A question sends about {tokens:,} tokens before any history."


async def test_form_counts_no_facts_before_the_model_was_asked(home: HomeAssistant, entry: MockConfigEntry) -> None:
    text = await get_text(home, entry)

    assert re.fullmatch(r"A question sends about [\d,]*0 tokens before any history\.", text)


async def test_form_says_what_the_tools_of_each_source_weigh_and_what_is_sent(
    home: HomeAssistant, add_source: AddSource, set_up: SetUpFn, say: SayFn
) -> None:
    add_source("archive")
    add_source("attic", count=3)
    entry = await set_up(llm_hass_api=["assist", "archive", "attic"])
    await say("turn on kitchen light")

    text, sources = await get_text(home, entry), (await get_weight(home))["sources"]

    *_, large, small = text.split("\n")
    assert re.fullmatch(r"- Archive: [\d,]+00 → 0", large)
    assert re.fullmatch(r"- Attic: (\d+) → \1", small)
    assert sources["Archive"][0] > 2_500 > sum(sent for _, sent in sources.values()) > 0


async def test_form_of_a_new_agent_has_no_weight(home: HomeAssistant, entry: MockConfigEntry) -> None:
    form = await open_new(home, entry)

    assert form.shown["description_placeholders"]["request_weight"] == ""


@pytest.mark.parametrize("settings", [BROKEN, {CONF_ROUTING: "local_only"}], ids=["broken template", "no model"])
async def test_form_without_a_weight_is_shown(home: HomeAssistant, set_up: SetUpFn, settings: dict[str, str]) -> None:
    assert await get_text(home, await set_up(**settings)) == ""


async def test_form_does_not_wait_for_slow_tools(
    home: HomeAssistant, entry: MockConfigEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_for_ever(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(agent_flow, "_WEIGHT_TIMEOUT", 0)
    monkeypatch.setattr("homeassistant.helpers.llm.async_get_api", wait_for_ever)

    assert await get_text(home, entry) == ""


async def test_figures_are_returned_where_a_request_cannot_be_counted(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn
) -> None:
    await set_up(**BROKEN)
    await say("turn on kitchen light")

    statistics = (await act(home, "get_conversation", content="statistics"))["statistics"]

    assert statistics["exchanges"] == 1
    assert statistics["request"] is None
