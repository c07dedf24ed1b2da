"""Writes an answer to a connection, or delays or breaks it on request: silence, a cut, or malformed bytes.

The wire format supplies the bytes, and the armed fault determines what breaks and when.
"""

import asyncio
from dataclasses import dataclass
import socket
import struct

from aiohttp import web

from .faults import ArmedFault, Break
from .figures import misreported
from .refusal import Refusal
from .request_log import Outcome, Record
from .wire import Frame, FrameKind, Reply, WireFormat

_PIECES = (FrameKind.REASONING, FrameKind.TEXT, FrameKind.CALL)
_LINGER_OFF = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class _Failures:
    """The events that report a failure after `sent` events of the answer."""

    wire: WireFormat
    reply: Reply
    sent: int

    def error(self, refusal: Refusal) -> bytes:
        return self.wire.error_event(self.wire.in_own_words(refusal), self.reply, self.sent)

    def failure(self, refusal: Refusal) -> bytes:
        return self.wire.failure_event(self.wire.in_own_words(refusal), self.reply, self.sent)


class Hold:
    """Pauses answers after this many words until it is released."""

    def __init__(self, after_words: int) -> None:
        self.after_words = after_words
        self.reached = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        """Let paused and later answers continue."""
        self._released.set()

    async def wait(self) -> None:
        """Wait until the hold is released."""
        self.reached.set()
        await self._released.wait()


class Delivery:
    """The delivery of one answer on one connection. `delay` is the number of seconds before each piece."""

    def __init__(
        self, http: web.Request, record: Record, delay: float, armed: ArmedFault | None, hold: Hold | None = None
    ) -> None:
        self._http = http
        self._record = record
        self._delay = delay
        self._armed = armed
        self._hold = hold
        self._words = 0

    async def before_headers(self) -> None:
        """Stay silent or close the connection if the fault requires it; does not return in either case."""
        match self._armed.fault.breaks if self._armed else None:
            case Break.SILENT_BEFORE_HEADERS:
                await _until_client_leaves()
            case Break.CUT_BEFORE_HEADERS:
                await self._cut()

    async def send(self, reply: Reply, wire: WireFormat) -> web.StreamResponse:
        """Write the answer, up to the point where the fault occurs."""
        content_type = "text/event-stream; charset=utf-8" if reply.prompt.stream else "application/json"
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
        self._record.status = response.status
        await response.prepare(self._http)
        for sent, frame in enumerate(wire.frames(reply)):
            if self._due(frame):
                ends = await self._break(response, frame, _Failures(wire, reply, sent))
                self._armed = None
                if ends:
                    break
            if frame.kind in _PIECES:
                await asyncio.sleep(self._delay)
            text = frame.kind is FrameKind.TEXT
            if text and self._hold and self._words >= self._hold.after_words:
                await self._hold.wait()
            self._words += text
            self._record.written(text=text)
            await response.write(misreported(frame.data, reply.figures))
        await response.write_eof()
        return response

    def _due(self, frame: Frame) -> bool:
        if self._armed is None or self._armed.fault.breaks is None:
            return False
        after = self._armed.fault.after_words
        return frame.kind is FrameKind.TERMINAL or (after is not None and self._words >= after)

    async def _break(self, response: web.StreamResponse, frame: Frame, failures: _Failures) -> bool:
        """Carry out the fault and return whether it ends the answer."""
        assert self._armed
        match self._armed.fault.breaks:
            case Break.SILENT:
                await _until_client_leaves()
            case Break.CUT:
                await self._cut()
            case Break.CUT_IN_EVENT:
                await response.write(frame.data[: len(frame.data) // 2])
                await self._cut()
            case Break.RESET:
                await self._cut(reset=True)
            case Break.MALFORMED:
                await response.write(failures.wire.malformed_event())
                return False
            case Break.ERROR_EVENT:
                await response.write(failures.error(self._armed.error_in_stream))
            case Break.FAILURE_EVENT:
                await response.write(failures.failure(self._armed.error_in_stream))
        return True

    async def _cut(self, *, reset: bool = False) -> None:
        """Close or reset the connection. Never returns, because the lost connection cancels the handler."""
        self._record.end(Outcome.CUT)
        transport = self._http.transport
        if transport is not None:
            if reset:
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
            transport.abort()
        await _until_client_leaves()


async def _until_client_leaves() -> None:
    """Wait forever; the server cancels the handler when the client disconnects."""
    await asyncio.Event().wait()
