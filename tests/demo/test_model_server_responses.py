"""Tests for the scripted server's Responses format, with OpenAI's SDK as the client."""

import openai
from openai.types.responses import Response
import pytest

from .model_talk import LONG, STORY, THINK_THEN_SWITCH

TOOLS = [
    {"type": "function", "name": name, "description": "", "parameters": {"type": "object", "properties": {}}}
    for name in ("intent__HassTurnOff", "intent__HassTurnOn")
]


@pytest.fixture
def ask(client):
    """Return a function that sends the input and returns the events of the streamed answer."""

    async def stream(said, **options):
        async with await client.responses.create(
            **{"model": "scripted", "input": said, "stream": True, "store": False, "tools": TOOLS, **options}
        ) as events:
            return [event async for event in events]

    return stream


def text(events):
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def get_output(events):
    return [item.model_dump(exclude_none=True) for item in events[-1].response.output]


def results(items):
    calls = [item for item in items if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "{}"} for call in calls]


def said(text):
    return {"role": "user", "content": text}


async def test_events_are_numbered_without_a_gap(ask):
    assert [event.sequence_number for event in await ask(STORY)] == list(range(len(await ask(STORY))))


async def test_every_event_is_of_a_type_that_the_sdk_knows(ask):
    events = await ask(THINK_THEN_SWITCH, reasoning={"summary": "auto"})
    for event in events:
        type(event).model_validate(event.model_dump(by_alias=True), strict=False)
    Response.model_validate(events[-1].response.model_dump(by_alias=True))


async def test_usage_counts_what_was_cached_written_and_thought(ask):
    first, second = [(await ask([said(LONG), said("think about pizza")]))[-1].response.usage for _ in range(2)]
    assert first.input_tokens_details.cached_tokens == 0
    assert first.input_tokens_details.cache_write_tokens == second.input_tokens_details.cached_tokens > 1024
    assert 0 < second.output_tokens_details.reasoning_tokens < second.output_tokens
    assert second.total_tokens == second.input_tokens + second.output_tokens


async def test_a_replay_with_its_reasoning_is_valid(ask, server):
    server.change(strict=True)
    items = get_output(await ask(THINK_THEN_SWITCH, reasoning={"summary": "auto"}))
    events = await ask([said(THINK_THEN_SWITCH), *items, *results(items)])
    assert text(events) == "Done, the kitchen light and the bedroom light are on."


async def test_another_models_reasoning_is_refused(ask, server):
    server.change(strict=True)
    items = get_output(await ask(THINK_THEN_SWITCH))
    with pytest.raises(openai.BadRequestError) as caught:
        await ask([said(THINK_THEN_SWITCH), *items, *results(items)], model="scripted+tiny_chunks")
    assert caught.value.code == "invalid_encrypted_content"


async def test_a_compaction_is_the_users_messages_and_one_sealed_item(client, ask, server):
    server.change(strict=True)
    history = [said("my name is Ada"), {"role": "assistant", "content": "Nice to meet you."}, said("hello")]
    compacted = await client.responses.compact(model="scripted", input=history)
    items = compacted.model_dump(exclude_none=True, warnings=False)["output"]
    assert [item["type"] for item in items] == ["message", "message", "compaction"]
    assert text(await ask([*items, said("what is my name?")])) == "Your name is Ada."


async def test_content_of_an_earlier_compaction_is_sealed_once(client):
    history = [said("my name is Ada"), {"role": "assistant", "content": "Nice to meet you."}]
    sealed = []
    for _ in range(2):
        compacted = await client.responses.compact(model="scripted", input=history)
        history = [*compacted.model_dump(exclude_none=True, warnings=False)["output"], said("hello")]
        sealed.append(history[-2]["encrypted_content"])
    assert sealed[0] == sealed[1]
