"""The streaming skeleton of all formats: converts the bytes of a server's stream into this integration's events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from .decoder import Decoder
from .errors import BadStream, ProviderError
from .events import Event, OnBytesCallback, ReasoningDelta, TextDelta
from .json_values import max_value_count, read_json

# The maximum size of an event in bytes: in some formats, the last event repeats the complete answer.
_MAX_EVENT_BYTES = 4 * 2**20
# The maximum number of bytes of JSON that are parsed in the event loop; more would delay everything else in it.
_MAX_INLINE_JSON_BYTES = 2**16
# The maximum number of values in larger JSON. However short its text is, each value costs some hundred bytes of memory,
# and parsing it holds the interpreter's lock.
_MAX_JSON_VALUES = 50_000
# The number of already buffered events that are passed on before other tasks get the event loop.
_EVENTS_BETWEEN_SLEEPS = 64

# How long, in seconds, to wait for the end of the stream once the answer is complete. It is shorter than the idle
# timeout: otherwise a server that never ends its stream would turn a complete answer into an error.
STREAM_END_TIMEOUT = 0.9
# How long, in seconds, to wait for the end of a body after the last event, and how many bytes of it to read.
_DRAIN_TIMEOUT = 0.1
_MAX_DRAIN_BYTES = 2**16

# In characters of text and reasoning: several hundred times longer than any answer that a user would listen to.
_MAX_ANSWER_CHARS = 4 * 2**20
# The maximum number of events, because Home Assistant keeps every piece of an answer for a while. The longest answers
# of good models have 4,096.
_MAX_EVENTS = 2**16

_DATA_PREFIX = b"data:"
_DONE_MARKER = b"[DONE]"
_ERROR_EVENT_LINE = b"event: error"
_EVENT_END = b"\n\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# An answer that starts with one of these is not a stream.
_JSON_PREFIXES = (b"{", b"[")


async def stream_events(
    answer: AbstractAsyncContextManager[Any],
    decoder: Decoder,
    errors: AbstractContextManager[None],
    on_bytes: OnBytesCallback,
) -> AsyncGenerator[Event]:
    """Yield the events of an answer, see `Provider.stream`.

    `answer` is a context manager that sends the request, yields the httpx or httpx2 response, and closes it. `errors`
    is one that converts every exception inside it into a `ProviderError`.
    """
    chars = events = 0
    with errors:
        async with answer as response, aclosing(_read_values(_read_chunks(response, on_bytes), decoder)) as values:
            async for value in values:
                for event in _apply_decoder(decoder.on_event, value):
                    events += 1
                    chars += len(event.text) if isinstance(event, TextDelta | ReasoningDelta) else 0
                    _check_size(chars, events)
                    if events % _EVENTS_BETWEEN_SLEEPS == 0:
                        await asyncio.sleep(0)
                    yield event
                if decoder.is_complete:
                    break
            while decoder.is_complete and (late := await _read_late_events(values, decoder)):
                for event in late:
                    yield event
    for event in decoder.on_end():
        yield event


def _check_size(chars: int, events: int) -> None:
    """Raise `BadStream` if an answer is too long, in characters of text and reasoning or in events."""
    if chars > _MAX_ANSWER_CHARS:
        raise BadStream("the answer is longer than 4 MB")
    if events > _MAX_EVENTS:
        raise BadStream(f"the answer has more than {_MAX_EVENTS} pieces")


async def _read_chunks(response: Any, on_bytes: OnBytesCallback) -> AsyncGenerator[bytes]:
    """Yield the chunks of a response, and call `on_bytes` for each."""
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            on_bytes()
            yield chunk


async def _read_late_events(values: AsyncIterator[Any], decoder: Decoder) -> Sequence[Event]:
    """Wait for the end of a complete answer. Return the events that arrive before it, or none once it is reached.

    The end is reached when the stream ends or breaks, or sends nothing but usage and pings for `STREAM_END_TIMEOUT`
    seconds. At most the usage is lost then, so none of these is an error. Raises the `ProviderError` that the decoder
    raises.
    """
    try:
        async with asyncio.timeout(STREAM_END_TIMEOUT):
            async for sent in values:
                if events := _apply_decoder(decoder.on_event, sent):
                    return events
    except ProviderError:
        raise
    except Exception:  # noqa: BLE001 - the answer is complete all the same
        return ()
    return ()


async def _read_values(raw: AsyncGenerator[bytes], decoder: Decoder) -> AsyncGenerator[Any]:
    """Yield the JSON value of each event, or of an answer that is not a stream."""
    async with aclosing(raw) as chunks:
        first = await _read_first_bytes(chunks)
        if first.startswith(_JSON_PREFIXES):
            answer = await read_any_json(await _read_whole_body(first, chunks))
            for value in _apply_decoder(decoder.to_stream_events, answer):
                yield value
            return
        reader = _EventReader()
        chunk: bytes | None = first
        while chunk is not None:
            for number, data in enumerate(reader.feed(chunk), 1):
                if number % _EVENTS_BETWEEN_SLEEPS == 0:
                    await asyncio.sleep(0)
                if data.startswith(_DONE_MARKER):
                    await _drain_body(chunks)
                    return
                yield _decode_error_event(data) if reader.is_error_event else await read_any_json(data)
            chunk = await anext(chunks, None)
        for data in reader.feed(_EVENT_END):
            yield await read_any_json(data)


def _decode_error_event(data: bytes) -> Any:
    """Return an event whose name marks it as an error, in the form of an error body."""
    try:
        event = read_json(data)
    except ValueError, RecursionError:
        event = {}
    return {"type": "error", **(event if isinstance(event, dict) else {})}


async def _drain_body(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of a body, if it is short, so that its connection can be reused.

    The HTTP client closes the connection if a body was not read to its end.
    """
    left = _MAX_DRAIN_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_TIMEOUT):
            while left >= 0 and (chunk := await anext(chunks, None)) is not None:
                left -= len(chunk)


