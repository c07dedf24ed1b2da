"""Responses, as the real SDK hears them."""

import json

import openai
from openai.types.responses import Response
import pytest

from .model_talk import LONG, STORY, THINK_THEN_SWITCH, until, without_repeats

TOOLS = [
    {"type": "function", "name": name, "description": "", "parameters": {"type": "object", "properties": {}}}
    for name in ("intent__HassTurnOff", "intent__HassTurnOn")
]
PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def ask(client):
    """Streams an answer to the input; returns the events."""

    async def stream(said, heard=None, **options):
        heard = [] if heard is None else heard
        async with await client.responses.create(
            **{"model": "scripted", "input": said, "stream": True, "store": False, "tools": TOOLS, **options}
        ) as events:
            async for event in events:
                heard.append(event)
        return heard

    return stream


def types(events):
    return [event.type.removeprefix("response.") for event in events]


def text(events):
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def output(events):
    return [item.model_dump(exclude_none=True) for item in events[-1].response.output]


def results(items):
    calls = [item for item in items if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "{}"} for call in calls]


def said(text):
    return {"role": "user", "content": text}


async def test_a_text_is_an_item_that_is_added_filled_and_done(ask):
    events = await ask("my name is Ada")
    assert without_repeats(types(events)) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert text(events) == events[-1].response.output_text == "Nice to meet you, Ada."


async def test_events_are_numbered_without_a_gap(ask):
    assert [event.sequence_number for event in await ask(STORY)] == list(range(len(await ask(STORY))))


async def test_every_event_is_of_a_type_that_the_sdk_knows(ask):
    events = await ask(THINK_THEN_SWITCH, reasoning={"summary": "auto"})
    for event in events:
        type(event).model_validate(event.model_dump(by_alias=True), strict=False)
    Response.model_validate(events[-1].response.model_dump(by_alias=True))


async def test_thinking_is_a_summary_and_an_item_with_encrypted_content(ask):
    events = await ask("think about pizza", reasoning={"effort": "low", "summary": "auto"})
    names = without_repeats(types(events))
    assert names[2:8] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    reasoning = events[-1].response.output[0]
    assert reasoning.encrypted_content
    assert "pizza" in reasoning.summary[0].text


async def test_thinking_without_a_summary_is_only_the_item(ask):
    events = await ask("think about pizza")
    assert "reasoning_summary_text.delta" not in types(events)
    assert events[-1].response.output[0].summary == []


async def test_the_encrypted_content_is_incomplete_until_the_item_is_done(ask):
    added, done = (event.item for event in await ask("think about pizza") if getattr(event, "output_index", 9) == 0)
    assert done.encrypted_content.startswith(added.encrypted_content)
    assert len(added.encrypted_content) < len(done.encrypted_content)


async def test_a_local_server_shows_its_thinking_as_it_is(ask):
    events = await ask("think about pizza", model="scripted+raw_reasoning")
    assert "reasoning_text.delta" in types(events)
    assert events[-1].response.output[0].encrypted_content is None


async def test_parallel_calls_are_items_whose_arguments_come_in_pieces(ask):
    events = await ask(THINK_THEN_SWITCH)
    calls = [item for item in events[-1].response.output if item.type == "function_call"]
    written = ["", ""]
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            written[event.output_index - 1] += event.delta
    assert written == [call.arguments for call in calls]
    assert [json.loads(each)["name"] for each in written] == ["kitchen light", "bedroom light"]
    assert len({call.call_id for call in calls}) == len({call.id for call in calls}) == 2


async def test_parallel_calls_may_take_turns(ask):
    events = await ask("switch on the kitchen light and the bedroom light", model="scripted+interleaved")
    at = [event.output_index for event in events if event.type == "response.function_call_arguments.delta"]
    assert at[:4] == [0, 1, 0, 1]


async def test_usage_counts_what_was_cached_written_and_thought(ask):
    first, second = [(await ask([said(LONG), said("think about pizza")]))[-1].response.usage for _ in range(2)]
    assert first.input_tokens_details.cached_tokens == 0
    assert first.input_tokens_details.cache_write_tokens == second.input_tokens_details.cached_tokens > 1024
    assert 0 < second.output_tokens_details.reasoning_tokens < second.output_tokens
    assert second.total_tokens == second.input_tokens + second.output_tokens


async def test_a_replay_with_its_reasoning_is_valid(ask, server):
    server.change(strict=True)
    items = output(await ask(THINK_THEN_SWITCH, reasoning={"summary": "auto"}))
    events = await ask([said(THINK_THEN_SWITCH), *items, *results(items)])
    assert text(events) == "Done, the kitchen light and the bedroom light are on."


