"""Tests for the agent by voice: the model is paused in the middle of an answer until audio of the answer arrives."""

from typing import Any

from tests.e2e.house import House

# The header of an MP3 file is shorter than this number of bytes.
_HEADER_BYTES = 512


class Ear:
    """Receives the audio of an answer, and lets the paused model continue when the first sound arrives."""

    def __init__(self, house: House, after_words: int) -> None:
        self._model = house.model
        self._hold = house.model.hold(after_words)
        self._heard = 0
        self.words_before_sound: int | None = None

    def watch(self, kind: str, value: Any) -> None:
        """Record the number of words that the model had written when the first sound arrived."""
        self._heard += len(value) if kind == "audio" else 0
        if self._heard > _HEADER_BYTES and self.words_before_sound is None:
            self.words_before_sound = sum(request.text_events for request in self._model.requests)
            self._hold.release()


async def test_a_long_answer_is_heard_before_the_model_has_written_it(house):
    ear = Ear(house, after_words=20)
    turn = await house.say_aloud("tell me a story in 80 words", ear.watch)
    assert ear.words_before_sound is not None
    assert ear.words_before_sound <= 20
    # the story ends with a whole sentence
    assert turn.error == ""
    assert 65 <= len(turn.speech.split()) <= 80


async def test_what_is_said_before_a_tool_call_is_heard_before_the_model_has_written_the_rest(house):
    ear = Ear(house, after_words=3)
    turn = await house.say_aloud("say one moment, then switch on the bedroom light", ear.watch)
    assert ear.words_before_sound is not None
    assert ear.words_before_sound <= 5
    assert ("".join(text for _, text in turn.pieces), turn.error) == ("One moment. Done, the bedroom light is on.", "")
    assert await house.get_state("light.bedroom_light") == "on"
