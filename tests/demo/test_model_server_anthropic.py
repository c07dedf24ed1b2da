"""Anthropic's Messages, as the real SDK hears them."""

import json
from typing import Any

import anthropic
from anthropic.types import Message, ModelInfo
import pytest

from .model_talk import LONG, STORY, THINK_THEN_SWITCH, fetched, without_repeats

TOOLS = [
    {"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}}
    for name in ("intent__HassTurnOff", "intent__HassTurnOn", "llm__GetDateTime")
]
THINKING = {"type": "enabled", "budget_tokens": 1024}
MARK = {"type": "ephemeral"}
VERSION = {"anthropic-version": "2023-06-01"}


@pytest.fixture
async def client(server):
    async with anthropic.AsyncAnthropic(
        api_key="made-up", base_url=server.anthropic_url, max_retries=0, timeout=5
    ) as sdk:
        yield sdk


@pytest.fixture
def ask(client):
    """Streams an answer to the messages; returns the events."""

    async def stream(*messages, heard=None, **options):
        heard = [] if heard is None else heard
        sent = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages]
        async with await client.messages.create(
            **{"model": "scripted", "max_tokens": 2000, "messages": sent, "stream": True, "tools": TOOLS, **options}
        ) as events:
            async for event in events:
                heard.append(event)
        return heard

    return stream


def text(events):
    return "".join(delta.text for delta in deltas(events, "text_delta"))


def deltas(events, kind):
    found = [event.delta for event in events if event.type == "content_block_delta"]
    return [delta for delta in found if delta.type == kind]


def ending(events):
    return next(event for event in events if event.type == "message_delta")


async def whole(client, said, **options):
    """Return the content of an answer as the SDK's own accumulation has it."""
    async with client.messages.stream(
        **{"model": "scripted", "max_tokens": 2000, "tools": TOOLS, "thinking": THINKING, **options},
        messages=[{"role": "user", "content": said}],
    ) as stream:
        message = await stream.get_final_message()
    return [block.model_dump(exclude_none=True, exclude={"caller"}) for block in message.content]


def replay(said, content, **fields):
    calls = [block for block in content if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "{}", **fields} for call in calls]
    return [{"role": "user", "content": said}, {"role": "assistant", "content": content}, user(*results)]


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def at_least(tokens):
    return {"clear_at_least": {"type": "input_tokens", "value": tokens}}


async def test_a_text_is_a_block_inside_a_message(ask):
    events = await ask("my name is Ada")
    assert without_repeats([event.type for event in events]) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert text(events) == "Nice to meet you, Ada."
    assert ending(events).delta.stop_reason == "end_turn"


