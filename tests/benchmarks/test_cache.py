"""Tests for the simulated prompt cache: the cached part of a request, and the data of the picture."""

from xml.etree import ElementTree as ET

import pytest

from benchmarks.cache import Bill, add_to, common_prefix, fifo_requests, window_requests
from benchmarks.cache_curve import Curve, draw
from benchmarks.reference import chat_tokens, defects
from benchmarks.workload import SYSTEM_TOKENS, conversation

_SYSTEM = {"role": "system", "content": "s" * 40}
_FIRST = {"role": "user", "content": "f" * 80}
_SECOND = {"role": "user", "content": "g" * 120}
_ANSWER = {"role": "assistant", "content": "a" * 160}


def billed(*requests, from_turn: int = 0) -> Bill:
    """Return the bill of these requests, one per turn."""
    total = Bill()
    add_to(total, enumerate(requests), from_turn)
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
    assert common_prefix(last, written) == cached


def test_cached_tokens_cost_a_tenth():
    total = billed([_SYSTEM, _FIRST], [_SYSTEM, _FIRST, _ANSWER], from_turn=1)
    assert (total.requests, total.tokens, total.cached) == (1, 14 + 24 + 44, 14 + 24)
    assert total.cost == pytest.approx(44 + 0.1 * (14 + 24))
    assert total.hit == (14 + 24) / (14 + 24 + 44)


def test_what_follows_a_message_that_went_is_not_cached():
    total = billed([_SYSTEM, _FIRST, _SECOND], [_SYSTEM, _SECOND, _ANSWER], from_turn=1)
    assert total.cached == chat_tokens(_SYSTEM)


def test_turns_before_the_first_measured_one_are_not_billed_but_fill_the_cache():
    total = billed([_SYSTEM, _FIRST], [_SYSTEM, _FIRST], [_SYSTEM, _FIRST], from_turn=2)
    assert (total.requests, total.hit) == (1, 1.0)


def test_every_simulated_request_of_the_window_is_valid():
    turns = conversation(200)
    asked = dict(window_requests(turns, 4_000 - SYSTEM_TOKENS, 0.25))
    assert not [found for number, request in asked.items() if (found := defects(request, turns[number][-2], 4_000))]


def test_a_turn_with_a_tool_makes_two_requests():
    turns = conversation(8)
    numbers = [0, 1, 2, 3, 3, 4, 5, 6, 7, 7]
    assert [number for number, _ in window_requests(turns, 4_000, 0.25)] == numbers
    assert [number for number, _ in fifo_requests(turns, 4_000)] == numbers


def test_picture_is_xml_with_every_line_and_its_name():
    curves = [Curve("up & down", "#ff0000", [(0.0, 1.0), (0.75, 0.5)]), Curve("", "#00ff00", [(0.0, 0.0), (0.75, 0.5)])]
    picture = ET.fromstring(draw("A title", ["below"], curves, 0.25))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 2
    assert {"up & down", "A title", "below", "default"} <= set(texts)
