"""Halves of characters in JSON: joined where the other half follows, replaced where it never does.

JSON can write half a surrogate pair (RFC 8259, section 8.2) and servers cut their chunks there; UTF-8 cannot, so one
half in the history would make every later request impossible to send.
"""

from codecs import getincrementaldecoder
import json
from typing import Any

_CODEC = "utf-16-le"
_decoder = getincrementaldecoder(_CODEC)


class WholeCharacters:
    """The text of one stream; a first half waits for the second, and is dropped where the stream ends before it."""

    def __init__(self) -> None:
        self._decode = _decoder("replace").decode

    def feed(self, text: str) -> str:
        """Return the characters that are whole so far."""
        return self._decode(text.encode(_CODEC, "surrogatepass"))


def whole_json(text: str) -> Any:
    """Return the JSON value with whole characters only; raises `json.JSONDecodeError`."""
    written = json.dumps(json.loads(text), ensure_ascii=False)
    return json.loads(written.encode(_CODEC, "surrogatepass").decode(_CODEC, "replace"))
