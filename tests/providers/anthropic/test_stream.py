"""Tests for peculiarities of Anthropic's stream: blocks by index, stop reasons, usage in two places, residue."""

from typing import Any

import pytest

from custom_components.windowed_conversation.providers.encoder import encode_name
from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    BadStream,
    ContextOverflow,
    Incomplete,
    ProviderError,
)
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    FinishReason,
    ModelSettings,
    Request,
    TextDelta,
    ToolSchema,
    Usage,
)
from custom_components.windowed_conversation.providers.models import Effort, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.window import Message, NativeData

from ..byte_server import ByteServer
from ..conftest import Hear
from ..heard import Heard
from ..wires.anthropic import (
    MESSAGE_STOP,
    PING,
    block_start,
    block_stop,
    delta,
    event,
    message_delta,
    message_start,
    text_block,
    thinking_block,
    tool_block,
)
from .conftest import MODEL, TOOLS, Connect

START = message_start(input_tokens=7, output_tokens=1)
ENDED = (message_delta("end_turn", output_tokens=2), MESSAGE_STOP)
CALLED = (message_delta("tool_use", output_tokens=2), MESSAGE_STOP)
THINKING: dict[str, Any] = {
    "settings": ModelSettings(effort=Effort.LOW),
    "profile": ModelProfile(reasoning=ReasoningStyle.ADAPTIVE),
}
THOUGHT = {"type": "thinking", "thinking": "hm, yes", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}


@pytest.mark.parametrize(
    ("stop_reason", "native"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "stop_sequence"),
        ("compaction", "compaction"),
        ("a_reason_of_next_year", "other"),
    ],
)
async def test_answer_of_words_has_stopped(stop_reason: str, native: str, hear: Hear) -> None:
    heard = await hear(START, *text_block(0, "hello"), message_delta(stop_reason), MESSAGE_STOP)

    assert heard.done_events == [heard.events[-1]] == [AnswerDone(FinishReason.STOP, native)]


@pytest.mark.parametrize("stop_reason", ["tool_use", "end_turn", None])
async def test_answer_with_calls_wants_results(stop_reason: str | None, hear: Hear) -> None:
    heard = await hear(START, *tool_block(0, "a", '{"x": 1}'), message_delta(stop_reason), MESSAGE_STOP)

    assert heard.done_events == [AnswerDone(FinishReason.TOOL_CALLS, stop_reason or "")]


@pytest.mark.parametrize(
    ("stop_reason", "error"),
    [
        ("max_tokens", Incomplete),
        ("pause_turn", Incomplete),
        ("refusal", AnswerRefused),
        ("model_context_window_exceeded", ContextOverflow),
    ],
)
async def test_answer_that_is_not_whole_is_an_error_after_its_usage(
    stop_reason: str, error: type[ProviderError], fail: Hear
) -> None:
    heard = await fail(
        ProviderError, START, *text_block(0, "hel"), message_delta(stop_reason, output_tokens=2), MESSAGE_STOP
    )

    assert type(heard.error) is error
    assert heard.text == "hel"
    assert heard.usages == [Usage(7, 0, 2)]
    assert heard.done_events == []


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"type": "refusal", "category": "bio", "explanation": "Why."}, "bio"),
        ({"type": "refusal", "category": None, "explanation": None}, ""),
        ({"type": "refusal", "category": "the pelican is my secret word"}, ""),
        ({"type": "refusal"}, ""),
        ("a text", ""),
        (None, ""),
    ],
)
async def test_refusal_has_the_category_as_its_reason(details: Any, reason: str, fail: Hear) -> None:
    heard = await fail(AnswerRefused, START, message_delta("refusal", details), MESSAGE_STOP)

    assert heard.error.reason == reason


@pytest.mark.parametrize("arguments", [[], ['{"name": "kit'], ['{"name": "kitchen"}']])
async def test_call_at_the_length_limit_is_announced_only_when_it_is_whole(arguments: list[str], fail: Hear) -> None:
    heard = await fail(Incomplete, START, *tool_block(0, "a", *arguments), message_delta("max_tokens"), MESSAGE_STOP)

    assert heard.called == [("a", {"name": "kitchen"})][: "".join(arguments).count("}")]


async def test_half_a_call_is_an_error_where_the_answer_was_not_cut_off(fail: Hear) -> None:
    heard = await fail(BadStream, START, *tool_block(0, "a", '{"x": 1}'), *tool_block(1, "b", '{"y"'), *CALLED)

    assert heard.called == [("a", {"x": 1})]


