"""The streaming skeleton of all formats: the bytes of a server's events in, our events out."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, suppress
from functools import partial
from itertools import chain, count
from typing import Any

from .decoder import Decoder
from .errors import BadStream, ProviderError
from .events import Event, OnBytes, ReasoningDelta, TextDelta
from .json_values import most_values, read_json

# Bytes of one event: the last one of some formats holds the whole answer again.
_LONGEST_EVENT = 4 * 2**20
# Bytes of JSON that are read in the event loop; more would be felt by everything else that runs there.
_READ_AT_ONCE = 2**16
# Values in such JSON. Each costs some hundred bytes, however few of them it is written in, and the interpreter's lock.
_MOST_VALUES = 50_000
# Events that are there already, and are passed on before others have the event loop.
_AT_ONCE = 64

# How long the end of a whole answer may take to come, in seconds. The shortest idle timeout of an agent is one second:
# with as much, or more, a server that never ends its stream would have that make an error of a whole answer.
GRACE = 0.9
# How long the end of a body may take to come after the last event, in seconds, and how long it may be, in bytes.
_END = 0.1
_LONGEST_END = 2**16

# In characters of text and reasoning: several hundred times the longest answer that anyone listens to.
_LONGEST_ANSWER = 4 * 2**20
# Home Assistant keeps every piece of an answer for a while. After as many as the longest answers of good models have,
# short ones wait until together they are this long, in characters.
_SINGLE_PIECES = 4096
_LONG_PIECE = 128

_DATA = b"data:"
_DONE = b"[DONE]"
_ERROR = b"event: error"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# An answer that begins like this is not a stream.
_JSON = (b"{", b"[")


async def answered(
    answer: AbstractAsyncContextManager[Any],
    decoder: Decoder,
    errors: AbstractContextManager[None],
    on_bytes: OnBytes,
) -> AsyncGenerator[Event]:
    """Yield the events of an answer, see `Provider.stream`.

    `answer` sends the request, holds the httpx or httpx2 response, and closes it. `errors` turns all that is raised
    meanwhile into our errors.
    """
    with errors:
        async with answer as response, aclosing(_decoded(_observed(response, on_bytes), decoder)) as events:
            async for event in events:
                yield event
    for event in decoder.on_end():
        yield event


async def _observed(response: Any, on_bytes: OnBytes) -> AsyncGenerator[bytes]:
    """Yield the chunks of a response, each with its sign of life."""
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            on_bytes()
            yield chunk


async def _decoded(chunks: AsyncGenerator[bytes], decoder: Decoder) -> AsyncGenerator[Event]:
    decode, pieces, passed = partial(_taken_apart, decoder.on_event), _Pieces(), count(1)
    async with aclosing(_sent(chunks, decoder)) as sent:
        async for value in sent:
            for event in chain.from_iterable(map(pieces.take, decode(value))):
                if next(passed) % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                yield event
            if decoder.is_whole:
                break
        for event in pieces.rest():
            yield event
        while decoder.is_whole and (late := await _late_events(sent, decode)):
            for event in late:
                yield event


async def _late_events[E](stream: AsyncIterator[E], decode: Callable[[E], Sequence[Event]]) -> Sequence[Event]:
    """Wait for the end of a whole answer. Return the events that come before it, or none once it has come.

    The end has come when the stream ends or breaks, or brings nothing but usage and pings for `GRACE` seconds. At most
    the usage is lost then, so none of these is an error. Raises the `ProviderError` that `decode` raises.
    """
    try:
        async with asyncio.timeout(GRACE):
            async for sent in stream:
                if events := decode(sent):
                    return events
    except ProviderError:
        raise
    except Exception:  # noqa: BLE001 - whatever breaks here, the answer is whole
        return ()
    return ()


async def _sent(raw: AsyncGenerator[bytes], decoder: Decoder) -> AsyncGenerator[Any]:
    """Yield the JSON value of each event, also of an answer that is not a stream."""
    async with aclosing(raw) as chunks:
        first = await _first(chunks)
        if first.startswith(_JSON):
            answer = await read_any_json(await _whole_body(first, chunks))
            for value in _taken_apart(decoder.as_stream, answer):
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
        for data in reader.end():
            yield await read_any_json(data)


def _named_error(data: bytes) -> Any:
    """Return an event whose name says that it is an error as one, whatever its data says."""
    try:
        said = read_json(data)
    except ValueError, RecursionError:
        said = {}
    return {"type": "error", **(said if isinstance(said, dict) else {})}


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of a body, which is nothing or little. The HTTP client closes the connection of any other body."""
    left = _LONGEST_END
    with suppress(TimeoutError):
        async with asyncio.timeout(_END):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return


