"""Tests for the compaction of a passage by the provider: its request, its size, and agents without compaction."""

import asyncio
from dataclasses import replace
import json
from typing import Any

from openai import AsyncOpenAI
import pytest

from custom_components.windowed_conversation.agents.background.requests import (
    ask_for_compaction,
    collect_compaction_messages,
)
from custom_components.windowed_conversation.providers.errors import DeadlineExceeded
from custom_components.windowed_conversation.providers.events import DEFAULT_SETTINGS, ModelSettings, Usage
from custom_components.windowed_conversation.providers.openai.clients import ResponsesProvider
from custom_components.windowed_conversation.turn.attempts import Attempt
from custom_components.windowed_conversation.turn.limits import DEFAULT_TURN_TIMEOUT
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.window import EstimatedCounter, Exchange, Message, NativeData
from custom_components.windowed_conversation.window.messages import SUMMARY
from custom_components.windowed_conversation.window.summary import SummaryInput
from tests.providers.byte_server import ByteServer

NO_TAGS: frozenset[str] = frozenset()
COUNTER = EstimatedCounter()
COMPACTS = ModelSettings(compaction=True)
MESSAGES = (Message.user("hello"), Message.assistant("Hello!"))
SAID = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
OUTPUT = [SAID, {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}]
DOCUMENT = {
    "id": "resp_1",
    "object": "response.compaction",
    "created_at": 1763800000,
    "output": OUTPUT,
    "usage": {
        "input_tokens": 70,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 10},
        "total_tokens": 110,
    },
}
SUMMARY_EXCHANGE = Exchange(
    (Message.user("[What was said?]", tags=frozenset({SUMMARY})), Message.assistant("User: hello")), NO_TAGS, 10, 3
)


def talked(number: int) -> Exchange:
    return Exchange((Message.user(f"question {number}"), Message.assistant("yes")), NO_TAGS, 10, number)


@pytest.fixture
async def asked(http_client: Any, byte_server: ByteServer, question: Question) -> Question:
    """Return a question whose provider supports compaction."""
    byte_server.set_reply(json.dumps(DOCUMENT).encode(), headers={"Content-Type": "application/json"})
    sdk = AsyncOpenAI(api_key="key", base_url=byte_server.url, http_client=http_client, max_retries=0)
    return replace(question, model=replace(question.model, provider=ResponsesProvider(sdk), settings=COMPACTS))


async def compacted(
    question: Question, turn_timeout: float = DEFAULT_TURN_TIMEOUT
) -> tuple[NativeData | None, list[Usage]]:
    """Return the compaction, or None, and the usage of each request for it."""
    attempts: list[Attempt] = []
    native = await ask_for_compaction(question, MESSAGES, COUNTER, turn_timeout, attempts.append)
    return native, [each.billed_request.usage for each in attempts if each.billed_request]


async def test_result_is_stamped_and_costs_what_is_sent_back(asked: Question) -> None:
    native, usage = await compacted(asked)

    assert native == NativeData(
        "openai_responses", asked.model.name, {"compacted": OUTPUT}, 4 + COUNTER.count("hello") + 40 - 10
    )
    assert usage == [Usage(input=70, output=40, reasoning=10)]


async def test_no_tools_are_offered(asked: Question, byte_server: ByteServer) -> None:
    assert asked.tools

    await compacted(asked)

    assert "tools" not in byte_server.requests[-1]


async def test_nothing_is_asked_where_the_agent_does_not_want_it(asked: Question, byte_server: ByteServer) -> None:
    wanted_not = replace(asked, model=replace(asked.model, settings=DEFAULT_SETTINGS))

    assert await compacted(wanted_not) == (None, [])
    assert byte_server.requests == []


async def test_nothing_is_asked_of_a_provider_without_the_means(question: Question) -> None:
    assert await compacted(replace(question, model=replace(question.model, settings=COMPACTS))) == (None, [])


async def test_provider_that_takes_too_long_times_out(asked: Question, byte_server: ByteServer) -> None:
    never = asyncio.Event()
    byte_server.set_reply(never, headers={"Content-Type": "application/json"})

    with pytest.raises(DeadlineExceeded):
        await compacted(asked, turn_timeout=0.05)
    never.set()


def test_summary_so_far_comes_after_the_passage_as_it_was_sent() -> None:
    passage = SummaryInput(Message.system("Be brief."), (talked(1), talked(2)), frozenset({1, 2}))

    messages = collect_compaction_messages(passage, (SUMMARY_EXCHANGE, talked(4)))

    assert [message.content for message in messages] == [
        "Be brief.",
        *("question 1", "yes", "question 2", "yes"),
        *("[What was said?]", "User: hello"),
    ]


def test_summary_that_is_in_the_passage_is_not_sent_twice() -> None:
    passage = SummaryInput(None, (talked(1), SUMMARY_EXCHANGE, talked(4)), frozenset({1, 4}))

    messages = collect_compaction_messages(passage, (SUMMARY_EXCHANGE, talked(5)))

    assert [message.content for message in messages].count("User: hello") == 1
