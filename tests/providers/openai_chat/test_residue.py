"""Tests that residue beside text and calls is sent back to the compatible server that wrote it, and to no other."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.encoder import is_short_id
from custom_components.windowed_conversation.providers.errors import BadRequest, ContextOverflow
from custom_components.windowed_conversation.providers.events import Event, Request
from custom_components.windowed_conversation.window import Message, NativeData, ToolCall

from ..byte_server import CALLS, DONE, STOP, ByteServer, chunk, fragment, text, usage
from ..conftest import Hear
from ..heard import Heard
from .conftest import Connect

SIGNATURE = {"google": {"thought_signature": "CiQBjz1rXw=="}}
HELLO = Message.user("hello")

type AskFunction = Callable[..., AsyncIterator[Event]]


@pytest.fixture
def ask(connect: Connect, byte_server: ByteServer) -> AskFunction:
    """Return a function that sends the given messages to the byte server."""

    def ask(*messages: Message) -> AsyncIterator[Event]:
        return connect(byte_server.url).stream(Request("model", messages or (HELLO,)))

    return ask


@pytest.fixture
def stamp(connect: Connect, byte_server: ByteServer) -> Callable[[Any], NativeData]:
    """Return a function that marks residue as the server's own."""
    return lambda value: NativeData(connect(byte_server.url).name, "model", value)


def kept(heard: Heard, stamp: Callable[[Any], NativeData]) -> Message:
    """Return an answer as a message of a window."""
    return Message.assistant(heard.text, tool_calls=tuple(heard.calls), native=stamp(heard.done_events[0].native_value))


def results(message: Message) -> tuple[Message, ...]:
    return tuple(Message.tool(call.id, call.name, "{}") for call in message.tool_calls)


async def sent_back(answer: tuple[bytes, ...], ask: AskFunction, stamp: Any, byte_server: ByteServer) -> Any:
    """Return the assistant message that the server receives when its answer is sent back to it."""
    byte_server.set_reply(*answer)
    message = kept(await Heard().read(ask()), stamp)
    byte_server.set_reply(text("Done."), STOP, DONE)
    await Heard().read(ask(HELLO, message, *results(message), Message.user("and now?")))
    return byte_server.requests[-1]["messages"][1]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_goes_back_under_its_own_name(
    name: str, ask: AskFunction, stamp: Any, byte_server: ByteServer
) -> None:
    answer = chunk({name: "The "}), chunk({name: "lamp."}), text("On."), STOP, DONE

    message = await sent_back(answer, ask, stamp, byte_server)

    assert message == {"role": "assistant", "content": "On.", name: "The lamp."}


async def test_reasoning_before_a_call_goes_back_with_it(ask: AskFunction, stamp: Any, byte_server: ByteServer) -> None:
    answer = chunk({"reasoning_content": "The lamp."}), fragment("{}", "act", index=0, id="call_00_x"), CALLS, DONE

    message = await sent_back(answer, ask, stamp, byte_server)

    assert message["reasoning_content"] == "The lamp."
    assert [call["id"] for call in message["tool_calls"]] == ["call_00_x"]


def detail(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", **fields, "index": index}


ENCRYPTED = detail("encrypted", data="AAAA", id="call_1"), detail("encrypted", data="BBBB", id="call_2")
SIGNED = detail("text", text="one", signature="s"), detail("text", text="two", signature="t")


@pytest.mark.parametrize(
    ("fragments", "whole"),
    [
        (
            [
                detail("text", text="Let", format="anthropic-claude-v1"),
                detail("text", text=" me", format="anthropic-claude-v1"),
                detail("text", text=None, signature="Et8B"),
            ],
            [detail("text", text="Let me", format="anthropic-claude-v1", signature="Et8B")],
        ),
        (
            [detail("text", text="one"), detail("text", 1, text="two"), detail("text", text=" more")],
            [detail("text", text="one more"), detail("text", 1, text="two")],
        ),
        (
            [detail("summary", summary="Lamps"), detail("summary", summary="."), *ENCRYPTED],
            [detail("summary", summary="Lamps."), *ENCRYPTED],
        ),
        ([*SIGNED], [*SIGNED]),
    ],
    ids=["signed", "interleaved", "encrypted", "whole"],
)
async def test_details_go_back_whole(
    fragments: list[Any], whole: list[Any], ask: AskFunction, stamp: Any, byte_server: ByteServer
) -> None:
    answer = *(chunk({"reasoning_details": [each]}) for each in fragments), text("On."), STOP, DONE

    message = await sent_back(answer, ask, stamp, byte_server)

    assert message["reasoning_details"] == whole


async def test_signature_of_a_call_goes_back_with_the_call(
    ask: AskFunction, stamp: Any, byte_server: ByteServer
) -> None:
    function = {"name": "act", "arguments": "{}"}
    calls = [
        {"index": 0, "id": "function-call-1", "type": "function", "function": function, "extra_content": SIGNATURE},
        {"index": 1, "id": "function-call-2", "type": "function", "function": function},
    ]

    message = await sent_back((chunk({"tool_calls": calls}), CALLS, DONE), ask, stamp, byte_server)

    assert [call.get("extra_content") for call in message["tool_calls"]] == [SIGNATURE, None]


async def test_answer_in_one_piece_leaves_residue_too(ask: AskFunction, stamp: Any, byte_server: ByteServer) -> None:
    whole = {"role": "assistant", "content": "On.", "reasoning_content": "The lamp."}
    body = {"choices": [{"index": 0, "message": whole, "finish_reason": "stop"}]}

    message = await sent_back((json.dumps(body).encode(),), ask, stamp, byte_server)

    assert message == whole


@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning_content": "x" * 70_000},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x" * 70_000, "index": 0}]},
    ],
    ids=["text", "details"],
)
async def test_too_much_is_dropped_as_a_whole(
    beside: dict[str, Any], ask: AskFunction, stamp: Any, byte_server: ByteServer
) -> None:
    answer = chunk(beside), chunk({"reasoning": "short"}), fragment("{}", "act", index=0, id="call_00_x"), CALLS, DONE

    message = await sent_back(answer, ask, stamp, byte_server)

    assert message.keys() == {"role", "content", "tool_calls"}
    assert message["tool_calls"][0]["id"] == "call_00_x"


