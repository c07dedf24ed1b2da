"""Chat Completions, the answer: chunks in, events out. One small step per chunk; nothing is asked here."""

from collections.abc import Iterator
from dataclasses import dataclass
import json
from typing import Any

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta, ChoiceDeltaToolCall

from ..window import ToolCall
from .characters import WholeCharacters
from .errors import BadStream, Incomplete
from .events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, ToolCallDone, Usage
from .names import own_names
from .openai_errors import refused
from .openai_format import text_of, tokens_of
from .openai_tools import CallIds, read_arguments

# Where servers put what a model thinks aloud: DeepSeek, llama.cpp, LM Studio and vLLM; Ollama and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _OpenCall:
    """A tool call whose arguments are still arriving."""

    index: int | None
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

    def add(self, fragment: ChoiceDeltaToolCall) -> Iterator[Event]:
        """Take a fragment; a whole JSON object cannot grow, so it is announced at once."""
        call = self._call_of(fragment)
        arguments: object = fragment.function.arguments if fragment.function else None
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

    def _call_of(self, fragment: ChoiceDeltaToolCall) -> _OpenCall:
        name = text_of(fragment.function.name if fragment.function else None)
        if not self._starts_new(fragment, name):
            return next(call for call in reversed(self._calls) if fragment.index in (call.index, None))
        call = _OpenCall(fragment.index, text_of(fragment.id), name)
        self._calls.append(call)
        return call

    def _starts_new(self, fragment: ChoiceDeltaToolCall, name: str) -> bool:
        known = [call for call in self._calls if fragment.index in (call.index, None)]
        if not known:
            return True
        newest = known[-1]
        if fragment.id and fragment.id != newest.id:
            return True
        if not name or not fragment.function:
            return False
        if fragment.id:
            return newest.announced and bool(fragment.function.arguments)
        return fragment.index is None or newest.announced

    def _announce(self, call: _OpenCall) -> Iterator[Event]:
        if call.announced:
            return
        arguments = call.parsed()
        if arguments is None or not call.name:
            raise BadStream("a tool call is not whole")
        call.announced = True
        name = self._own_names.get(call.name, call.name)
        yield ToolCallDone(ToolCall(self._ids.take(call.id), name, arguments))


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

    def on_event(self, event: ChatCompletionChunk) -> list[Event]:
        """See `Decoder.on_event`."""
        if event.usage:
            self._usage = _usage(event.usage)
        return [decoded for choice in event.choices or () for decoded in self._on_choice(choice)]

    def _on_choice(self, choice: Choice) -> list[Event]:
        events = self._on_delta(choice.delta) if choice.delta else []
        if choice.finish_reason and not self._finish_reason:
            self._finish_reason = text_of(choice.finish_reason)
            if self._finish_reason not in ("length", "content_filter"):
                events += self._tool_calls.finish()
        return events

    def _on_delta(self, delta: ChoiceDelta) -> list[Event]:
        events: list[Event] = []
        if delta.model_extra and (thought := self._reasoning.feed(_thought(delta.model_extra))):
            events.append(ReasoningDelta(thought))
        if text := self._text.feed(text_of(delta.content)):
            events.append(TextDelta(text))
        if delta.refusal:
            self._refused = True
        for fragment in delta.tool_calls or ():
            events += self._tool_calls.add(fragment)
        return events

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


def _thought(extra: dict[str, Any]) -> str:
    thoughts = (extra.get(field) for field in _REASONING_FIELDS)
    return next((thought for thought in thoughts if isinstance(thought, str) and thought), "")


def _usage(usage: object) -> Usage:
    read, written = (getattr(usage, name, None) for name in ("prompt_tokens_details", "completion_tokens_details"))
    return Usage(
        input=tokens_of(usage, "prompt_tokens"),
        cached=tokens_of(read, "cached_tokens"),
        output=tokens_of(usage, "completion_tokens"),
        cache_written=tokens_of(read, "cache_write_tokens"),
        reasoning=tokens_of(written, "reasoning_tokens"),
    )
