"""Decoding Chat Completions answers: chunks as JSON in, our events out. Pure.

Compatible servers send calls and reasoning in forms of their own; comments name them where they are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..calls import Arguments, Calls
from ..characters import WholeCharacters
from ..errors import BadStream, Incomplete
from ..events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, Usage
from ..json_values import member, objects, text_of, tokens_of
from ..names import own_names
from .errors import error_in_event, is_error, refused

# Where servers put a model's reasoning: DeepSeek, llama.cpp, LM Studio and vLLM; Ollama and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _OpenCall:
    """A tool call whose arguments are still arriving."""

    index: object
    id: str
    name: str
    arguments: Arguments
    announced: bool = False


class _ToolCalls:
    """Assembles the fragments of tool calls, in every form that servers send.

    OpenAI numbers its calls and names each once. Ollama numbers every parallel call 0 and gives each a new id. Others
    omit the number or the id, or send the arguments as an object: https://github.com/ollama/ollama/issues/15457
    """

    def __init__(self, request: Request) -> None:
        self._calls = Calls(request, own_names(request.tools))
        self._open: list[_OpenCall] = []

    def add(self, fragment: Any) -> Iterator[Event]:
        """Add a fragment. A whole JSON object cannot grow, so it is announced at once."""
        function = fragment.get("function") or {}
        call = self._call_of(fragment, function)
        call.arguments.add(function.get("arguments"))
        if call.arguments.so_far():
            yield from self._announce(call)

    def finish(self) -> Iterator[Event]:
        """Announce the rest, including calls without arguments. Raises `BadStream` for an incomplete call."""
        for call in self._open:
            yield from self._announce(call)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def _call_of(self, fragment: Any, function: Any) -> _OpenCall:
        """Return the call that a fragment belongs to: the newest with its number, or a new one."""
        index, call_id, name = fragment.get("index"), text_of(fragment.get("id")), text_of(function.get("name"))
        newest = next((call for call in reversed(self._open) if index in (call.index, None)), None)
        if newest and not _starts_another(newest, fragment, function):
            return newest
        call = _OpenCall(index, call_id, name, self._calls.begin())
        self._open.append(call)
        return call

    def _announce(self, call: _OpenCall) -> Iterator[Event]:
        if not call.announced:
            call.announced = True
            yield self._calls.announce(call.id, call.name, call.arguments.whole())


def _starts_another(newest: _OpenCall, fragment: Any, function: Any) -> bool:
    if fragment.get("id"):
        other = fragment["id"] != newest.id
        return other or bool(function.get("name") and newest.announced and function.get("arguments"))
    return bool(function.get("name")) and (fragment.get("index") is None or newest.announced)


class ChunkDecoder:
    """Decodes one answer. The terminal marker is a finish reason; the usage follows in a later chunk."""

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

    def as_stream(self, answer: Any) -> Sequence[Any]:
        """See `Decoder.as_stream`: the message of a choice is one large delta."""
        choices = [{**choice, "delta": choice.get("message")} for choice in objects(member(answer, "choices"))]
        return [{**answer, "choices": choices}] if choices else [answer]

    def on_event(self, event: Any) -> Sequence[Event]:
        """See `Decoder.on_event`."""
        if is_error(event) and not self.is_whole:
            raise error_in_event(event)
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
        content = delta.get("content")
        said, thought = _chunks(content) if isinstance(content, list) else (text_of(content), "")
        if thought := self._reasoning.feed(_thought(delta) or thought):
            events.append(ReasoningDelta(thought))
        if text := self._text.feed(said):
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


def _chunks(content: list[Any]) -> tuple[str, str]:
    """Return the text and the reasoning in content chunks of Mistral's reasoning models.

    https://docs.mistral.ai/capabilities/reasoning
    """
    said = [text_of(chunk.get("text")) for chunk in content if chunk["type"] == "text"]
    thoughts = [part for chunk in content if chunk["type"] == "thinking" for part in objects(chunk.get("thinking"))]
    return "".join(said), "".join(text_of(part.get("text")) for part in thoughts)


def _usage(usage: object) -> Usage:
    read, written = member(usage, "prompt_tokens_details"), member(usage, "completion_tokens_details")
    return Usage(
        input=tokens_of(usage, "prompt_tokens"),
        cached=tokens_of(read, "cached_tokens"),
        output=tokens_of(usage, "completion_tokens"),
        cache_written=tokens_of(read, "cache_write_tokens"),
        reasoning=tokens_of(written, "reasoning_tokens"),
    )
