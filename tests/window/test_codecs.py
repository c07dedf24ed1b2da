"""Tests that a serialized conversation is read back with the same messages, statistics and next request."""

import json

from hypothesis import given, settings

from custom_components.windowed_conversation.providers.openai.chat_encoding import encode_messages
from custom_components.windowed_conversation.window import (
    Attachment,
    Message,
    NativeData,
    ToolCall,
    Window,
    WindowPolicy,
)

from .conversations import NO_NUMBERS, NULLS, dump, load, windows, with_call
from .histories import LengthCounter, create_window


def round_trip_snapshot(window: Window) -> Window:
    return load(json.loads(json.dumps(dump(window))), window.policy)


def next_request(window: Window) -> bytes:
    """Return the encoded request for the next question."""
    window.open("and now?", {"next"})
    return json.dumps(encode_messages(window.messages())).encode()


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_window_comes_back_equal(window: Window) -> None:
    again = round_trip_snapshot(window)

    assert again.conversation_id == window.conversation_id
    assert again.messages() == window.messages()
    assert again.stats() == window.stats()
    assert again.snapshot() == window.snapshot()


@settings(deadline=None, max_examples=60)
@given(window=windows())
def test_next_request_has_the_same_bytes(window: Window) -> None:
    again = round_trip_snapshot(window)

    assert next_request(again) == next_request(window)
    assert again.stats() == window.stats()


def test_nothing_is_counted_again() -> None:
    window = create_window(WindowPolicy(), "obey")
    window.add_exchange((Message.user("a"), Message.assistant("b")))

    again = round_trip_snapshot(window)

    assert isinstance(again._counter, LengthCounter)
    assert again._counter.asked == 0
    assert again.stats().current_tokens == window.stats().current_tokens


def test_exchange_that_is_open_is_not_written() -> None:
    window = create_window(WindowPolicy(history_tokens=40), "obey")
    window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))
    before, stats = window.messages(), window.stats()
    window.open("z" * 30)
    window.set_system_prompt("obey better")

    again = round_trip_snapshot(window)

    assert again.messages() == before
    assert again.stats() == stats


def test_attachments_come_back() -> None:
    window = create_window(WindowPolicy())
    picture = Attachment("image/png", bytes(range(256)), "door.png")
    window.add_exchange((Message.user("who is there?", attachments=(picture,)), Message.assistant("Ada")))

    assert round_trip_snapshot(window).messages()[0].attachments == (picture,)


def test_policy_in_force_trims_what_comes_back() -> None:
    window = create_window(WindowPolicy(history_tokens=1000))
    for _ in range(4):
        window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))
    window.policy = WindowPolicy(history_tokens=60, trim_share=0)

    again = round_trip_snapshot(window)

    assert again.stats().exchange_count == 2
    assert again.stats().evicted_exchanges == 2


def test_numbers_and_the_order_of_arguments_come_back_as_they_were() -> None:
    window = create_window(WindowPolicy())
    called = (ToolCall("call", "set", {"z": 10**30, "a": 0.1, "m": {"y": -0.0, "b": 1}}),)
    window.add_exchange((Message.user("a"), Message.assistant(tool_calls=called), Message.tool("call", "set", "done")))

    (_, call, _) = round_trip_snapshot(window).messages()

    assert json.dumps(dict(call.tool_calls[0].arguments)) == json.dumps(dict(called[0].arguments))


def test_numbers_that_json_has_not_are_null_in_the_arguments_that_are_read() -> None:
    data = dump(with_call({}))
    data["exchanges"][0]["messages"][1]["tool_calls"][0]["arguments"] = NO_NUMBERS

    (exchange,) = load(data, WindowPolicy()).exchanges()

    assert exchange.messages[1].tool_calls[0].arguments == NULLS


def test_numbers_that_json_has_not_are_null_in_the_residue_that_is_read() -> None:
    data = dump(with_call({}))
    data["exchanges"][0]["messages"][1]["native"] = {"provider": "p", "model": "m", "value": NO_NUMBERS}

    (exchange,) = load(data, WindowPolicy()).exchanges()

    assert exchange.messages[1].native == NativeData("p", "m", NULLS)


def test_residue_that_is_no_json_is_omitted() -> None:
    window = create_window(WindowPolicy())
    window.add_exchange((Message.user("a"), Message.assistant("b", native=NativeData("provider", "model", object()))))

    assert round_trip_snapshot(window).messages()[-1].native is None