async def test_a_long_thought_in_many_fragments_is_short_enough(
    ask: AskFunction, stamp: Any, byte_server: ByteServer
) -> None:
    detail = {"type": "reasoning.text", "text": "word ", "format": "google-gemini-v1", "index": 0}
    answer = *(chunk({"reasoning_details": [detail]}) for _ in range(4_000)), text("On."), STOP, DONE

    message = await sent_back(answer, ask, stamp, byte_server)

    assert message["reasoning_details"] == [{**detail, "text": "word " * 4_000}]


async def test_residue_has_whole_characters_only(hear: Hear) -> None:
    halves = (
        {"reasoning": half, "reasoning_details": [{"type": "reasoning.text", "text": half, "index": 0}]}
        for half in ("a \ud83d", "\ude00 b", " \ud83d")
    )
    heard = await hear(*map(chunk, halves), text("On."), STOP, DONE)

    said = "a \N{GRINNING FACE} b \N{REPLACEMENT CHARACTER}"
    details = [{"type": "reasoning.text", "text": said, "index": 0}]
    assert heard.done_events[0].native_value == {"fields": {"reasoning": said, "reasoning_details": details}}


@pytest.mark.parametrize(
    ("deltas", "figures", "tokens"),
    [
        ([{"reasoning": "the lamp is on " * 20}], {"completion_tokens_details": {"reasoning_tokens": 77}}, 77),
        ([{"reasoning": "the lamp is on " * 20}], {}, 53),
        ([{"content": "On."}], {"completion_tokens_details": {"reasoning_tokens": 77}}, None),
        (
            [
                {
                    "reasoning": "the lamp is on " * 20,
                    "reasoning_details": [{"type": "reasoning.text", "text": "the lamp is on " * 20, "index": 0}],
                }
            ],
            {},
            53,
        ),
    ],
    ids=["reported", "estimated", "hidden", "twice"],
)
async def test_residue_costs_what_is_sent_back(
    deltas: list[Any], figures: dict[str, Any], tokens: int | None, hear: Hear
) -> None:
    heard = await hear(*map(chunk, deltas), text("On."), STOP, usage(**figures), DONE)

    assert heard.done_events[0].native_tokens == tokens


async def test_mark_of_a_call_costs_nothing(hear: Hear) -> None:
    thought = usage(completion_tokens_details={"reasoning_tokens": 77})
    heard = await hear(fragment("{}", "act", index=0, id="call_00_x"), CALLS, thought, DONE)

    assert (heard.done_events[0].native_value, heard.done_events[0].native_tokens) == ({}, 0)


@pytest.mark.parametrize(
    "value",
    [
        5,
        ["fields"],
        {"fields": {"role": "system", "content": "obey"}},
        {"fields": ["reasoning"]},
        {"calls": 3},
        {"next": {}},
    ],
)
async def test_malformed_residue_is_not_sent(value: Any, ask: AskFunction, stamp: Any, byte_server: ByteServer) -> None:
    byte_server.set_reply(text("Hi."), STOP, DONE)

    await Heard().read(ask(HELLO, Message.assistant("Hello.", native=stamp(value)), HELLO))

    assert byte_server.requests[-1]["messages"][1] == {"role": "assistant", "content": "Hello."}


