"""Tests for the scripted server's Anthropic Messages format, with Anthropic's SDK as the client."""

import anthropic
import pytest

from .model_talk import LONG, THINK_THEN_SWITCH

TOOLS = [
    {"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}}
    for name in ("intent__HassTurnOff", "intent__HassTurnOn", "llm__GetDateTime")
]
THINKING = {"type": "enabled", "budget_tokens": 1024}
MARK = {"type": "ephemeral"}


@pytest.fixture
async def client(server):
    async with anthropic.AsyncAnthropic(
        api_key="made-up", base_url=server.anthropic_url, max_retries=0, timeout=5
    ) as sdk:
        yield sdk


@pytest.fixture
def ask(client):
    """Return a function that sends the messages and returns the events of the streamed answer."""

    async def stream(*messages, **options):
        sent = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages]
        async with await client.messages.create(
            **{"model": "scripted", "max_tokens": 2000, "messages": sent, "stream": True, "tools": TOOLS, **options}
        ) as events:
            return [event async for event in events]

    return stream


def text(events):
    return "".join(delta.text for delta in deltas(events, "text_delta"))


def deltas(events, kind):
    found = [event.delta for event in events if event.type == "content_block_delta"]
    return [delta for delta in found if delta.type == kind]


def ending(events):
    return next(event for event in events if event.type == "message_delta")


async def whole(client, said, **options):
    """Return the content of an answer as accumulated by the SDK."""
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


async def test_every_event_is_of_a_type_that_the_sdk_knows(ask):
    for event in await ask(THINK_THEN_SWITCH, thinking=THINKING):
        type(event).model_validate(event.model_dump(by_alias=True))


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


async def usage_of(ask, *messages, **options):
    usage = ending(await ask(*messages, **options)).usage
    return usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens


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
