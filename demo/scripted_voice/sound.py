"""The sound of text: a short tone for each letter and digit, vowels longer and higher, and pauses between words."""

from array import array
from functools import cache
import math
import struct

_RATE = 16_000
_LOUDNESS = 6_000
_VOWELS = "aeiouy"
# Half tones above the lowest note; any two of the scale go together.
_SCALE = (0, 2, 4, 7, 9)
_LOWEST_HERTZ = 196.0
_PAUSES = {",": 0.12, ".": 0.25, "!": 0.25, "?": 0.25}

# Sizes of 0xFFFFFFFF: how long the audio becomes is not known yet.
WAV_HEADER = struct.pack(
    "<4sI4s4sIHHIIHH4sI", b"RIFF", 0xFFFFFFFF, b"WAVE", b"fmt ", 16, 1, 1, _RATE, _RATE * 2, 2, 16, b"data", 0xFFFFFFFF
)


def sound(text: str) -> bytes:
    """Return the text as 16-bit mono samples."""
    return b"".join(map(_sound_of, text.lower()))


@cache
def _sound_of(character: str) -> bytes:
    if not character.isalnum():
        return bytes(2 * int(_RATE * _PAUSES.get(character, 0.05)))
    octave, note = divmod(ord(character) % 10, len(_SCALE))
    if character in _VOWELS:
        return _tone(_LOWEST_HERTZ * 2 ** (octave + 1 + _SCALE[note] / 12), 0.09)
    return _tone(_LOWEST_HERTZ * 2 ** (octave + _SCALE[note] / 12), 0.045)


def _tone(hertz: float, seconds: float) -> bytes:
    """Return a tone that swells and fades, so that it does not click."""
    length = int(_RATE * seconds)
    swell, wave = math.pi / length, 2 * math.pi * hertz / _RATE
    samples = (int(_LOUDNESS * math.sin(swell * at) * math.sin(wave * at)) for at in range(length))
    return array("h", samples).tobytes()
