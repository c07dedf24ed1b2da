"""The cost of reading 10,000 deltas, compared to the SDK's own parsing of the same bytes, in each wire format.

    .venv/test/bin/python -m benchmarks.decoding        the oldest SDKs; .venv/newest has the newest

A transport in the same process hands the bytes to the SDK's HTTP client, so no socket is measured. "SDK" is the SDK
alone, used as documented: the iterator of its own method is drained, and every object that it creates for an event is
dropped. "Ours" is the complete `Provider.stream`, from the request to the last event, drained in the same way. The
provider reads the server-sent events and their JSON itself: the SDKs of OpenAI and Anthropic send the request and hand
over the raw response; Gemini's provider sends the request with the HTTP client, because google-genai gives no access to
the raw response of a stream. Both are measured alternately, as CPU time of one process.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
import json
from statistics import median
import time
from typing import Any

import anthropic
from google import genai
from google.genai.types import HttpOptions
import httpx2
import openai

from custom_components.windowed_conversation.providers.anthropic.clients import (
    create_anthropic_messages,
    supports_client,
)
from custom_components.windowed_conversation.providers.events import AnswerDone, Event, Provider, Request, TextDelta
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.providers.openai.clients import (
    create_compatible_chat,
    create_openai_responses,
)
from custom_components.windowed_conversation.window import Message

_SERVER_URL = "http://127.0.0.1/v1"
_API_KEY = "none"
_MODEL_NAME = "scripted"
_QUESTION = "tell me a story"
_EVENT_STREAM_HEADERS = {"Content-Type": "text/event-stream"}

type Json = dict[str, Any]
type StreamOpener = Callable[[], Awaitable[Any]]


def _encode_event(value: Json, name: str = "") -> bytes:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _encode_chat(pieces: list[str]) -> Iterator[bytes]:
    head: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1763800000, "model": _MODEL_NAME}
    for piece in pieces:
        yield _encode_event({**head, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    yield _encode_event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield b"data: [DONE]\n\n"


def _encode_responses(pieces: list[str]) -> Iterator[bytes]:
    at: Json = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    for number, piece in enumerate(pieces):
        kind = "response.output_text.delta"
        yield _encode_event({"type": kind, "sequence_number": number, **at, "delta": piece}, kind)
    text: Json = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    kind = "response.output_item.done"
    yield _encode_event({"type": kind, "sequence_number": len(pieces), "output_index": 0, "item": item}, kind)
    body: Json = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1763800000,
        "model": _MODEL_NAME,
        "output": [item],
    }
    body |= {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    kind = "response.completed"
    yield _encode_event({"type": kind, "sequence_number": len(pieces) + 1, "response": body}, kind)


def _encode_anthropic(pieces: list[str]) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": _MODEL_NAME, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    yield _encode_event({"type": "message_start", "message": message}, "message_start")
    block = {"type": "text", "text": ""}
    yield _encode_event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
    for piece in pieces:
        delta = {"type": "text_delta", "text": piece}
        yield _encode_event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield _encode_event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _encode_event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}}, "message_delta")
    yield _encode_event({"type": "message_stop"}, "message_stop")


def _encode_gemini(pieces: list[str]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces, start=1):
        candidate: Json = {"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}
        candidate |= {"finishReason": "STOP"} if number == len(pieces) else {}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": number, "totalTokenCount": 10 + number}
        yield _encode_event({"candidates": [candidate], "usageMetadata": usage, "modelVersion": _MODEL_NAME})


def _create_client(package: Any, body: bytes) -> Any:
    """Return an HTTP client of the package, httpx or httpx2, that responds to every request with these bytes."""
    answer = package.MockTransport(lambda _: package.Response(200, headers=_EVENT_STREAM_HEADERS, content=body))
    return package.AsyncClient(transport=answer)


@dataclass(frozen=True, slots=True)
class FormatCase:
    """A wire format: its SDK, a function that opens its stream with the SDK alone, and this integration's provider."""

    name: str
    sdk_package: str
    open_with_sdk: StreamOpener
    ours: Provider


