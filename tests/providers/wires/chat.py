"""Answers in OpenAI's Chat Completions format: chunks, the usage in a separate chunk, and `[DONE]`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
import json
from typing import Any

from openai import AsyncOpenAI

from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.providers.openai.clients import ChatCompletionsProvider
from custom_components.windowed_conversation.providers.transport import bounded_client

from .parts import CLIENTS, Calls, End, Part, Reasoning, Text

API_KEY = "sk-a-made-up-key"
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 500: "server_error"}

DONE = b"data: [DONE]\n\n"

_FINISH_REASONS = {End.LENGTH: "length", End.REFUSED: "stop"}

type JsonObject = dict[str, Any]


def event(value: Any) -> bytes:
    """Return a server-sent event in UTF-8; an unpaired surrogate, which UTF-8 cannot encode, becomes a JSON escape."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + written.encode(errors="backslashreplace") + b"\n\n"


def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
    """Return the event of a chunk with one choice."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event({**_chunk_fields(), "choices": [choice], "usage": None})


def usage_chunk(usage: Usage) -> bytes:
    """Return the event that reports the usage."""
    figures = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "audio_tokens": 0,
            "cache_write_tokens": usage.cache_written,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    return event({**_chunk_fields(), "choices": [], "usage": figures})


def error(code: str | None, kind: str = "invalid_request_error") -> JsonObject:
    """Return the JSON value of an error."""
    return {"error": {"message": "Made up.", "type": kind, "param": None, "code": code}}


class ChatWire:
    """The Chat Completions format, see `Wire`."""

    name = "chat"
    clients = CLIENTS
    no_calls: Mapping[str, Any] = {"tool_choice": "none"}
    any_call: Mapping[str, Any] = {"tool_choice": "required"}

    def __init__(self, dialect: Dialect = Dialect.COMPATIBLE) -> None:
        self._dialect = dialect

    def connect(self, address: str, http_client: Any, *, timeout: float = 10.0) -> ChatCompletionsProvider:
        """Return a provider for the server, see `Wire.connect`."""
        url = f"{address}/v1"
        sdk = AsyncOpenAI(
            api_key=API_KEY, base_url=url, http_client=bounded_client(http_client), max_retries=0, timeout=timeout
        )
        return ChatCompletionsProvider(sdk, self._dialect)

    def answer(self, *parts: Part, end: End = End.WHOLE, usage: Usage | None = None) -> list[bytes]:
        """Return the events of a streamed answer, see `Wire.answer`."""
        events = [chunk({"role": "assistant", "content": "", "refusal": None})]
        calls = 0
        for part in parts:
            events.extend(_deltas(part, calls))
            calls += len(part.calls) if isinstance(part, Calls) else 0
        if end is End.NONE:
            return events
        if end is End.REFUSED:
            events.append(chunk({"refusal": "I cannot do that."}))
        events.append(chunk({}, _FINISH_REASONS.get(end, "tool_calls" if calls else "stop")))
        events.extend([usage_chunk(usage)] if usage else [])
        return [*events, DONE]

    def unknown_event(self) -> bytes:
        """Return an event of an unknown type, see `Wire.unknown_event`."""
        return event({**_chunk_fields(), "object": "chat.completion.weather", "weather": {"sunny": True}})

    def usage_event(self, usage: Usage) -> bytes:
        """Return an event that reports the usage, see `Wire.usage_event`."""
        return usage_chunk(usage)

    def error_event(self) -> bytes:
        """Return an event that reports an error, see `Wire.error_event`."""
        return event(error(None, "server_error"))

    def error_body(self, status: int) -> bytes:
        """Return the body of an error response, see `Wire.error_body`."""
        return json.dumps(error(CODES.get(status)), indent=4).encode()

    def model_list(self, models: Sequence[str]) -> bytes:
        """Return the body of a model list, see `Wire.model_list`."""
        data = [{"id": model, "object": "model", "created": 1760000000, "owned_by": "system"} for model in models]
        return json.dumps({"object": "list", "data": data}).encode()

    def request_text(self, body: Mapping[str, Any]) -> str:
        """Return the text of the newest user message, see `Wire.request_text`."""
        content = next(message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return "".join(part["text"] for part in parts if part["type"] == "text")


def _chunk_fields() -> JsonObject:
    return {
        "id": "chatcmpl-CjRWa6Gb1cK0",
        "object": "chat.completion.chunk",
        "created": 1763800000,
        "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_44add55e8e",
    }


def _deltas(part: Part, calls_before: int) -> Iterator[bytes]:
    match part:
        case Text(pieces):
            yield from (chunk({"content": piece}) for piece in pieces)
        case Reasoning(pieces):
            yield from (chunk({"reasoning_content": piece}) for piece in pieces)
        case Calls(calls, interleaved):
            rows = part.ordered([list(_encode_call(call, calls_before + at)) for at, call in enumerate(calls)])
            mixed = [each for column in zip_longest(*rows) for each in column if each]
            yield from mixed if interleaved else [each for row in rows for each in row]


def _encode_call(call: Any, index: int) -> Iterator[bytes]:
    function = {"name": call.name, "arguments": ""}
    yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
    for fragment in call.fragments:
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
