"""Tests for residue that a server cannot read: it is refused once, and only newer residue is sent back afterward."""

from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Request, ToolSchema
from custom_components.windowed_conversation.providers.models import ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.providers.openai.clients import ResponsesProvider
from custom_components.windowed_conversation.window import Message, NativeData
from demo.model_server import ModelServer

from ..heard import Heard
from ..wires.responses import ResponsesWire

WIRE = ResponsesWire()
MODEL = "gpt-5.5"
THINK = Message.user("think about the weather")
LIGHT = ToolSchema("intent__HassTurnOn", "Turns on a device", {"type": "object", "properties": {}})

type Talk = list[Message]


@pytest.fixture
def provider(model_server: ModelServer, http_client: Any) -> ResponsesProvider:
    """Return a provider for the scripted model server, which reads only its own encrypted residue."""
    model_server.change(models=(MODEL,))
    found = WIRE.connect(model_server.address, http_client)
    assert isinstance(found, ResponsesProvider)
    return found


def make_foreign_conversation(id_: str = "rs_1") -> Talk:
    """Return a conversation that started with a key of another organization."""
    sealed = {"type": "reasoning", "id": id_, "encrypted_content": f"gAAAA-{id_}", "summary": []}
    residue = NativeData(ResponsesProvider.name, MODEL, [sealed, {"type": "message", "start": 0, "end": 6}])
    return [Message.user("hello"), Message.assistant("Hello!", native=residue)]


def request(talk: Talk) -> Request:
    return Request(MODEL, tuple(talk), (LIGHT,), ModelProfile(sampling=False, reasoning=ReasoningStyle.EFFORT))


async def go_on(provider: ResponsesProvider, talk: Talk, message: Message = THINK) -> None:
    """Send a message, and append it and its answer to the conversation."""
    talk.append(message)
    heard = await Heard().read(provider.stream(request(talk)))
    talk.append(
        Message.assistant(heard.text, native=NativeData(provider.name, MODEL, heard.done_events[0].native_value))
    )


def refused(model_server: ModelServer) -> list[bool]:
    """Return for each request whether the server refused it because of its residue."""
    return [bool(each.violations) for each in model_server.requests]


def replayed(model_server: ModelServer) -> int:
    """Return the number of reasoning items in the newest request."""
    return sum(item["type"] == "reasoning" for item in model_server.requests[-1].body["input"])


async def test_residue_that_cannot_be_read_is_refused_once_and_newer_is_sent_back(
    provider: ResponsesProvider, model_server: ModelServer
) -> None:
    talk = make_foreign_conversation()

    for _ in range(3):
        await go_on(provider, talk)

    assert refused(model_server) == [True, False, False, False]
    assert replayed(model_server) == 2
    _, first, second, _ = (each.body["input"] for each in model_server.requests)
    assert second[: len(first)] == first


async def test_residue_of_another_conversation_is_sent_back_all_the_same(
    provider: ResponsesProvider, model_server: ModelServer
) -> None:
    readable: Talk = []
    await go_on(provider, readable)
    await go_on(provider, make_foreign_conversation())

    await go_on(provider, readable)

    assert replayed(model_server) == 1


async def test_each_conversation_is_refused_once(provider: ResponsesProvider, model_server: ModelServer) -> None:
    first, second = make_foreign_conversation("rs_1"), make_foreign_conversation("rs_2")

    for talk in (first, second, first, second):
        await go_on(provider, talk)

    assert refused(model_server) == [True, False, True, False, False, False]


async def test_conversation_is_compacted_at_once_without_what_cannot_be_read(
    provider: ResponsesProvider, model_server: ModelServer
) -> None:
    talk = make_foreign_conversation()
    await go_on(provider, talk)
    before = model_server.log.received_count

    await provider.compact(request(talk))

    assert model_server.log.received_count == before + 1


async def test_tokens_are_counted_of_what_is_sent(provider: ResponsesProvider, model_server: ModelServer) -> None:
    talk = make_foreign_conversation()
    await go_on(provider, talk)
    plain = [Message.user("hello"), Message.assistant("Hello!"), *talk[2:]]

    assert await provider.count_tokens(request(talk)) == await provider.count_tokens(request(plain))
