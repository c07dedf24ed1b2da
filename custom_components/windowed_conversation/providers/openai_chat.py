"""The Chat Completions format: OpenAI itself, llama.cpp, Ollama, LM Studio, vLLM and everything compatible.

Encoding is pure; decoding is one small step per chunk. Only what every compatible server accepts is sent.
Errors are mapped in `openai_errors`; who builds the client, and with which key, is not decided here.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
import json
from typing import Any
from uuid import uuid4

from openai import AsyncOpenAI, omit
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.models import AsyncModels
from openai.types.chat import ChatCompletionChunk, ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta, ChoiceDeltaToolCall

from ..window import Message, Role, ToolCall
from .characters import WholeCharacters, whole_json
from .errors import BadStream, Incomplete, ProviderError, Refused
from .events import (
    Event,
    Finished,
    FinishReason,
    ListedModel,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    ToolSchema,
    Usage,
)
from .openai_errors import provider_errors

_MODEL_LIST_TIMEOUT = 10.0

# Where servers put what a model thinks aloud: DeepSeek, llama.cpp, LM Studio and vLLM; Ollama and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")


def encode_messages(messages: tuple[Message, ...]) -> list[ChatCompletionMessageParam]:
    """Return the messages in the format's own form, in the same order."""
    return [_encode_message(message) for message in messages]


def encode_tools(tools: tuple[ToolSchema, ...]) -> list[ChatCompletionFunctionToolParam]:
    """Return the tools in the format's own form, in the same order."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def _encode_message(message: Message) -> ChatCompletionMessageParam:
    match message.role:
        case Role.SYSTEM:
            return {"role": "system", "content": message.content}
        case Role.USER:
            return {"role": "user", "content": message.content}
        case Role.TOOL:
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id or "",
                "content": message.content,
            }
        case Role.ASSISTANT:
            return _encode_assistant(message)


def _encode_assistant(message: Message) -> ChatCompletionMessageParam:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content}
    return {
        "role": "assistant",
        "content": message.content or None,
        "tool_calls": [
            {
                "type": "function",
                "id": call.id,
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
                },
            }
            for call in message.tool_calls
        ],
    }


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
        try:
            value = whole_json(self.arguments or "{}")
        except json.JSONDecodeError, RecursionError:
            return None
        return value if isinstance(value, dict) else None


class _ToolCalls:
    """Puts the fragments of tool calls together, in every shape that servers send them in.

    OpenAI numbers its calls and names each once. Ollama numbers every parallel call 0 and gives each a new id, others
    leave out the number or the id, or send the arguments as an object: https://github.com/ollama/ollama/issues/15457
    """

    def __init__(self, taken_ids: set[str]) -> None:
        self._taken_ids = taken_ids
        self._calls: list[_OpenCall] = []

    def add(self, fragment: ChoiceDeltaToolCall) -> Iterator[Event]:
        """Take a fragment; a whole JSON object cannot grow, so it is announced at once."""
        call = self._call_of(fragment)
        arguments: object = fragment.function.arguments if fragment.function else None
        if isinstance(arguments, dict):
            call.arguments = json.dumps(arguments)
        else:
            call.arguments += _text(arguments)
        if call.arguments.endswith("}") and call.parsed():
            yield from self._announce(call)

    def finish(self) -> Iterator[Event]:
        """Announce what is left, among it calls without arguments; raises `BadStream` for half a call."""
        for call in self._calls:
            yield from self._announce(call)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def _call_of(self, fragment: ChoiceDeltaToolCall) -> _OpenCall:
        name = _text(fragment.function.name if fragment.function else None)
        if not self._starts_new(fragment, name):
            return next(call for call in reversed(self._calls) if fragment.index in (call.index, None))
        call = _OpenCall(fragment.index, _text(fragment.id), name)
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
        yield ToolCallDone(ToolCall(self._unique(call.id), call.name, arguments))

    def _unique(self, call_id: str) -> str:
        """Return the server's id, or one of ours where it has none or used it before."""
        if not call_id or call_id in self._taken_ids:
            call_id = f"call_{uuid4().hex}"
        self._taken_ids.add(call_id)
        return call_id


