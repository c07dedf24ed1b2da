"""Answers in OpenAI's Responses format: named and numbered events, with each output item from added to done.

The form is that of https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, zip_longest
import json
from typing import Any

from openai import AsyncOpenAI

from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.openai.clients import ResponsesProvider
from custom_components.windowed_conversation.providers.transport import bounded_client

from .chat import API_KEY, CODES, error
from .parts import CLIENTS, Call, Calls, End, Part, Reasoning, Text

type JsonObject = dict[str, Any]


def event(type_: str, **fields: Any) -> bytes:
    """Return a server-sent event in UTF-8; an unpaired surrogate, which UTF-8 cannot encode, becomes a JSON escape."""
    written = json.dumps({"type": type_, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {type_}\ndata: ".encode() + written.encode(errors="backslashreplace") + b"\n\n"


def response(status: str, **fields: Any) -> JsonObject:
    """Return the response object that the first events and the terminal event contain."""
    return {
        "id": "resp_0f3ab1b2c3d4e5f6",
        "object": "response",
        "created_at": 1763800000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": "You are a voice assistant.",
        "max_output_tokens": None,
        "model": "gpt-5.5-2026-02-10",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "low", "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
        **fields,
    }


def build_usage(usage: Usage) -> JsonObject:
    """Return the usage object of a terminal event."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def ended(status: str, **fields: Any) -> bytes:
    """Return a terminal event: "completed", "incomplete" or "failed"; `fields` are those of the response."""
    return event(f"response.{status}", sequence_number=99, response=response(status, **fields))


def failed(code: str) -> bytes:
    """Return the terminal event of an answer that failed."""
    return ended("failed", error={"code": code, "message": "Made up."})


def done(at: int, **item: Any) -> bytes:
    """Return the event that completes an output item."""
    return event("response.output_item.done", sequence_number=50, output_index=at, item=item)


def reasoning_item(id_: str, encrypted: str | None = "gAAAA-made-up", *summary: str) -> JsonObject:
    """Return a reasoning item."""
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": id_, "type": "reasoning", "summary": texts, "encrypted_content": encrypted}


def call_item(call: Call, **fields: Any) -> JsonObject:
    """Return a complete function call item."""
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "arguments": "".join(call.fragments),
        "call_id": call.id,
        "name": call.name,
        **fields,
    }


def message_item(*content: JsonObject, **fields: Any) -> JsonObject:
    """Return a complete message item."""
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "content": list(content),
        "role": "assistant",
        **fields,
    }


