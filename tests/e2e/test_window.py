"""Tests for the requests of a real Home Assistant over many turns: valid, within budget, and with stable prefixes."""

from collections.abc import AsyncIterator
from itertools import pairwise
import json

import pytest_asyncio

from custom_components.windowed_conversation.window import EstimatedCounter, Message, ToolCall, count_message_tokens
from demo.model_server.request_log import RequestRecord
from tests.e2e.house import House, remove_live_context

_EXCHANGES = 14


@pytest_asyncio.fixture(loop_scope="session")
async def small_house(house) -> AsyncIterator[House]:
    """Yield the home with a window of 600 tokens."""
    house.model.change(delay=0)
    await house.change_options(history_tokens=600)
    yield house
    await house.change_options(history_tokens=8000)


async def fill_window(house: House, conversation_id: str) -> list[int]:
    """State a name, then more than fits into the window; return the number of evicted messages after each turn."""
    await house.say("my name is Ada", conversation_id)
    evicted = []
    for number in range(_EXCHANGES):
        await house.say(f"consider that locker {number} is the blue one beside number {number}", conversation_id)
        newest, *_ = (await house.get_sensor_attributes("window_utilization"))["conversations"]
        evicted.append(newest["evicted_messages"])
    return evicted


def said(record: RequestRecord) -> list[str]:
    """Return the user's texts in a request, without the context lines before them."""
    return [each["content"].rpartition("]\n\n")[2] for each in record.body["messages"] if each["role"] == "user"]


def history_tokens(record: RequestRecord) -> int:
    """Return the number of tokens of a request's history, estimated from its bytes."""
    counter = EstimatedCounter()
    return sum(count_message_tokens(_read(message), counter) for message in record.body["messages"][1:])


def _read(message: dict) -> Message:
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    return Message(
        role=message["role"],
        content=message["content"] or "",
        tool_calls=calls,
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name"),
    )


async def test_every_request_is_valid_and_within_the_budget(small_house):
    await fill_window(small_house, "within budget")
    await small_house.say("I would like the kitchen light switched on", "within budget")
    requests = small_house.model.requests
    assert len(requests) > _EXCHANGES
    assert [violation for request in requests for violation in request.violations] == []
    assert max(map(history_tokens, requests)) <= 600


async def test_evicted_messages_are_no_longer_sent_and_between_trims_a_request_begins_with_the_one_before(small_house):
    evicted = await fill_window(small_house, "same bytes")
    assert evicted == sorted(evicted)
    assert "my name is Ada" not in said(small_house.model.requests[-1])
    requests = (request.body["messages"] for request in small_house.model.requests)
    sent = [[remove_live_context(json.dumps(message)) for message in request] for request in requests]
    is_grown = [after[: len(before)] == before for before, after in pairwise(sent)]
    # A trim may follow from the answer of the earlier turn or from the question of the later one.
    is_trimmed = [before < after for before, after in zip([0, 0, *evicted], evicted, strict=False)]
    assert [pair for pair in zip(is_grown, is_trimmed, strict=True) if pair == (False, False)] == []
    assert 1 <= is_grown.count(False) <= 8
    assert all(after[0] == before[0] for before, after in pairwise(sent))
