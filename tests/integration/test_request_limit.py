"""Tests for hundreds of simultaneous conversations: requests are limited, and each turn gets an answer or a reason."""

import asyncio
from typing import Any

from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_TURN_TIMEOUT,
)
from custom_components.windowed_conversation.turn.limits import MAX_CONCURRENT_REQUESTS
from demo.model_server import ModelServer
from tests.at_once import most_at_once

from .conftest import AGENT, SetUpFn
from .more_agents import add_agent

_MANY = 300


async def talk(home: HomeAssistant, number: int, agent: str = AGENT) -> str:
    """Send text in a new conversation, as an automation does, and return the answer."""
    data = {"text": f"my name is Ada{number}", "conversation_id": f"c{number}", "agent_id": agent, "language": "en"}
    answer: Any = await home.services.async_call("conversation", "process", data, blocking=True, return_response=True)
    return str(answer["response"]["speech"]["plain"]["speech"])


@pytest.mark.long
async def test_hundreds_at_once_are_all_answered_a_few_at_a_time(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer
) -> None:
    model_server.change(delay=0.01)

    answers = await asyncio.gather(*(talk(home, number) for number in range(_MANY)))

    assert answers == [f"Nice to meet you, Ada{number}." for number in range(_MANY)]
    assert most_at_once(model_server) == MAX_CONCURRENT_REQUESTS


@pytest.mark.long
async def test_who_is_not_served_in_time_is_told_so_and_the_others_are_served(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_TURN_TIMEOUT: 2})
    model_server.change(delay=0.16)

    answers = await asyncio.gather(*(talk(home, number) for number in range(100)))

    complete = [answer for number, answer in enumerate(answers) if answer == f"Nice to meet you, Ada{number}."]
    late = [answer for answer in answers if answer.endswith("The model did not answer in time. Please try again.")]
    assert len(complete) >= 2 * MAX_CONCURRENT_REQUESTS
    assert len(complete) + len(late) == len(answers)


@pytest.mark.long
async def test_agents_of_an_account_share_its_limit(
    home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer
) -> None:
    await add_agent(home, entry)
    model_server.log.clear()
    model_server.change(delay=0.02)

    agents = (AGENT, "conversation.grace")
    await asyncio.gather(*(talk(home, number, agent) for number in range(20) for agent in agents))

    assert most_at_once(model_server) == MAX_CONCURRENT_REQUESTS
