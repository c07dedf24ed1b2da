"""Tests for tool calls from servers that differ in how they number, name and split them."""

from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream

from ..byte_server import CALLS, DONE, STOP, chunk, fragment
from ..conftest import Hear

A, B = ("a", {"x": 1}), ("b", {"y": 2})
ARGUMENTS_A, ARGUMENTS_B = '{"x": 1}', '{"y": 2}'


# The events with the fragments of calls, and the expected calls.
SHAPES: dict[str, tuple[list[bytes], list[tuple[str, dict[str, Any]]]]] = {
    "fragments_take_turns": (
        [
            fragment("", "a", index=0, id="call_1"),
            fragment("", "b", index=1, id="call_2"),
            fragment('{"x"', index=0),
            fragment('{"y"', index=1),
            fragment(": 1}", index=0),
            fragment(": 2}", index=1),
        ],
        [A, B],
    ),
    "numbered_backwards": (
        [
            fragment("", "b", index=1, id="call_2"),
            fragment("", "a", index=0, id="call_1"),
            fragment(ARGUMENTS_A, index=0),
            fragment(ARGUMENTS_B, index=1),
        ],
        [A, B],
    ),
    "every_index_0": (
        [fragment(ARGUMENTS_A, "a", index=0, id="call_1"), fragment(ARGUMENTS_B, "b", index=0, id="call_2")],
        [A, B],
    ),
    "every_index_0_in_fragments": (
        [
            fragment("", "a", index=0, id="call_1"),
            fragment(ARGUMENTS_A, index=0),
            fragment("", "b", index=0, id="call_2"),
            fragment(ARGUMENTS_B, index=0),
        ],
        [A, B],
    ),
    "every_index_0_and_no_id": ([fragment(ARGUMENTS_A, "a", index=0), fragment(ARGUMENTS_B, "b", index=0)], [A, B]),
    "no_index_and_no_id": ([fragment(ARGUMENTS_A, "a"), fragment(ARGUMENTS_B, "b")], [A, B]),
    "no_index_in_fragments": (
        [fragment('{"x"', "a", id="call_1"), fragment(": 1}"), fragment('{"y"', "b", id="call_2"), fragment(": 2}")],
        [A, B],
    ),
    "no_index_no_id_no_arguments": (
        [fragment("", "a"), fragment("", "b"), fragment("", "a")],
        [("a", {}), ("b", {}), ("a", {})],
    ),
    "one_id_for_all": (
        [fragment(ARGUMENTS_A, "a", index=0, id="same"), fragment(ARGUMENTS_B, "b", index=1, id="same")],
        [A, B],
    ),
    "one_id_and_one_index_for_all": (
        [fragment(ARGUMENTS_A, "a", index=0, id="same"), fragment(ARGUMENTS_B, "b", index=0, id="same")],
        [A, B],
    ),
    "one_id_for_all_and_no_index": (
        [fragment(ARGUMENTS_A, "a", id="same"), fragment(ARGUMENTS_B, "b", id="same")],
        [A, B],
    ),
    "id_and_name_in_every_fragment": (
        [
            fragment('{"x"', "a", index=0, id="call_1"),
            fragment(": 1}", "a", index=0, id="call_1"),
            fragment("", "a", index=0, id="call_1"),
        ],
        [A],
    ),
    "id_and_name_in_every_fragment_and_no_index": (
        [fragment('{"x"', "a", id="call_1"), fragment(": 1}", "a", id="call_1"), fragment("", "a", id="call_1")],
        [A],
    ),
    "empty_id_and_name_in_later_fragments": (
        [fragment('{"x"', "a", index=0, id="call_1"), fragment(": 1}", "", index=0, id="")],
        [A],
    ),
    "arguments_as_an_object": ([fragment({"x": 1}, "a", index=0)], [A]),
    "arguments_as_an_empty_object": ([fragment({}, "a", index=0)], [("a", {})]),
    "arguments_are_null": ([fragment(None, "a", index=0)], [("a", {})]),
    "no_arguments": ([fragment("{}", "a", index=0)], [("a", {})]),
    "white_space": ([fragment(f" {ARGUMENTS_A}\n", "a", index=0), fragment(" \n", index=0)], [A]),
    "name_without_arguments_first": (
        [chunk({"tool_calls": [{"index": 0, "function": {"name": "a"}}]}), fragment(ARGUMENTS_A, index=0)],
        [A],
    ),
    "after_the_finish_reason": ([STOP, fragment(ARGUMENTS_A, "a", index=0, id="call_1")], [A]),
}


@pytest.mark.parametrize(("fragments", "called"), SHAPES.values(), ids=SHAPES)
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
        [fragment("", "", index=0, id="call_1"), fragment(ARGUMENTS_A, index=0)],
        [fragment(ARGUMENTS_A, index=0, id="call_1")],
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


async def test_whole_call_is_announced_although_the_stream_breaks_later(fail: Hear) -> None:
    heard = await fail(BadStream, fragment(ARGUMENTS_A, "a", index=0), fragment('{"y"', "b", index=1), CALLS, DONE)

    assert heard.called == [A]
