"""Tests for the workload of the benchmarks, the reference window, and the detection of invalid requests."""

import pytest

from benchmarks.reference import MessageFifo, ReferenceWindow, count_chat_tokens, find_defects, to_chat_message
from benchmarks.workload import (
    MESSAGES_PER_TURN,
    SYSTEM_TOKENS,
    TOKENS_PER_TURN,
    WorkloadMessage,
    build_conversation,
    build_system_prompt,
    estimate_message_tokens,
)

_TURNS = build_conversation(2_000)
_LAST = WorkloadMessage("user", "and tomorrow?")
_SYSTEM = WorkloadMessage("system", "be brief")
_QUESTION = WorkloadMessage("user", "is it on?")
_CALL = WorkloadMessage("assistant", "", "call-1", "{}")
_RESULT = WorkloadMessage("tool", "on", "call-1")


def iter_requests(window):
    """Yield the request after every turn, paired with the message that should be its last."""
    for turn in _TURNS:
        for said in turn:
            window.append(said)
        yield window.messages(), turn[-1]


def found_in(*request: WorkloadMessage, budget: int = 1_000):
    """Return the defects of a request with these messages."""
    return find_defects([to_chat_message(said) for said in request], request[-1], budget)


def test_turns_have_the_size_that_the_benchmarks_say_they_have():
    tokens = sum(estimate_message_tokens(said) for turn in _TURNS for said in turn)
    assert tokens / len(_TURNS) == pytest.approx(TOKENS_PER_TURN, rel=0.02)
    assert sum(map(len, _TURNS)) / len(_TURNS) == MESSAGES_PER_TURN
    assert estimate_message_tokens(WorkloadMessage("system", build_system_prompt())) == SYSTEM_TOKENS


def test_same_seed_is_the_same_conversation():
    assert build_conversation(50, seed=7) == build_conversation(50, seed=7) != build_conversation(50, seed=8)


@pytest.mark.parametrize("budget", [4_000, 100_000])
@pytest.mark.parametrize("share", [0, 0.25, 0.5])
def test_reference_sends_only_valid_requests_within_its_budget(budget, share):
    window = ReferenceWindow(build_system_prompt(), budget, share)
    assert not [found for request, last in iter_requests(window) if (found := find_defects(request, last, budget))]


def test_reference_keeps_what_the_budget_has_room_for():
    window = ReferenceWindow(build_system_prompt(), 4_000, 0)
    kept = [sum(map(count_chat_tokens, request)) for request, _ in iter_requests(window)][100:]
    assert sum(kept) / len(kept) > 0.9 * 4_000


def test_messages_that_go_one_by_one_stay_in_the_budget_but_leave_wrong_requests():
    found = [
        find_defects(request, last, 4_000) for request, last in iter_requests(MessageFifo(build_system_prompt(), 4_000))
    ]
    assert set.union(*found) == {
        "does not begin with the system message and a user's",
        "calls without results, or results without calls",
    }


@pytest.mark.parametrize(
    ("request_messages", "defect"),
    [
        ((_QUESTION, _LAST), "does not begin with the system message and a user's"),
        ((_SYSTEM, WorkloadMessage("assistant", "yes"), _LAST), "does not begin with the system message and a user's"),
        ((_SYSTEM, _QUESTION, _CALL, _LAST), "calls without results, or results without calls"),
        ((_SYSTEM, _QUESTION, _RESULT, _LAST), "calls without results, or results without calls"),
        ((_SYSTEM, WorkloadMessage("user", "x" * 5_000), _LAST), "over the budget"),
    ],
)
def test_defect_of_a_request_is_found(request_messages, defect):
    assert found_in(*request_messages) == {defect}


def test_request_without_its_newest_message_is_found():
    request = [to_chat_message(_SYSTEM), to_chat_message(_QUESTION)]
    assert find_defects(request, _LAST, 1_000) == {"does not end with the newest message"}


def test_valid_request_has_no_defect():
    assert found_in(_SYSTEM, _QUESTION, _CALL, _RESULT, _LAST) == set()
