"""Tests for simultaneous turns in a real Home Assistant: histories stay consistent, and no message is lost."""

import asyncio
from collections.abc import Iterable
from typing import Any

from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from demo.model_server import ModelServer

from .actions import act
from .conftest import AGENT

_CONVERSATION_IDS = [f"conversation {letter}" for letter in "abcdefghij"]
_TURNS = range(10)


def said(conversation: str) -> list[str]:
    """Return the user's messages in a conversation, in order."""
    return [f"consider that locker {number} of {conversation} is blue" for number in _TURNS]


async def process(home: HomeAssistant, text: str, conversation_id: str) -> dict[str, Any]:
    """Send text to the agent with `conversation.process`, as an automation does, and return the response."""
    data = {"text": text, "conversation_id": conversation_id, "agent_id": AGENT, "language": "en"}
    answer = await home.services.async_call("conversation", "process", data, blocking=True, return_response=True)
    assert answer is not None
    return answer


@pytest.fixture
async def answers(home: HomeAssistant, entry: MockConfigEntry, model_server: ModelServer) -> list[dict[str, Any]]:
    """Run 100 turns at the same time, ten in each of ten conversations, and return the responses."""
    model_server.change(delay=0.001)
    turns = ((text, name) for number in _TURNS for name in _CONVERSATION_IDS for text in [said(name)[number]])
    return await asyncio.gather(*(process(home, text, name) for text, name in turns))


def roles_and_words(messages: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the role and text of each message, without the time and place before the text."""
    return [(message["role"], message["content"].rpartition("\n\n")[2]) for message in messages]


def histories(answers: list[dict[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """Return the expected history of each conversation: each question followed by its answer, in order."""
    heard = [answer["response"]["speech"]["plain"]["speech"] for answer in answers]
    return {
        name: [
            message
            for question, answer in zip(said(name), heard[place :: len(_CONVERSATION_IDS)], strict=True)
            for message in (("user", question), ("assistant", answer))
        ]
        for place, name in enumerate(_CONVERSATION_IDS)
    }


async def test_model_is_sent_histories_that_alternate_and_lose_nothing(
    answers: list[dict[str, Any]], model_server: ModelServer
) -> None:
    bodies = [request.body["messages"] for request in model_server.requests]
    sent = {
        name: [roles_and_words(body[1:]) for body in bodies if body[-1]["content"].endswith(f"of {name} is blue")]
        for name in _CONVERSATION_IDS
    }

    assert sent == {
        name: [history[: 2 * number + 1] for number in _TURNS] for name, history in histories(answers).items()
    }
    assert [violation for request in model_server.requests for violation in request.violations] == []


async def test_windows_hold_every_question_with_its_answer_in_the_order_of_arrival(
    home: HomeAssistant, answers: list[dict[str, Any]]
) -> None:
    shown = [await act(home, "get_conversation", conversation_id=name) for name in _CONVERSATION_IDS]
    windows = {each["conversation_id"]: each["messages"] for each in shown}

    assert {name: roles_and_words(messages[1:]) for name, messages in windows.items()} == histories(answers)