async def test_a_ping_comes_between_the_events(server):
    body = {"model": "scripted", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    _, answer = await fetched("POST", f"{server.anthropic_url}/v1/messages", json=body, headers=VERSION)
    assert "event: ping\n" in answer


async def test_every_event_is_of_a_type_that_the_sdk_knows(ask):
    for event in await ask(THINK_THEN_SWITCH, thinking=THINKING):
        type(event).model_validate(event.model_dump(by_alias=True))


async def test_a_thinking_block_ends_with_its_signature(ask):
    events = await ask("think about pizza", thinking=THINKING)
    kinds = without_repeats([event.delta.type for event in events if event.type == "content_block_delta"])
    assert kinds == ["thinking_delta", "signature_delta", "text_delta"]
    assert [event.index for event in events if event.type == "content_block_start"] == [0, 1]


async def test_a_model_that_is_not_to_think_has_no_thinking(ask):
    events = await ask("think about pizza")
    assert deltas(events, "thinking_delta") == []
    assert ending(events).usage.output_tokens_details.thinking_tokens == 0


async def test_omitted_thinking_is_only_a_signature(ask):
    events = await ask("think about pizza", thinking={"type": "adaptive", "display": "omitted"})
    assert deltas(events, "thinking_delta") == []
    assert deltas(events, "signature_delta")[0].signature


async def test_redacted_thinking_is_in_the_start_of_its_block(ask):
    events = await ask("think about pizza", thinking=THINKING, model="scripted+redacted")
    block = next(event.content_block for event in events if event.type == "content_block_start")
    assert (block.type, bool(block.data)) == ("redacted_thinking", True)


async def test_parallel_calls_are_blocks_whose_input_comes_in_pieces(ask):
    events = await ask("switch on the kitchen light and the bedroom light")
    started = [event.content_block for event in events if event.type == "content_block_start"]
    written = ["", ""]
    for event in events:
        if event.type == "content_block_delta":
            written[event.index] += event.delta.partial_json
    assert [block.type for block in started] == ["tool_use"] * 2
    assert [json.loads(each)["name"] for each in written] == ["kitchen light", "bedroom light"]
    assert ending(events).delta.stop_reason == "tool_use"
    assert len(deltas(events, "input_json_delta")) > 4


async def test_a_call_without_arguments_has_no_json(ask):
    assert [delta.partial_json for delta in deltas(await ask("look at the clock"), "input_json_delta")] == [""]


async def test_a_replay_with_its_thinking_is_valid(client, ask, server):
    server.change(strict=True)
    content = await whole(client, THINK_THEN_SWITCH)
    events = await ask(*replay(THINK_THEN_SWITCH, content), thinking=THINKING)
    assert text(events) == "Done, the kitchen light and the bedroom light are on."


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[1:],
        lambda content: [{**content[0], "thinking": "something else"}, *content[1:]],
        lambda content: [{**content[0], "signature": "AAAA"}, *content[1:]],
    ],
)
async def test_a_replay_with_other_thinking_is_refused(client, ask, server, change):
    server.change(strict=True)
    content = change(await whole(client, THINK_THEN_SWITCH))
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(*replay(THINK_THEN_SWITCH, content), thinking=THINKING)
    assert caught.value.type == "invalid_request_error"


async def test_another_models_thinking_is_refused(client, ask, server):
    server.change(strict=True)
    content = await whole(client, THINK_THEN_SWITCH)
    with pytest.raises(anthropic.BadRequestError):
        await ask(*replay(THINK_THEN_SWITCH, content), thinking=THINKING, model="scripted+redacted")


async def test_an_error_of_a_tool_is_read(client, ask):
    content = await whole(client, "switch on the kitchen light")
    history = replay("switch on the kitchen light", content, is_error=True)
    assert text(await ask(*history)).startswith("I could not switch on the kitchen light")


async def test_usage_is_given_at_the_start_and_at_the_end(ask):
    events = await ask("hello")
    start, end = events[0].message.usage, ending(events).usage
    assert start.input_tokens == end.input_tokens > 0
    assert start.output_tokens <= end.output_tokens


async def usage_of(ask, *messages, **options):
    usage = ending(await ask(*messages, **options)).usage
    return usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens


async def test_without_a_mark_nothing_is_cached(ask):
    await ask(LONG)
    assert (await usage_of(ask, LONG))[1:] == (0, 0)


async def test_a_prompt_is_cached_up_to_its_mark(ask):
    marked = user({"type": "text", "text": LONG, "cache_control": MARK})
    fresh, written, _ = await usage_of(ask, marked)
    again, _, read = await usage_of(ask, user({"type": "text", "text": LONG, "cache_control": MARK}))
    assert fresh <= 1
    assert (again, read) == (fresh, written)
    assert written > 2000


async def test_a_mark_that_moves_on_reads_what_it_wrote_before(ask):
    first = {"type": "text", "text": LONG}
    _, written, _ = await usage_of(ask, user({**first, "cache_control": MARK}))
    more = user({"type": "text", "text": "and then?", "cache_control": MARK})
    _, added, read = await usage_of(ask, user(first), {"role": "assistant", "content": "Nice."}, more)
    assert read == written
    assert 0 < added < 100