def _iter_formats(pieces: list[str]) -> Iterator[FormatCase]:
    said: Any = [{"role": "user", "content": _QUESTION}]
    http = _create_client(httpx2, b"".join(_encode_chat(pieces)))
    chat = openai.AsyncOpenAI(api_key=_API_KEY, base_url=_SERVER_URL, http_client=http)
    alone: StreamOpener = partial(chat.chat.completions.create, model=_MODEL_NAME, messages=said, stream=True)
    yield FormatCase("Chat Completions", "openai", alone, create_compatible_chat(_SERVER_URL, _API_KEY, http))

    http = _create_client(httpx2, b"".join(_encode_responses(pieces)))
    answers = openai.AsyncOpenAI(api_key=_API_KEY, base_url=_SERVER_URL, http_client=http)
    alone = partial(answers.responses.create, model=_MODEL_NAME, input=_QUESTION, stream=True)
    yield FormatCase("Responses", "openai", alone, create_openai_responses(_API_KEY, http, _SERVER_URL))

    body = b"".join(_encode_anthropic(pieces))
    packages = [import_module(name) for name in ("httpx", "httpx2") if find_spec(name)]
    http = next(client for package in packages if supports_client(client := _create_client(package, body)))
    claude = anthropic.AsyncAnthropic(api_key=_API_KEY, base_url=_SERVER_URL, http_client=http)
    alone = partial(claude.messages.create, model=_MODEL_NAME, max_tokens=9, messages=said, stream=True)
    yield FormatCase("Messages", "anthropic", alone, create_anthropic_messages(_SERVER_URL, _API_KEY, http))

    http = _create_client(httpx2, b"".join(_encode_gemini(pieces)))
    options = HttpOptions(base_url=_SERVER_URL, httpx_async_client=http)
    google = genai.Client(api_key=_API_KEY, http_options=options).aio.models
    one_request: Any = {"automatic_function_calling": {"disable": True}}
    alone = partial(google.generate_content_stream, model=_MODEL_NAME, contents=_QUESTION, config=one_request)
    yield FormatCase("generateContent", "google-genai", alone, GeminiProvider(_SERVER_URL, _API_KEY, http))


async def _drain_sdk(stream: StreamOpener, deltas: int) -> None:
    events = 0
    async for _ in await stream():
        events += 1
    if events < deltas:
        raise SystemExit(f"the SDK read {events} events of {deltas} deltas")


async def _drain_provider(provider: Provider, text: str) -> None:
    heard: list[str] = []
    last: Event | None = None
    async for event in provider.stream(Request(_MODEL_NAME, (Message.user(_QUESTION),))):
        last = event
        if isinstance(event, TextDelta):
            heard.append(event.text)
    if "".join(heard) != text or not isinstance(last, AnswerDone):
        raise SystemExit("what was decoded is not what was sent")


async def _measure_cpu_seconds(work: Awaitable[None]) -> float:
    began = time.process_time()
    await work
    return time.process_time() - began


async def _compare_format(wire: FormatCase, pieces: list[str], rounds: int) -> None:
    alone: list[float] = []
    ours: list[float] = []
    text = "".join(pieces)
    for number in range(rounds + 1):
        seconds = (
            await _measure_cpu_seconds(_drain_sdk(wire.open_with_sdk, len(pieces))),
            await _measure_cpu_seconds(_drain_provider(wire.ours, text)),
        )
        if number:
            alone.append(seconds[0])
            ours.append(seconds[1])
    name = f"{wire.name} ({wire.sdk_package} {version(wire.sdk_package)})"
    figures = f"{median(alone) * 1e3:9.0f}{median(ours) * 1e3:9.0f}{median(ours) / median(alone):12.2f}"
    print(f"  {name:<38}{figures}", flush=True)


async def _run_benchmark(deltas: int, rounds: int) -> None:
    pieces = [f"word{number % 97} " for number in range(deltas)]
    print(f"{deltas:,} deltas of text, medians of {rounds} rounds (processor time in ms)")
    print(f"  {'':<38}{'SDK':>9}{'ours':>9}{'ours / SDK':>12}")
    for wire in _iter_formats(pieces):
        await _compare_format(wire, pieces, rounds)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What reading an answer costs beside the SDK's own parsing.")
    parser.add_argument("--deltas", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count, after one that does not")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    arguments = parser.parse_args()
    asyncio.run(_run_benchmark(arguments.deltas, 3 if arguments.quick else arguments.rounds))


if __name__ == "__main__":
    main()