async def _read_first_bytes(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the first bytes from the first non-blank one on, without a byte order mark, which may be split."""
    first = b""
    async for chunk in chunks:
        first += chunk
        if _BYTE_ORDER_MARK.startswith(first):
            continue
        if first := first.removeprefix(_BYTE_ORDER_MARK).lstrip():
            return first
    return b""


async def read_any_json(data: bytes) -> Any:
    """Return the value of a JSON text of any size. A large text is parsed outside of the event loop.

    Raises `BadStream` if it has too many values, and the errors of `read_json`.
    """
    if len(data) <= _MAX_INLINE_JSON_BYTES:
        return read_json(data)
    if max_value_count(data) > _MAX_JSON_VALUES:
        raise BadStream(f"an event has more than {_MAX_JSON_VALUES} values")
    return await asyncio.to_thread(read_json, data)


async def _read_whole_body(first: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray(first)
    async for chunk in chunks:
        body += chunk
        if len(body) > _MAX_EVENT_BYTES:
            raise BadStream("the answer is longer than 4 MB")
    return bytes(body)


def _apply_decoder[T](read: Callable[[Any], Iterable[T]], value: Any) -> Sequence[T]:
    try:
        return tuple(read(value))
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise BadStream(f"an event is not of the expected form ({type(err).__name__})") from err


@dataclass(slots=True)
class _EventReader:
    """Reads server-sent events: the data of each event, and whether the event's name marks it as an error.

    Time and memory are linear in the number of bytes, even for tiny chunks:
    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """

    is_error_event: bool = False
    _line_fragments: list[bytes] = field(default_factory=list)
    _data_lines: list[bytes] = field(default_factory=list)
    _event_bytes: int = 0
    _ended_with_cr: bool = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each complete event. Raises `BadStream` if an event is too long."""
        if self._ended_with_cr:
            chunk = chunk.removeprefix(b"\n")
        self._ended_with_cr = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):
            self._event_bytes += len(line)
            if self._event_bytes > _MAX_EVENT_BYTES:
                raise BadStream("an event is longer than 4 MB")
            if not line.endswith((b"\n", b"\r")):
                self._line_fragments.append(line)
            elif (data := self._on_line(line)) is not None:
                yield data

    def _on_line(self, line: bytes) -> bytes | None:
        """Read a line. Return the data of the event that it completes, or None if it completes none."""
        if self._line_fragments:
            line = b"".join((*self._line_fragments, line))
            self._line_fragments.clear()
        line = line.rstrip(b"\r\n")
        if not line:
            data = b"\n".join(self._data_lines) if self._data_lines else None
            self._data_lines.clear()
            self._event_bytes = 0
            return data
        if line == _ERROR_EVENT_LINE:
            self.is_error_event = True
        elif line.startswith(_DATA_PREFIX):
            self._data_lines.append(line[6:] if line[5:6] == b" " else line[5:])
        return None
