"""Tests for exchanges that a window retains until they are summarized, and for replacing them by the summary."""

from dataclasses import replace
from typing import ClassVar

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.window import ExchangeStillOpen, Message, Window, WindowPolicy
from custom_components.windowed_conversation.window.summary import (
    QUESTION,
    SummaryInput,
    build_older_summary_input,
    is_summary,
)

from .conversations import dump, load
from .histories import (
    Exchange,
    budgets,
    cost,
    create_window,
    exchanges,
    keep_stable_prefix,
    long_texts,
    play,
    said,
    shares,
    steps,
)

POLICY = WindowPolicy(1000, 0.25, summarize=True)


class CountedNumber(int):
    """The number of an exchange. It counts comparisons between such numbers."""

    compared: ClassVar = 0

    def __gt__(self, other: int) -> bool:
        CountedNumber.compared += 1
        return int(self) > other


def say(window: Window, text: str, length: int = 100, tags: tuple[str, ...] = ()) -> None:
    """Record an exchange with this question, and an answer of this many characters."""
    window.add_exchange((Message.user(text), Message.assistant("x" * length)), tags)


def filled(policy: WindowPolicy = POLICY) -> Window:
    """Return a window shortly before its second trim, with a summary of the exchanges that the first trim evicted."""
    window = create_window(policy, "system")
    for number in range(10):
        say(window, f"question {number}")
    window.insert_summary(dropped(window), "Ada asked four questions")
    return window


def dropped(window: Window) -> SummaryInput:
    """Return the exchanges that wait for a summary, which must exist."""
    passage = window.pending_summary
    assert passage is not None
    return passage


def questions(passage: SummaryInput) -> list[str]:
    """Return the questions of the exchanges that the summary will replace."""
    return [exchange.messages[0].content for exchange in passage.exchanges if exchange.number in passage.numbers]


def summaries(window: Window) -> list[str]:
    """Return the texts of the summaries in the window."""
    return [exchange.messages[-1].content for exchange in window.exchanges() if is_summary(exchange)]


def test_window_without_summaries_holds_on_to_nothing() -> None:
    window = create_window(replace(POLICY, summarize=False))
    for _ in range(100):
        say(window, "hello")

    assert window.stats().trims > 0
    assert window.pending_summary is None


@given(history=st.lists(exchanges(), min_size=1, max_size=12), budget=budgets, share=shares)
def test_what_was_dropped_begins_like_the_last_request(
    history: list[Exchange], budget: int, share: float | None
) -> None:
    window = create_window(WindowPolicy(budget, share, summarize=True), "system")
    last: list[tuple[object, ...]] = []
    for _ in steps(window, history):
        passage = window.pending_summary
        head = said(passage.messages) if passage else []
        assert head[: len(last)] == last[: len(head)]
        window.record_summary_failure(passage or SummaryInput())
        window.record_summary_failure(passage or SummaryInput())
        assert window.pending_summary is None
        last = said(keep_stable_prefix(window.messages(), window.policy))


def test_summary_changes_nothing_before_the_newest_exchange() -> None:
    window = filled()
    while window.pending_summary is None:
        say(window, "more")
    before = said(window.messages())

    window.insert_summary(dropped(window), "Ada asked more")

    summary = said((Message.user(QUESTION), Message.assistant("Ada asked more")))
    assert said(window.messages()) == [*before[:-2], *summary, *before[-2:]]


def test_last_summary_goes_at_the_next_trim() -> None:
    window = filled()
    while window.pending_summary is None:
        say(window, "more")
    window.insert_summary(dropped(window), "Ada asked more")
    assert summaries(window) == ["Ada asked more"]
    assert "Ada asked four questions" in [message.content for message in window.messages()]

    trims = window.stats().trims
    while window.stats().trims == trims:
        say(window, "even more")

    assert summaries(window) == ["Ada asked more"]
    assert "Ada asked four questions" not in [message.content for message in window.messages()]


def test_summary_is_protected_and_counted_so() -> None:
    window = filled()

    (summary,) = [exchange for exchange in window.exchanges() if is_summary(exchange)]
    assert summary.tags == {"input", "output", "summary", "important"}
    assert window.stats().protected_tokens == summary.tokens == cost(summary.messages)
    for _ in range(100):
        say(window, "more")
    assert summaries(window) == ["Ada asked four questions"]


@pytest.mark.parametrize("text", ["x" * 101, "x" * 10_000, "Ada " * 2_500_000])
def test_summary_that_is_too_long_is_cut_and_says_so(text: str) -> None:
    window = create_window(POLICY)
    for _ in range(10):
        say(window, "hello")

    summary = window.insert_summary(dropped(window), 2 * text)

    assert summary.tokens == cost(summary.messages) <= POLICY.summary_tokens == 200
    assert summary.messages[-1].content.endswith(f" of {2 * len(text)} characters.]")


@pytest.mark.parametrize(("budget", "tokens"), [(100, 100), (500, 100), (1000, 200), (2500, 500), (2_000_000, 500)])
def test_summary_takes_a_fifth_of_a_small_window_and_a_page_of_a_large_one(budget: int, tokens: int) -> None:
    assert WindowPolicy(budget).summary_tokens == tokens


def test_summaries_of_summaries_stay_bounded() -> None:
    window = create_window(POLICY)
    for _ in range(300):
        say(window, "hello")
        if window.pending_summary:
            window.insert_summary(window.pending_summary, "x" * 10_000)
        assert window.stats().protected_tokens <= POLICY.summary_tokens
        assert len(summaries(window)) <= 1
        assert window.stats().current_tokens <= POLICY.history_tokens


