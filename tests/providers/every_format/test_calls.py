"""Tests that each tool call is announced once, complete, and with a unique id, and that calls can be forbidden."""

import asyncio
from dataclasses import replace
import json
import re
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream
from custom_components.windowed_conversation.providers.events import (
    FinishReason,
    Provider,
    Request,
    TextDelta,
    ToolCallDone,
)
from custom_components.windowed_conversation.providers.models import ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.window import Message, ToolCall
from demo.model_server import ModelServer
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import TOOLS, Ask, Hear
from tests.providers.heard import Heard, closing
from tests.providers.wires import FORBIDDING_WIRES
from tests.providers.wires.parts import Call, Calls, End, Reasoning, Text, Wire

ARGUMENTS = {"name": 'the "}{" lamp', "nested": {"levels": [1, {"é": "\\"}], "照": None}, "emoji": "\N{GRINNING FACE}"}
WRITTEN = json.dumps(ARGUMENTS, ensure_ascii=False)
THREE = Calls(
    (
        Call("call_a", "first", ('{"n"', ": 1}")),
        Call("call_b", "second", ('{"n"', ": 2}")),
        Call("call_c", "third", ('{"n"', ": 3}")),
    )
)


@pytest.mark.parametrize("reasoning", [(), (Reasoning(("The lamp.",)),)])
@pytest.mark.parametrize("fragments", [(WRITTEN,), tuple(WRITTEN)], ids=["whole", "characters"])
async def test_call_is_announced_whole(
    fragments: tuple[str, ...], reasoning: tuple[Reasoning, ...], wire: Wire, hear: Hear
) -> None:
    heard = await hear(*wire.answer(*reasoning, Calls((Call("call_a", "act", fragments),))))

    assert heard.called == [("act", ARGUMENTS)]
    assert heard.done_events[0].reason is FinishReason.TOOL_CALLS


async def test_arguments_may_be_cut_at_every_byte(wire: Wire, hear: Hear) -> None:
    stream = b"".join(wire.answer(Calls((Call("call_a", "act", (WRITTEN,)),))))
    heard = await hear(*(stream[at : at + 1] for at in range(len(stream))))

    assert heard.called == [("act", ARGUMENTS)]


async def test_three_parallel_calls_come_in_their_order(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(THREE))

    assert heard.called == [("first", {"n": 1}), ("second", {"n": 2}), ("third", {"n": 3})]


@pytest.mark.parametrize("mixed", [{"interleaved": True}, {"order": (2, 0, 1)}], ids="_".join)
async def test_calls_that_are_interleaved_or_out_of_order_are_not_mixed_up(
    mixed: dict[str, Any], wire: Wire, hear: Hear
) -> None:
    heard = await hear(*wire.answer(replace(THREE, **mixed)))

    assert sorted(heard.called) == [("first", {"n": 1}), ("second", {"n": 2}), ("third", {"n": 3})]


@pytest.mark.parametrize("ids", [("", "call_b"), ("call_a", "")])
@pytest.mark.parametrize("interleaved", [False, True])
async def test_call_may_have_an_empty_id_beside_one_with_an_id(
    ids: tuple[str, str], interleaved: bool, wire: Wire, hear: Hear
) -> None:
    calls = tuple(Call(id_, "act", ('{"n"', f": {n}}}")) for n, id_ in enumerate(ids))
    heard = await hear(*wire.answer(Calls(calls, interleaved)))

    assert sorted(call.arguments["n"] for call in heard.calls) == [0, 1]
    assert len(set(filter(None, heard.ids))) == 2
    assert set(filter(None, ids)) <= set(heard.ids)


@pytest.mark.parametrize("written", ["", "call_a"])
async def test_ids_are_different_whatever_the_server_sends(written: str, wire: Wire, hear: Hear) -> None:
    calls = (Call(written, "act", ('{"n": 1}',)), Call(written, "act", ('{"n": 2}',)))
    heard = await hear(*wire.answer(Calls(calls)))

    assert heard.called == [("act", {"n": 1}), ("act", {"n": 2})]
    assert len(set(filter(None, heard.ids))) == 2


@pytest.mark.parametrize("call_id", ["", "call_a"])
async def test_id_that_the_history_has_already_is_replaced(
    call_id: str, wire: Wire, ask: Ask, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Calls((Call(call_id, "act", ('{"n": 1}',)),))))
    earlier = Message.assistant(tool_calls=(ToolCall("call_a", "act", {}),))

    heard = await Heard().read(ask(Message.user("before"), earlier, Message.tool("call_a", "act", "{}")))

    assert heard.called == [("act", {"n": 1})]
    assert heard.ids[0] not in ("", "call_a")


async def test_call_is_announced_before_the_answer_is_complete(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    ends, call = asyncio.Event(), Calls((Call("call_a", "act", ('{"n"', ": 1}")),))
    before_the_end = len(wire.answer(call, end=End.NONE))
    events = wire.answer(call)
    byte_server.set_reply(*events[:before_the_end], ends, *events[before_the_end:])

    async with closing(ask()) as stream:
        first = await anext(stream)
        ends.set()
        heard = await Heard([first]).read(stream)

    assert first == ToolCallDone(ToolCall("call_a", "act", {"n": 1}))
    assert heard.called == [("act", {"n": 1})]


@pytest.mark.parametrize("fragments", [(), ("",), ("{}",)])
async def test_call_without_arguments_has_an_empty_object(fragments: tuple[str, ...], wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Calls((Call("call_a", "act", fragments),))))

    assert heard.called == [("act", {})]


