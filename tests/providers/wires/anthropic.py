"""Answers in Anthropic's Messages format: named events, including pings, with usage at the start and the end.

The form is that of the recorded streams in https://platform.claude.com/docs/en/build-with-claude/streaming.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
import json
from typing import Any

from custom_components.windowed_conversation.providers.anthropic import clients
from custom_components.windowed_conversation.providers.anthropic.clients import create_anthropic_messages
from custom_components.windowed_conversation.providers.events import Provider, Usage

from .parts import Call, Calls, End, Part, Reasoning, Text

API_KEY = "sk-ant-a-made-up-key"

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# The package of the HTTP client that the SDK runs on.
SDK_CLIENT = clients.HttpClient.__module__.partition(".")[0]
STOP_REASONS = {End.LENGTH: "max_tokens", End.REFUSED: "refusal"}

type JsonObject = dict[str, Any]


def event(value: Mapping[str, Any]) -> bytes:
    """Return a server-sent event whose name is the value's type."""
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


def message_start(**usage: Any) -> bytes:
    """Return the event that starts an answer; `usage` contains the counts of its usage."""
    message: JsonObject = {
        "id": "msg_01EhbqBPMg9KgGbxQZ1BJjYU",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage or None,
    }
    return event({"type": "message_start", "message": message})


def block_start(index: int, **block: Any) -> bytes:
    return event({"type": "content_block_start", "index": index, "content_block": block})


def delta(index: Any, **fields: Any) -> bytes:
    return event({"type": "content_block_delta", "index": index, "delta": fields})


def block_stop(index: Any) -> bytes:
    return event({"type": "content_block_stop", "index": index})


def message_delta(stop_reason: Any, stop_details: Any = None, **usage: Any) -> bytes:
    ended = {"stop_reason": stop_reason, "stop_sequence": None, "stop_details": stop_details}
    return event({"type": "message_delta", "delta": ended, "usage": usage or None})


def error(kind: str, message: str = "Overloaded", **details: Any) -> JsonObject:
    """Return the JSON value of an error."""
    told = {"type": kind, "message": message} | ({"details": details} if details else {})
    return {"type": "error", "error": told, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


PING = event({"type": "ping"})
MESSAGE_STOP = event({"type": "message_stop"})


def text_block(index: int, *pieces: str) -> list[bytes]:
    texts = [delta(index, type="text_delta", text=piece) for piece in pieces]
    return [block_start(index, type="text", text=""), *texts, block_stop(index)]


def thinking_block(index: int, *pieces: str, signature: str = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h") -> list[bytes]:
    return [
        block_start(index, type="thinking", thinking="", signature=""),
        *(delta(index, type="thinking_delta", thinking=piece) for piece in pieces),
        delta(index, type="signature_delta", signature=signature),
        block_stop(index),
    ]


def tool_block(index: int, name: Any, *fragments: str, **fields: Any) -> list[bytes]:
    """Return the events of a call. The API starts the arguments with an empty fragment.

    `fields` are additional fields of the block.
    """
    block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}, **fields}
    written = [delta(index, type="input_json_delta", partial_json=piece) for piece in ("", *fragments)]
    return [block_start(index, **block), *written, block_stop(index)]


class AnthropicWire:
    """The streamed Messages API."""

    name = "anthropic"
    clients: tuple[str, ...] = (SDK_CLIENT,)
    no_calls: Mapping[str, Any] = {"tool_choice": {"type": "none"}}
    any_call: Mapping[str, Any] = {"tool_choice": {"type": "any"}}

    def connect(self, address: str, http_client: Any, *, timeout: float = 10.0) -> Provider:
        provider = create_anthropic_messages(address, API_KEY, http_client)
        provider._client.timeout = timeout
        return provider

    def answer(self, *parts: Part, end: End = End.WHOLE, usage: Usage | None = None) -> list[bytes]:
        begun, ended = _split_usage(usage) if usage else ({}, {})
        calls = any(isinstance(part, Calls) for part in parts)
        stop_reason = STOP_REASONS.get(end, "tool_use" if calls else "end_turn")
        details = {"type": "refusal", "category": "bio", "explanation": None} if end is End.REFUSED else None
        terminal = [] if end is End.NONE else [message_delta(stop_reason, details, **ended), MESSAGE_STOP]
        indexes = count()
        blocks = [each for part in parts for each in _blocks(part, indexes)]
        return [message_start(**begun), PING, *blocks, *terminal]

    def unknown_event(self) -> bytes:
        return event({"type": "a_type_of_next_year", "index": 0, "message": {"content": "?"}})

    def usage_event(self, usage: Usage) -> bytes:
        _, ended = _split_usage(usage)
        return message_delta(None, **ended)

    def error_event(self) -> bytes:
        return event(error("overloaded_error"))

    def error_body(self, status: int) -> bytes:
        return json.dumps(error(ERROR_TYPES.get(status, "api_error"), "An error")).encode()

    def model_list(self, models: Sequence[str]) -> bytes:
        return model_page([{"id": model} for model in models])

    def request_text(self, body: Mapping[str, Any]) -> str:
        newest = next(message for message in reversed(body["messages"]) if message["role"] == "user")
        return "".join(block["text"] for block in newest["content"] if block["type"] == "text")


def model_page(models: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the model list."""
    data = [
        {"type": "model", "display_name": model["id"], "created_at": "2026-02-19T00:00:00Z", **model}
        for model in models
    ]
    ids = [model["id"] for model in data] or [None]
    return json.dumps({"data": data, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}).encode()


def _split_usage(usage: Usage) -> tuple[JsonObject, JsonObject]:
    """Return the usage in the form of the first event and in that of the last one."""
    begun = {
        "input_tokens": usage.input - usage.cached - usage.cache_written,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
    }
    ended = {"output_tokens": usage.output, "output_tokens_details": {"thinking_tokens": usage.reasoning}}
    return {**begun, "output_tokens": 1, "service_tier": "standard"}, {**begun, **ended}


def _blocks(part: Part, indexes: Iterator[int]) -> list[bytes]:
    match part:
        case Text(pieces):
            return text_block(next(indexes), *pieces)
        case Reasoning(pieces):
            return thinking_block(next(indexes), *pieces)
        case Calls(calls, interleaved):
            written = part.ordered([_call(call, next(indexes)) for call in calls])
            return [each for row in (_by_turns(written) if interleaved else written) for each in row]


def _call(call: Call, index: int) -> list[bytes]:
    return tool_block(index, call.name, *call.fragments, id=call.id)


def _by_turns(written: list[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield the first events of all calls together, then the second ones, and so on."""
    for place in range(max(map(len, written))):
        yield [events[place] for events in written if place < len(events)]
