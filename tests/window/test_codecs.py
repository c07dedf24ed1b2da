"""A conversation written down and read again is the same: its messages, its figures, the bytes of the next request."""

from collections.abc import Callable
import json

from hypothesis import assume, given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.providers.openai.chat_encoding import encode_messages
from custom_components.windowed_conversation.window import Message, Native, ToolCall, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs import (
    chat_completions,
    dump,
    from_chat_completions,
    from_langgraph_state,
    load,
    to_langgraph_state,
)

from .histories import LengthCounter, calls, new_window, policies, results, said, tags

type Codec = Callable[[Window], Window]


def with_call(arguments: dict[str, object]) -> Window:
    """Return a window without a system message, of one exchange with one call."""
    window = Window("test", WindowPolicy(), LengthCounter())
    call = ToolCall("call", "dim", arguments)
    window.record((Message.user("dim"), Message.assistant(tool_calls=(call,)), Message.tool("call", "dim", "done")))
    return window


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
keys = st.text("abcé", min_size=1, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)
natives = st.none() | st.builds(Native, words, words, values)


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[Message, ...]:
    """An exchange with anything in it that JSON can hold."""
    messages = [Message.user(draw(words), tags=draw(tags), created=draw(st.none() | st.floats(0, 2e9)))]
    for amount in draw(st.lists(st.integers(1, 2), max_size=2)):
        called = tuple(
            ToolCall(call.id, draw(words), draw(st.dictionaries(keys, values, max_size=3))) for call in calls(amount)
        )
        messages.append(Message.assistant(draw(words), tool_calls=called, native=draw(natives)))
        messages.extend(draw(st.permutations(results(called, draw(words)))))
    messages.append(Message.assistant(draw(words), native=draw(natives)))
    return tuple(messages)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """A window in which something happened."""
    window = new_window(draw(policies), draw(words))
    for exchange in draw(st.lists(exchanges(), max_size=6)):
        window.record(exchange, draw(tags))
    return window


def through_snapshot(window: Window) -> Window:
    return load(json.loads(json.dumps(dump(window))), window.policy, LengthCounter(), clock=lambda: 1_000.0)


def through_langgraph(window: Window) -> Window:
    state = json.loads(json.dumps(to_langgraph_state(window)))
    return from_langgraph_state(state, window.policy, LengthCounter(), clock=lambda: 1_000.0)


def next_request(window: Window) -> bytes:
    """Return what is sent for the next question."""
    window.open("and now?", {"next"})
    return json.dumps(encode_messages(window.messages())).encode()


both = pytest.mark.parametrize("codec", [through_snapshot, through_langgraph])


@both
@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_window_comes_back_equal(codec: Codec, window: Window) -> None:
    again = codec(window)

    assert again.conversation_id == window.conversation_id
    assert again.messages() == window.messages()
    assert again.stats() == window.stats()
    assert again.snapshot() == window.snapshot()


@both
@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_next_request_has_the_same_bytes(codec: Codec, window: Window) -> None:
    again = codec(window)

    assert next_request(again) == next_request(window)
    assert again.stats() == window.stats()


@both
def test_nothing_is_counted_again(codec: Codec) -> None:
    window = new_window(WindowPolicy(), "obey")
    window.record((Message.user("a"), Message.assistant("b")))

    again = codec(window)

    assert again._counter.asked == 0
    assert again.stats().current_tokens == window.stats().current_tokens


@both
def test_exchange_that_is_open_is_not_written(codec: Codec) -> None:
    window = new_window(WindowPolicy(history_tokens=40), "obey")
    window.record((Message.user("x" * 10), Message.assistant("y" * 10)))
    before, stats = window.messages(), window.stats()
    window.open("z" * 30)
    window.set_system("obey better")

    again = codec(window)

    assert again.messages() == before
    assert again.stats() == stats


@both
def test_policy_in_force_trims_what_comes_back(codec: Codec) -> None:
    window = new_window(WindowPolicy(history_tokens=1000))
    for _ in range(4):
        window.record((Message.user("x" * 10), Message.assistant("y" * 10)))
    window._policy = WindowPolicy(history_tokens=60, trim_share=0)

    again = codec(window)

    assert again.stats().exchange_count == 2
    assert again.stats().evicted_exchanges == 2


