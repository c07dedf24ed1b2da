"""Tests for failures: users hear the reason in time, the window stays unchanged, and logs contain no user text."""

import logging

from homeassistant.components import conversation
from homeassistant.core import HomeAssistant
from homeassistant.helpers.intent import IntentResponseType
import pytest

from custom_components.windowed_conversation.agents import turns
from custom_components.windowed_conversation.const import (
    CONF_ROUTING,
    CONF_TURN_TIMEOUT,
)
from custom_components.windowed_conversation.turn import limits
from demo.model_server import FAULTS, ModelServer

from .conftest import SayFn, SetUpFn, get_speech
from .rows import Row, row
from .states import get_state
from .test_turns import window_of

__all__ = ["row"]

SHORT_TIMEOUT = {CONF_TURN_TIMEOUT: 1}


@pytest.fixture(autouse=True)
def short_idle_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server be silent for no more than 0.3 seconds."""
    monkeypatch.setattr(limits, "IDLE_TIMEOUT", 0.3)


# The expected spoken text for each fault. Faults that a turn survives are not listed.
ERROR_PHRASES = {
    "400": "did not accept the request",
    "401": "did not accept the API key",
    "403": "did not accept the API key",
    "404": "model is no longer available",
    "413": "too long for the model",
    "422": "did not accept the request",
    "429": "try again in 7 seconds",
    "quota": "no credit left",
    "500": "cannot be reached right now",
    "503": "cannot be reached right now",
    "529": "cannot be reached right now",
    "context_overflow": "too long for the model",
    "context_overflow_llama": "too long for the model",
    "azure_filter": "declined to answer",
    "html": "cannot be reached right now",
    "json_200": "cannot be reached right now",
    "no_answer": "did not answer in time",
    "cut_before_headers": "cannot be reached right now",
    "silence_after_headers": "did not answer in time",
    "silence_mid_stream": "did not answer in time",
    "cut_mid_stream": "cannot be reached right now",
    "cut_mid_event": "cannot be reached right now",
    "reset_mid_stream": "cannot be reached right now",
    "malformed_event": "could not be read",
    "error_in_stream": "cannot be reached right now",
    "failed_in_stream": "cannot be reached right now",
    "no_terminal": "could not be read",
    "empty_answer": "gave no answer",
    "length": "was cut off",
    "content_filter": "declined to answer",
    "window_exceeded": "was cut off",
    "malformed_call": "gave no answer",
    "prompt_blocked": "declined to answer",
    "refusal": "declined to answer",
}


FAULTS_AFTER_FIRST_TOKEN = {
    "silence_mid_stream",
    "cut_mid_stream",
    "cut_mid_event",
    "reset_mid_stream",
    "malformed_event",
    "error_in_stream",
    "failed_in_stream",
    "no_terminal",
    "length",
    "window_exceeded",
}
SECRET = "the pelican is my secret word"


def test_every_fault_of_the_server_is_in_the_table() -> None:
    assert ERROR_PHRASES.keys() == FAULTS.keys() - {"same_call"}


@pytest.fixture
async def agent(set_up: SetUpFn):
    """Set up an account whose agent has short timeouts."""
    return await set_up(**SHORT_TIMEOUT)


async def test_fault_is_spoken_and_leaves_only_what_was_heard(
    *, row: Row, set_up: SetUpFn, say: SayFn, model_server: ModelServer, caplog: pytest.LogCaptureFixture, figure
) -> None:
    caplog.set_level(logging.INFO)
    # the first loose match of Home Assistant's own agent loads its word lists, which takes longer than these timeouts
    await say(SECRET, agent_id="conversation.home_assistant")
    for fault, phrase in ERROR_PHRASES.items():
        async with row(fault):
            entry = await set_up(**SHORT_TIMEOUT)
            await say("my name is Ada")
            window = window_of(entry)
            before = len(window.messages())
            caplog.clear()
            model_server.fault(fault, retry_after=7)

            result = await say(SECRET)

            assert phrase in get_speech(result)
            assert result.response.response_type is IntentResponseType.ERROR
            assert (len(window.messages()) > before) is (fault in FAULTS_AFTER_FIRST_TOKEN)
            assert all(each.content in get_speech(result) for each in window.messages()[before + 1 : -1])
            assert figure("last_route") == "error"
            assert "Traceback" not in caplog.text
            assert "pelican" not in caplog.text


@pytest.mark.parametrize(
    ("language", "phrase"),
    [
        ("de-CH", "Das Konto beim Anbieter des Modells hat kein Guthaben mehr."),
        ("fr-CA", "Le compte auprès du fournisseur du modèle n'a plus de crédit."),
        ("fi", "The account with the model's provider has no credit left."),
    ],
)
async def test_fault_is_told_in_the_nearest_language(
    agent, say: SayFn, model_server: ModelServer, language: str, phrase: str
) -> None:
    model_server.fault("quota", 1)

    assert get_speech(await say("tell me a story", language=language)) == phrase


async def test_blank_input_is_answered_without_a_request(
    agent, say: SayFn, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    for text in ("", "   ", "\n\t", "\x00\x07"):
        with subtests.test(text=text):
            model_server.log.clear()

            assert get_speech(await say(text)) == "I did not hear anything."
            assert model_server.requests == []


async def test_a_hundred_thousand_characters_are_sent(agent, say: SayFn, model_server: ModelServer) -> None:
    await say("word " * 20_000)

    assert len(model_server.requests[-1].body["messages"][-1]["content"]) > 99_000
    assert model_server.requests[-1].violations == []


async def test_control_characters_are_omitted_and_emoji_stay(agent, say: SayFn, model_server: ModelServer) -> None:
    await say("my\x00 name\ud800 is Ada \N{GRINNING FACE}\x1b")

    assert model_server.requests[-1].body["messages"][-1]["content"].endswith("my name is Ada \N{GRINNING FACE}")


async def test_any_conversation_id_is_answered(row: Row, set_up: SetUpFn, say: SayFn) -> None:
    for conversation_id in (None, "unknown", "01HZZZZZZZZZZZZZZZZZZZZZZZ", "my own conversation"):
        async with row(str(conversation_id)):
            await set_up(**SHORT_TIMEOUT)

            result = await say("my name is Ada", conversation_id)

            assert result.response.response_type is IntentResponseType.ACTION_DONE
            assert "Ada" in get_speech(await say("what is my name?", result.conversation_id))


async def test_expired_id_begins_a_new_conversation(agent, say: SayFn) -> None:
    expired = "01HZZZZZZZZZZZZZZZZZZZZZZZ"

    assert (await say("my name is Ada", expired)).conversation_id != expired


async def test_template_error_in_the_instructions_is_spoken(set_up: SetUpFn, say: SayFn) -> None:
    await set_up(prompt="You live in {{ states.sensor.outside.state | float }}")

    assert "instructions of this conversation agent contain an error" in get_speech(await say(SECRET))


async def test_nothing_is_asked_where_home_assistant_answers_alone(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_ROUTING: "local_only"})

    result = await say("switch the flux capacitor into reverse")

    # The message is omitted, because it may repeat the user's text.
    shown = get_state(home, "sensor.ada_last_route").attributes
    assert (shown["error"], shown["message"]) == ("local_answer_failed", None)

    assert result.response.response_type is IntentResponseType.ERROR
    assert "Sorry" in get_speech(result)
    assert model_server.requests == []


async def test_chat_log_that_another_agent_never_leaves_holds_up_no_turn(
    set_up: SetUpFn, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise InterruptedError

    # Home Assistant 2026.11 and later raise an error while another turn uses the chat log.
    monkeypatch.setattr(turns, "BUSY_ERRORS", (InterruptedError,))
    monkeypatch.setattr(conversation, "async_get_chat_log", busy)
    await set_up()

    answers = [get_speech(await say(sentence)) for sentence in ("hello", "my name is Ada")]

    assert answers == ["Hello from Home Assistant.", "Nice to meet you, Ada."]


# The errors for people who can change an account are in the sensor and the activity, whoever asked.
HEARD_PHRASES = (
    "Something went wrong. Please try again.",
    "I'm too busy right now. Please try again in a minute or two.",
    "I can't reach my AI service right now. Lights and timers still work.",
    "I'm not set up correctly. Please tell whoever looks after Home Assistant.",
    "I can't help with that.",
    "That's as much as I can say at once.",
)


async def test_fault_at_a_satellite_is_spoken_without_words_of_administration(
    *, row: Row, set_up: SetUpFn, say: SayFn, model_server: ModelServer, home: HomeAssistant
) -> None:
    await say(SECRET, agent_id="conversation.home_assistant")
    for fault, message in ERROR_PHRASES.items():
        async with row(fault):
            await set_up(**SHORT_TIMEOUT)
            model_server.fault(fault, retry_after=7)

            result = await say(SECRET, satellite_id="assist_satellite.kitchen")

            assert get_speech(result).endswith(HEARD_PHRASES)
            assert message not in get_speech(result)
            assert message in get_state(home, "sensor.ada_last_route").attributes["message"]