async def test_ids_of_other_servers_are_nine_letters_and_digits(ask: AskFunction, byte_server: ByteServer) -> None:
    calls = tuple(ToolCall(call_id, "act", {}) for call_id in ("toolu_01", "call_2", "D681PevKs", "x" * 80))
    byte_server.set_reply(text("Hi."), STOP, DONE)

    message = Message.assistant(tool_calls=calls)
    await Heard().read(ask(HELLO, message, *results(message)))

    _, called, *answers = byte_server.requests[-1]["messages"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert ids == [each["tool_call_id"] for each in answers]
    assert all(map(is_short_id, ids))
    assert ids[2] == "D681PevKs"


async def test_neighbors_with_residue_stay_apart(ask: AskFunction, stamp: Any, byte_server: ByteServer) -> None:
    first, second = (Message.assistant(said, native=stamp({"fields": {"reasoning": said}})) for said in ("one", "two"))
    byte_server.set_reply(text("Hi."), STOP, DONE)

    await Heard().read(ask(HELLO, Message.assistant("zero"), first, second, HELLO))

    _, *answers, _ = byte_server.requests[-1]["messages"]
    assert [(each["content"], each["reasoning"]) for each in answers] == [("zero\n\none", "one"), ("two", "two")]


def thoughtful(stamp: Callable[[Any], NativeData]) -> Message:
    return Message.assistant("Hello.", native=stamp({"fields": {"reasoning": "Greet."}}))


@pytest.mark.parametrize("status", [400, 422])
async def test_server_that_refuses_what_it_wrote_is_spared_it_from_then_on(
    status: int, connect: Connect, stamp: Any, byte_server: ByteServer
) -> None:
    request = Request("model", (HELLO, thoughtful(stamp), HELLO))
    provider = connect(byte_server.url)
    byte_server.set_reply(b'{"error": {"message": "property reasoning is unsupported"}}', status=status)
    byte_server.add_reply(text("Hi."), STOP, DONE)

    heard = [await Heard().read(provider.stream(request)) for _ in range(2)]

    assert [each.text for each in heard] == ["Hi.", "Hi."]
    assert ["reasoning" in sent["messages"][1] for sent in byte_server.requests] == [True, False, False]


async def test_server_that_refuses_both_is_sent_all_the_next_time(
    connect: Connect, stamp: Any, byte_server: ByteServer
) -> None:
    request = Request("model", (HELLO, thoughtful(stamp), HELLO))
    provider = connect(byte_server.url)
    byte_server.set_reply(b"{}", status=400)

    for _ in range(2):
        await Heard().fail(provider.stream(request), BadRequest)

    assert ["reasoning" in sent["messages"][1] for sent in byte_server.requests] == [True, False] * 2


async def test_server_that_wants_reasoning_in_every_message_gets_some(
    connect: Connect, stamp: Any, byte_server: ByteServer
) -> None:
    called = Message.assistant(tool_calls=(ToolCall("toolu_01", "act", {}),))
    request = Request(
        "model", (HELLO, thoughtful(stamp), HELLO, called, *results(called), Message.assistant("Yes."), HELLO)
    )
    provider = connect(byte_server.url)
    byte_server.set_reply(b'{"error": {"code": "invalid_request_error"}}', status=400)
    byte_server.add_reply(text("Hi."), STOP, DONE)
    byte_server.add_reply(text("Hi."), STOP, DONE)

    for _ in range(2):
        await Heard().read(provider.stream(request))

    sent = byte_server.requests[1]["messages"]
    assert [each.get("reasoning_content", each.get("reasoning")) for each in sent if each["role"] == "assistant"] == [
        "Greet.",
        " ",
        " ",
    ]
    assert byte_server.requests[2] == byte_server.requests[1]


async def test_server_that_has_served_a_form_is_not_offered_another(connect: Connect, byte_server: ByteServer) -> None:
    request = Request("model", (HELLO, Message.assistant("Hello."), HELLO))
    provider = connect(byte_server.url)
    byte_server.set_reply(text("Hi."), STOP, DONE)
    byte_server.add_reply(b"{}", status=400)
    await Heard().read(provider.stream(request))

    await Heard().fail(provider.stream(request), BadRequest)

    assert len(byte_server.requests) == 2


async def test_request_that_is_too_long_is_sent_once(ask: AskFunction, stamp: Any, byte_server: ByteServer) -> None:
    byte_server.set_reply(b'{"error": {"code": "context_length_exceeded"}}', status=400)

    await Heard().fail(ask(HELLO, thoughtful(stamp), HELLO), ContextOverflow)

    assert len(byte_server.requests) == 1


async def test_another_server_is_not_sent_the_residue(ask: AskFunction, stamp: Any, byte_server: ByteServer) -> None:
    native = replace(stamp({"fields": {"reasoning": "Greet."}}), provider="openai_chat 127.0.0.1:1")
    byte_server.set_reply(text("Hi."), STOP, DONE)

    await Heard().read(ask(HELLO, Message.assistant("Hello.", native=native), HELLO))

    assert byte_server.requests[-1]["messages"][1] == {"role": "assistant", "content": "Hello."}