async def test_call_is_announced_under_the_tools_own_name(hear: Hear) -> None:
    tools = (ToolSchema("wetter für heute", "", {}),)
    sent = encode_name(tools[0].name)
    heard = await hear(START, *tool_block(0, sent, "{}"), *tool_block(1, "other", "{}"), *CALLED, tools=tools)

    assert heard.called == [("wetter für heute", {}), ("other", {})]


async def test_calls_without_arguments_keep_their_order(hear: Hear) -> None:
    blocks = (*tool_block(0, "a"), *tool_block(1, "b", '{"x": 1}'), *tool_block(2, "c", "{}"))
    heard = await hear(START, *blocks, *CALLED)

    assert heard.called == [("a", {}), ("b", {"x": 1}), ("c", {})]


async def test_call_whose_block_never_stops_is_whole_with_the_answer(hear: Hear) -> None:
    heard = await hear(START, *tool_block(0, "a", '{"x": 1}')[:-1], *CALLED)

    assert heard.called == [("a", {"x": 1})]


async def test_arguments_may_come_with_the_beginning_of_the_block(hear: Hear) -> None:
    whole = [block_start(0, type="tool_use", id="toolu_0", name="a", input={"x": 1}), block_stop(0)]
    heard = await hear(START, *whole, *CALLED)

    assert heard.called == [("a", {"x": 1})]


@pytest.mark.parametrize(
    ("begun", "ended", "usage"),
    [
        ({"input_tokens": 7, "output_tokens": 1}, {"output_tokens": 2}, Usage(7, 0, 2)),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 10, "output_tokens": 1},
            {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
            Usage(115, 100, 9, 10, 4),
        ),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1},
            {"input_tokens": 6, "cache_read_input_tokens": None, "cache_creation_input_tokens": 3, "output_tokens": 2},
            Usage(109, 100, 2, 3),
        ),
        ({"input_tokens": 7, "output_tokens": 1}, {}, Usage(7, 0, 1)),
        ({}, {"output_tokens": 2}, Usage(0, 0, 2)),
        ({"input_tokens": "7", "output_tokens": []}, {"output_tokens": 2}, Usage(0, 0, 2)),
        ({"input_tokens": 7}, {"output_tokens": 2, "output_tokens_details": "none"}, Usage(7, 0, 2)),
    ],
)
async def test_usage_is_normalised_and_the_last_figure_counts(
    begun: dict[str, Any], ended: dict[str, Any], usage: Usage, hear: Hear
) -> None:
    heard = await hear(message_start(**begun), message_delta("end_turn", **ended), MESSAGE_STOP)

    assert heard.usages == [usage]
    assert heard.events[-1] == AnswerDone(FinishReason.STOP, "end_turn")


@pytest.mark.parametrize("message", [None, "a text", ["a", "list"], {"usage": "a text"}, {"usage": ["a", "list"]}])
async def test_beginning_of_another_form_costs_at_most_the_usage(message: Any, hear: Hear) -> None:
    heard = await hear(event({"type": "message_start", "message": message}), *text_block(0, "hello"), *ENDED)

    assert heard.events == [TextDelta("hello"), Usage(output=2), AnswerDone(FinishReason.STOP, "end_turn")]


@pytest.mark.parametrize(
    ("blocks", "residue"),
    [
        (
            [*thinking_block(0, "hm", ", yes"), *text_block(1, "hello")],
            [THOUGHT, {"type": "text"}],
        ),
        (
            [
                block_start(0, type="redacted_thinking", data="EmwKAhgB"),
                block_stop(0),
                *thinking_block(1, "hm, yes"),
                *tool_block(2, "a", "{}"),
            ],
            [{"type": "redacted_thinking", "data": "EmwKAhgB"}, THOUGHT, {"type": "tool_use"}],
        ),
        (thinking_block(0), [{**THOUGHT, "thinking": ""}]),
        (
            [block_start(0, type="thinking", thinking="hm, ", signature="EqQB"), *thinking_block(0, "yes")[1:]],
            [{**THOUGHT, "signature": "EqQBEqQBCgIYAhIM1gbcDa9GJwZA2b3h"}],
        ),
        ([*thinking_block(0, "hm", signature=""), *text_block(1, "hello")], None),
        (text_block(0, "hello"), None),
    ],
)
async def test_signed_thinking_is_residue(blocks: list[bytes], residue: Any, hear: Hear) -> None:
    heard = await hear(START, *blocks, *ENDED)

    assert heard.done_events[0].native_value == residue