def test_numbers_and_the_order_of_arguments_come_back_as_they_were() -> None:
    window = new_window(WindowPolicy())
    called = (ToolCall("call", "set", {"z": 10**30, "a": 0.1, "m": {"y": -0.0, "b": 1}}),)
    window.record((Message.user("a"), Message.assistant(tool_calls=called), Message.tool("call", "set", "done")))

    (_, call, _) = through_snapshot(window).messages()

    assert json.dumps(dict(call.tool_calls[0].arguments)) == json.dumps(dict(called[0].arguments))


NO_NUMBERS = '{"level": 1e999, "other": [NaN, -Infinity, 2]}'
NULLS = {"level": None, "other": [None, None, 2]}


def test_numbers_that_json_has_not_are_null_in_the_arguments_that_are_read() -> None:
    data = dump(with_call({}))
    data["exchanges"][0]["messages"][1]["tool_calls"][0]["arguments"] = NO_NUMBERS

    (exchange,) = load(data, WindowPolicy(), LengthCounter()).exchanges()

    assert exchange.messages[1].tool_calls[0].arguments == NULLS


def test_numbers_that_json_has_not_are_null_in_the_residue_that_is_read() -> None:
    data = dump(with_call({}))
    data["exchanges"][0]["messages"][1]["native"] = {"provider": "p", "model": "m", "value": NO_NUMBERS}

    (exchange,) = load(data, WindowPolicy(), LengthCounter()).exchanges()

    assert exchange.messages[1].native == Native("p", "m", NULLS)


def test_numbers_that_json_has_not_are_null_in_chat_completions() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "dim", "arguments": NO_NUMBERS}}

    (message,) = from_chat_completions([{"role": "assistant", "tool_calls": [call]}])

    assert message.tool_calls[0].arguments == NULLS


def test_numbers_that_json_has_not_are_null_in_a_graphs_state() -> None:
    state = to_langgraph_state(with_call({}))
    state["messages"][1]["tool_calls"][0]["args"] = {"level": float("inf"), "other": [float("nan"), -float("inf"), 2]}

    (exchange,) = from_langgraph_state(state, WindowPolicy(), LengthCounter()).exchanges()

    assert exchange.messages[1].tool_calls[0].arguments == NULLS


def test_residue_that_is_no_json_is_left_out() -> None:
    window = new_window(WindowPolicy())
    window.record((Message.user("a"), Message.assistant("b", native=Native("provider", "model", object()))))

    assert through_snapshot(window).messages()[-1].native is None


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_chat_completions_come_back_as_they_were_said(window: Window) -> None:
    messages = window.messages()

    written = json.loads(json.dumps(chat_completions(messages)))

    assert said(from_chat_completions(written)) == said(messages)


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_chat_completions_are_what_a_provider_is_sent(window: Window) -> None:
    messages = window.messages()
    # providers refuse blank text, so it is not sent; written down it comes back as it was said
    assume(not any(message.content.isspace() for message in messages))

    assert chat_completions(messages) == encode_messages(messages)


def test_chat_completions_of_other_programs_are_read() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "time", "arguments": ""}}
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "be "}, "kind"]},
        {"role": "user", "content": "what time is it?", "name": "Ada"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "1", "content": "noon"},
    ]

    assert from_chat_completions(messages) == (
        Message.system("be kind"),
        Message.user("what time is it?", name="Ada"),
        Message.assistant(tool_calls=(ToolCall("1", "time", {}),)),
        Message.tool("1", "time", "noon"),
    )


def test_messages_that_a_graph_added_are_counted_and_tagged() -> None:
    messages = [{"type": "human", "content": "hello"}, {"type": "ai", "data": {"content": "hi", "tool_calls": []}}]

    window = from_langgraph_state(
        {"messages": messages}, WindowPolicy(), LengthCounter(), conversation_id="theirs", clock=lambda: 1_000.0
    )

    assert window.conversation_id == "theirs"
    assert window.messages() == (
        Message.user("hello", tags=frozenset({"input"}), created=1_000.0, tokens=9),
        Message.assistant("hi", tags=frozenset({"output"}), created=1_000.0, tokens=6),
    )


def test_message_has_the_same_id_after_a_trim() -> None:
    window = new_window(WindowPolicy(history_tokens=60, trim_share=0))
    for _ in range(2):
        window.record((Message.user("x" * 10), Message.assistant("y" * 10)))
    before = to_langgraph_state(window)["messages"]
    window.record((Message.user("x" * 10), Message.assistant("y" * 10)))

    assert to_langgraph_state(window)["messages"][:2] == before[2:]
