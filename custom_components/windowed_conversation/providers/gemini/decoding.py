"""Decoding Gemini's answers: chunks as JSON in, our events out."""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from ..decoder import Decoder, finish_reason
from ..errors import BadStream, Incomplete, ProviderError, Refused
from ..events import Event, Request, Usage
from ..json_values import code_of, count_at, member, text_of
from .encoding import tool_names
from .errors import error_in_event
from .residue import Signatures, SignedText

_STOP = "STOP"
_UNKNOWN = "UNKNOWN"
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"
# https://ai.google.dev/api/generate-content#FinishReason; any other reason, also a new one, is an error.
_CUT_OFF = {"MAX_TOKENS", "CONTINUATION"}
_DECLINED = {
    "BLOCKLIST",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "LANGUAGE",
    "MODEL_ARMOR",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
}

_OTHER_ALPHABET = str.maketrans("-_", "+/")


class GeminiDecoder(Decoder):
    """Decodes one answer. The terminal marker is a finish reason; every chunk has the usage so far."""

    def __init__(self, request: Request) -> None:
        super().__init__(request, tool_names(request))
        self._signed: list[tuple[int, int, bytes]] = []
        self._ids: dict[str, str] = {}
        self._signatures: dict[str, bytes] = {}
        self._blocked = ""

    def as_stream(self, answer: Any) -> list[Any]:
        """Return the events of a whole answer: without `alt=sse`, a stream is a list of its chunks."""
        return answer if isinstance(answer, list) else [answer]

    def on_event(self, event: Any) -> Iterator[Event]:
        """Return the events of one chunk, see `Decoder.on_event`."""
        if event.get("error") is not None and not self.is_complete:
            raise error_in_event(event)
        if event.get("usageMetadata") is not None:
            self._usage = _usage(event["usageMetadata"])
        if reason := member(event.get("promptFeedback"), "blockReason"):
            self._blocked = code_of(reason) or _UNKNOWN
        for candidate in event.get("candidates") or ():
            yield from self._on_candidate(candidate)

    def _on_candidate(self, candidate: Any) -> Iterator[Event]:
        for part in (candidate.get("content") or {}).get("parts") or ():
            yield from self._on_part(part)
        reason = candidate.get("finishReason")
        if reason and reason != _UNSPECIFIED and not self.is_complete:
            self.is_complete, self._ended = True, finish_reason(code_of(reason))

    def _on_part(self, part: Any) -> Iterator[Event]:
        signature = _bytes(text_of(part.get("thoughtSignature")))
        if "functionCall" in part:
            yield self._on_call(part["functionCall"], signature)
        elif part.get("text") is None:
            return
        elif part.get("thought"):
            yield from self._on_reasoning(text_of(part["text"]))
        else:
            start = self._length
            yield from self._on_text(text_of(part["text"]))
            if signature:
                self._signed.append((start, self._length, signature))

    def _on_call(self, call: Any, signature: bytes) -> Event:
        arguments = self._calls.begin()
        arguments.add(call.get("args"))
        given_id = text_of(call.get("id"))
        done = self._calls.announce(given_id, text_of(call.get("name")), arguments.value())
        if given_id:
            self._ids[done.call.id] = given_id
        if signature:
            self._signatures[done.call.id] = signature
        return done

    def _error(self) -> ProviderError | None:
        """Return the error of the answer, see `Decoder._error`. Complete calls count in spite of a later error."""
        reason = self._ended
        if self._blocked:
            return Refused(f"the prompt was blocked, reason {self._blocked}", self._blocked)
        if not self.is_complete or reason == _STOP or self._calls.count:
            return super()._error()
        message = f"finish reason {reason}"
        if reason in _CUT_OFF:
            return Incomplete(message)
        return Refused(message, reason) if reason in _DECLINED else BadStream(message)

    def _residue(self) -> Any:
        length = self._length
        texts = (SignedText(length - start, length - end, signature) for start, end, signature in self._signed)
        return Signatures(self._ids, self._signatures, tuple(texts)).as_json()


def _bytes(written: str) -> bytes:
    """Return bytes written in either base64 alphabet, as protocol buffers in JSON allow."""
    return b64decode(written.translate(_OTHER_ALPHABET))


def _usage(figures: object) -> Usage:
    thoughts = count_at(figures, "thoughtsTokenCount")
    return Usage(
        input=count_at(figures, "promptTokenCount") + count_at(figures, "toolUsePromptTokenCount"),
        cached=count_at(figures, "cachedContentTokenCount"),
        output=count_at(figures, "candidatesTokenCount") + thoughts,
        reasoning=thoughts,
    )
