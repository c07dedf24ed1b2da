"""Echoes: a satellite that listens again after a question may hear the end of its own answer."""

from dataclasses import dataclass
import time

from homeassistant.components.conversation import ConversationResult
from homeassistant.core import HomeAssistant, callback
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from ..turn.routing import is_echo
from .local_intents import get_speech

# Text-to-speech is at least this fast, in characters per second.
_SPEECH_RATE = 10.0
# How long an answer is expected to be spoken at most, in seconds.
_MAX_SPEECH_SECONDS = 60.0
# How long after the speech an echo may arrive, in seconds: the satellite waits for silence, and recognizes the words.
_ECHO_SECONDS = 8.0
# The part of an answer that is compared, in characters from its end.
_MAX_CHARS = 2000


@dataclass(frozen=True, slots=True)
class SpokenAnswer:
    """The last answer of a satellite. Its echo may arrive until `echo_ends_at`, on the monotonic clock."""

    text: str
    is_question: bool
    echo_ends_at: float


_SPOKEN_ANSWERS_KEY: HassKey[dict[str, SpokenAnswer]] = HassKey(f"{DOMAIN}_spoken_answers")


@callback
def async_record_spoken_answer(hass: HomeAssistant, satellite_id: str, result: ConversationResult) -> None:
    """Record the answer that a satellite speaks next."""
    text = get_speech(result.response)
    speech_seconds = min(len(text) / _SPEECH_RATE, _MAX_SPEECH_SECONDS)
    answer = SpokenAnswer(
        text[-_MAX_CHARS:], result.continue_conversation, time.monotonic() + speech_seconds + _ECHO_SECONDS
    )
    hass.data.setdefault(_SPOKEN_ANSWERS_KEY, {})[satellite_id] = answer


@callback
def async_take_echoed_answer(hass: HomeAssistant, satellite_id: str, text: str) -> SpokenAnswer | None:
    """Return the answer of which an input is the echo, or None.

    Only the first input after an answer can be its echo: whoever is not heard and repeats the words is answered.
    """
    last = hass.data.get(_SPOKEN_ANSWERS_KEY, {}).pop(satellite_id, None)
    if last is None or last.echo_ends_at < time.monotonic() or not is_echo(text, last.text):
        return None
    return last