def build_text_part(text: str) -> JsonObject:
    """Return a text part of a message."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


class ResponsesWire:
    """The Responses format, see `Wire`."""

    name = "responses"
    clients = CLIENTS
    no_calls: Mapping[str, Any] = {"tool_choice": "none"}
    any_call: Mapping[str, Any] = {"tool_choice": "required"}

    def connect(self, address: str, http_client: Any, *, timeout: float = 10.0) -> ResponsesProvider:
        """Return a provider for the server, see `Wire.connect`."""
        url = f"{address}/v1"
        return ResponsesProvider(
            AsyncOpenAI(
                api_key=API_KEY, base_url=url, http_client=bounded_client(http_client), max_retries=0, timeout=timeout
            )
        )

    def answer(self, *parts: Part, end: End = End.WHOLE, usage: Usage | None = None) -> list[bytes]:
        """Return the events of a streamed answer, see `Wire.answer`."""
        writing = _Writing()
        begun = [
            writing.event("response.created", response=response("in_progress")),
            writing.event("response.in_progress", response=response("in_progress")),
        ]
        items = [each for part in parts for each in writing.part(part)]
        if end is End.NONE:
            return [*begun, *items]
        if end is End.REFUSED:
            items.extend(writing.refusal("I cannot do that."))
        return [*begun, *items, writing.terminal(end, usage)]

    def unknown_event(self) -> bytes:
        """Return an event of an unknown type, see `Wire.unknown_event`."""
        return event("response.weather.delta", sequence_number=7, output_index=0, delta="sunny", item={"type": "sun"})

    def usage_event(self, usage: Usage) -> bytes:
        """Return an event that reports the usage, see `Wire.usage_event`."""
        so_far = response("in_progress", usage=build_usage(usage))
        return event("response.in_progress", sequence_number=7, response=so_far)

    def error_event(self) -> bytes:
        """Return an event that reports an error, see `Wire.error_event`."""
        return event("error", sequence_number=7, code="server_error", message="Made up.", param=None)

    def error_body(self, status: int) -> bytes:
        """Return the body of an error response, see `Wire.error_body`."""
        return json.dumps(error(CODES.get(status)), indent=2).encode()

    def model_list(self, models: Sequence[str]) -> bytes:
        """Return the body of a model list, see `Wire.model_list`."""
        data = [{"id": model, "object": "model", "created": 1760000000, "owned_by": "system"} for model in models]
        return json.dumps({"object": "list", "data": data}).encode()

    def request_text(self, body: Mapping[str, Any]) -> str:
        """Return the text of the newest user message, see `Wire.request_text`."""
        content = next(item["content"] for item in reversed(body["input"]) if item.get("role") == "user")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        return "".join(part["text"] for part in parts if part["type"] == "input_text")


class _Writing:
    """The state while one answer is written: numbers the events and collects the output items."""

    def __init__(self) -> None:
        self._numbers = count()
        self._output: list[JsonObject] = []

    def event(self, type_: str, **fields: Any) -> bytes:
        return event(type_, sequence_number=next(self._numbers), **fields)

    def part(self, part: Part) -> Iterator[bytes]:
        match part:
            case Text(pieces):
                yield from self._text(pieces)
            case Reasoning(pieces):
                yield from self._reasoning(pieces)
            case Calls(calls, interleaved):
                first = len(self._output)
                self._output.extend(call_item(call) for call in calls)
                rows = part.ordered([list(self._call(call, first + at)) for at, call in enumerate(calls)])
                mixed = [each for column in zip_longest(*rows) for each in column if each]
                yield from mixed if interleaved else [each for row in rows for each in row]

    def terminal(self, end: End, usage: Usage | None) -> bytes:
        figures = {"output": self._output, "usage": build_usage(usage) if usage else None}
        if end is End.LENGTH:
            cut = response("incomplete", incomplete_details={"reason": "max_output_tokens"}, **figures)
            return self.event("response.incomplete", response=cut)
        return self.event("response.completed", response=response("completed", **figures))

    def refusal(self, text: str) -> Iterator[bytes]:
        part = {"type": "refusal", "refusal": text}
        yield from self._message(part, {**part, "refusal": ""}, "refusal", (text,), {"refusal": text})

    def _text(self, pieces: Sequence[str]) -> Iterator[bytes]:
        whole = "".join(pieces)
        yield from self._message(
            build_text_part(whole), build_text_part(""), "output_text", pieces, {"text": whole, "logprobs": []}
        )

    def _message(
        self, part: JsonObject, empty: JsonObject, kind: str, pieces: Sequence[str], whole: JsonObject
    ) -> Iterator[bytes]:
        at = len(self._output)
        item = message_item(part, id=f"msg_{at}")
        self._output.append(item)
        place = {"item_id": item["id"], "output_index": at, "content_index": 0}
        begun = {**item, "status": "in_progress", "content": []}
        yield self.event("response.output_item.added", output_index=at, item=begun)
        yield self.event("response.content_part.added", **place, part=empty)
        for piece in pieces:
            yield self.event(f"response.{kind}.delta", **place, delta=piece, logprobs=[], obfuscation="x7Gq")
        yield self.event(f"response.{kind}.done", **place, **whole)
        yield self.event("response.content_part.done", **place, part=part)
        yield self.event("response.output_item.done", output_index=at, item=item)

    def _reasoning(self, pieces: Sequence[str]) -> Iterator[bytes]:
        at, whole = len(self._output), "".join(pieces)
        item = reasoning_item(f"rs_{at}", f"gAAAA-{at}", whole)
        self._output.append(item)
        place = {"item_id": item["id"], "output_index": at, "summary_index": 0}
        begun = {**item, "summary": [], "encrypted_content": "gAAAA-not-yet"}
        yield self.event("response.output_item.added", output_index=at, item=begun)
        yield self.event("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""})
        for piece in pieces:
            yield self.event("response.reasoning_summary_text.delta", **place, delta=piece, obfuscation="Zk1")
        yield self.event("response.reasoning_summary_text.done", **place, text=whole)
        yield self.event("response.reasoning_summary_part.done", **place, part=item["summary"][0])
        yield self.event("response.output_item.done", output_index=at, item=item)

    def _call(self, call: Call, at: int) -> Iterator[bytes]:
        item = call_item(call)
        place = {"item_id": item["id"], "output_index": at}
        begun = {**item, "status": "in_progress", "arguments": ""}
        yield self.event("response.output_item.added", output_index=at, item=begun)
        for fragment in call.fragments:
            yield self.event("response.function_call_arguments.delta", **place, delta=fragment, obfuscation="p0")
        yield self.event("response.function_call_arguments.done", **place, arguments=item["arguments"])
        yield self.event("response.output_item.done", output_index=at, item=item)
