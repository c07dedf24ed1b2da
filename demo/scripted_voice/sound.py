"""Convert text to sound: a short tone per letter and digit, longer and higher for vowels, and pauses between words.

The sound of the last texts can be recognized again.
"""

from array import array
from functools import cache
import math
import struct

_SAMPLE_RATE = 16_000
_AMPLITUDE = 6_000
_VOWELS = "aeiouy"
# Semitones above the lowest note; any two notes of this scale sound good together.
_SCALE_SEMITONES = (0, 2, 4, 7, 9)
_LOWEST_HERTZ = 196.0
_PAUSE_SECONDS_BY_MARK = {",": 0.12, ".": 0.25, "!": 0.25, "?": 0.25}

# The sizes are 0xFFFFFFFF because the length of the audio is not known yet.
WAV_HEADER = struct.pack(
    "<4sI4s4sIHHIIHH4sI",
    b"RIFF",
    0xFFFFFFFF,
    b"WAVE",
    b"fmt ",
    16,
    1,
    1,
    _SAMPLE_RATE,
    _SAMPLE_RATE * 2,
    2,
    16,
    b"data",
    0xFFFFFFFF,
)


_MAX_KNOWN_SOUNDS = 500
_known_texts: dict[bytes, str] = {}


def synthesize_text(text: str) -> bytes:
    """Return the sound of the text as 16-bit mono samples."""
    sound = b"".join(map(_synthesize_character, text.lower()))
    _known_texts.pop(sound, None)
    _known_texts[sound] = text
    while len(_known_texts) > _MAX_KNOWN_SOUNDS:
        del _known_texts[next(iter(_known_texts))]
    return sound


def recognize_sound(sound: bytes) -> str:
    """Return the text that was converted to this sound, or an empty text if it was none of the last texts."""
    return _known_texts.get(sound.removeprefix(WAV_HEADER), "")


@cache
def _synthesize_character(character: str) -> bytes:
    if not character.isalnum():
        return bytes(2 * int(_SAMPLE_RATE * _PAUSE_SECONDS_BY_MARK.get(character, 0.05)))
    octave, note = divmod(ord(character) % 10, len(_SCALE_SEMITONES))
    if character in _VOWELS:
        return _synthesize_tone(_LOWEST_HERTZ * 2 ** (octave + 1 + _SCALE_SEMITONES[note] / 12), 0.09)
    return _synthesize_tone(_LOWEST_HERTZ * 2 ** (octave + _SCALE_SEMITONES[note] / 12), 0.045)


def _synthesize_tone(hertz: float, seconds: float) -> bytes:
    """Return the samples of a tone that fades in and out, so that it does not click."""
    length = int(_SAMPLE_RATE * seconds)
    swell, wave = math.pi / length, 2 * math.pi * hertz / _SAMPLE_RATE
    samples = (int(_AMPLITUDE * math.sin(swell * at) * math.sin(wave * at)) for at in range(length))
    return array("h", samples).tobytes()
