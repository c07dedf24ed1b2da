"""Tests that a satellite which hears its own answer gets a silent one, and that people never do."""

import time

from homeassistant.core import HomeAssistant
import pytest

from demo.model_server import ModelServer, words

from .actions import act
from .conftest import SayFn, get_speech
from .remembered import add_fact
from .satellite import SATELLITE, Ask, Heard
from .test_turns import window_of

QUESTION = "The oven is still hot. Shall I also turn off the kitchen light?"
ECHO = "shall I also turn off the kitchen light"


@pytest.fixture
async def questioned(entry, say: SayFn, model_server: ModelServer) -> None:
    """Have the agent ask a question on the satellite."""
    model_server.script(words(QUESTION))
    assert get_speech(await say("is everything off downstairs?", satellite_id=SATELLITE)) == QUESTION


async def test_satellite_that_hears_itself_gets_silence_and_listens_again(
    entry, questioned: None, say: SayFn, model_server: ModelServer
) -> None:
    before = window_of(entry).messages()

    result = await say(ECHO, satellite_id=SATELLITE)

    assert (get_speech(result), result.continue_conversation) == ("", True)
    assert window_of(entry).messages() == before
    assert len(model_server.requests) == 1


async def test_echo_is_in_the_record_with_its_reason_and_is_not_counted(
    home: HomeAssistant, questioned: None, say: SayFn, figure
) -> None:
    await say(ECHO, satellite_id=SATELLITE)

    turns = (await act(home, "list_turns"))["turns"]
    assert [(each["route"], each["reason"]) for each in turns] == [("local", "echo"), ("model", "no_local_match")]
    assert (figure("turns_local"), figure("turns_model")) == ("0", "1")


async def test_question_of_memory_is_still_open_after_its_echo(home: HomeAssistant, entry, say: SayFn) -> None:
    for number in range(8):
        await add_fact(home, f"The cousin number {number} lives in Rome")
    question = get_speech(await say("what do you remember?", satellite_id=SATELLITE))

    echo = get_speech(await say(question, satellite_id=SATELLITE))

    rest = get_speech(await say("go on", satellite_id=SATELLITE))
    assert (echo, rest) == ("", "About the home: The cousin number 0 lives in Rome")


@pytest.mark.parametrize(
    ("sentence", "satellite"),
    [("turn off the kitchen light", SATELLITE), (ECHO, "assist_satellite.bedroom"), (ECHO, None)],
)
async def test_other_words_and_other_speakers_are_answered(
    sentence: str, satellite: str | None, questioned: None, say: SayFn
) -> None:
    assert get_speech(await say(sentence, satellite_id=satellite)) != ""


async def test_words_that_are_said_again_are_answered(questioned: None, say: SayFn) -> None:
    await say(ECHO, satellite_id=SATELLITE)

    assert get_speech(await say(ECHO, satellite_id=SATELLITE)) != ""


async def test_words_of_an_answer_that_was_spoken_long_ago_are_answered(
    questioned: None, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60.0)

    assert get_speech(await say(ECHO, satellite_id=SATELLITE)) != ""


async def test_pipeline_of_a_satellite_that_hears_itself_speaks_nothing(
    home: HomeAssistant, heard: Heard, ask: Ask, model_server: ModelServer
) -> None:
    model_server.script(words(QUESTION))
    spoken = await ask("is everything off downstairs?")

    assert (spoken, await ask(spoken)) == (QUESTION, "")
    assert len(model_server.requests) == 1
