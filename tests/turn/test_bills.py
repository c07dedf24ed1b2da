"""Tests that bills reveal servers that drop messages, and that a varying cache or count is not mistaken for that."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
import json
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.providers import Request, ToolSchema, Usage
from custom_components.windowed_conversation.turn.model_size import BillHistory
from custom_components.windowed_conversation.window import EstimatedCounter, Message, ToolCall, count_message_tokens

SERVER = "fp_made_up scripted"
TOOLS = (ToolSchema("turn_on", "Turn something on. " * 100, {"type": "object"}),)
SYSTEM = Message.system("You are a voice assistant for a home. " * 60, tokens=500)

# The number of words of a turn: in the question, in each tool result, and in the answer.
turns = st.tuples(st.integers(3, 120), st.lists(st.integers(5, 400), max_size=3), st.integers(3, 300))
long_turns = st.tuples(st.integers(20, 120), st.lists(st.integers(5, 200), max_size=2), st.integers(20, 300))
talks = st.lists(turns, min_size=4, max_size=30)


@dataclass
class Counting:
    """A server's way of counting: its tokens for each word and for each message, and the maximum that it reads."""

    per_word: float = 1.3
    frame: int = 5
    reads: int | None = None
    identity: str = SERVER

    def tokens(self, messages: Any) -> int:
        return sum(self.frame + int(self.per_word * _words(message)) for message in messages)

    def dropped(self, request: Request) -> int:
        """Return the number of the oldest messages that are dropped so that the remaining ones fit."""
        sizes = [self.tokens([each]) for each in request.messages[1:]]
        over = self._fixed(request) + sum(sizes) - (self.reads or 10**9)
        dropped = 0
        while over > 0 and dropped < len(sizes) - 1:
            over -= sizes[dropped]
            dropped += 1
        return dropped

    def _fixed(self, request: Request) -> int:
        tools = sum(int(self.per_word * len(tool.text.split())) for tool in request.tools)
        return tools + self.tokens(request.messages[:1])

    def usage(self, request: Request) -> Usage:
        read = request.messages[1 + self.dropped(request) :]
        return Usage(input=self._fixed(request) + self.tokens(read), output=20)


@cache
def _length(text: str) -> int:
    return len(text.split())


def _words(message: Message) -> int:
    calls = sum(len(json.dumps(dict(call.arguments)).split()) + 3 for call in message.tool_calls)
    return _length(message.content) + calls


def counted(message: Message) -> Message:
    """Return the message with its token count, as a window stores it."""
    return replace(message, tokens=count_message_tokens(message, EstimatedCounter()))


def requests_of(talk: Any, *, stubs: bool = True) -> Iterator[list[Request]]:
    """Yield the requests of each turn as a window would build them: tool results of ended turns are stubs."""
    history: list[Message] = [SYSTEM]
    for number, (question, results, answer) in enumerate(talk):
        asked = counted(Message.user(f"[CONTEXT: time: {number}]\n\n" + "question " * question))
        messages, ended = [*history, asked], [*history, asked]
        sent = [Request("scripted", tuple(messages), TOOLS)]
        for round_, words in enumerate(results):
            call = ToolCall(f"call_{number}_{round_}", "turn_on", {"name": "kitchen light"})
            called = counted(Message.assistant(tool_calls=(call,)))
            result = counted(Message.tool(call.id, call.name, "result " * words))
            messages += [called, result]
            ended += [called, counted(Message.tool(call.id, call.name, "stub")) if stubs else result]
            sent.append(Request("scripted", tuple(messages), TOOLS))
        yield sent
        history = [*ended, counted(Message.assistant("answer " * answer))]


def sizes(talk: Any, usage: Any, server: Any = lambda _request: SERVER) -> list[int]:
    """Return the context sizes that the bills of a conversation reveal."""
    bills = BillHistory()
    found = (bills.add_bill(each, usage(each), server(each)) for turn in requests_of(talk) for each in turn)
    return [size for size in found if size is not None]


@settings(deadline=None)
@given(talks, st.floats(0.8, 2.2), st.integers(0, 20), st.booleans())
def test_server_that_reads_everything_is_never_taken_for_one_that_drops(
    talk: Any, per_word: float, frame: int, stubs: bool
) -> None:
    counting, bills = Counting(per_word, frame), BillHistory()

    found = [
        bills.add_bill(each, counting.usage(each), SERVER) for turn in requests_of(talk, stubs=stubs) for each in turn
    ]

    assert set(found) == {None}


