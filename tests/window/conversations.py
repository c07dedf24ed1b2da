"""Hypothesis strategies for conversations with any content that JSON can represent, and our own JSON form of them."""

from typing import Any

from hypothesis import strategies as st

from custom_components.windowed_conversation.window import Message, NativeData, ToolCall, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs import dump_snapshot, load_snapshot

from .histories import LengthCounter, all_policies, calls, create_window, results, tag_sets

NO_NUMBERS = '{"level": 1e999, "other": [NaN, -Infinity, 2]}'
NULLS = {"level": None, "other": [None, None, 2]}


def dump(window: Window) -> dict[str, Any]:
    """Return a window in our own JSON form."""
    return dump_snapshot(window.snapshot())


def load(data: object, policy: WindowPolicy) -> Window:
    """Return a window restored from our own JSON form. It counts characters, and its clock never advances."""
    snapshot = load_snapshot(data)
    window = Window(snapshot.conversation_id, policy, LengthCounter(), clock=lambda: 1_000.0)
    window.restore(snapshot)
    return window


def with_call(arguments: dict[str, object]) -> Window:
    """Return a window without a system message, with one exchange that contains one tool call."""
    window = Window("test", WindowPolicy(), LengthCounter())
    call = ToolCall("call", "dim", arguments)
    window.add_exchange(
        (Message.user("dim"), Message.assistant(tool_calls=(call,)), Message.tool("call", "dim", "done"))
    )
    return window


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
keys = st.text("abcé", min_size=1, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)
natives = st.none() | st.builds(NativeData, words, words, values)


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw an exchange with any content that JSON can represent."""
    messages = [Message.user(draw(words), tags=draw(tag_sets), created=draw(st.none() | st.floats(0, 2e9)))]
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
    """Draw a window with recorded exchanges."""
    window = create_window(draw(all_policies), draw(words))
    for exchange in draw(st.lists(exchanges(), max_size=6)):
        window.add_exchange(exchange, draw(tag_sets))
    return window
