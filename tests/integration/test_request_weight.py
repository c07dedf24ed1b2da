"""Tests that the agent's form and `get_conversation` show what the requests that are sent really weigh."""

import asyncio
from collections.abc import Callable
import re
from typing import Any

from homeassistant.const import CONF_PROMPT
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_HISTORY_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
    CONF_MEMORY,
    CONF_ROUTING,
    CONF_STATES,
)
from custom_components.windowed_conversation.flows import agent as agent_flow
from custom_components.windowed_conversation.window import TextKind, format_tool_definition
from demo.model_server import ModelServer

from .actions import act
from .agent_forms import open_agent_form, open_new
from .conftest import SayFn, SetUpFn

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
    await set_up(**{CONF_MEMORY: False})
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