class _Decoder:
    """Chunks in, events out. The terminal marker is a finish reason; the usage comes in a chunk after it."""

    def __init__(self, request: Request) -> None:
        taken = {call.id for message in request.messages for call in message.tool_calls}
        self._tool_calls = _ToolCalls(taken)
        self._text = WholeCharacters()
        self._reasoning = WholeCharacters()
        self._usage: Usage | None = None
        self._refused = False
        self.finish_reason: str | None = None

    def on_chunk(self, chunk: ChatCompletionChunk) -> Iterator[Event]:
        if chunk.usage:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            yield from self._on_choice(choice)

    def _on_choice(self, choice: Choice) -> Iterator[Event]:
        if choice.delta:
            yield from self._on_delta(choice.delta)
        if choice.finish_reason and not self.finish_reason:
            self.finish_reason = _text(choice.finish_reason)
            if self.finish_reason not in ("length", "content_filter"):
                yield from self._tool_calls.finish()

    def _on_delta(self, delta: ChoiceDelta) -> Iterator[Event]:
        extra = delta.model_extra or {}
        for field in _REASONING_FIELDS:
            if isinstance(thought := extra.get(field), str) and thought:
                if whole := self._reasoning.feed(thought):
                    yield ReasoningDelta(whole)
                break
        if text := self._text.feed(_text(delta.content)):
            yield TextDelta(text)
        if delta.refusal:
            self._refused = True
        for fragment in delta.tool_calls or ():
            yield from self._tool_calls.add(fragment)

    def on_end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event; raises what the end of the stream means."""
        if self._usage:
            yield self._usage
        if self.finish_reason is None:
            raise BadStream("the stream ended without a finish reason")
        if self.finish_reason == "length":
            raise Incomplete("finish reason length")
        if self.finish_reason == "content_filter" or self._refused:
            raise Refused(f"finish reason {self.finish_reason}")
        reason = FinishReason.TOOL_CALLS if self._tool_calls else FinishReason.STOP
        yield Finished(reason, self.finish_reason)


def _decoded(decoder: _Decoder, chunk: ChatCompletionChunk) -> list[Event]:
    """Return the chunk's events. The SDK does not check what it parses, so a field may be of any type."""
    try:
        return list(decoder.on_chunk(chunk))
    except (AttributeError, TypeError, ValueError) as err:
        raise BadStream(f"an event is not of the expected form ({type(err).__name__})") from err


def _text(value: object) -> str:
    """Return a text, empty for null; raises `TypeError` for anything else."""
    if not isinstance(value, str | None):
        raise TypeError("not a text")
    return value or ""


def _usage(usage: object) -> Usage:
    """Return the usage; what is no number counts as none, for a figure must not cost the answer."""
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input=_tokens(usage, "prompt_tokens"),
        cached=_tokens(details, "cached_tokens"),
        output=_tokens(usage, "completion_tokens"),
    )


def _tokens(figures: object, name: str) -> int:
    value = getattr(figures, name, None)
    return value if isinstance(value, int) else 0


class ChatCompletions:
    """A provider over an `AsyncOpenAI` client, which stays its owner's."""

    name = "openai_chat"

    def __init__(self, client: AsyncOpenAI) -> None:
        # The client imports these where they are first asked for, which would be in the event loop.
        self._completions = AsyncCompletions(client)
        self._models = AsyncModels(client)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        decoder = _Decoder(request)
        with provider_errors():
            chunks = await self._completions.create(
                model=request.model,
                messages=encode_messages(request.messages),
                stream=True,
                stream_options={"include_usage": True},
                tools=encode_tools(request.tools) or omit,
            )
            async with chunks:
                try:
                    async for chunk in chunks:
                        for event in _decoded(decoder, chunk):
                            yield event
                except ProviderError:
                    raise
                except Exception:
                    # the answer is whole: a connection that breaks before the usage costs the usage only
                    if decoder.finish_reason is None:
                        raise
        for event in decoder.on_end():
            yield event

    def caching(self, request: Request) -> Mapping[str, Any]:
        """See `Provider.caching`: compatible servers find what begins alike without being asked."""
        return {}

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`."""
        with provider_errors():
            try:
                page = await self._models.list(timeout=_MODEL_LIST_TIMEOUT)
            except AttributeError as err:
                # the SDK takes any text and any JSON for a page, and then finds that it is none
                raise BadStream("the server does not list models") from err
        models = getattr(page, "data", None)
        if not isinstance(models, list) or not all(isinstance(getattr(m, "id", None), str) for m in models):
            raise BadStream("the server does not list models")
        return [ListedModel(model_id) for model_id in sorted(model.id for model in models)]
