"""Tests for answers to voice satellites: spoken without marks, in the stream and in the response alike."""

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.memory.core import RecallHit
from demo.model_server import ModelServer, words
from demo.model_server.conversation import Answer, Call

from .conftest import SayFn, get_speech
from .remembered import memory_of
from .test_turns import window_of

SATELLITE = "assist_satellite.kitchen"
MARKED = "**Two** things:\n- the [oven](https://example.org/oven) 🔥 is on [1]\n- see https://example.org, too"
SPOKEN = "Two things:\nthe oven is on.\nsee, too"


async def test_satellite_speaks_no_marks(entry, say: SayFn, model_server: ModelServer) -> None:
    model_server.script(words(MARKED))

    result = await say("what is on?", satellite_id=SATELLITE)

    assert get_speech(result) == SPOKEN
    assert window_of(entry).messages()[-1].content == SPOKEN


async def test_memory_has_the_spoken_answer(home: HomeAssistant, entry, say: SayFn, model_server: ModelServer) -> None:
    model_server.script(words(MARKED))

    await say("what is on?", satellite_id=SATELLITE)

    (turn,) = await memory_of(home).async_read(lambda memory: memory.recall("oven"), list[RecallHit]())
    assert "**" not in turn.text
    assert "the oven is on" in turn.text


async def test_chat_dialog_and_automations_get_the_marks(entry, say: SayFn, model_server: ModelServer) -> None:
    model_server.script(words(MARKED))

    assert get_speech(await say("what is on?")) == MARKED


async def test_text_before_a_tool_call_is_spoken_without_marks(entry, say: SayFn, model_server: ModelServer) -> None:
    model_server.script(
        Answer(text="I *look*.", calls=(Call("HassTurnOn", {"name": "kitchen light"}),)), words("**Done**")
    )

    assert get_speech(await say("and then?", satellite_id=SATELLITE)) == "Done"


@pytest.mark.parametrize("answer", ["👍", "**", "---\n"])
async def test_answer_of_which_nothing_can_be_spoken_is_no_silence(
    entry, say: SayFn, *, model_server: ModelServer, answer: str
) -> None:
    model_server.script(words(answer))

    result = await say("thanks", satellite_id=SATELLITE)

    assert get_speech(result) == "Done"
    assert len(model_server.requests) == 1
