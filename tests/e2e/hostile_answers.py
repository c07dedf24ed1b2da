"""Answers of a hostile server in each wire format, reduced to the parts that the attacks need."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, repeat
import json
from typing import Any
import zlib

from tests.e2e.hostile_server import Reply

_PIECE = 2**16


def event(value: Any) -> bytes:
    """Return a server-sent event."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


class Format(ABC):
    """A wire format, with the name that its account form has in the demo."""

    name: str
    url_path: str = "/v1"

    @abstractmethod
    def text(self, text: str) -> bytes:
        """Return the stream event with a piece of text."""

    @abstractmethod
    def end(self) -> bytes:
        """Return the event that ends an answer successfully."""

    @abstractmethod
    def calls(self, numbers: Iterable[int]) -> bytes:
        """Return events with tool calls, as few as the format allows."""

    @abstractmethod
    def arguments(self, fragments: Iterable[str]) -> Iterator[bytes]:
        """Yield the events of a tool call that is never completed."""

    @abstractmethod
    def models(self, ids: Iterable[str]) -> bytes:
        """Return the response body with a list of models."""

    def whole(self, text: str) -> bytes:
        """Return a complete streamed answer."""
        return self.text(text) + self.end()


class Chat(Format):
    name = "chat"

    def text(self, text: str) -> bytes:
        return event({"choices": [{"delta": {"content": text}}]})

    def end(self) -> bytes:
        return event({"choices": [{"delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"

    def calls(self, numbers: Iterable[int]) -> bytes:
        return self._fragments(
            {"index": number, "id": f"c{number}", "function": {"name": "a", "arguments": "{}"}} for number in numbers
        )

    def arguments(self, fragments: Iterable[str]) -> Iterator[bytes]:
        yield self._fragments([{"index": 0, "id": "c", "function": {"name": "a"}}])
        for fragment in fragments:
            yield self._fragments([{"index": 0, "function": {"arguments": fragment}}])

    def models(self, ids: Iterable[str]) -> bytes:
        return json.dumps({"data": [{"id": each} for each in ids]}).encode()

    def _fragments(self, fragments: Iterable[Any]) -> bytes:
        return event({"choices": [{"delta": {"tool_calls": list(fragments)}}]})


class Responses(Chat):
    name = "responses"

    def text(self, text: str) -> bytes:
        return event({"type": "response.output_text.delta", "output_index": 0, "delta": text})

    def end(self) -> bytes:
        return event({"type": "response.completed", "response": {"status": "completed"}})

    def calls(self, numbers: Iterable[int]) -> bytes:
        return b"".join(self._call(number, "{}") for number in numbers)

    def arguments(self, fragments: Iterable[str]) -> Iterator[bytes]:
        for fragment in fragments:
            yield event({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": fragment})
            yield self._call(0, fragment)

    def _call(self, number: int, arguments: str) -> bytes:
        item = {"type": "function_call", "call_id": f"c{number}", "name": "a", "arguments": arguments}
        return event({"type": "response.output_item.done", "output_index": number, "item": item})


class Anthropic(Chat):
    name = "anthropic"
    url_path = ""

    def text(self, text: str) -> bytes:
        begun = event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}})
        return begun + event({"type": "content_block_stop", "index": 0})

    def end(self) -> bytes:
        return event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}) + event({"type": "message_stop"})

    def calls(self, numbers: Iterable[int]) -> bytes:
        return b"".join(
            self._begun(number) + event({"type": "content_block_stop", "index": number}) for number in numbers
        )

    def arguments(self, fragments: Iterable[str]) -> Iterator[bytes]:
        yield self._begun(0)
        for fragment in fragments:
            delta = {"type": "input_json_delta", "partial_json": fragment}
            yield event({"type": "content_block_delta", "index": 0, "delta": delta})

    def _begun(self, number: int) -> bytes:
        block = {"type": "tool_use", "id": f"c{number}", "name": "a", "input": {}}
        return event({"type": "content_block_start", "index": number, "content_block": block})


class Gemini(Chat):
    name = "gemini"
    url_path = ""

    def text(self, text: str) -> bytes:
        return self._parts([{"text": text}])

    def end(self) -> bytes:
        return event({"candidates": [{"finishReason": "STOP"}]})

    def calls(self, numbers: Iterable[int]) -> bytes:
        return self._parts({"functionCall": {"name": "a"}} for _ in numbers)

    def arguments(self, fragments: Iterable[str]) -> Iterator[bytes]:
        for fragment in fragments:
            yield self._parts([{"functionCall": {"name": "a", "args": {"a": fragment}}}])

    def models(self, ids: Iterable[str]) -> bytes:
        listed = [{"name": f"models/{each}", "supportedGenerationMethods": ["generateContent"]} for each in ids]
        return json.dumps({"models": listed}).encode()

    def _parts(self, parts: Iterable[Any]) -> bytes:
        return event({"candidates": [{"content": {"parts": list(parts)}}]})


ALL_FORMATS: tuple[Format, ...] = (Chat(), Responses(), Anthropic(), Gemini())


def well(format_: Format) -> Reply:
    """Return a normal answer that is not hostile."""
    return Reply(lambda: (format_.whole("ok"),))


def well_listed(format_: Format) -> Reply:
    """Return a normal list of models that is not hostile."""
    return Reply(lambda: (format_.models(("scripted",)),))


def endless_line(_: Format) -> Reply:
    return Reply(lambda: chain((b"data: ",), _repeat_piece(b"x")))


def endless_white_space(_: Format) -> Reply:
    return Reply(lambda: _repeat_piece(b" "))


def endless_comments(_: Format) -> Reply:
    return Reply(lambda: _repeat_piece(b":\n"))


def endless_error(_: Format) -> Reply:
    return Reply(lambda: chain((b'{"error": {"message": "',), _repeat_piece(b"x")), 500)


def make_endless_object_error(_: Format) -> Reply:
    return Reply(lambda: chain((b'{"error": [{}',), _repeat_piece(b",{}")), 500)


def make_line_bomb(_: Format) -> Reply:
    return _bomb(b"x")


def make_event_bomb(_: Format) -> Reply:
    return _bomb(b"data: {}\n\n")


def make_text_bomb(format_: Format) -> Reply:
    return _bomb(format_.text("a"))


def make_error_bomb(_: Format) -> Reply:
    bomb = _bomb(b"x")
    return Reply(bomb.make_body, 500, bomb.headers)


def make_many_calls_event(format_: Format) -> Reply:
    return Reply(partial(iter, (format_.calls(range(_MANY)),)))


def make_many_call_events(format_: Format) -> Reply:
    return Reply(lambda: (format_.calls((number,)) for number in range(_MANY)))


def make_many_objects_event(_: Format) -> Reply:
    return Reply(lambda: (b'data: {"type":"error","x":[{}' + b",{}" * (4 * 2**20 // 3 - 100) + b"]}\n\n",))


def think_marks(format_: Format) -> Reply:
    return Reply(lambda: (format_.whole("<think>" * (2**18 // 7)),))


def make_think_mark_pairs(format_: Format) -> Reply:
    return Reply(lambda: (format_.whole("<think></think>" * (2**18 // 15)),))


def long_arguments(format_: Format) -> Reply:
    return Reply(lambda: format_.arguments(("x" * (8 * 2**20 - 1) + "}",)))


def make_fragmented_arguments(format_: Format) -> Reply:
    return Reply(lambda: format_.arguments(repeat('{"a":[' + "{}," * 50 + "{}", 8 * 2**20 // 150)))


def endless_models(format_: Format) -> Reply:
    return Reply(lambda: chain((format_.models(("a",))[:-2],), _repeat_piece(b', {"id": "a", "name": "b"}')))


def models_of_objects(format_: Format) -> Reply:
    return Reply(lambda: (format_.models(("a",))[:-2] + b",{}" * (8 * 2**20 // 3 - 100) + b"]}",))


def bomb_of_models(_: Format) -> Reply:
    return _bomb(b" ")


_MANY = 100_000


def _repeat_piece(piece: bytes) -> Iterator[bytes]:
    return repeat(piece * (_PIECE // len(piece)))


def _bomb(piece: bytes) -> Reply:
    """Return a compressed endless answer, which becomes a thousand times as long when it is decompressed."""
    compressor = zlib.compressobj(9, wbits=31)
    blown_up = piece * (16 * _PIECE // len(piece))

    def compress_block() -> bytes:
        # The full flush makes the following data independent of earlier data, so it can be sent again and again.
        return compressor.compress(blown_up) + compressor.flush(zlib.Z_FULL_FLUSH)

    first, again = compress_block(), compress_block()
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    return Reply(lambda: chain((first,), repeat(again)), headers=headers)