async def test_text_may_stand_before_and_after_a_call(wire: Wire, hear: Hear) -> None:
    call = Calls((Call("call_a", "act", ("{}",)),))
    heard = await hear(*wire.answer(Text(("One moment. ",)), call, Text(("Done.",))))

    assert heard.text == "One moment. Done."
    assert heard.called == [("act", {})]


async def test_text_before_a_call_is_heard_before_it(wire: Wire, hear: Hear) -> None:
    heard = await hear(*wire.answer(Text(("One moment.",)), Calls((Call("call_a", "act", ("{}",)),))))

    kinds = [type(event) for event in heard.events if isinstance(event, TextDelta | ToolCallDone)]
    assert kinds == [TextDelta, ToolCallDone]


@pytest.mark.parametrize("fragments", [('{"name": "la',), ("[1, 2]",), ("17",)])
async def test_arguments_that_are_no_object_are_an_error(fragments: tuple[str, ...], wire: Wire, fail: Hear) -> None:
    heard = await fail(BadStream, *wire.answer(Calls((Call("call_a", "act", fragments),))))

    assert heard.calls == []


async def test_call_that_names_no_tool_is_an_error(wire: Wire, fail: Hear) -> None:
    await fail(BadStream, *wire.answer(Calls((Call("call_a", "", ("{}",)),))))


async def test_call_with_an_infinite_number_does_not_stop_a_conversation(
    wire: Wire, ask: Ask, byte_server: ByteServer
) -> None:
    call = ToolCall("call_a", "act", {"level": float("inf"), "name": "lamp", "all": [float("nan")]})
    byte_server.set_reply(*wire.answer(Text(("yes",))))

    history = Message.user("hello"), Message.assistant(tool_calls=(call,)), Message.tool("call_a", "act", "{}")
    await Heard().read(ask(*history))

    assert not {"Infinity", "NaN"} & set(re.findall(r"[A-Z]\w+", json.dumps(byte_server.requests)))


@pytest.mark.parametrize(
    ("fragments", "value"),
    [
        (('{"x": "\\ud83d\\ude00', '\\ud83d"}'), "\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}"),
        (('{"x": "\\ud83d', '\\ude00"}'), "\N{GRINNING FACE}"),
    ],
)
async def test_arguments_have_no_halves_of_characters(
    fragments: tuple[str, ...], value: str, wire: Wire, hear: Hear
) -> None:
    heard = await hear(*wire.answer(Calls((Call("call_a", "act", fragments),))))

    assert heard.called == [("act", {"x": value})]


with_each_forbidding_wire = pytest.mark.parametrize("wire", FORBIDDING_WIRES, ids=lambda wire: wire.name)

LOOP = (
    Message.system("You are a voice assistant."),
    Message.user("switch on the kitchen light"),
    Message.assistant(tool_calls=(ToolCall("call_a", TOOLS[2].name, {"name": "kitchen light"}),)),
    Message.tool("call_a", TOOLS[2].name, '{"response_type": "action_done"}'),
)
# Gemini's newer models require a marker on the calls of other models, and the scripted model is one of them.
LEVELS = ModelProfile(reasoning=ReasoningStyle.LEVEL)
LAST = Request("model", LOOP, TOOLS, may_call=False)


@with_each_forbidding_wire
async def test_tools_stay_where_they_were_and_may_not_be_called(
    wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Text(("Done.",))))

    await Heard().read(provider.stream(replace(LAST, may_call=True)))
    await Heard().read(provider.stream(LAST))

    before, last = byte_server.requests
    assert last == before | wire.no_calls


async def test_tools_stay_where_they_were_and_one_must_be_called(
    wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Text(("Done.",))))
    asked = Request("model", LOOP, TOOLS)

    await Heard().read(provider.stream(asked))
    await Heard().read(provider.stream(replace(asked, requires_call=True)))

    before, last = byte_server.requests
    assert last == before | wire.any_call


async def test_request_without_tools_requires_no_call(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(*wire.answer(Text(("hello",))))
    asked = Request("model", LOOP[:2])

    await Heard().read(provider.stream(asked))
    await Heard().read(provider.stream(replace(asked, requires_call=True)))

    before, last = byte_server.requests
    assert last == before


async def test_request_without_tools_forbids_nothing(wire: Wire, provider: Provider, byte_server: ByteServer) -> None:
    byte_server.set_reply(*wire.answer(Text(("hello",))))
    asked = Request("model", LOOP[:2])

    await Heard().read(provider.stream(asked))
    await Heard().read(provider.stream(replace(asked, may_call=False)))

    before, last = byte_server.requests
    assert last == before


@with_each_forbidding_wire
async def test_model_that_may_not_call_answers_in_words(
    wire: Wire, http_client: object, model_server: ModelServer
) -> None:
    provider = wire.connect(model_server.address, http_client)

    heard = await Heard().read(provider.stream(replace(LAST, model="scripted", messages=LOOP[:2])))

    assert heard.calls == []
    assert heard.text == "I have no tool for that."


async def test_model_that_has_called_and_may_not_any_more_says_what_it_did(
    wire: Wire, http_client: object, model_server: ModelServer
) -> None:
    provider = wire.connect(model_server.address, http_client)

    heard = await Heard().read(provider.stream(replace(LAST, model="scripted", profile=LEVELS)))

    assert heard.calls == []
    assert heard.text == "Done, the kitchen light is on."
