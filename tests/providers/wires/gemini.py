"""Gemini's responses: "streamGenerateContent" as server-sent events, the model list, and google.rpc errors."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
import json
from typing import Any

from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider

from .parts import CLIENTS, Call, Calls, End, Part, Reasoning, Text

API_KEY = "AIza-a-made-up-key"
SIGNATURE = b"\x01\xfe a signature"

_FINISH_REASONS = {End.WHOLE: "STOP", End.LENGTH: "MAX_TOKENS", End.REFUSED: "SAFETY"}
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_HTML = b"<!DOCTYPE html><html lang=en><title>Error 413 (Request Entity Too Large)!!1</title></html>"


def event(value: Any) -> bytes:
    """Return a server-sent event with this value as JSON."""
    return f"data: {json.dumps(value)}\r\n\r\n".encode()


def chunk(*parts: Any, finish: str | None = None, **fields: Any) -> bytes:
    """Return the event of a chunk with one candidate; `fields` are those of the chunk itself."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return event({"candidates": [candidate], **fields, "modelVersion": "gemini-made-up", "responseId": "r-1"})


def text(content: str, signature: bytes | None = None) -> bytes:
    """Return the event of a piece of text, with a signature if one is given."""
    return chunk(signed({"text": content}, signature))


def call(name: str, args: Any, call_id: str = "", signature: bytes | None = None) -> dict[str, Any]:
    """Return the part of a call; the id is omitted if it is empty."""
    ids = {"id": call_id} if call_id else {}
    return signed({"functionCall": {"name": name, "args": args, **ids}}, signature)


def signed(part: dict[str, Any], signature: bytes | None) -> dict[str, Any]:
    """Return a part with the signature added, or unchanged if the signature is None."""
    return part if signature is None else {**part, "thoughtSignature": b64encode(signature).decode()}


def usage(prompt: int, candidates: int | None = None, **figures: int) -> dict[str, Any]:
    """Return the usage so far; `figures` are further counts under Gemini's own names."""
    written = {} if candidates is None else {"candidatesTokenCount": candidates}
    total = prompt + (candidates or 0) + figures.get("thoughtsTokenCount", 0)
    return {"promptTokenCount": prompt, **written, "totalTokenCount": total, **figures}


def error(status: int, *details: Any, code: str = "") -> bytes:
    """Return the body of an error response."""
    told = {"code": status, "message": "Made up.", "status": code or _CODES.get(status, "UNKNOWN")}
    return json.dumps({"error": {**told, "details": list(details)} if details else told}, indent=2).encode()


STOP = chunk({"text": ""}, finish="STOP")


class GeminiWire:
    """Gemini's format, see `Wire`."""

    name = "gemini"
    clients = CLIENTS
    no_calls: Mapping[str, Any] = {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}
    any_call: Mapping[str, Any] = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}

    def connect(self, address: str, http_client: Any, *, timeout: float = 10.0) -> GeminiProvider:
        return GeminiProvider(address, API_KEY, http_client, timeout=timeout)

    def answer(self, *parts: Part, end: End = End.WHOLE, usage: Usage | None = None) -> list[bytes]:
        """Return the events of a streamed answer, see `Wire.answer`.

        After reasoning, the first call is signed, or the last part if there is no call.
        """
        so_far = None if usage is None else {"promptTokenCount": usage.input, "totalTokenCount": usage.input}
        thinks = any(isinstance(part, Reasoning) for part in parts)
        calls = any(isinstance(part, Calls) for part in parts)
        written = [_chunk(part, so_far) for part in _parts(parts, signs=thinks)]
        if end is End.NONE:
            return written
        last = json.dumps(signed({"text": ""}, SIGNATURE if thinks and not calls else None))
        return [*written, _chunk(last, None if usage is None else _figures(usage), _FINISH_REASONS[end])]

    def unknown_event(self) -> bytes:
        return event({"somethingNew": {"of": ["next", "year"]}})

    def usage_event(self, usage: Usage) -> bytes:
        return _chunk(json.dumps({"text": ""}), _figures(usage))

    def error_event(self) -> bytes:
        return event({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}})

    def error_body(self, status: int) -> bytes:
        """Return the body of an error response, see `Wire.error_body`.

        A request that is too large is answered with HTML by Google's front end.
        """
        return _HTML if status == 413 else error(status)

    def model_list(self, models: Sequence[str]) -> bytes:
        return json.dumps({"models": [model(name) for name in models]}, indent=2).encode()

    def request_text(self, body: Mapping[str, Any]) -> str:
        said = [content["parts"] for content in body["contents"] if content["role"] == "user"]
        return "".join(part.get("text", "") for part in said[-1])


def model(name: str, **fields: Any) -> dict[str, Any]:
    """Return a model of the list; `fields` have Gemini's own names."""
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
        **fields,
    }


def _chunk(part: str, figures: Mapping[str, int] | None, finish: str | None = None) -> bytes:
    """Return the event of a chunk. The part is JSON text, so that a test can pass malformed JSON."""
    finished = f', "finishReason": "{finish}"' if finish else ""
    used = f', "usageMetadata": {json.dumps(figures)}' if figures else ""
    content = f'{{"content": {{"parts": [{part}], "role": "model"}}{finished}, "index": 0}}'
    head = f'{{"candidates": [{content}]{used}'
    return f'data: {head}, "modelVersion": "gemini-made-up", "responseId": "r-1"}}\r\n\r\n'.encode()


def _parts(parts: Sequence[Part], *, signs: bool) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(pieces):
                yield from (json.dumps({"text": piece}, ensure_ascii=False) for piece in pieces)
            case Reasoning(pieces):
                yield from (json.dumps({"text": piece, "thought": True}, ensure_ascii=False) for piece in pieces)
            case Calls(calls):
                yield from part.ordered([_call(each, signs=signs and each is calls[0]) for each in calls])


def _call(each: Call, *, signs: bool) -> str:
    ids = f', "id": {json.dumps(each.id)}' if each.id else ""
    signature = f', "thoughtSignature": "{b64encode(SIGNATURE).decode()}"' if signs else ""
    args = "".join(each.fragments) or "{}"
    return f'{{"functionCall": {{"name": {json.dumps(each.name)}, "args": {args}{ids}}}{signature}}}'


def _figures(reported: Usage) -> dict[str, int]:
    figures = {
        "promptTokenCount": reported.input,
        "candidatesTokenCount": reported.output - reported.reasoning,
        "totalTokenCount": reported.input + reported.output,
        "cachedContentTokenCount": reported.cached,
        "thoughtsTokenCount": reported.reasoning,
    }
    return {name: figure for name, figure in figures.items() if figure or name == "promptTokenCount"}
