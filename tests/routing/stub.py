"""A model server that gives the same answer to every request and counts the requests."""

import json
from time import perf_counter
from typing import Self

from aiohttp import web

STATEMENT = "I have noted that."
QUESTION = "Which one do you mean?"


class Stub:
    """A server for Chat Completions. Use it with `async with Stub() as stub`."""

    def __init__(self) -> None:
        self.answer = STATEMENT
        self.requests = 0
        # the arrival of the newest request, as measured by `perf_counter`
        self.arrived = 0.0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The base URL of the server."""
        assert self._runner
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner
        await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _complete(self, request: web.Request) -> web.Response:
        self.arrived = perf_counter()
        self.requests += 1
        await request.read()
        chunk = {
            "id": "answer",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": self.answer}, "finish_reason": "stop"}],
        }
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        return web.Response(text=body, content_type="text/event-stream")
