"""Writes an answer to a connection, or delays or breaks it on request: silence, a cut, or malformed bytes.

The wire format supplies the bytes, and the armed fault determines what breaks and when.
"""

import asyncio
from dataclasses import dataclass
import socket
import struct

from aiohttp import web

from .faults import ArmedFault, ConnectionBreak
from .figures import falsify_counts
from .refusal import Refusal
from .request_log import RequestOutcome, RequestRecord
from .wire import Frame, FrameKind, Reply, WireFormat

_PIECE_KINDS = (FrameKind.REASONING, FrameKind.TEXT, FrameKind.CALL)
_ZERO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class _FailureEvents:
    """The events that report a failure after `sent_count` events of the answer."""

    wire: WireFormat
    reply: Reply
    sent_count: int

    def build_error_event(self, refusal: Refusal) -> bytes:
        return self.wire.build_error_event(self.wire.convert_refusal(refusal), self.reply, self.sent_count)

    def build_failure_event(self, refusal: Refusal) -> bytes:
        return self.wire.build_failure_event(self.wire.convert_refusal(refusal), self.reply, self.sent_count)


class AnswerHold:
    """Pauses answers after this many words until it is released."""

    def __init__(self, after_words: int) -> None:
        self.after_words = after_words
        self.reached = asyncio.Event()
        self._release_event = asyncio.Event()

    def release(self) -> None:
        """Let paused and later answers continue."""
        self._release_event.set()

    async def wait(self) -> None:
        """Wait until the hold is released."""
        self.reached.set()
        await self._release_event.wait()


class AnswerDelivery:
    """The delivery of one answer on one connection.

    `delay` is the number of seconds before each piece, `search_delay` before each event of a web search.
    """

    def __init__(
        self,
        http: web.Request,
        record: RequestRecord,
        delay: float,
        armed: ArmedFault | None,
        hold: AnswerHold | None = None,
        *,
        search_delay: float = 0.0,
    ) -> None:
        self._http = http
        self._record = record
        self._delay_by_kind = {FrameKind.SEARCH: search_delay, **dict.fromkeys(_PIECE_KINDS, delay)}
        self._armed_fault = armed
        self._hold = hold
        self._word_count = 0

    async def break_before_headers(self) -> None:
        """Stay silent or close the connection if the fault requires it; does not return in either case."""
        match self._armed_fault.fault.breaks if self._armed_fault else None:
            case ConnectionBreak.SILENT_BEFORE_HEADERS:
                await _wait_for_disconnect()
            case ConnectionBreak.CUT_BEFORE_HEADERS:
                await self._cut_connection()

    async def send_answer(self, reply: Reply, wire: WireFormat) -> web.StreamResponse:
        """Write the answer, up to the point where the fault occurs."""
        content_type = "text/event-stream; charset=utf-8" if reply.prompt.is_streamed else "application/json"
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
        self._record.status = response.status
        await response.prepare(self._http)
        for sent, frame in enumerate(wire.iter_frames(reply)):
            if self._is_fault_due(frame):
                ends = await self._apply_fault(response, frame, _FailureEvents(wire, reply, sent))
                self._armed_fault = None
                if ends:
                    break
            if frame.kind in self._delay_by_kind:
                await asyncio.sleep(self._delay_by_kind[frame.kind])
            text = frame.kind is FrameKind.TEXT
            if text and self._hold and self._word_count >= self._hold.after_words:
                await self._hold.wait()
            self._word_count += text
            self._record.mark_written(text=text)
            await response.write(falsify_counts(frame.data, reply.figures))
        await response.write_eof()
        return response

    def _is_fault_due(self, frame: Frame) -> bool:
        if self._armed_fault is None or self._armed_fault.fault.breaks is None:
            return False
        after = self._armed_fault.fault.after_words
        return frame.kind is FrameKind.TERMINAL or (after is not None and self._word_count >= after)

    async def _apply_fault(self, response: web.StreamResponse, frame: Frame, failures: _FailureEvents) -> bool:
        """Carry out the fault and return whether it ends the answer."""
        assert self._armed_fault
        match self._armed_fault.fault.breaks:
            case ConnectionBreak.SILENT:
                await _wait_for_disconnect()
            case ConnectionBreak.CUT:
                await self._cut_connection()
            case ConnectionBreak.CUT_IN_EVENT:
                await response.write(frame.data[: len(frame.data) // 2])
                await self._cut_connection()
            case ConnectionBreak.RESET:
                await self._cut_connection(reset=True)
            case ConnectionBreak.MALFORMED:
                await response.write(failures.wire.build_malformed_event())
                return False
            case ConnectionBreak.ERROR_EVENT:
                await response.write(failures.build_error_event(self._armed_fault.stream_error))
            case ConnectionBreak.FAILURE_EVENT:
                await response.write(failures.build_failure_event(self._armed_fault.stream_error))
        return True

    async def _cut_connection(self, *, reset: bool = False) -> None:
        """Close or reset the connection. Never returns, because the lost connection cancels the handler."""
        self._record.end(RequestOutcome.CUT)
        transport = self._http.transport
        if transport is not None:
            if reset:
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ZERO_LINGER)
            transport.abort()
        await _wait_for_disconnect()


async def _wait_for_disconnect() -> None:
    """Wait forever; the server cancels the handler when the client disconnects."""
    await asyncio.Event().wait()