async def test_another_choice_of_tools_misses_the_cache_of_the_messages(ask):
    system = [{"type": "text", "text": LONG, "cache_control": MARK}]
    marked = user({"type": "text", "text": LONG, "cache_control": MARK})
    await ask(marked, system=system)
    _, whole, _ = await usage_of(ask, marked, system=system, tools=TOOLS[:1])
    _, written, read = await usage_of(ask, marked, system=system, tool_choice={"type": "none"})
    assert written == pytest.approx(whole / 2, rel=0.1)
    assert read == pytest.approx(whole / 2, rel=0.1)


async def test_a_short_prompt_is_not_cached(ask):
    assert (await usage_of(ask, user({"type": "text", "text": "hello", "cache_control": MARK})))[1:] == (0, 0)


async def test_some_models_cache_only_long_prompts(ask, server):
    server.change(models=("claude-haiku-4-5",))
    marked = user({"type": "text", "text": LONG, "cache_control": MARK})
    assert (await usage_of(ask, marked, model="claude-haiku-4-5"))[1] == 0


async def test_the_hour_is_reported_apart(client):
    blocks = [{"type": "text", "text": LONG, "cache_control": {**MARK, "ttl": "1h"}}]
    answer = await client.messages.create(
        model="scripted", max_tokens=100, messages=[{"role": "user", "content": blocks}]
    )
    Message.model_validate(answer.model_dump())
    assert answer.usage.cache_creation.ephemeral_1h_input_tokens > 2000
    assert answer.usage.cache_creation.ephemeral_5m_input_tokens == 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("refusal", "refusal"),
        ("window_exceeded", "model_context_window_exceeded"),
    ],
)
async def test_an_answer_may_stop_for_another_reason(ask, server, fault, reason):
    server.fault(fault)
    assert ending(await ask("my name is Ada")).delta.stop_reason == reason


async def test_a_refusal_has_a_category(ask, server):
    server.fault("refusal")
    assert ending(await ask("hello")).delta.stop_details.category == "general_harms"


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ("400", 400, "invalid_request_error"),
        ("401", 401, "authentication_error"),
        ("403", 403, "permission_error"),
        ("404", 404, "not_found_error"),
        ("413", 413, "request_too_large"),
        ("429", 429, "rate_limit_error"),
        ("quota", 402, "billing_error"),
        ("500", 500, "api_error"),
        ("503", 503, "api_error"),
        ("529", 529, "overloaded_error"),
        ("context_overflow", 400, "invalid_request_error"),
    ],
)
async def test_a_refused_request_is_the_sdks_error(ask, server, fault, status, kind):
    server.fault(fault)
    with pytest.raises(anthropic.APIStatusError) as caught:
        await ask("hello")
    assert (caught.value.status_code, caught.value.type) == (status, kind)


@pytest.mark.parametrize(
    ("code", "kind"), [(None, "overloaded_error"), ("rate_limit_error", "rate_limit_error"), ("api_error", "api_error")]
)
async def test_an_error_in_the_stream_has_a_type_and_status_200(ask, server, code, kind):
    server.fault("error_in_stream", code=code)
    heard: list[Any] = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        await ask(STORY, heard=heard)
    assert text(heard) == "Once upon a "
    assert (caught.value.status_code, caught.value.type) == (200, kind)


async def test_without_a_terminal_event_the_text_is_whole(ask, server):
    server.fault("no_terminal")
    events = await ask("my name is Ada")
    assert text(events) == "Nice to meet you, Ada."
    assert events[-1].type == "content_block_stop"


async def test_a_malformed_event_is_no_json(ask, server):
    server.fault("malformed_event")
    with pytest.raises(json.JSONDecodeError):
        await ask(STORY)


async def test_a_prompt_that_is_too_long_is_told_its_length_and_the_limit(client, ask, server):
    server.change(context_size=1000)
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(LONG)
    messages = [{"role": "user", "content": LONG}]
    size = (await client.messages.count_tokens(model="scripted", messages=messages, tools=TOOLS)).input_tokens
    assert caught.value.response.json()["error"]["message"] == f"prompt is too long: {size} tokens > 1000 maximum"


