"""Tests for the simulated prompt cache: the cached part of a request, and the data of the picture."""

from xml.etree import ElementTree as ET

import pytest

from benchmarks.cache import Bill, add_requests, count_common_messages, iter_fifo_requests, iter_window_requests
from benchmarks.cache_curve import Curve, draw_curves
from benchmarks.reference import count_chat_tokens, find_defects
from benchmarks.workload import SYSTEM_TOKENS, build_conversation

_SYSTEM = {"role": "system", "content": "s" * 40}
_FIRST = {"role": "user", "content": "f" * 80}
_SECOND = {"role": "user", "content": "g" * 120}
_ANSWER = {"role": "assistant", "content": "a" * 160}


def make_bill(*requests, from_turn: int = 0) -> Bill:
    """Return the bill of these requests, one per turn."""
    total = Bill()
    add_requests(total, enumerate(requests), from_turn)
    return total


@pytest.mark.parametrize(
    ("last", "written", "cached"),
    [
        ([], [b"a"], 0),
        ([b"a", b"b"], [b"a", b"b", b"c"], 2),
        ([b"a", b"b", b"c"], [b"a", b"c"], 1),
        ([b"a", b"b", b"c"], [b"x", b"b", b"c"], 0),
        ([b"a", b"b"], [b"a"], 1),
    ],
)
def test_messages_up_to_the_first_that_differs_are_cached(last, written, cached):
    assert count_common_messages(last, written) == cached


def test_cached_tokens_cost_a_tenth():
    total = make_bill([_SYSTEM, _FIRST], [_SYSTEM, _FIRST, _ANSWER], from_turn=1)
    assert (total.request_count, total.token_count, total.cached_tokens) == (1, 14 + 24 + 44, 14 + 24)
    assert total.mean_cost == pytest.approx(44 + 0.1 * (14 + 24))
    assert total.cached_share == (14 + 24) / (14 + 24 + 44)


def test_what_follows_a_message_that_went_is_not_cached():
    total = make_bill([_SYSTEM, _FIRST, _SECOND], [_SYSTEM, _SECOND, _ANSWER], from_turn=1)
    assert total.cached_tokens == count_chat_tokens(_SYSTEM)


def test_turns_before_the_first_measured_one_are_not_billed_but_fill_the_cache():
    total = make_bill([_SYSTEM, _FIRST], [_SYSTEM, _FIRST], [_SYSTEM, _FIRST], from_turn=2)
    assert (total.request_count, total.cached_share) == (1, 1.0)


def test_every_simulated_request_of_the_window_is_valid():
    turns = build_conversation(200)
    asked = dict(iter_window_requests(turns, 4_000 - SYSTEM_TOKENS, 0.25))
    assert not [
        found for number, request in asked.items() if (found := find_defects(request, turns[number][-2], 4_000))
    ]


def test_a_turn_with_a_tool_makes_two_requests():
    turns = build_conversation(8)
    numbers = [0, 1, 2, 3, 3, 4, 5, 6, 7, 7]
    assert [number for number, _ in iter_window_requests(turns, 4_000, 0.25)] == numbers
    assert [number for number, _ in iter_fifo_requests(turns, 4_000)] == numbers


def test_picture_is_xml_with_every_line_and_its_name():
    curves = [Curve("up & down", "#ff0000", [(0.0, 1.0), (0.75, 0.5)]), Curve("", "#00ff00", [(0.0, 0.0), (0.75, 0.5)])]
    picture = ET.fromstring(draw_curves("A title", ["below"], curves, 0.25))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 2
    assert {"up & down", "A title", "below", "default"} <= set(texts)
