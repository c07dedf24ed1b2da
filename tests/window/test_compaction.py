"""Tests for a compaction in a window: its cost, and the plain text that is stored with it."""

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Exchange,
    Message,
    NativeData,
    ToolCall,
    Window,
    WindowPolicy,
)
from custom_components.windowed_conversation.window.summary import SummaryInput, format_plain_summary, is_summary

POLICY = WindowPolicy(2000, 0.25, summarize=True)
COUNTER = EstimatedCounter()
NO_TAGS: frozenset[str] = frozenset()
COMPACTED = {"compacted": [{"type": "compaction", "encrypted_content": "gAAAA"}]}


def exchange(number: int, *messages: Message, tags: frozenset[str] = NO_TAGS) -> Exchange:
    return Exchange(messages, tags, 10, number)


def passage(*exchanges: Exchange, earlier: str = "") -> SummaryInput:
    return SummaryInput(None, exchanges, frozenset(each.number for each in exchanges), earlier)


def talked(number: int, words: str = "") -> Exchange:
    return exchange(number, Message.user(f"question {number}"), Message.assistant(f"answer {number} {words}".strip()))


def text_of(passage: SummaryInput, policy: WindowPolicy = POLICY) -> str:
    return format_plain_summary(passage, policy, COUNTER)


@pytest.fixture
def window() -> Window:
    """Return a window that has evicted exchanges and waits for their summary."""
    window = Window("conversation", POLICY, COUNTER)
    while window.pending_summary is None:
        window.add_exchange((Message.user("question"), Message.assistant("word " * 100)))
    return window


def summarized(window: Window, tokens: int, text: str = "User: question") -> Exchange:
    assert window.pending_summary is not None
    return window.insert_summary(window.pending_summary, text, NativeData("provider", "model", COMPACTED, tokens))


def test_summary_keeps_what_only_its_model_reads(window: Window) -> None:
    summarized(window, 300)

    (summary,) = filter(is_summary, window.exchanges())
    native = summary.messages[-1].native
    assert native is not None
    assert (native.provider, native.model, native.value) == ("provider", "model", COMPACTED)
    assert summary.messages[-1].content == "User: question"


@pytest.mark.parametrize("tokens", [0, 5, 300, 450])
def test_summary_costs_what_the_dearer_of_the_two_costs(window: Window, tokens: int) -> None:
    text = "User: what is the meaning of all this?"
    question, answer = summarized(window, tokens, text).messages

    assert answer.tokens == max(tokens, 4 + COUNTER.count(text))
    assert window.stats().current_tokens == sum(each.tokens for each in window.exchanges())
    assert question.tokens is not None


def test_plain_text_is_no_longer_than_any_summary(window: Window) -> None:
    summary = summarized(window, 0, "word " * 3000)

    assert summary.tokens <= POLICY.summary_tokens


def test_summary_of_a_provider_may_cost_what_a_trim_frees() -> None:
    assert WindowPolicy(8000, 0.25).compaction_tokens == 2000
    assert WindowPolicy(8000, 0.0).compaction_tokens == WindowPolicy(8000).summary_tokens


def test_plain_text_is_what_was_said_line_by_line() -> None:
    called = exchange(
        2,
        Message.user("light\non"),
        Message.assistant(tool_calls=(ToolCall("call_1", "turn_on", {}),)),
        Message.tool("call_1", "turn_on", '{"done": true}'),
        Message.assistant("The light is on."),
    )

    assert text_of(passage(talked(1), called)) == (
        "User: question 1\nYou: answer 1\nUser: light on\nYou: The light is on."
    )


def test_plain_text_begins_with_the_summary_before() -> None:
    assert text_of(passage(talked(3), earlier="User: hello\nYou: Hello!")).startswith("User: hello\nYou: Hello!\n")


def test_plain_text_has_nothing_of_what_stays() -> None:
    whole = passage(talked(1), talked(3))

    text = text_of(whole._replace(numbers=frozenset({1})))

    assert text == "User: question 1\nYou: answer 1"


def test_plain_text_has_no_ephemeral_exchange() -> None:
    aside = exchange(2, Message.user("aside"), Message.assistant("yes"), tags=frozenset({"ephemeral"}))

    assert text_of(passage(talked(1), aside)) == "User: question 1\nYou: answer 1"


def test_user_s_words_are_kept_before_answers_and_the_newest_before_older_ones() -> None:
    text = text_of(passage(*(talked(number, "word " * 20) for number in range(100))))

    asked = [line for line in text.splitlines() if line.startswith("User: ")]
    assert asked == [f"User: question {number}" for number in range(100 - len(asked), 100)]
    assert 10 < len(asked) < 100
    assert "You: " not in text
    assert COUNTER.count(text) <= POLICY.summary_tokens


def test_one_long_answer_does_not_push_all_else_out() -> None:
    text = text_of(passage(talked(1), talked(2, "word " * 5000)), policy=WindowPolicy(8000))

    assert text.startswith("User: question 1\nYou: answer 1\n")
    assert text.endswith("…")


@given(st.lists(st.text(max_size=600), min_size=1, max_size=8), st.integers(100, 20_000))
def test_something_that_was_said_is_always_there(said: list[str], budget: int) -> None:
    exchanges = [exchange(n, Message.user(f"x{words}"), Message.assistant("y")) for n, words in enumerate(said)]
    policy = WindowPolicy(budget)

    text = text_of(passage(*exchanges), policy=policy)

    assert text.splitlines()[-1].startswith(("User: x", "You: y"))
    assert COUNTER.count(text) <= policy.summary_tokens
