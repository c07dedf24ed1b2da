"""Answers that a test says itself, in every format, as the integration's providers hear them."""

from importlib import import_module

import openai
import pytest

from custom_components.windowed_conversation.providers.events import FinishReason, Request, ToolSchema
from custom_components.windowed_conversation.window import Message
from demo.model_server import call, thought, words
from tests.providers.heard import Heard
from tests.providers.wires import WIRES

LIGHT = ToolSchema("intent__HassTurnOn", "Turns on a device", {"type": "object", "properties": {}})


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
async def hear(request, server):
    """Return a function that asks the server in a format and gathers the answer."""
    server.change(strict=True)
    wire = request.param

    async with import_module(wire.clients[0]).AsyncClient(verify=False) as http_client:
        provider = wire.connect(server.address, http_client)

        async def hear(said="hello"):
            talk = (Message.system("You are a voice assistant."), Message.user(said))
            return await Heard().listen(provider.stream(Request("scripted", talk, (LIGHT,))))

        yield hear


async def test_answers_come_in_their_order_and_then_those_of_the_scripted_model(hear, server):
    server.script(words("First, in pieces."), words("Second."))

    heard = [await hear("my name is Ada") for _ in range(3)]

    assert [each.text for each in heard] == ["First, in pieces.", "Second.", "Nice to meet you, Ada."]
    assert len(heard[0].texts) == 3


async def test_one_answer_may_speak_and_call_in_parallel(hear, server):
    server.script(words("One moment. ") + call("HassTurnOn", name="lamp") + call("HassTurnOn", name="fan"))

    heard = await hear()

    assert heard.text == "One moment. "
    assert heard.called == [("intent__HassTurnOn", {"name": "lamp"}), ("intent__HassTurnOn", {"name": "fan"})]
    assert heard.finished[0].reason is FinishReason.TOOL_CALLS


async def test_usage_counts_what_was_written(hear, server):
    server.script(words("Short."), words("Much longer than that. " * 10))

    short, long = [await hear() for _ in range(2)]

    assert 0 < short.usages[-1].output < long.usages[-1].output
    assert short.usages[-1].input == long.usages[-1].input > 0


async def test_answer_may_be_empty(hear, server):
    server.script(words(""))

    heard = await hear()

    assert (heard.text, heard.calls, heard.finished[0].reason) == ("", [], FinishReason.STOP)


async def test_request_that_is_refused_takes_no_answer(ask, server):
    server.script(words("Done."))
    server.fault("500", 1)

    with pytest.raises(openai.InternalServerError):
        await ask("hello")

    assert (await ask("hello")).text == "Done."


async def test_thought_stands_before_the_words(ask, server):
    server.script(thought("The lamp.") + words("It is on."))

    heard = await ask("hello")

    assert (heard.extra("reasoning_content"), heard.text) == ("The lamp.", "It is on.")


async def test_tool_that_is_not_offered_is_called_as_it_is_written(ask, server):
    server.script(call("no_such_tool"))

    assert (await ask("hello")).calls[0].function.name == "no_such_tool"


async def test_reset_forgets_the_script(ask, server):
    server.script(words("Done."))
    server.reset()

    assert (await ask("my name is Ada")).text == "Nice to meet you, Ada."