async def test_another_models_reasoning_is_refused(ask, server):
    server.change(strict=True)
    items = output(await ask(THINK_THEN_SWITCH))
    with pytest.raises(openai.BadRequestError) as caught:
        await ask([said(THINK_THEN_SWITCH), *items, *results(items)], model="scripted+tiny_chunks")
    assert caught.value.code == "invalid_encrypted_content"


async def test_an_answer_that_is_not_streamed_says_the_same(client):
    answer = await client.responses.create(model="scripted", input="my name is Ada", store=False)
    assert answer.output_text == "Nice to meet you, Ada."
    assert answer.status == "completed"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter"), ("window_exceeded", "max_output_tokens")],
)
async def test_an_answer_may_be_incomplete(ask, server, fault, reason):
    server.fault(fault)
    last = (await ask("my name is Ada"))[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == reason


async def test_a_refusal_is_a_part_of_its_own(ask, server):
    server.fault("refusal")
    events = await ask("hello")
    assert "".join(event.delta for event in events if event.type == "response.refusal.delta").startswith("I'm sorry")
    assert events[-1].response.output[0].content[0].type == "refusal"


@pytest.mark.parametrize(("code", "heard"), [(None, "server_error"), ("rate_limit_exceeded", "rate_limit_exceeded")])
async def test_an_error_in_the_stream_is_an_event(ask, server, code, heard):
    server.fault("error_in_stream", code=code)
    last = (await ask(STORY))[-1]
    assert (last.type, last.code) == ("error", heard)


async def test_an_error_in_the_stream_may_be_around_an_error_object(ask, server):
    server.fault("error_in_stream")
    with pytest.raises(openai.APIError):
        await ask(STORY, model="scripted+nested_error")


async def test_a_response_may_fail(ask, server):
    server.fault("failed_in_stream", code="rate_limit_exceeded")
    events = await ask(STORY)
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "rate_limit_exceeded"
    assert events[-1].response.id == events[0].response.id


async def test_without_a_terminal_event_the_text_is_whole(ask, server):
    server.fault("no_terminal")
    events = await ask("my name is Ada")
    assert text(events) == "Nice to meet you, Ada."
    assert events[-1].type == "response.output_item.done"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("401", openai.AuthenticationError),
        ("404", openai.NotFoundError),
        ("429", openai.RateLimitError),
        ("529", openai.InternalServerError),
        ("context_overflow", openai.BadRequestError),
    ],
)
async def test_a_refused_request_is_the_sdks_error(ask, server, fault, error):
    server.fault(fault)
    with pytest.raises(error):
        await ask("hello")


async def test_a_wrong_key_is_refused(ask, server):
    server.change(key="another")
    with pytest.raises(openai.AuthenticationError):
        await ask("hello")


async def test_a_response_that_was_not_stored_is_not_found(ask):
    with pytest.raises(openai.BadRequestError) as caught:
        await ask("hello", previous_response_id="resp_1")
    assert caught.value.code == "previous_response_not_found"


async def test_input_tokens_are_those_that_the_answer_reports(client, ask):
    counted = await client.responses.input_tokens.count(model="scripted", input="hello", tools=TOOLS)
    assert counted.input_tokens == (await ask("hello"))[-1].response.usage.input_tokens


async def test_a_count_is_no_request_for_an_answer(client, server):
    await client.responses.input_tokens.count(model="scripted", input="hello")
    assert server.requests == []
    await until(lambda: server.log.records[-1].status == 200)


async def test_a_compaction_is_the_users_messages_and_one_sealed_item(client, ask, server):
    server.change(strict=True)
    history = [said("my name is Ada"), {"role": "assistant", "content": "Nice to meet you."}, said("hello")]
    compacted = await client.responses.compact(model="scripted", input=history)
    items = compacted.model_dump(exclude_none=True, warnings=False)["output"]
    assert [item["type"] for item in items] == ["message", "message", "compaction"]
    assert text(await ask([*items, said("what is my name?")])) == "Your name is Ada."


async def test_a_compaction_is_only_for_its_model(client, ask, server):
    server.change(strict=True)
    compacted = await client.responses.compact(model="scripted", input="my name is Ada")
    items = compacted.model_dump(exclude_none=True, warnings=False)["output"]
    with pytest.raises(openai.BadRequestError):
        await ask([*items, said("hello")], model="scripted+tiny_chunks")


async def test_a_picture_is_seen_and_costs_the_same_whatever_its_size(ask):
    async def look(url):
        parts = [{"type": "input_text", "text": "what is in the picture?"}, {"type": "input_image", "image_url": url}]
        events = await ask([{"role": "user", "content": parts}])
        return text(events), events[-1].response.usage.input_tokens

    answer, small = await look(PNG)
    _, large = await look(f"{PNG[:-12]}{'AAAA' * 1000}")
    assert answer == "I was sent image/png of 8 bytes."
    assert small == large


async def test_one_model_is_found_by_its_id(client):
    assert (await client.models.retrieve("scripted")).id == "scripted"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("gpt-none")
