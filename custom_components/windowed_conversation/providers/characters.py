"""Surrogate halves in JSON: joined if the other half follows, replaced if it never does.

JSON can write half of a surrogate pair (RFC 8259, section 8.2), and servers cut their chunks there. UTF-8 cannot, so a
single half in the history would make every later request impossible to send.
"""

from codecs import getincrementaldecoder

_CODEC = "utf-16-le"
_SurrogateDecoder = getincrementaldecoder(_CODEC)


class SurrogateJoiner:
    """The text of one stream. A first half waits for the second and is dropped if the stream ends before it."""

    def __init__(self) -> None:
        self._decoder = _SurrogateDecoder("replace")
        self._waits = False

    def feed(self, text: str) -> str:
        """Return the characters that are complete so far."""
        if text.isascii() and not self._waits:
            return text
        whole = self._decoder.decode(text.encode(_CODEC, "surrogatepass"))
        half, _ = self._decoder.getstate()
        self._waits = bool(half)
        return whole


def repair_surrogates(text: str) -> str:
    """Return the text with surrogate halves joined or replaced."""
    return text.encode(_CODEC, "surrogatepass").decode(_CODEC, "replace")
