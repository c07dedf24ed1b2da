"""A server on loopback that sends given bytes, which may be endless, until the client disconnects."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

EVENTS: Mapping[str, str] = {"Content-Type": "text/event-stream"}
JSON: Mapping[str, str] = {"Content-Type": "application/json"}

# The number of bytes after which an endless answer is stopped: far above any limit, and low enough to end the test.
_MOST = 2**30


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; `make_body` creates a new body for each request."""

    make_body: Callable[[], Iterable[bytes]]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENTS)


class HostileServer:
    """Sends `models` for every GET and `answer` for every POST; leaving the context aborts all responses."""

    def __init__(self, answer: Reply, models: Reply) -> None:
        self.answer = answer
        self.models = models
        self.asked = 0
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """The server's address without a path."""
        assert self._server
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        self._server.abort_clients()
        await self._server.wait_closed()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            reply = self.models if await _read_request_method(reader) == b"GET" else self.answer
            self.asked += 1
            await _write(reply, writer)
        writer.close()


async def _read_request_method(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(sum(map(int, lengths)))
    return head.partition(b" ")[0]


async def _write(reply: Reply, writer: asyncio.StreamWriter) -> None:
    headers = [f"{name}: {value}\r\n" for name, value in {**reply.headers, "Connection": "close"}.items()]
    writer.write(f"HTTP/1.1 {reply.status} Here you are\r\n{''.join(headers)}\r\n".encode())
    written = 0
    for piece in reply.make_body():
        writer.write(piece)
        await writer.drain()
        written += len(piece)
        if written > _MOST:
            break
