"""Tests that a request in which tools may no longer be called begins like the requests before it."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.providers.models import ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.window import Message, ToolCall
from demo.model_server import ModelServer
from tests.providers.byte_server import ByteServer
from tests.providers.conftest import TOOLS
from tests.providers.heard import Heard
from tests.providers.wires import FORBIDDING_WIRES
from tests.providers.wires.parts import Text, Wire

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
