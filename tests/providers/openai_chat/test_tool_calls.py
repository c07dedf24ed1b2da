"""Tool calls in the shapes of servers that number, name and cut them each in its own way."""

import asyncio
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream
from custom_components.windowed_conversation.providers.events import ToolCallDone
from custom_components.windowed_conversation.window import Message, ToolCall
from tests.providers.heard import closing

from ..byte_server import CALLS, DONE, STOP, ByteServer, chunk, fragment
from ..conftest import Ask, Hear
from ..heard import Heard

A, B = ("a", {"x": 1}), ("b", {"y": 2})
WHOLE_A, WHOLE_B = '{"x": 1}', '{"y": 2}'


@pytest.mark.parametrize(
    ("fragments", "called"),
    [
        pytest.param(
            [
                fragment("", "a", index=0, id="call_1"),
                fragment("", "b", index=1, id="call_2"),
                fragment('{"x"', index=0),
                fragment('{"y"', index=1),
                fragment(": 1}", index=0),
                fragment(": 2}", index=1),
            ],
            [A, B],
            id="fragments_take_turns",
        ),
        pytest.param(
            [
                fragment("", "b", index=1, id="call_2"),
                fragment("", "a", index=0, id="call_1"),
                fragment(WHOLE_A, index=0),
                fragment(WHOLE_B, index=1),
            ],
            [A, B],
            id="numbered_backwards",
        ),
        pytest.param(
            [fragment(WHOLE_A, "a", index=0, id="call_1"), fragment(WHOLE_B, "b", index=0, id="call_2")],
            [A, B],
            id="every_index_0",
        ),
        pytest.param(
            [
                fragment("", "a", index=0, id="call_1"),
                fragment(WHOLE_A, index=0),
                fragment("", "b", index=0, id="call_2"),
                fragment(WHOLE_B, index=0),
            ],
            [A, B],
            id="every_index_0_in_fragments",
        ),
        pytest.param(
            [fragment(WHOLE_A, "a", index=0), fragment(WHOLE_B, "b", index=0)],
            [A, B],
            id="every_index_0_and_no_id",
        ),
        pytest.param([fragment(WHOLE_A, "a"), fragment(WHOLE_B, "b")], [A, B], id="no_index_and_no_id"),
        pytest.param(
            [
                fragment('{"x"', "a", id="call_1"),
                fragment(": 1}"),
                fragment('{"y"', "b", id="call_2"),
                fragment(": 2}"),
            ],
            [A, B],
            id="no_index_in_fragments",
        ),
        pytest.param(
            [fragment("", "a"), fragment("", "b"), fragment("", "a")],
            [("a", {}), ("b", {}), ("a", {})],
            id="no_index_no_id_no_arguments",
        ),
        pytest.param(
            [fragment(WHOLE_A, "a", index=0, id="same"), fragment(WHOLE_B, "b", index=1, id="same")],
            [A, B],
            id="one_id_for_all",
        ),
        pytest.param(
            [fragment(WHOLE_A, "a", index=0, id="same"), fragment(WHOLE_B, "b", index=0, id="same")],
            [A, B],
            id="one_id_and_one_index_for_all",
        ),
        pytest.param(
            [fragment(WHOLE_A, "a", id="same"), fragment(WHOLE_B, "b", id="same")],
            [A, B],
            id="one_id_for_all_and_no_index",
        ),
        pytest.param(
            [
                fragment('{"x"', "a", index=0, id="call_1"),
                fragment(": 1}", "a", index=0, id="call_1"),
                fragment("", "a", index=0, id="call_1"),
            ],
            [A],
            id="id_and_name_in_every_fragment",
        ),
        pytest.param(
            [
                fragment('{"x"', "a", id="call_1"),
                fragment(": 1}", "a", id="call_1"),
                fragment("", "a", id="call_1"),
            ],
            [A],
            id="id_and_name_in_every_fragment_and_no_index",
        ),
        pytest.param(
            [fragment('{"x"', "a", index=0, id="call_1"), fragment(": 1}", "", index=0, id="")],
            [A],
            id="empty_id_and_name_in_later_fragments",
        ),
        pytest.param([fragment({"x": 1}, "a", index=0)], [A], id="arguments_as_an_object"),
        pytest.param([fragment({}, "a", index=0)], [("a", {})], id="arguments_as_an_empty_object"),
        pytest.param([fragment(None, "a", index=0)], [("a", {})], id="arguments_are_null"),
        pytest.param([fragment("{}", "a", index=0)], [("a", {})], id="no_arguments"),
        pytest.param([fragment(f" {WHOLE_A}\n", "a", index=0), fragment(" \n", index=0)], [A], id="white_space"),
        pytest.param(
            [chunk({"tool_calls": [{"index": 0, "function": {"name": "a"}}]}), fragment(WHOLE_A, index=0)],
            [A],
            id="name_without_arguments_first",
        ),
        pytest.param([STOP, fragment(WHOLE_A, "a", index=0, id="call_1")], [A], id="after_the_finish_reason"),
    ],
)
async def test_calls_are_told_apart(
    fragments: list[bytes], called: list[tuple[str, dict[str, Any]]], hear: Hear
) -> None:
    heard = await hear(*fragments, CALLS, DONE)

    assert heard.called == called
    assert len(set(heard.ids)) == len(called)
    assert all(heard.ids)


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment('{"x"', "a", index=0)],
        [fragment("", "", index=0, id="call_1"), fragment(WHOLE_A, index=0)],
        [fragment(WHOLE_A, index=0, id="call_1")],
        [fragment("[1]", "a", index=0)],
        [fragment('"a text"', "a", index=0)],
        [fragment("not json", "a", index=0)],
        [fragment('{"x": 1}}', "a", index=0)],
        [fragment('{"a":' * 100_000 + "1" + "}" * 100_000, "a", index=0)],
        [fragment("[" * 200_000, "a", index=0)],
    ],
)
async def test_half_a_call_is_an_error(fragments: list[bytes], fail: Hear) -> None:
    heard = await fail(BadStream, *fragments, CALLS, DONE)

    assert heard.calls == []


async def test_id_that_the_history_has_already_is_replaced(ask: Ask, byte_server: ByteServer) -> None:
    byte_server.reply(fragment(WHOLE_A, "a", index=0, id="call_1"), CALLS, DONE)
    earlier = (
        Message.user("before"),
        Message.assistant(tool_calls=(ToolCall("call_1", "a", {}),)),
        Message.tool("call_1", "a", "{}"),
        Message.assistant("done"),
    )

    heard = await Heard().listen(ask(*earlier))

    assert heard.called == [A]
    assert heard.ids != ["call_1"]


async def test_call_is_announced_before_the_answer_is_complete(ask: Ask, byte_server: ByteServer) -> None:
    rest = asyncio.Event()
    byte_server.reply(fragment(WHOLE_A, "a", index=0, id="call_1"), rest, fragment(WHOLE_B, "b", index=1), CALLS, DONE)

    async with closing(ask()) as events:
        first = await anext(events)
        assert first == ToolCallDone(ToolCall("call_1", "a", {"x": 1}))
        rest.set()
        heard = await Heard([first]).listen(events)

    assert heard.called == [A, B]


async def test_whole_call_is_announced_although_the_stream_breaks_later(fail: Hear) -> None:
    heard = await fail(BadStream, fragment(WHOLE_A, "a", index=0), fragment('{"y"', "b", index=1), CALLS, DONE)

    assert heard.called == [A]