async def test_a_wrong_key_is_refused(ask, server):
    server.change(key="another")
    with pytest.raises(anthropic.AuthenticationError):
        await ask("hello")


@pytest.mark.parametrize("headers", [{"x-api-key": "secret"}, {"Authorization": "Bearer secret"}])
async def test_the_key_may_be_in_either_header(server, headers):
    server.change(key="secret")
    status, _ = await fetched("GET", f"{server.anthropic_url}/v1/models", headers=VERSION | headers)
    assert status == 200


async def test_the_right_key_is_accepted_and_not_kept(ask, server):
    server.change(key="made-up")
    await ask("hello")
    assert "made-up" not in str(server.requests[-1].headers)
    assert server.requests[-1].headers["anthropic-version"]
    assert server.requests[-1].format == "anthropic"


async def test_the_version_is_required(server):
    body = {"model": "scripted", "max_tokens": 9, "messages": []}
    status, answer = await fetched("POST", f"{server.anthropic_url}/v1/messages", json=body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


async def test_counted_tokens_are_those_that_the_answer_reports(client, ask):
    messages = [{"role": "user", "content": "hello"}]
    counted = await client.messages.count_tokens(model="scripted", messages=messages, tools=TOOLS)
    assert counted.input_tokens == ending(await ask("hello")).usage.input_tokens


async def test_a_conversation_that_is_only_counted_may_end_with_an_answer(client, server):
    server.change(strict=True)
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}]
    assert (await client.messages.count_tokens(model="scripted", messages=messages)).input_tokens > 0


async def test_the_models_are_listed_with_their_limits(client, server):
    server.change(context_size=100_000)
    listed = [model async for model in client.models.list()]
    assert [model.id for model in listed] == server.settings.listed_models()
    assert {(model.max_input_tokens, model.max_tokens) for model in listed} == {(100_000, 64_000)}
    assert listed[0].capabilities.thinking.types.adaptive.supported
    ModelInfo.model_validate(listed[0].model_dump())


@pytest.mark.parametrize(
    ("when", "cleared"),
    [
        ({"trigger": {"type": "input_tokens", "value": 10}}, [1]),
        ({"trigger": {"type": "tool_uses", "value": 1}, **at_least(0)}, [1]),
        ({"trigger": {"type": "tool_uses", "value": 2}, **at_least(0)}, []),
        ({"trigger": {"type": "tool_uses", "value": 1}, **at_least(1000)}, []),
    ],
    ids=["input_tokens", "calls", "too_few_calls", "too_little_saved"],
)
async def test_old_tool_results_are_cleared_from_a_size_on_and_where_it_saves_enough(client, when, cleared):
    content = await whole(client, THINK_THEN_SWITCH)
    edit = {"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 1}, **when}
    answer = await client.beta.messages.create(
        model="scripted",
        max_tokens=2000,
        messages=replay(THINK_THEN_SWITCH, content),
        tools=TOOLS,
        betas=["context-management-2025-06-27"],
        context_management={"edits": [edit]},
    )
    assert [each.cleared_tool_uses for each in answer.context_management.applied_edits] == cleared


async def test_a_stream_says_what_was_cleared(client, server):
    server.change(strict=True)
    stream = await client.beta.messages.create(
        model="scripted",
        max_tokens=2000,
        messages=[{"role": "user", "content": "hello"}],
        stream=True,
        betas=["context-management-2025-06-27"],
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
    )
    events = [event async for event in stream]
    assert ending(events).context_management.applied_edits == []


async def test_a_picture_and_a_document_are_seen(ask):
    blocks = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGkh"}},
        {"type": "text", "text": "what is in the picture?"},
    ]
    said = text(await ask(user(*blocks)))
    assert said == "I was sent image/png of 2 bytes and application/pdf of 3 bytes."


async def test_one_model_has_its_limits(client):
    assert (await client.models.retrieve("scripted")).max_input_tokens == 200_000
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("claude-none")
