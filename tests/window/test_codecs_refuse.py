"""Tests that damaged or foreign data is refused completely, with an error that names the place but quotes no text."""

from copy import deepcopy
from enum import Enum, auto
from typing import Any

import pytest

from custom_components.windowed_conversation.window import Message, ToolCall, WindowPolicy
from custom_components.windowed_conversation.window.codecs import CodecError, load_snapshot
from custom_components.windowed_conversation.window.codecs.fields import MAX_DATA_CHARS
from custom_components.windowed_conversation.window.tokens import dump_arguments

from .conversations import dump
from .histories import create_window

SECRET = "the safe opens with 1234"
# A lone surrogate, which JSON and YAML can contain but UTF-8 cannot encode.
HALF = "1234 \ud800"


class Absence(Enum):
    """The marker for a field to be removed."""

    REMOVED = auto()


REMOVED = Absence.REMOVED


def whole() -> dict[str, Any]:
    """Return a valid conversation in our own JSON form."""
    window = create_window(WindowPolicy(), SECRET)
    called = (ToolCall("call", "unlock", {"code": SECRET}),)
    window.add_exchange(
        (Message.user(SECRET), Message.assistant(SECRET, tool_calls=called), Message.tool("call", "unlock", ""))
    )
    return dump(window)


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a copy of the conversation with one value replaced, or removed if the value is `REMOVED`."""
    data = deepcopy(whole())
    *parents, last = path
    part: Any = data
    for name in parents:
        part = part[name]
    if value is REMOVED:
        del part[last]
    else:
        part[last] = value
    return data


USER, CALLING, RESULT = (("exchanges", 0, "messages", place) for place in range(3))
CALL = (*CALLING, "tool_calls", 0)


@pytest.mark.parametrize(
    "data", [None, [], "conversation", 7, {}, {"messages": []}, {"format": "another", "version": 1}, {"version": 1}]
)
def test_what_is_something_else_is_not_ours(data: Any) -> None:
    with pytest.raises(CodecError):
        load_snapshot(data)


@pytest.mark.parametrize("version", [2, 99])
def test_newer_version_is_refused(version: int) -> None:
    with pytest.raises(CodecError):
        load_snapshot(changed(("version",), version) | {"exchanges": "in a way that we do not know"})


MALFORMED_VALUES = [
    (("version",), 0),
    (("version",), "1"),
    (("version",), True),
    (("conversation_id",), None),
    (("conversation_id",), 5),
    (("system",), "obey"),
    (("system", "role"), "user"),
    (("system", "content"), ""),
    (("exchanges",), REMOVED),
    (("exchanges",), {}),
    (("exchanges", 0), []),
    (("exchanges", 0, "messages"), []),
    (("exchanges", 0, "messages"), REMOVED),
    (("exchanges", 0, "tags"), "important"),
    (("exchanges", 0, "tags"), [" "]),
    (("exchanges", 0, "tags"), ["x" * 10_000]),
    (("exchanges", 0, "tags"), [1]),
    (("exchanges", 0, "colour"), "blue"),
    (("evicted",), REMOVED),
    (("evicted", "tokens"), -1),
    (("evicted", "tokens"), 1.5),
    (("evicted", "tokens"), 10**16),
    (("evicted", "tokens"), REMOVED),
    (("colour",), "blue"),
    ((*USER, "role"), "assistant"),
    ((*USER, "role"), "narrator"),
    ((*USER, "role"), REMOVED),
    ((*USER, "content"), REMOVED),
    ((*USER, "content"), 5),
    ((*USER, "tokens"), REMOVED),
    ((*USER, "tokens"), -1),
    ((*USER, "tokens"), 10**9 + 1),
    ((*USER, "tokens"), 10**400),
    ((*USER, "created"), float("nan")),
    ((*USER, "created"), 10**400),
    ((*USER, "created"), "yesterday"),
    ((*USER, "native"), {"provider": "p", "model": "m", "value": "{"}),
    ((*USER, "native"), {"provider": "p"}),
    ((*USER, "native"), {"provider": "p", "model": "m", "value": "1", "tokens": 10**9 + 1}),
    ((*USER, "native"), {"provider": "p", "model": "m", "value": "1", "tokens": True}),
    ((*USER, "native"), {"provider": "p", "model": "m", "value": "1", "colour": "blue"}),
    ((*USER, "attachments"), [{"mime_type": "image/png", "name": "door.png", "data": "no base64"}]),
    ((*USER, "attachments"), [{"mime_type": "image/png", "name": "door.png"}]),
    ((*USER, "attachments"), [{"mime_type": "image/png", "name": "door.png", "data": "AA==", "colour": "blue"}]),
    ((*USER, "colour"), "blue"),
    ((*CALLING, "tool_calls"), "unlock"),
    ((*CALL, "arguments"), "[]"),
    ((*CALL, "arguments"), "{"),
    ((*CALL, "arguments"), "[" * 200_000),
    ((*CALL, "arguments"), {}),
    ((*CALL, "id"), ""),
    ((*CALL, "id"), "another"),
    ((*CALL, "name"), None),
    ((*RESULT,), REMOVED),
    ((*RESULT, "tool_call_id"), "another"),
]


def test_malformed_conversation_is_refused_without_repeating_what_was_said(subtests: pytest.Subtests) -> None:
    for path, value in MALFORMED_VALUES:
        with subtests.test(path=str(path), value=str(value)[:80]):
            with pytest.raises(CodecError) as refused:
                load_snapshot(changed(path, value))

            assert SECRET not in str(refused.value)


HALF_CHARACTERS = [
    (("conversation_id",), HALF),
    (("system", "content"), HALF),
    (("exchanges", 0, "tags"), [HALF]),
    (("exchanges", 0, "sources"), ["fact:7", HALF]),
    ((*USER, "content"), HALF),
    ((*USER, "tags"), ["input", HALF]),
    ((*USER, "name"), HALF),
    ((*USER, "native"), {"provider": HALF, "model": "m", "value": "1"}),
    ((*USER, "native"), {"provider": "p", "model": HALF, "value": "1"}),
    ((*USER, "native"), {"provider": "p", "model": "m", "value": f'["{HALF}"]'}),
    ((*USER, "native"), {"provider": "p", "model": "m", "value": r'[{"a": "\ud800"}]'}),
    ((*USER, "attachments"), [{"mime_type": HALF, "name": "door.png", "data": "AA=="}]),
    ((*USER, "attachments"), [{"mime_type": "image/png", "name": HALF, "data": "AA=="}]),
    ((*CALL, "id"), HALF),
    ((*CALL, "name"), HALF),
    ((*CALL, "arguments"), f'{{"code": "{HALF}"}}'),
    ((*CALL, "arguments"), r'{"code": "\uDFFF 1234"}'),
    ((*CALL, "arguments"), r'{"\ud83d": "\ude00"}'),
    ((*RESULT, "tool_call_id"), HALF),
]


def test_half_a_character_is_refused_as_no_request_could_be_sent_with_it(subtests: pytest.Subtests) -> None:
    for path, value in HALF_CHARACTERS:
        with (
            subtests.test(path=str(path), value=ascii(value)),
            pytest.raises(CodecError, match="half a character"),
        ):
            load_snapshot(changed(path, value))


def test_character_that_json_writes_in_two_halves_is_read() -> None:
    data = changed((*CALL, "arguments"), r'{"code": "\ud83d\ude00"}')

    (exchange,) = load_snapshot(data).exchanges

    assert exchange.messages[1].tool_calls[0].arguments == {"code": "\U0001f600"}


def test_as_many_characters_as_no_conversation_has_are_refused() -> None:
    with pytest.raises(CodecError, match="more than"):
        load_snapshot(changed((*USER, "content"), "x" * (MAX_DATA_CHARS + 1)))


def long_exchange(rounds: int, calls: int) -> dict[str, Any]:
    """Return a conversation with one exchange that has this many tool rounds with this many calls each."""
    window = create_window(WindowPolicy(history_tokens=10**9))
    window.open("hello")
    for number in range(rounds):
        called = tuple(ToolCall(f"{number}.{each}", "f", {}) for each in range(calls))
        window.add(Message.assistant(tool_calls=called))
        for call in called:
            window.add(Message.tool(call.id, "f", ""))
    window.close()
    return dump(window)


def test_exchange_with_as_many_messages_as_none_has_is_refused() -> None:
    with pytest.raises(CodecError, match="more than"):
        load_snapshot(long_exchange(5_000, 1))


def test_exchange_of_the_longest_turn_is_read() -> None:
    (exchange,) = load_snapshot(long_exchange(50, 64)).exchanges

    assert len(exchange.messages) == 1 + 50 * 65


def test_as_many_empty_objects_as_no_conversation_has_are_refused() -> None:
    with pytest.raises(CodecError, match="more than"):
        load_snapshot(changed(("exchanges",), [{}] * (MAX_DATA_CHARS // 4)))


def test_json_is_written_for_anything_in_as_few_characters_as_it_takes() -> None:
    assert dump_arguments(ToolCall("call", "look", {"ä": {1}})) == '{"ä":"{1}"}'
