"""Tests of the window with examples: its requests, statistics and errors."""

from collections.abc import Callable
from dataclasses import replace
import gc
from typing import Any, cast

import pytest

from custom_components.windowed_conversation.window import (
    DuplicateToolCall,
    ExchangeStillOpen,
    InvalidMessage,
    InvalidTag,
    Message,
    NativeData,
    NoOpenExchange,
    Role,
    ToolCall,
    UnansweredToolCalls,
    UnknownExchange,
    UnknownToolCall,
    Window,
    WindowError,
    WindowPolicy,
    WindowStats,
    count_message_tokens,
)

from .histories import LengthCounter, create_window, said

CALL = ToolCall("call-1", "turn_on", {"area": "kitchen"})
RESULT = Message.tool("call-1", "turn_on", "done")


@pytest.fixture
def window() -> Window:
    return create_window(WindowPolicy(1000), "You are a helpful home.")


@pytest.fixture
def called(window: Window) -> Window:
    """Return a window with a tool call that has no result yet."""
    window.open("turn on the kitchen light")
    window.add(Message.assistant(tool_calls=(CALL,)))
    return window


def fill(window: Window, exchanges: int) -> None:
    """Record this many exchanges of 100 characters each."""
    for number in range(exchanges):
        window.add_exchange((Message.user(f"{number:46}"), Message.assistant(f"{number:46}")))


def test_request_is_the_system_message_then_the_exchanges_oldest_first(window: Window) -> None:
    window.add_exchange((Message.user("one"), Message.assistant("1")))
    window.open("two")
    assert said(window.messages()) == said(
        (
            Message.system("You are a helpful home."),
            Message.user("one"),
            Message.assistant("1"),
            Message.user("two"),
        )
    )


def test_changed_prompt_takes_the_place_of_the_old_one(window: Window) -> None:
    window.open("hello")
    window.set_system_prompt("Be brief.")
    assert said(window.messages()) == said((Message.system("Be brief."), Message.user("hello")))


def test_empty_prompt_takes_the_system_message_away(window: Window) -> None:
    window.set_system_prompt("")
    assert window.messages() == ()


def test_prompt_is_not_part_of_the_history_budget(window: Window) -> None:
    window.set_system_prompt("x" * 5000)
    assert (window.stats().prefix_tokens, window.stats().current_tokens) == (5004, 0)


@pytest.fixture
def rooms(window: Window) -> Window:
    """Return a window with exchanges tagged with rooms, and a newest exchange without tags."""
    for text, tags in (
        ("one", {"hall"}),
        ("two", {"hall", "attic"}),
        ("three", {"attic", "route:local"}),
        ("four", {}),
    ):
        window.add_exchange((Message.user(text),), tags=tags)
    return window


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ({"tags": {"hall"}}, ["one", "two"]),
        ({"tags": {"hall", "attic"}}, ["one", "two", "three"]),
        ({"tags": {"hall", "attic"}, "match": "all"}, ["two"]),
        ({"tags": {"cellar"}}, []),
        ({"tags": set(), "match": "all"}, ["one", "two", "three", "four"]),
        ({"exclude": {"route:local"}}, ["one", "two", "four"]),
        ({"exclude": ["input"]}, []),
        ({"tags": {"attic"}, "exclude": {"hall"}}, ["three"]),
        ({}, ["one", "two", "three", "four"]),
    ],
)
def test_view_shows_the_closed_exchanges_with_these_tags_only(
    rooms: Window, view: dict[str, Any], expected: list[str]
) -> None:
    assert [message.content for message in rooms.messages(**view)] == ["You are a helpful home.", *expected]


def test_view_ends_with_the_open_exchange(rooms: Window) -> None:
    rooms.open("five")
    assert [message.content for message in rooms.messages(tags={"hall"})][1:] == ["one", "two", "five"]


@pytest.mark.parametrize("match", ["some", "", None, "ANY"])
def test_view_matches_any_or_all(rooms: Window, match: Any) -> None:
    with pytest.raises(ValueError, match="match must be"):
        rooms.messages(match=match)


@pytest.mark.parametrize("view", [{"tags": "hall"}, {"exclude": "hall"}, {"tags": {""}}])
def test_tags_of_a_view_are_checked(rooms: Window, view: dict[str, Any]) -> None:
    with pytest.raises(InvalidTag):
        rooms.messages(**view)