@settings(deadline=None)
@given(talks, st.integers(0, 3000))
def test_split_of_a_bill_into_cached_and_written_is_no_drop(talk: Any, cached: int) -> None:
    counting = Counting()

    def usage(request: Request) -> Usage:
        read = counting.usage(request).input
        return Usage(read, cached=min(cached, read), cache_written=max(read - cached, 0), output=10)

    assert sizes(talk, usage) == []


@settings(deadline=None)
@given(talks, st.randoms(use_true_random=False))
def test_server_that_bills_only_what_its_cache_does_not_have_is_not_taken_for_one_that_drops(
    talk: Any, chance: Any
) -> None:
    counting = Counting()
    last: list[int] = [0]

    def usage(request: Request) -> Usage:
        whole = counting.usage(request).input
        last[0], before = whole, last[0]
        is_lost = chance.random() < 0.1
        return Usage(whole if is_lost else max(whole - before, 1), output=10)

    assert sizes(talk, usage) == []


@settings(deadline=None)
@given(talks, st.randoms(use_true_random=False))
def test_another_model_behind_a_router_is_no_drop(talk: Any, chance: Any) -> None:
    counting = {name: Counting(per_word) for name, per_word in (("one", 1.0), ("two", 1.4), ("three", 1.8))}
    chosen = ["one"]

    def usage(request: Request) -> Usage:
        chosen[0] = chance.choice([*counting])
        return counting[chosen[0]].usage(request)

    assert sizes(talk, usage, lambda _request: f"scripted {chosen[0]}") == []


@settings(deadline=None)
@given(talks, st.integers(500, 3000))
def test_context_that_the_provider_has_cleared_is_no_drop(talk: Any, kept: int) -> None:
    counting = Counting()

    def usage(request: Request) -> Usage:
        read = counting.usage(request).input
        return Usage(min(read, kept), cleared=max(read - kept, 0), output=10)

    assert sizes(talk, usage) == []


@settings(deadline=None)
@given(talks)
def test_formats_whose_servers_refuse_what_is_too_long_are_not_judged(talk: Any) -> None:
    assert sizes(talk, Counting(reads=2000).usage, lambda _request: "") == []


def test_chat_template_that_leaves_results_out_is_no_drop() -> None:
    counting = Counting()

    def usage(request: Request) -> Usage:
        shown = tuple(each for each in request.messages if each.role != "tool" and not each.tool_calls)
        return counting.usage(Request(request.model, shown, request.tools))

    assert sizes([(10, [400, 300], 20)] * 10, usage) == []


def test_fewer_tools_in_a_last_round_are_no_drop() -> None:
    bills, counting = BillHistory(), Counting()
    *_, (first, second) = requests_of([(20, [100], 10)] * 4)
    for turn in requests_of([(20, [100], 10)] * 4):
        for each in turn:
            bills.add_bill(each, counting.usage(each), SERVER)
    last = Request(second.model, (*second.messages, *first.messages[-1:]), TOOLS, may_call=False)

    assert bills.add_bill(last, Usage(counting.tokens(last.messages), output=5), SERVER) is None


@pytest.mark.long
@pytest.mark.parametrize("reads", [4096, 8192])
@settings(deadline=None, max_examples=50)
@given(talk=st.lists(long_turns, min_size=20, max_size=40), per_word=st.floats(1.0, 2.0))
def test_drops_are_noticed_within_three_turns_and_the_size_is_never_more_than_what_is_read(
    reads: int, talk: Any, per_word: float
) -> None:
    counting, bills = Counting(per_word, reads=reads), BillHistory()
    noticed = [(_is_truncated(counting, turn), _found(counting, bills, turn)) for turn in requests_of(talk)]

    first_drop = next((at for at, (is_dropped, _) in enumerate(noticed) if is_dropped), len(talk))
    found = [size for _, size in noticed if size is not None]
    within_reach = [size for _, size in noticed[first_drop : first_drop + 4]]
    assert len(within_reach) < 4 or any(within_reach)
    assert max(found, default=0) <= reads


def _is_truncated(counting: Counting, turn: list[Request]) -> bool:
    return any(map(counting.dropped, turn))


def _found(counting: Counting, bills: BillHistory, turn: list[Request]) -> int | None:
    sizes = [bills.add_bill(each, counting.usage(each), SERVER) for each in turn]
    return next((size for size in sizes if size is not None), None)
