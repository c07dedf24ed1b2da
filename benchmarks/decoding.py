"""The cost of reading 10,000 deltas, compared to the SDK's own parsing of the same bytes, in each wire format.

    .venv/test/bin/python -m benchmarks.decoding        the oldest SDKs; .venv/newest has the newest

A transport in the same process hands the bytes to the SDK's HTTP client, so no socket is measured. "SDK" is the SDK
alone, used as documented: the iterator of its own method is drained, and every object that it creates for an event is
dropped. "Ours" is the provider's complete `stream`, from the request to the last event, drained in the same way. The
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
from ssl import create_default_context
from statistics import median
import time
from typing import Any

import anthropic
from google import genai
from google.genai.types import HttpOptions
import httpx2
import openai

from custom_components.windowed_conversation.providers.anthropic.clients import accepts, anthropic_messages
from custom_components.windowed_conversation.providers.events import Event, Finished, Provider, Request, TextDelta
from custom_components.windowed_conversation.providers.gemini.clients import Gemini
from custom_components.windowed_conversation.providers.openai.clients import compatible_chat, openai_responses
from custom_components.windowed_conversation.window import Message

_URL = "http://127.0.0.1/v1"
_KEY = "none"
_MODEL = "scripted"
_ASKED = "tell me a story"
_EVENT_STREAM = {"Content-Type": "text/event-stream"}

type Json = dict[str, Any]
type Stream = Callable[[], Awaitable[Any]]


def _event(value: Json, name: str = "") -> bytes:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _chat(pieces: list[str]) -> Iterator[bytes]:
    head: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1763800000, "model": _MODEL}
    for piece in pieces:
        yield _event({**head, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield b"data: [DONE]\n\n"


def _responses(pieces: list[str]) -> Iterator[bytes]:
    at: Json = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    for number, piece in enumerate(pieces):
        kind = "response.output_text.delta"
        yield _event({"type": kind, "sequence_number": number, **at, "delta": piece}, kind)
    text: Json = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    kind = "response.output_item.done"
    yield _event({"type": kind, "sequence_number": len(pieces), "output_index": 0, "item": item}, kind)
    body: Json = {"id": "resp_1", "object": "response", "created_at": 1763800000, "model": _MODEL, "output": [item]}
    body |= {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    kind = "response.completed"
    yield _event({"type": kind, "sequence_number": len(pieces) + 1, "response": body}, kind)


def _anthropic(pieces: list[str]) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": _MODEL, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    yield _event({"type": "message_start", "message": message}, "message_start")
    block = {"type": "text", "text": ""}
    yield _event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
    for piece in pieces:
        delta = {"type": "text_delta", "text": piece}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield _event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _gemini(pieces: list[str]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces, start=1):
        candidate: Json = {"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}
        candidate |= {"finishReason": "STOP"} if number == len(pieces) else {}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": number, "totalTokenCount": 10 + number}
        yield _event({"candidates": [candidate], "usageMetadata": usage, "modelVersion": _MODEL})


def _client(package: Any, body: bytes) -> Any:
    """Return an HTTP client of the package, httpx or httpx2, that responds to every request with these bytes."""
    answer = package.MockTransport(lambda _: package.Response(200, headers=_EVENT_STREAM, content=body))
    return package.AsyncClient(transport=answer)


@dataclass(frozen=True, slots=True)
class Format:
    """A wire format: its SDK, a function that opens its stream with the SDK alone, and this integration's provider."""

    name: str
    sdk: str
    alone: Stream
    ours: Provider


def _formats(pieces: list[str]) -> Iterator[Format]:
    said: Any = [{"role": "user", "content": _ASKED}]
    http = _client(httpx2, b"".join(_chat(pieces)))
    chat = openai.AsyncOpenAI(api_key=_KEY, base_url=_URL, http_client=http)
    alone: Stream = partial(chat.chat.completions.create, model=_MODEL, messages=said, stream=True)
    yield Format("Chat Completions", "openai", alone, compatible_chat(_URL, _KEY, http))

    http = _client(httpx2, b"".join(_responses(pieces)))
    answers = openai.AsyncOpenAI(api_key=_KEY, base_url=_URL, http_client=http)
    alone = partial(answers.responses.create, model=_MODEL, input=_ASKED, stream=True)
    yield Format("Responses", "openai", alone, openai_responses(_KEY, http, _URL))

    body = b"".join(_anthropic(pieces))
    packages = [import_module(name) for name in ("httpx", "httpx2") if find_spec(name)]
    http = next(client for package in packages if accepts(client := _client(package, body)))
    claude = anthropic.AsyncAnthropic(api_key=_KEY, base_url=_URL, http_client=http)
    alone = partial(claude.messages.create, model=_MODEL, max_tokens=9, messages=said, stream=True)
    yield Format("Messages", "anthropic", alone, anthropic_messages(_URL, _KEY, http))

    http, context = _client(httpx2, b"".join(_gemini(pieces))), create_default_context()
    options = HttpOptions(base_url=_URL, httpx_async_client=http)
    google = genai.Client(api_key=_KEY, http_options=options).aio.models
    one_request: Any = {"automatic_function_calling": {"disable": True}}
    alone = partial(google.generate_content_stream, model=_MODEL, contents=_ASKED, config=one_request)
    yield Format("generateContent", "google-genai", alone, Gemini(_URL, _KEY, http, context))


async def _drain_alone(stream: Stream, deltas: int) -> None:
    events = 0
    async for _ in await stream():
        events += 1
    if events < deltas:
        raise SystemExit(f"the SDK read {events} events of {deltas} deltas")


async def _drain_ours(provider: Provider, text: str) -> None:
    heard: list[str] = []
    last: Event | None = None
    async for event in provider.stream(Request(_MODEL, (Message.user(_ASKED),))):
        last = event
        if isinstance(event, TextDelta):
            heard.append(event.text)
    if "".join(heard) != text or not isinstance(last, Finished):
        raise SystemExit("what was decoded is not what was sent")


async def _seconds(work: Awaitable[None]) -> float:
    began = time.process_time()
    await work
    return time.process_time() - began


async def _compare(wire: Format, pieces: list[str], rounds: int) -> None:
    alone: list[float] = []
    ours: list[float] = []
    text = "".join(pieces)
    for number in range(rounds + 1):
        seconds = (await _seconds(_drain_alone(wire.alone, len(pieces))), await _seconds(_drain_ours(wire.ours, text)))
        if number:
            alone.append(seconds[0])
            ours.append(seconds[1])
    name = f"{wire.name} ({wire.sdk} {version(wire.sdk)})"
    figures = f"{median(alone) * 1e3:9.0f}{median(ours) * 1e3:9.0f}{median(ours) / median(alone):12.2f}"
    print(f"  {name:<38}{figures}", flush=True)


async def _run(deltas: int, rounds: int) -> None:
    pieces = [f"word{number % 97} " for number in range(deltas)]
    print(f"{deltas:,} deltas of text, medians of {rounds} rounds (processor time in ms)")
    print(f"  {'':<38}{'SDK':>9}{'ours':>9}{'ours / SDK':>12}")
    for wire in _formats(pieces):
        await _compare(wire, pieces, rounds)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What reading an answer costs beside the SDK's own parsing.")
    parser.add_argument("--deltas", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count, after one that does not")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    arguments = parser.parse_args()
    asyncio.run(_run(arguments.deltas, 3 if arguments.quick else arguments.rounds))


if __name__ == "__main__":
    main()
