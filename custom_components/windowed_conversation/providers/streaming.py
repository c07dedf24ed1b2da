"""The streaming skeleton of all formats: converts the bytes of a server's stream into this integration's events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from .decoder import Decoder
from .errors import BadStream, ProviderError
from .events import Event, OnBytes, ReasoningDelta, TextDelta
from .json_values import max_value_count, read_json

# The maximum size of an event in bytes: in some formats, the last event repeats the complete answer.
_LONGEST_EVENT = 4 * 2**20
# The maximum number of bytes of JSON that are parsed in the event loop; more would delay everything else in it.
_READ_AT_ONCE = 2**16
# The maximum number of values in larger JSON. However short its text is, each value costs some hundred bytes of memory,
# and parsing it holds the interpreter's lock.
_MOST_VALUES = 50_000
# The number of already buffered events that are passed on before other tasks get the event loop.
_AT_ONCE = 64

# How long, in seconds, to wait for the end of the stream once the answer is complete. It is shorter than the shortest
# idle timeout of an agent, one second: otherwise a server that never ends its stream would turn a complete answer into
# an error.
GRACE = 0.9
# How long, in seconds, to wait for the end of a body after the last event, and how many bytes of it to read.
_END = 0.1
_LONGEST_END = 2**16

# In characters of text and reasoning: several hundred times longer than any answer that a user would listen to.
_LONGEST_ANSWER = 4 * 2**20
# The maximum number of pieces, because Home Assistant keeps every piece of an answer for a while. The longest answers
# of good models have 4,096.
_MOST_PIECES = 2**16

_DATA = b"data:"
_DONE = b"[DONE]"
_ERROR = b"event: error"
_END_OF_EVENT = b"\n\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# An answer that starts with one of these is not a stream.
_JSON = (b"{", b"[")


async def stream_events(
    answer: AbstractAsyncContextManager[Any],
    decoder: Decoder,
    errors: AbstractContextManager[None],
    on_bytes: OnBytes,
) -> AsyncGenerator[Event]:
    """Yield the events of an answer, see `Provider.stream`.

    `answer` is a context manager that sends the request, yields the httpx or httpx2 response, and closes it. `errors`
    is one that converts every exception inside it into a `ProviderError`.
    """
    decode, size, passed = partial(_apply, decoder.on_event), _AnswerSize(), count(1)
    with errors:
        async with answer as response, aclosing(_read_values(_read_chunks(response, on_bytes), decoder)) as values:
            async for value in values:
                for event in decode(value):
                    size.add(event)
                    if next(passed) % _AT_ONCE == 0:
                        await asyncio.sleep(0)
                    yield event
                if decoder.is_complete:
                    break
            while decoder.is_complete and (late := await _late_events(values, decode)):
                for event in late:
                    yield event
    for event in decoder.on_end():
        yield event


async def _read_chunks(response: Any, on_bytes: OnBytes) -> AsyncGenerator[bytes]:
    """Yield the chunks of a response, and call `on_bytes` for each."""
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            on_bytes()
            yield chunk


async def _late_events[E](stream: AsyncIterator[E], decode: Callable[[E], Sequence[Event]]) -> Sequence[Event]:
    """Wait for the end of a complete answer. Return the events that arrive before it, or none once it is reached.

    The end is reached when the stream ends or breaks, or sends nothing but usage and pings for `GRACE` seconds. At most
    the usage is lost then, so none of these is an error. Raises the `ProviderError` that `decode` raises.
    """
    try:
        async with asyncio.timeout(GRACE):
            async for sent in stream:
                if events := decode(sent):
                    return events
    except ProviderError:
        raise
    except Exception:  # noqa: BLE001 - the answer is complete all the same
        return ()
    return ()


async def _read_values(raw: AsyncGenerator[bytes], decoder: Decoder) -> AsyncGenerator[Any]:
    """Yield the JSON value of each event, or of an answer that is not a stream."""
    async with aclosing(raw) as chunks:
        first = await _read_start(chunks)
        if first.startswith(_JSON):
            answer = await read_any_json(await _read_rest(first, chunks))
            for value in _apply(decoder.as_stream, answer):
                yield value
            return
        reader = _EventReader()
        chunk: bytes | None = first
        while chunk is not None:
            for number, data in enumerate(reader.feed(chunk), 1):
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                if data.startswith(_DONE):
                    await _drain(chunks)
                    return
                yield _named_error(data) if reader.named_error else await read_any_json(data)
            chunk = await anext(chunks, None)
        for data in reader.feed(_END_OF_EVENT):
            yield await read_any_json(data)


def _named_error(data: bytes) -> Any:
    """Return an event whose name marks it as an error, in the form of an error body."""
    try:
        event = read_json(data)
    except ValueError, RecursionError:
        event = {}
    return {"type": "error", **(event if isinstance(event, dict) else {})}


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of a body, if it is short, so that its connection can be reused.

    The HTTP client closes the connection if a body was not read to its end.
    """
    left = _LONGEST_END
    with suppress(TimeoutError):
        async with asyncio.timeout(_END):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return


async def _read_start(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the first bytes from the first non-blank one on, without a byte order mark.

    The byte order mark may be split across chunks.
    """
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
    if len(data) <= _READ_AT_ONCE:
        return read_json(data)
    if max_value_count(data) > _MOST_VALUES:
        raise BadStream(f"an event has more than {_MOST_VALUES} values")
    return await asyncio.to_thread(read_json, data)


async def _read_rest(first: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    body, size = [first], len(first)
    async for chunk in chunks:
        body.append(chunk)
        size += len(chunk)
        if size > _LONGEST_EVENT:
            raise BadStream("the answer is longer than 4 MB")
    return b"".join(body)


def _apply[T](read: Callable[[Any], Iterable[T]], value: Any) -> Sequence[T]:
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

    named_error: bool = False
    _line: list[bytes] = field(default_factory=list)
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0
    _ended_in_return: bool = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each complete event. Raises `BadStream` if an event is too long."""
        if self._ended_in_return:
            chunk = chunk.removeprefix(b"\n")
        self._ended_in_return = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):
            self._size += len(line)
            if self._size > _LONGEST_EVENT:
                raise BadStream("an event is longer than 4 MB")
            if not line.endswith((b"\n", b"\r")):
                self._line.append(line)
            elif (data := self._on_line(line)) is not None:
                yield data

    def _on_line(self, line: bytes) -> bytes | None:
        """Read a line. Return the data of the event that it completes, or None if it completes none."""
        if self._line:
            line = b"".join((*self._line, line))
            self._line.clear()
        line = line.rstrip(b"\r\n")
        if not line:
            data = b"\n".join(self._data) if self._data else None
            self._data.clear()
            self._size = 0
            return data
        if line == _ERROR:
            self.named_error = True
        elif line.startswith(_DATA):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        return None


@dataclass(slots=True)
class _AnswerSize:
    """The length of an answer's text and reasoning so far, and the number of pieces in which they arrived."""

    _length: int = 0
    _pieces: int = 0

    def add(self, event: Event) -> None:
        """Add an event to the counts. Raises `BadStream` if the answer is too long."""
        if isinstance(event, TextDelta | ReasoningDelta):
            self._length += len(event.text)
            self._pieces += 1
            if self._length > _LONGEST_ANSWER:
                raise BadStream("the answer is longer than 4 MB")
            if self._pieces > _MOST_PIECES:
                raise BadStream(f"the answer has more than {_MOST_PIECES} pieces")