def test_statistics_of_a_window_in_use(window: Window) -> None:
    fill(window, 12)
    window.tag_exchange(9, add={"important"})
    window.open("x" * 46)
    window.add_tags("route:model")
    assert window.stats() == WindowStats(
        message_count=19,
        exchange_count=10,
        current_tokens=950,
        max_tokens=1000,
        utilization=95.0,
        prefix_tokens=27,
        over_budget=False,
        tag_distribution={"input": 10, "output": 9, "route:model": 1, "important": 1},
        evicted_exchanges=3,
        evicted_messages=6,
        evicted_tokens=300,
        trims=1,
        protected_tokens=100,
    )


def test_returned_messages_do_not_change_with_the_window(window: Window) -> None:
    before = window.messages()
    fill(window, 1)
    assert len(before) == 1


def test_budget_may_be_filled_to_the_last_token(window: Window) -> None:
    fill(window, 10)
    assert (window.stats().current_tokens, window.stats().trims) == (1000, 0)


def test_one_token_over_the_budget_trims_to_the_low_water_mark(window: Window) -> None:
    fill(window, 10)
    window.open("")
    assert window.stats().current_tokens == 704


def test_utilization_is_at_most_a_hundred_percent_and_the_flag_says_that_there_is_more(window: Window) -> None:
    window.add_exchange((Message.user("x" * 2000), Message.assistant("y")))
    assert (window.stats().utilization, window.stats().over_budget) == (100.0, True)


def test_utilization_is_of_the_users_budget_and_the_flag_of_the_limit_of_the_turn_too(window: Window) -> None:
    window.open("x" * 496)
    window.set_turn_limit(400)
    during = window.stats()
    window.close()
    assert (during.utilization, during.over_budget) == (50.0, True)
    assert (window.stats().utilization, window.stats().over_budget) == (50.0, False)


def test_smaller_budget_trims_at_once(window: Window) -> None:
    fill(window, 10)
    window.set_policy(WindowPolicy(400))
    assert (window.stats().current_tokens, window.policy.history_tokens) == (300, 400)


def test_what_was_pushed_out_is_not_held_once_the_exchange_is_closed(window: Window) -> None:
    window.add_exchange((Message.user("this goes"),))
    window.open("x" * 2000)
    window.close()
    held = [thing for thing in gc.get_objects() if type(thing) is Message and thing.content == "this goes"]
    assert held == []


def test_abort_does_not_bring_back_what_a_smaller_budget_has_no_room_for(window: Window) -> None:
    fill(window, 10)
    window.open("hello")
    window.set_policy(WindowPolicy(500))
    window.abort()
    assert (window.stats().current_tokens, window.stats().evicted_exchanges) == (300, 7)


def numbers(window: Window) -> list[int]:
    """Return the numbers of the remaining exchanges."""
    return [exchange.number for exchange in window.exchanges()]


def test_ephemeral_exchanges_go_first_and_protected_ones_stay(window: Window) -> None:
    fill(window, 10)
    for number, tag in ((1, "important"), (2, "important"), (6, "ephemeral"), (8, "ephemeral")):
        window.tag_exchange(number, add={tag})
    window.open("")
    assert numbers(window) == [1, 2, 4, 5, 7, 9, 10]


def test_next_evictions_are_those_of_the_next_trim(window: Window) -> None:
    fill(window, 10)
    for number, tag in ((1, "important"), (6, "ephemeral")):
        window.tag_exchange(number, add={tag})
    expected = window.find_next_evictions()
    before = numbers(window)
    window.open("")
    assert {*before} - {*numbers(window)} == {*expected}


def test_next_evictions_of_a_window_with_room_change_nothing(window: Window) -> None:
    fill(window, 3)
    assert (window.find_next_evictions(), numbers(window), window.stats().trims) == ((1, 2, 3), [1, 2, 3], 0)


def test_important_exchange_is_protected_even_when_it_is_ephemeral(window: Window) -> None:
    fill(window, 10)
    window.tag_exchange(1, add={"important", "ephemeral"})
    window.open("")
    assert numbers(window) == [1, 5, 6, 7, 8, 9, 10]


