"""Tests that residue, which only one model can use, is sent back to that model and to no other."""

from dataclasses import replace
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Provider
from custom_components.windowed_conversation.window import Message, NativeData
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import Ask
from tests.providers.heard import Heard
from tests.providers.wires.parts import Call, Calls, Reasoning, Text, Wire


async def answered(wire: Wire, ask: Ask, provider: Provider, byte_server: ByteServer) -> tuple[Message, ...]:
    """Return the messages of a turn in which the model reasons and calls a tool."""
    byte_server.set_reply(*wire.answer(Reasoning(("The lamp.",)), Calls((Call("call_a", "act", ('{"n": 1}',)),))))
    heard = await Heard().read(ask())
    (call,) = heard.calls
    native = NativeData(provider.name, "model", heard.done_events[0].native_value)
    byte_server.set_reply(*wire.answer(Text(("Done.",))))
    question, answer = Message.user("switch it on"), Message.assistant(tool_calls=(call,), native=native)
    return question, answer, Message.tool(call.id, "act", '{"done": true}')


async def test_residue_is_json(wire: Wire, ask: Ask, provider: Provider, byte_server: ByteServer) -> None:
    _, answer, _ = await answered(wire, ask, provider, byte_server)

    assert answer.native is not None
    assert answer.native.value is not None
    assert json.loads(json.dumps(answer.native.value)) == answer.native.value


async def test_reasoning_before_a_call_is_replayed(
    wire: Wire, ask: Ask, provider: Provider, byte_server: ByteServer
) -> None:
    history = await answered(wire, ask, provider, byte_server)
    await Heard().read(ask(*history))
    plain = [replace(message, native=None) for message in history]
    await Heard().read(ask(*plain))

    _, with_residue, without = byte_server.requests
    assert len(json.dumps(with_residue)) > len(json.dumps(without))


@pytest.mark.parametrize("change", [{"model": "another"}, {"provider": "another"}])
async def test_residue_is_kept_from_another_model(
    change: dict[str, Any], wire: Wire, ask: Ask, provider: Provider, byte_server: ByteServer
) -> None:
    history = await answered(wire, ask, provider, byte_server)
    plain = [replace(message, native=None) for message in history]
    foreign = [replace(message, native=message.native and replace(message.native, **change)) for message in history]
    await Heard().read(ask(*foreign))
    await Heard().read(ask(*plain))

    _, with_foreign, without = byte_server.requests
    assert with_foreign == without


async def test_residue_that_is_not_understood_is_omitted(
    wire: Wire, ask: Ask, provider: Provider, byte_server: ByteServer
) -> None:
    history = await answered(wire, ask, provider, byte_server)
    broken = [
        replace(message, native=message.native and replace(message.native, value={"of": ["next", "year"]}))
        for message in history
    ]
    await Heard().read(ask(*broken))
    await Heard().read(ask(*(replace(message, native=None) for message in history)))

    _, with_broken, without = byte_server.requests
    assert with_broken == without
