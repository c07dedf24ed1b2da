"""Chat Completions, the answer: chunks of plain JSON in, events out, a small step for each. Nothing is asked here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import json
from typing import Any

from ...window import ToolCall
from ..characters import WholeCharacters
from ..errors import BadStream, Incomplete
from ..events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, ToolCallDone, Usage
from ..json_values import member, text_of, tokens_of
from ..names import own_names
from .errors import refused
from .tools import CallIds, read_arguments

# Where servers put what a model thinks aloud: DeepSeek, llama.cpp, LM Studio and vLLM; Ollama and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _OpenCall:
    """A tool call whose arguments are still arriving."""

    index: object
    id: str
    name: str
    arguments: str = ""
    announced: bool = False

    def parsed(self) -> dict[str, Any] | None:
        """Return the arguments, None while they are no whole JSON object."""
        return read_arguments(self.arguments)


class _ToolCalls:
    """Puts the fragments of tool calls together, in every shape that servers send them in.

    OpenAI numbers its calls and names each once. Ollama numbers every parallel call 0 and gives each a new id, others
    leave out the number or the id, or send the arguments as an object: https://github.com/ollama/ollama/issues/15457
    """

    def __init__(self, request: Request) -> None:
        self._ids = CallIds(request.messages)
        self._own_names = own_names(request.tools)
        self._calls: list[_OpenCall] = []

    def add(self, fragment: Any) -> Iterator[Event]:
        """Take a fragment; a whole JSON object cannot grow, so it is announced at once."""
        function = fragment.get("function") or {}
        call, arguments = self._call_of(fragment, function), function.get("arguments")
        if isinstance(arguments, dict):
            call.arguments = json.dumps(arguments)
        else:
            call.arguments += text_of(arguments)
        if call.arguments.endswith("}") and call.parsed():
            yield from self._announce(call)

    def finish(self) -> Iterator[Event]:
        """Announce what is left, among it calls without arguments; raises `BadStream` for half a call."""
        for call in self._calls:
            yield from self._announce(call)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def _call_of(self, fragment: Any, function: Any) -> _OpenCall:
        """Return the call that a fragment belongs to, the newest of its number or a new one."""
        index, call_id, name = fragment.get("index"), text_of(fragment.get("id")), text_of(function.get("name"))
        newest = next((call for call in reversed(self._calls) if index in (call.index, None)), None)
        if newest and not _starts_another(newest, fragment, function):
            return newest
        call = _OpenCall(index, call_id, name)
        self._calls.append(call)
        return call

    def _announce(self, call: _OpenCall) -> Iterator[Event]:
        if call.announced:
            return
        arguments = call.parsed()
        if arguments is None or not call.name:
            raise BadStream("a tool call is not whole")
        call.announced = True
        name = self._own_names.get(call.name, call.name)
        yield ToolCallDone(ToolCall(self._ids.take(call.id), name, arguments))


def _starts_another(newest: _OpenCall, fragment: Any, function: Any) -> bool:
    if fragment.get("id"):
        other = fragment["id"] != newest.id
        return other or bool(function.get("name") and newest.announced and function.get("arguments"))
    return bool(function.get("name")) and (fragment.get("index") is None or newest.announced)


class ChunkDecoder:
    """Reads one answer. The terminal marker is a finish reason; the usage comes in a chunk after it."""

    def __init__(self, request: Request) -> None:
        self._tool_calls = _ToolCalls(request)
        self._text = WholeCharacters()
        self._reasoning = WholeCharacters()
        self._usage: Usage | None = None
        self._refused = False
        self._finish_reason = ""

    @property
    def is_whole(self) -> bool:
        """See `Decoder.is_whole`."""
        return bool(self._finish_reason)

    def on_event(self, event: Any) -> Sequence[Event]:
        """See `Decoder.on_event`."""
        usage = event.get("usage")
        if usage is not None:
            self._usage = _usage(usage)
        events: list[Event] = []
        for choice in event.get("choices") or ():
            if delta := choice.get("delta"):
                self._on_delta(delta, events)
            if reason := choice.get("finish_reason"):
                self._on_finish(reason, events)
        return events

    def _on_delta(self, delta: Any, events: list[Event]) -> None:
        if thought := self._reasoning.feed(_thought(delta)):
            events.append(ReasoningDelta(thought))
        if text := self._text.feed(text_of(delta.get("content"))):
            events.append(TextDelta(text))
        if delta.get("refusal"):
            self._refused = True
        for fragment in delta.get("tool_calls") or ():
            events += self._tool_calls.add(fragment)

    def _on_finish(self, reason: object, events: list[Event]) -> None:
        if self._finish_reason:
            return
        self._finish_reason = text_of(reason)
        if self._finish_reason not in ("length", "content_filter"):
            events += self._tool_calls.finish()

    def on_end(self) -> Iterator[Event]:
        """See `Decoder.on_end`."""
        if self._usage:
            yield self._usage
        if not self._finish_reason:
            raise BadStream("the stream ended without a finish reason")
        if self._finish_reason == "length":
            raise Incomplete("finish reason length")
        if self._finish_reason == "content_filter":
            raise refused(self._finish_reason)
        if self._refused:
            raise refused("refusal")
        reason = FinishReason.TOOL_CALLS if self._tool_calls else FinishReason.STOP
        yield Finished(reason, self._finish_reason)


def _thought(delta: Any) -> str:
    for field in _REASONING_FIELDS:
        thought = delta.get(field)
        if thought and isinstance(thought, str):
            return thought
    return ""


def _usage(usage: object) -> Usage:
    read, written = member(usage, "prompt_tokens_details"), member(usage, "completion_tokens_details")
    return Usage(
        input=tokens_of(usage, "prompt_tokens"),
        cached=tokens_of(read, "cached_tokens"),
        output=tokens_of(usage, "completion_tokens"),
        cache_written=tokens_of(read, "cache_write_tokens"),
        reasoning=tokens_of(written, "reasoning_tokens"),
    )