def test_protected_exchanges_go_last_and_only_down_to_the_budget(window: Window) -> None:
    fill(window, 10)
    for number in range(1, 10):
        window.tag_exchange(number, add={"important"})
    window.open("x" * 96)
    assert (numbers(window), window.stats().current_tokens) == ([*range(1, 10)], 1000)
    window.add(Message.assistant("x" * 96))
    assert (numbers(window), window.stats().current_tokens) == ([*range(2, 10)], 1000)


def test_exchange_that_is_no_longer_important_goes_like_any_other(window: Window) -> None:
    window.add_exchange((Message.user("x" * 96),), tags={"important"})
    window.tag_exchange(1, remove={"important"})
    fill(window, 10)
    assert numbers(window) == [4, 5, 6, 7, 8, 9, 10, 11]


def test_tag_that_is_taken_away_is_gone_from_the_messages_and_the_counts(window: Window) -> None:
    window.add_exchange((Message.user("hello"),), tags={"route:model"})
    window.open("hello", tags={"mine"})
    window.close()
    window.tag_exchange(2, remove={"mine"}, add={"yours"})
    assert window.stats().tag_distribution == {"input": 2, "route:model": 1, "yours": 1}
    assert window.messages()[-1].tags == {"input"}


def test_numbers_of_exchanges_go_on_after_an_abort(window: Window) -> None:
    fill(window, 1)
    window.open("hello")
    window.abort()
    fill(window, 1)
    assert numbers(window) == [1, 2]


def test_recorded_exchange_is_the_same_as_one_that_was_opened_and_closed() -> None:
    recorded, written = create_window(WindowPolicy(1000)), create_window(WindowPolicy(1000))
    recorded.add_exchange((Message.user("hello"), Message.assistant("hi")), tags={"route:local"})
    written.open("hello")
    written.add_tags("route:local")
    written.add(Message.assistant("hi"))
    written.close()
    assert (recorded.messages(), recorded.stats()) == (written.messages(), written.stats())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message.assistant("hi"), {"output"}),
        (Message.assistant(tool_calls=(ToolCall("call-2", "turn_on", {}),)), {"output", "tool_call"}),
        (Message.assistant("hi", tags=frozenset({"mine"})), {"output", "mine"}),
    ],
)
def test_messages_are_tagged_by_what_they_are(window: Window, message: Message, expected: set[str]) -> None:
    window.open("hello")
    window.add(message)
    assert window.messages()[-1].tags == expected


def test_question_carries_the_tags_that_it_was_opened_with(window: Window) -> None:
    window.open("hello", tags={"input", "context:kitchen"})
    assert window.messages()[-1].tags == {"input", "context:kitchen"}


def test_tag_counts_once_for_an_exchange_however_often_it_occurs(called: Window) -> None:
    called.add(RESULT)
    called.add_tags("route:model", "route:model")
    called.add_tags("route:model")
    assert called.stats().tag_distribution == {"input": 1, "output": 1, "tool_call": 1, "route:model": 1}


def test_message_is_kept_with_all_that_it_had() -> None:
    window = Window("conversation", WindowPolicy(), LengthCounter(), clock=lambda: 5.0)
    full = Message(
        role=Role.ASSISTANT,
        content="hello",
        tool_calls=(CALL,),
        tool_call_id="odd",
        name="ada",
        tags=frozenset({"mine"}),
        created=3.0,
        native=NativeData("openai", "gpt", {"id": "rs_1"}),
    )
    window.open("hello")
    window.add(full)
    assert window.messages()[-1] == replace(
        full,
        tags=frozenset({"mine", "output", "tool_call"}),
        tokens=count_message_tokens(full, LengthCounter()),
    )


def test_kept_message_is_as_frozen_as_any(window: Window) -> None:
    window.open("hello")
    with pytest.raises(AttributeError):
        window.messages()[-1].content = "goodbye"  # type: ignore[misc]


def test_message_without_a_date_gets_the_date_of_its_entry(window: Window) -> None:
    window.open("hello")
    assert window.messages()[-1].created == 1_000.0


def refuses(window: Window, error: type[WindowError], act: Callable[[], None]) -> bool:
    """Return whether `act` raises this error and leaves the window unchanged."""
    before = window.messages(), window.stats(), window.is_open
    with pytest.raises(error) as raised:
        act()
    return type(raised.value) is error and (window.messages(), window.stats(), window.is_open) == before


