"""A TCP proxy for a server. It counts connections, records the requests on them, and closes connections on request."""

import asyncio
from contextlib import suppress
import re
from typing import Self
from urllib.parse import urlsplit

_REQUEST = re.compile(rb"(GET|HEAD|POST) \S+ HTTP/1\.1\r\n")
_KEY = re.compile(r"^(authorization|api-key|x-api-key|x-goog-api-key):", re.IGNORECASE | re.MULTILINE)


class Front:
    """Passes bytes between a client and the server at `address`. `heads` are the requests without their bodies.

    Each connection is closed when its request number `hangs_up_at` arrives. If that is the second request, it looks as
    if the server had closed an idle connection and the client had not noticed yet.
    """

    def __init__(self, address: str) -> None:
        self.heads: list[str] = []
        self.connections = 0
        self.hangs_up_at: int | None = None
        self._to = urlsplit(address)
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """The address of the proxy, without a path."""
        assert self._server
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def asked(self) -> list[str]:
        """The methods and paths of the requests."""
        return [head.partition(" HTTP/")[0] for head in self.heads]

    @property
    def sent_keys(self) -> list[bool]:
        """For each request, whether it contains an API key."""
        return [_KEY.search(head) is not None for head in self.heads]

    def reset(self) -> None:
        """Close every connection, as a server does after a while, and reset the recorded requests and the count."""
        for writer in self._open:
            writer.close()
        self.heads.clear()
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self.reset()
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        upstream, out = await asyncio.open_connection(self._to.hostname, self._to.port)
        back = asyncio.create_task(_pass_on(upstream, writer))
        asked = 0
        while data := await _read_chunk(reader):
            if _REQUEST.match(data):
                self.heads.append(data.partition(b"\r\n\r\n")[0].decode())
                asked += 1
                if asked == self.hangs_up_at:
                    break
            out.write(data)
        back.cancel()
        for each in (out, writer):
            each.close()
        self._open.discard(writer)


async def _read_chunk(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionError):
        return await reader.read(2**16)
    return b""


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await _read_chunk(reader):
        writer.write(data)
    writer.close()
