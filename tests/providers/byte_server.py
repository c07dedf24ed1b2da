"""A server that replies with exactly the bytes of a test, for streams that the scripted model server never sends."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
import json
from typing import Any, Self

from aiohttp import web

_EVENT_STREAM = {"Content-Type": "text/event-stream"}
JSON = {"Content-Type": "application/json"}

DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    """Return a server-sent event with this value as JSON."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: Any, finish: Any = None, **fields: Any) -> bytes:
    """Return the event of a chunk with one choice; `fields` are those of the chunk itself."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices, **fields})


def text(content: str) -> bytes:
    """Return the event of a piece of text."""
    return chunk({"content": content})


def fragment(arguments: Any, name: Any = None, **fields: Any) -> bytes:
    """Return the event of a fragment of a tool call; `fields` are "index" and "id", which are omitted by default."""
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{**fields, "type": "function", "function": function}]})


def usage(**counts: Any) -> bytes:
    """Return the event that reports the usage; `counts` are its counts."""
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": counts})


STOP = chunk({}, "stop")
CALLS = chunk({}, "tool_calls")


@dataclass(frozen=True)
class ForEver:
    """A piece that is written repeatedly until the client disconnects."""

    piece: bytes


@dataclass(frozen=True)
class Pause:
    """A pause of this many seconds between two pieces."""

    seconds: float


type Piece = bytes | asyncio.Event | ForEver | Pause


@dataclass
class _Reply:
    pieces: tuple[Piece, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: _EVENT_STREAM)
    cut: bool = False
    before: float = 0.0


class ByteServer:
    """Replies to each request with the next of the given replies, and repeats the last one."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        # The number of clients that disconnected before their reply was complete.
        self.left = 0
        self._clients: set[object] = set()
        self._replies: list[_Reply] = [_Reply()]
        self._runner: web.AppRunner | None = None

    def set_reply(
        self,
        *pieces: Piece,
        status: int = 200,
        headers: Mapping[str, str] = _EVENT_STREAM,
        cut: bool = False,
        before: float = 0.0,
    ) -> None:
        """Set the only reply to these pieces, each written separately; an event as a piece is waited for.

        `cut` aborts the connection after the last piece. `before` is the delay in seconds before the headers.
        """
        self._replies = [_Reply(pieces, status, headers, cut, before)]

    def add_reply(self, *pieces: Piece, status: int = 200, headers: Mapping[str, str] = _EVENT_STREAM) -> None:
        """Add a reply with these pieces after the replies that were set before."""
        self._replies.append(_Reply(pieces, status, headers))

    @property
    def address(self) -> str:
        """The server's address without a path."""
        assert self._runner
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    @property
    def url(self) -> str:
        """The base URL for a client of the OpenAI SDK."""
        return f"{self.address}/v1"

    @property
    def open_connections(self) -> int:
        """The number of open connections, whether they have been answered or not."""
        assert self._runner
        assert self._runner.server
        return len(self._runner.server.connections)

    @property
    def connections(self) -> int:
        """The number of connections on which requests have arrived since the start."""
        return len(self._clients)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        self._clients.add(request.transport.get_extra_info("peername"))
        body = await request.read()
        self.requests.append(json.loads(body) if body else None)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        try:
            return await self._write(request, reply)
        except asyncio.CancelledError, ConnectionError:
            self.left += 1
            raise

    async def _write(self, request: web.Request, reply: _Reply) -> web.StreamResponse:
        await asyncio.sleep(reply.before)
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        await response.prepare(request)
        for piece in reply.pieces:
            await _write(piece, response)
        if reply.cut:
            assert request.transport
            request.transport.abort()
            await asyncio.Event().wait()
        await response.write_eof()
        return response


async def _write(piece: Piece, response: web.StreamResponse) -> None:
    match piece:
        case asyncio.Event():
            await piece.wait()
        case Pause(seconds):
            await asyncio.sleep(seconds)
        case ForEver():
            while True:
                await response.write(piece.piece)
                await asyncio.sleep(0.01)
        case _:
            await response.write(piece)