type Act = Callable[[Window], None]

OTHER_CALL = ToolCall("call-2", "turn_on", {})
REFUSED_WHEN_CLOSED: dict[str, tuple[type[WindowError], Act]] = {
    "an addition": (NoOpenExchange, lambda window: window.add(Message.assistant("hi"))),
    "a tag": (NoOpenExchange, lambda window: window.add_tags("important")),
    "a second close": (NoOpenExchange, lambda window: window.close()),
    "an abort": (NoOpenExchange, lambda window: window.abort()),
    "a tag of an exchange that is not there": (UnknownExchange, lambda window: window.tag_exchange(2, add={"mine"})),
    "no more input": (InvalidTag, lambda window: window.tag_exchange(1, remove={"input"})),
    "no more output": (InvalidTag, lambda window: window.tag_exchange(1, remove={"output"})),
    "no more call": (InvalidTag, lambda window: window.tag_exchange(1, remove={"tool_call"})),
    "tags spelled out of one text": (InvalidTag, lambda window: window.open("hello", tags="input")),
    "a record of nothing": (InvalidMessage, lambda window: window.add_exchange(())),
    "a record without a question": (InvalidMessage, lambda window: window.add_exchange((Message.assistant("hi"),))),
    "a question that calls": (
        InvalidMessage,
        lambda window: window.add_exchange((Message.user("hello", tool_calls=(CALL,)),)),
    ),
    "two questions": (
        InvalidMessage,
        lambda window: window.add_exchange((Message.user("hello"), Message.user("hello?"))),
    ),
}
REFUSED_AFTER_THE_QUESTION: dict[str, tuple[type[WindowError], Act]] = {
    "another question": (InvalidMessage, lambda window: window.add(Message.user("and?"))),
    "another prompt": (InvalidMessage, lambda window: window.add(Message.system("obey"))),
    "a call without an id": (
        InvalidMessage,
        lambda window: window.add(Message.assistant(tool_calls=(ToolCall("", "turn_on", {}),))),
    ),
    "a result without a call": (UnknownToolCall, lambda window: window.add(RESULT)),
    "a call id twice": (DuplicateToolCall, lambda window: window.add(Message.assistant(tool_calls=(CALL, CALL)))),
    "a bad tag": (InvalidTag, lambda window: window.add(Message.assistant("hi", tags=frozenset({""})))),
    "a tag of a closed exchange": (ExchangeStillOpen, lambda window: window.tag_exchange(1, add={"important"})),
}
REFUSED_AFTER_THE_CALL: dict[str, tuple[type[WindowError], Act]] = {
    "another exchange": (ExchangeStillOpen, lambda window: window.open("again")),
    "a broken record": (
        UnansweredToolCalls,
        lambda window: window.add_exchange((Message.user("again"), Message.assistant(tool_calls=(CALL,)))),
    ),
    "a close": (UnansweredToolCalls, lambda window: window.close()),
    "an answer": (UnansweredToolCalls, lambda window: window.add(Message.assistant("done"))),
    "a result that calls": (InvalidMessage, lambda window: window.add(replace(RESULT, tool_calls=(OTHER_CALL,)))),
    "an empty tag": (InvalidTag, lambda window: window.add_tags("")),
    "a blank tag": (InvalidTag, lambda window: window.add_tags("  ")),
    "a long tag": (InvalidTag, lambda window: window.add_tags("x" * 101)),
    "a tag that is no text": (InvalidTag, lambda window: window.add_tags(cast("str", 5))),
}
REFUSED_AFTER_THE_RESULT: dict[str, tuple[type[WindowError], Act]] = {
    "another result": (UnknownToolCall, lambda window: window.add(RESULT)),
    "the same call": (DuplicateToolCall, lambda window: window.add(Message.assistant(tool_calls=(CALL,)))),
}


@pytest.mark.parametrize(("error", "act"), REFUSED_WHEN_CLOSED.values(), ids=REFUSED_WHEN_CLOSED)
def test_closed_exchange_stays_as_it_is(window: Window, error: type[WindowError], act: Act) -> None:
    fill(window, 1)
    assert refuses(window, error, lambda: act(window))