async def _first(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the first bytes from the first non-blank one on, without a byte order mark, which may come in parts."""
    first = b""
    async for chunk in chunks:
        first += chunk
        if _BYTE_ORDER_MARK.startswith(first):
            continue
        if first := first.removeprefix(_BYTE_ORDER_MARK).lstrip():
            return first
    return b""


async def read_any_json(data: bytes) -> Any:
    """Return the value of a JSON text of any size. A large text is read outside of the event loop.

    Raises `BadStream` if it has too many values, and the errors of `read_json`.
    """
    if len(data) <= _READ_AT_ONCE:
        return read_json(data)
    if most_values(data) > _MOST_VALUES:
        raise BadStream(f"an event has more than {_MOST_VALUES} values")
    return await asyncio.to_thread(read_json, data)


async def _whole_body(first: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    body, size = [first], len(first)
    async for chunk in chunks:
        body.append(chunk)
        size += len(chunk)
        if size > _LONGEST_EVENT:
            raise BadStream("the answer is longer than 4 MB")
    return b"".join(body)


def _taken_apart[T](read: Callable[[Any], Iterable[T]], value: Any) -> Sequence[T]:
    try:
        return tuple(read(value))
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise BadStream(f"an event is not of the expected form ({type(err).__name__})") from err


class _EventReader:
    """Reads server-sent events: the data of each, and whether its name says that it is an error.

    Work and memory are linear in what is sent, however it is split:
    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._ended_in_return = False
        self.named_error = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each whole event. Raises `BadStream` if one is too long."""
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

    def end(self) -> Iterator[bytes]:
        """Yield the data of a last event without a blank line after it."""
        for data in (self._on_line(b""), self._taken()):
            if data is not None:
                yield data

    def _on_line(self, line: bytes) -> bytes | None:
        """Read a line. Return the data of the event that it ends, or None if it ends none."""
        if self._line:
            line = b"".join((*self._line, line))
            self._line.clear()
        line = line.rstrip(b"\r\n")
        if not line:
            return self._taken()
        if line == _ERROR:
            self.named_error = True
        elif line.startswith(_DATA):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        return None

    def _taken(self) -> bytes | None:
        self._size = 0
        if not self._data:
            return None
        data = b"\n".join(self._data)
        self._data.clear()
        return data


class _Pieces:
    """Passes on the events of one answer, whose text comes in pieces."""

    def __init__(self) -> None:
        self._length = 0
        self._count = 0
        self._held: list[str] = []
        self._held_length = 0
        self._kind: type[TextDelta | ReasoningDelta] = TextDelta

    def take(self, event: Event) -> Iterable[Event]:
        """Return the events to pass on after one more came. Raises `BadStream` if the answer is too long."""
        if not isinstance(event, TextDelta | ReasoningDelta):
            return (*self.rest(), event)
        self._count += 1
        self._length += len(event.text)
        if self._length > _LONGEST_ANSWER:
            raise BadStream("the answer is longer than 4 MB")
        return (event,) if self._count <= _SINGLE_PIECES else self._hold(event)

    def rest(self) -> Iterable[Event]:
        """Return the events for the text that is held back, at the end of the stream."""
        if not self._held:
            return ()
        joined = self._kind("".join(self._held))
        self._held.clear()
        self._held_length = 0
        return (joined,)

    def _hold(self, event: TextDelta | ReasoningDelta) -> Iterable[Event]:
        before = self.rest() if type(event) is not self._kind else ()
        self._kind = type(event)
        self._held.append(event.text)
        self._held_length += len(event.text)
        return (*before, *self.rest()) if self._held_length >= _LONG_PIECE else before
