"""Tests for bytes that no well-behaved server sends: split anywhere, malformed, duplicated, or broken off."""

import json

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream, Unavailable
from custom_components.windowed_conversation.providers.events import AnswerDone, FinishReason, Usage

from ..byte_server import DONE, STOP, chunk, event, fragment, text, usage
from ..conftest import Hear

STOPPED = AnswerDone(FinishReason.STOP, "stop")


async def test_unknown_fields_and_events_are_passed_over(hear: Hear) -> None:
    heard = await hear(
        b": keep-alive\n\n",
        b"event: ping\ndata: {}\n\n",
        event({"choices": None}),
        event({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
        event({"choices": [{"index": 0, "content_filter_offsets": {"check_offset": 44}}]}),
        event({"choices": [{"index": 0, "delta": None}]}),
        event({"choices": [{"index": 0}]}),
        chunk({"reasoning_content": 5, "reasoning": {"text": "not a thought"}}),
        chunk({"role": "assistant", "content": None, "tool_calls": None, "annotations": []}, timings={"cache_n": 1}),
        chunk({"content": "hello", "audio": {"id": 1}}),
        STOP,
        DONE,
    )

    assert heard.events == [*heard.events[:1], STOPPED]
    assert heard.text == "hello"


async def test_thought_that_is_sent_in_two_fields_is_passed_on_once(hear: Hear) -> None:
    heard = await hear(chunk({"reasoning_content": "hm", "reasoning": "hm"}), text("hello"), STOP, DONE)

    assert heard.reasoning == "hm"


@pytest.mark.parametrize(
    "bent",
    [
        event({"choices": 5}),
        event({"choices": [5]}),
        chunk("a text"),
        chunk({"content": 5}),
        chunk({"content": ["a text"]}),
        chunk({"tool_calls": 5}),
        chunk({"tool_calls": ["a text"]}),
        chunk({"tool_calls": [{"index": 0, "function": "a text"}]}),
        chunk({"tool_calls": [{"index": 0, "function": ["a", "list"]}]}),
        fragment(["a", "list"], "act", index=0, id="call_1"),
        fragment("{}", 5, index=0, id="call_1"),
        fragment("{}", "act", index=0, id=5),
        chunk({}, 5),
        chunk({}, ["stop"]),
        event({"choices": [["a", "list"]]}),
    ],
)
async def test_event_of_another_form_is_an_error(bent: bytes, fail: Hear) -> None:
    heard = await fail(BadStream, text("hello"), bent, STOP, DONE)

    assert heard.text == "hello"


@pytest.mark.parametrize(
    ("events", "reported"),
    [
        ([], []),
        ([usage(prompt_tokens=7, completion_tokens=2)], [Usage(7, 0, 2)]),
        ([usage(prompt_tokens=7, completion_tokens=2, prompt_tokens_details=None)], [Usage(7, 0, 2)]),
        ([usage(prompt_tokens=7, completion_tokens=2, prompt_tokens_details={})], [Usage(7, 0, 2)]),
        (
            [usage(prompt_tokens=7, completion_tokens=2, prompt_tokens_details={"cached_tokens": None})],
            [Usage(7, 0, 2)],
        ),
        ([usage(prompt_tokens=7, completion_tokens=2, prompt_tokens_details={"cached_tokens": 5})], [Usage(7, 5, 2)]),
        ([usage(prompt_tokens=None, completion_tokens=None)], [Usage(0, 0, 0)]),
        ([usage(total_tokens=9)], [Usage(0, 0, 0)]),
        ([usage(prompt_tokens="7", completion_tokens=[], prompt_tokens_details="none")], [Usage(0, 0, 0)]),
        ([event({"choices": [], "usage": "a text"})], [Usage(0, 0, 0)]),
        ([event({"choices": [], "usage": {}})], [Usage(0, 0, 0)]),
        ([event({"choices": [], "usage": None})], []),
        ([usage(prompt_tokens=7, completion_tokens=1), usage(prompt_tokens=7, completion_tokens=2)], [Usage(7, 0, 2)]),
    ],
)
async def test_usage_never_costs_the_answer(events: list[bytes], reported: list[Usage], hear: Hear) -> None:
    heard = await hear(text("hello"), STOP, *events, DONE)

    assert heard.usages == reported
    assert heard.done_events == [STOPPED]


@pytest.mark.parametrize("end", [b"", b"data: [DONE]", b"data: [DONE] and so on\n\n", b"data: \n\n"])
async def test_finish_reason_is_the_terminal_marker(end: bytes, hear: Hear) -> None:
    heard = await hear(text("hello"), STOP, end)

    assert heard.done_events == [STOPPED]


async def test_chunks_of_mistrals_reasoning_models_are_text_and_thoughts(hear: Hear) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, {"type": "text", "text": "."}]}
    heard = await hear(
        chunk({"role": "assistant", "content": [thinking]}),
        chunk({"content": [{"type": "text", "text": "It is"}, {"type": "reference", "reference_ids": [1]}]}),
        text(" on."),
        STOP,
    )

    assert (heard.reasoning, heard.text) == ("Hm.", "It is on.")


async def test_event_that_is_an_error_by_its_name_is_one(fail: Hear) -> None:
    await fail(Unavailable, text("hello"), b'event: error\ndata: {"message": "overloaded"}\n\n', STOP)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 31])
@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
async def test_lines_may_end_in_any_way_and_be_cut_anywhere(ending: bytes, cut: int, hear: Hear) -> None:
    stream = b"".join((text("hello "), b": ping\n\n", text("there"), STOP)).replace(b"\n", ending)
    heard = await hear(*(stream[at : at + cut] for at in range(0, len(stream), cut)))

    assert heard.text == "hello there"


async def test_data_of_several_lines_is_one_event(hear: Hear) -> None:
    lines = json.dumps({"choices": [{"delta": {"content": "hello"}}]}, indent=1).splitlines()
    heard = await hear(*(f"data: {line}\r\n".encode() for line in lines), b"\r\n", STOP)

    assert heard.text == "hello"