def test_protected_exchange_stays_and_is_part_of_the_request() -> None:
    window = create_window(POLICY)
    say(window, "first")
    say(window, "the alarm code", tags=("important",))
    while window.pending_summary is None:
        say(window, "more")

    assert "the alarm code" not in questions(dropped(window))
    assert said(dropped(window).messages)[2][1] == "the alarm code"
    window.insert_summary(dropped(window), "Ada said something")
    assert "the alarm code" in [message.content for message in window.messages()]


def test_ephemeral_exchanges_are_not_held() -> None:
    window = create_window(POLICY)
    for _ in range(100):
        say(window, "hello", tags=("ephemeral",))

    assert window.stats().trims > 0
    assert window.pending_summary is None


def test_summary_that_had_to_go_is_part_of_the_next_one() -> None:
    window = filled()
    say(window, "long", 990)

    assert summaries(window) == []
    assert dropped(window).earlier_summary == "Ada asked four questions"


def test_held_exchanges_are_bounded_by_the_budget() -> None:
    window = create_window(POLICY)
    for _ in range(300):
        say(window, "hello")
        held = window.pending_summary or SummaryInput()
        assert sum(exchange.tokens for exchange in held.exchanges) <= POLICY.history_tokens
    assert questions(dropped(window)).count("hello") == len(dropped(window).numbers)


def test_what_is_dropped_meanwhile_waits_for_the_next_summary() -> None:
    window = create_window(POLICY)
    for number in range(9):
        say(window, f"question {number}")
    passage = dropped(window)
    while window.pending_summary == passage:
        say(window, "meanwhile")
    both = dropped(window).numbers

    window.insert_summary(passage, "the first questions")

    assert dropped(window).numbers == both - passage.numbers != both


def test_passage_is_dropped_after_the_second_failure() -> None:
    window = create_window(POLICY)
    for _ in range(9):
        say(window, "hello")
    before = window.messages()

    window.record_summary_failure(dropped(window))
    assert dropped(window).failed_attempts == 1
    window.record_summary_failure(dropped(window))

    assert window.pending_summary is None
    assert window.messages() == before


def test_older_passage_is_all_but_the_newest_and_protected_ones() -> None:
    window = create_window(WindowPolicy())
    for text, tags in (("a", ()), ("b", ("important",)), ("c", ()), ("d", ()), ("e", ()), ("f", ())):
        say(window, text, tags=tags)

    passage = build_older_summary_input(None, window.exchanges(), 2)
    assert passage is not None
    window.insert_summary(passage, "Ada spelled")

    asked = [message.content for message in window.messages() if message.role == "user"]
    assert asked == ["b", "e", QUESTION, "f"]
    assert window.stats().evicted_exchanges == 3
    assert window.stats().trims == 1


def test_summary_of_an_older_passage_replaces_the_earlier_one() -> None:
    window = create_window(WindowPolicy())
    sizes = []
    for _ in range(5):
        for _ in range(10):
            say(window, "hello")
        passage = build_older_summary_input(None, window.exchanges(), 2)
        assert passage is not None
        window.insert_summary(passage, "x" * 400)
        sizes.append(window.stats().current_tokens)

    assert len(set(sizes)) == 1
    assert [message.content for message in window.messages()].count(QUESTION) == 1


def test_outdated_summary_leaves_with_an_older_passage() -> None:
    window = filled()
    while window.pending_summary is None:
        say(window, "more")
    window.insert_summary(dropped(window), "Ada asked more")
    for _ in range(3):
        say(window, "even more", 10)

    passage = build_older_summary_input(None, window.exchanges(), 2)
    assert passage is not None
    window.insert_summary(passage, "Ada asked a lot")

    assert [each.messages[-1].content for each in window.exchanges() if each.messages[0].content == QUESTION] == [
        "Ada asked a lot"
    ]


def test_ephemeral_exchanges_leave_with_an_older_passage() -> None:
    window = create_window(WindowPolicy())
    for text, tags in (("a", ()), ("b", ("ephemeral",)), ("c", ()), ("d", ("ephemeral",)), ("e", ()), ("f", ())):
        say(window, text, tags=tags)

    passage = build_older_summary_input(None, window.exchanges(), 2)
    assert passage is not None
    window.insert_summary(passage, "Ada spelled")

    assert [message.content for message in window.messages() if message.role == "user"] == ["e", QUESTION, "f"]


def test_numbers_of_many_exchanges_are_compared_once() -> None:
    window = create_window(WindowPolicy(100_000))
    for _ in range(500):
        say(window, "hello")

    build_older_summary_input(
        None, tuple(each.with_number(CountedNumber(each.number)) for each in window.exchanges()), 1
    )

    assert 0 < CountedNumber.compared < 500


def test_window_with_an_open_exchange_takes_no_summary() -> None:
    window = filled()
    window.open("and?")
    before = window.messages()

    with pytest.raises(ExchangeStillOpen):
        window.insert_summary(SummaryInput(), "nothing")

    assert window.messages() == before


def test_tag_of_the_user_makes_no_summary() -> None:
    window = filled()
    window.tag_exchange(window.exchanges()[-1].number, add={"summary"})

    assert summaries(window) == ["Ada asked four questions"]


@given(text=long_texts, more=st.lists(exchanges(), max_size=5))
def test_summary_is_written_down_and_read_again(text: str, more: list[Exchange]) -> None:
    window = filled()
    play(window, more)
    window.insert_summary(window.pending_summary or SummaryInput(), text)

    read = load(dump(window), POLICY)

    assert read.messages() == window.messages()
    assert read.stats() == window.stats()
    assert summaries(read) == summaries(window)