async def test_answer_that_was_not_thought_over_is_stamped_where_thinking_was_asked_for(hear: Hear) -> None:
    heard = await hear(START, *text_block(0, "hello"), *ENDED, **THINKING)

    assert heard.done_events[0].native_value == []


async def test_residue_comes_back_as_it_was(hear: Hear, connect: Connect, byte_server: ByteServer) -> None:
    heard = await hear(START, *thinking_block(0, "hm", ", yes"), *tool_block(1, "a", "{}"), *CALLED, **THINKING)
    answer = Message.assistant(
        tool_calls=tuple(heard.calls), native=NativeData("anthropic", MODEL, heard.done_events[0].native_value)
    )
    messages = (Message.user("hello"), answer, Message.tool(heard.ids[0], "a", "{}"))

    await Heard().read(connect().stream(Request(MODEL, messages, TOOLS, **THINKING)))

    content = [*(message["content"] for message in byte_server.requests[-1]["messages"])]
    assert content[1] == [THOUGHT, {"type": "tool_use", "id": heard.ids[0], "name": "a", "input": {}}]
    assert byte_server.requests[-1]["thinking"] == {"type": "adaptive"}


async def test_what_nobody_knows_is_passed_over(hear: Hear) -> None:
    heard = await hear(
        b": keep-alive\n\n",
        START,
        PING,
        event({"type": "a_type_of_next_year", "index": "?"}),
        block_start(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        delta(0, type="input_json_delta", partial_json='{"half'),
        block_stop(0),
        block_start(1, type="a_block_of_next_year", text="not spoken"),
        delta(1, type="a_delta_of_next_year", text="not spoken"),
        block_stop(1),
        block_start(2, type="text", text="hel", citations=None),
        delta(2, type="citations_delta", citation={"type": "page_location"}),
        delta(2, type="text_delta", text="lo"),
        block_stop(2),
        *ENDED,
    )

    assert heard.text == "hello"
    assert heard.calls == []
    assert heard.done_events == [AnswerDone(FinishReason.STOP, "end_turn")]


@pytest.mark.parametrize(
    "bent",
    [
        event({"type": "content_block_start", "index": 1}),
        event({"type": "content_block_start", "index": 1, "content_block": "a text"}),
        event({"type": "content_block_start", "index": [], "content_block": {"type": "text", "text": ""}}),
        block_start(1, type=5),
        block_start(1, type="text", text=["a part"]),
        block_start(1, type="thinking", thinking=5),
        delta(0, type="text_delta", text=5),
        delta(7, type="text_delta", text="of no block"),
        delta(0, type=5, text="of no type"),
        delta(0, type="signature_delta", signature=5),
        delta(0, type="input_json_delta", partial_json={"an": "object"}),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "of no block"}}),
        event({"type": "content_block_delta", "index": 0}),
        event({"type": "content_block_delta", "index": 0, "delta": "a text"}),
        block_stop(7),
        event({"type": "message_delta"}),
        event({"type": "message_delta", "delta": "a text"}),
        message_delta(5),
        message_delta({"reason": "end_turn"}),
        b'event: content_block_delta\ndata: {"type": 5}\n\n',
    ],
)
async def test_event_of_another_form_is_an_error(bent: bytes, fail: Hear) -> None:
    heard = await fail(BadStream, START, *text_block(0, "hello")[:2], bent, *ENDED)

    assert heard.text == "hello"


async def test_answer_that_begins_anew_keeps_nothing_of_its_first_half(hear: Hear) -> None:
    heard = await hear(
        START,
        *thinking_block(0, "first", signature="of the first half"),
        *text_block(1, "It"),
        block_start(2, type="tool_use", id="toolu_lost", name="act", input={}),
        START,
        *thinking_block(0, "second", signature="of the second half"),
        *tool_block(1, "act", "{}"),
        *ENDED,
    )

    residue = heard.done_events[0].native_value
    assert [block.get("signature") for block in residue] == ["of the second half", None]
    assert heard.called == [("act", {})]


@pytest.mark.parametrize("blank", ["", "\n\n", " "])
async def test_blank_text_is_no_residue(blank: str, hear: Hear) -> None:
    heard = await hear(START, *text_block(0, blank), *thinking_block(1, "hm"), *text_block(2, "It is on."), *ENDED)

    assert [block["type"] for block in heard.done_events[0].native_value] == ["thinking", "text"]
