"""Residue of Gemini's answers: thought signatures with the part that each came on, and Gemini's ids of calls.

As a value for the encoder and the decoder, and as the JSON value that a message carries.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...window import Message
from ..encoder import residue_of

NAME = "gemini"


@dataclass(frozen=True, slots=True)
class SignedText:
    """A signed stretch of text; `start` and `end` count characters from the end of the text.

    From the end, because the beginning may be stripped before a text is spoken. Both are 0 for the empty part in which
    a stream often brings its last signature.
    """

    start: int
    end: int
    signature: bytes


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures that Gemini gets back with an answer, and its own ids of calls; the keys are our ids of calls."""

    ids: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, bytes] = field(default_factory=dict)
    texts: tuple[SignedText, ...] = ()

    def as_json(self) -> dict[str, Any] | None:
        """Return the residue as a JSON value, or None if there is nothing to keep."""
        if not self.ids and not self.signatures and not self.texts:
            return None
        return {
            "ids": dict(self.ids),
            "signatures": {call: b64encode(signature).decode() for call, signature in self.signatures.items()},
            "texts": [[text.start, text.end, b64encode(text.signature).decode()] for text in self.texts],
        }


NOTHING = Signatures()


def signatures_of(message: Message, model: str) -> Signatures:
    """Return a message's residue; empty if another provider or model left it, or if it is malformed."""
    value = residue_of(message, NAME, model)
    try:
        return _parsed(value) if value else NOTHING
    except AttributeError, LookupError, TypeError, ValueError:
        # conversations can be brought along from outside, and a signature is not worth an answer
        return NOTHING


def _parsed(value: Any) -> Signatures:
    return Signatures(
        {str(call): str(id_) for call, id_ in value["ids"].items()},
        {str(call): b64decode(signature, validate=True) for call, signature in value["signatures"].items()},
        tuple(
            SignedText(int(start), int(end), b64decode(signature, validate=True))
            for start, end, signature in value["texts"]
        ),
    )