@pytest.mark.parametrize(("error", "act"), REFUSED_AFTER_THE_QUESTION.values(), ids=REFUSED_AFTER_THE_QUESTION)
def test_question_is_followed_by_what_the_assistant_says(window: Window, error: type[WindowError], act: Act) -> None:
    fill(window, 1)
    window.open("hello")
    assert refuses(window, error, lambda: act(window))


@pytest.mark.parametrize(("error", "act"), REFUSED_AFTER_THE_CALL.values(), ids=REFUSED_AFTER_THE_CALL)
def test_call_is_followed_by_its_result(called: Window, error: type[WindowError], act: Act) -> None:
    assert refuses(called, error, lambda: act(called))


@pytest.mark.parametrize(("error", "act"), REFUSED_AFTER_THE_RESULT.values(), ids=REFUSED_AFTER_THE_RESULT)
def test_call_and_its_result_come_once_in_an_exchange(called: Window, error: type[WindowError], act: Act) -> None:
    called.add(RESULT)
    assert refuses(called, error, lambda: act(called))
    called.add(Message.assistant(tool_calls=(OTHER_CALL,)))
    called.add(Message.tool("call-2", "turn_on", "done"))
    assert refuses(called, error, lambda: act(called))


def test_call_of_an_earlier_exchange_gets_no_result(called: Window) -> None:
    called.add(RESULT)
    called.close()
    called.open("and now?")
    assert refuses(called, UnknownToolCall, lambda: called.add(RESULT))


def test_call_id_may_come_again_in_a_later_exchange(called: Window) -> None:
    called.add(RESULT)
    called.close()
    called.open("once more")
    called.add(Message.assistant(tool_calls=(CALL,)))
    called.add(RESULT)
    assert called.stats().tag_distribution["tool_call"] == 2


def test_call_is_not_its_own_result(window: Window) -> None:
    window.open("hello")
    window.add(Message.assistant(tool_calls=(CALL,), tool_call_id=CALL.id))
    assert refuses(window, UnansweredToolCalls, window.close)


def test_recorded_exchange_that_breaks_off_leaves_nothing(window: Window) -> None:
    fill(window, 10)
    broken = (Message.user("x" * 500), Message.assistant(tool_calls=(CALL,)))
    assert refuses(window, UnansweredToolCalls, lambda: window.add_exchange(broken))


@pytest.mark.parametrize(("end", "questions"), [("close", ["one", "open", "two"]), ("abort", ["one", "two"])])
def test_exchange_of_another_turn_follows_the_open_one(window: Window, end: str, questions: list[str]) -> None:
    window.add_exchange((Message.user("one"), Message.assistant("1")))
    window.take_changed_exchanges()
    window.open("open")
    window.add_exchange((Message.user("two"), Message.assistant("2")), tags={"route:local"})

    assert [message.content for message in window.messages()][-2:] == ["1", "open"]
    assert [each.messages[0].content for each in window.snapshot().exchanges] == ["one", "two"]
    getattr(window, end)()

    assert [each.messages[0].content for each in window.exchanges()] == questions
    assert window.exchanges()[-1].tags >= {"route:local"}


def test_exchange_that_follows_the_open_one_is_a_change_that_can_be_stored(window: Window) -> None:
    window.add_exchange((Message.user("one"), Message.assistant("1")))
    window.take_changed_exchanges()
    window.open("open")
    assert window.take_changed_exchanges() is None

    window.add_exchange((Message.user("two"), Message.assistant("2")))

    stored = window.take_changed_exchanges()
    window.close()
    after = window.take_changed_exchanges()
    assert stored is not None
    assert after is not None
    assert [(each.number, each.messages[0].content) for each in stored] == [(1, "one"), (3, "two")]
    assert [(each.number, each.messages[0].content) for each in after] == [(1, "one"), (2, "open"), (3, "two")]


class FailingCounter(LengthCounter):
    """A counter that raises an error for the text "fail"."""

    def count(self, text: str) -> int:
        return len(text) // (text != "fail")


def test_counter_that_fails_leaves_the_window_as_it_was() -> None:
    window = Window("conversation", WindowPolicy(), FailingCounter())
    with pytest.raises(ZeroDivisionError):
        window.add_exchange((Message.user("hello"), Message.assistant("fail")))
    assert (window.messages(), window.is_open) == ((), False)
