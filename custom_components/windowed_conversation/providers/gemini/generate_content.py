"""The Gemini format: `streamGenerateContent`, one whole request each time, never a session of the SDK's.

Decoding is one small step per part. Requests are written in `encoding`, errors are mapped in `errors`;
who builds the client, and with which key, is not decided here.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
import json
from typing import Any
from uuid import uuid4

from google.genai.models import AsyncModels
from google.genai.types import (
    Candidate,
    Content,
    CountTokensConfig,
    FunctionCall,
    GenerateContentResponse,
    HttpOptions,
    ListModelsConfig,
    Model,
    Part,
)

from ...window import ToolCall
from ...window.figures import is_figure
from ..characters import WholeCharacters, whole_json
from ..errors import BadStream, Incomplete, Refused
from ..events import (
    Event,
    Finished,
    FinishReason,
    ListedModel,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    Usage,
)
from ..sizes import fills_context
from ..whole_answers import late_events
from .closing import closing_its_source
from .encoding import encode_config, encode_contents, encode_system, encode_tools, names_of
from .errors import provider_errors
from .residue import NAME, Residue, SignedText

_SHORT_ANSWER = HttpOptions(timeout=10_000)  # milliseconds
_MODELS_PER_PAGE = 1000
_GENERATES = "generateContent"

# The SDK wants contents, in the place of which its options then put the conversation's.
_PLACE = " "

_STOP = "STOP"
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"
# https://ai.google.dev/api/generate-content#FinishReason; what is in neither, also what is new, is no whole answer.
_CUT_OFF = {"MAX_TOKENS", "CONTINUATION"}
_DECLINED = {
    "BLOCKLIST",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "LANGUAGE",
    "MODEL_ARMOR",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
}


class _Decoder:
    """Chunks in, events out. The terminal marker is a finish reason; every chunk has the usage so far."""

    def __init__(self, request: Request) -> None:
        self._names = names_of(request)
        self._taken_ids = {call.id for message in request.messages for call in message.tool_calls}
        self._text = WholeCharacters()
        self._reasoning = WholeCharacters()
        self._length = 0
        self._signed: list[tuple[int, int, bytes]] = []
        self._ids: dict[str, str] = {}
        self._signatures: dict[str, bytes] = {}
        self._calls = 0
        self._blocked: str | None = None
        self._usage: Usage | None = None
        self.finish_reason = ""

    def on_chunk(self, chunk: GenerateContentResponse) -> Iterator[Event]:
        if chunk.usage_metadata:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._blocked = _code(chunk.prompt_feedback.block_reason)
        for candidate in chunk.candidates or ():
            yield from self._on_candidate(candidate)

    def _on_candidate(self, candidate: Candidate) -> Iterator[Event]:
        for part in (candidate.content.parts if candidate.content else None) or ():
            yield from self._on_part(part)
        if candidate.finish_reason and candidate.finish_reason != _UNSPECIFIED:
            self.finish_reason = _code(candidate.finish_reason)

    def _on_part(self, part: Part) -> Iterator[Event]:
        if part.function_call:
            yield self._on_call(part.function_call, part.thought_signature)
        elif part.text is None:
            return
        elif part.thought:
            if thought := self._reasoning.feed(part.text):
                yield ReasoningDelta(thought)
        else:
            yield from self._on_text(part.text, part.thought_signature)

    def _on_text(self, text: str, signature: bytes | None) -> Iterator[Event]:
        start = self._length
        if whole := self._text.feed(text):
            self._length += len(whole)
            yield TextDelta(whole)
        if signature:
            self._signed.append((start, self._length, signature))

    def _on_call(self, call: FunctionCall, signature: bytes | None) -> Event:
        if not call.name:
            raise BadStream("a tool call without a name")
        arguments = whole_json(json.dumps(call.args or {}))
        call_id = call.id if call.id and call.id not in self._taken_ids else f"call_{uuid4().hex}"
        self._taken_ids.add(call_id)
        if call.id:
            self._ids[call_id] = call.id
        if signature:
            self._signatures[call_id] = signature
        self._calls += 1
        return ToolCallDone(ToolCall(call_id, self._names.get(call.name, call.name), arguments))

    def on_end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event; raises what the end of the stream means."""
        if self._usage:
            yield self._usage
        if self._blocked is not None:
            raise Refused(f"the prompt was blocked, reason {self._blocked or 'none'}", self._blocked)
        if not self.finish_reason:
            raise BadStream("the stream ended without a finish reason")
        if self.finish_reason in _CUT_OFF:
            raise Incomplete(f"finish reason {self.finish_reason}")
        if self.finish_reason in _DECLINED:
            raise Refused(f"finish reason {self.finish_reason}", self.finish_reason)
        if self.finish_reason != _STOP:
            raise BadStream(f"finish reason {self.finish_reason}")
        reason = FinishReason.TOOL_CALLS if self._calls else FinishReason.STOP
        yield Finished(reason, self.finish_reason, self._residue().as_json())

    def _residue(self) -> Residue:
        length = self._length
        texts = (SignedText(length - start, length - end, signature) for start, end, signature in self._signed)
        return Residue(self._ids, self._signatures, tuple(texts))


def _code(value: str) -> str:
    """Return the code of an enum, also of a value that the SDK does not know; a text is no code."""
    code = str(getattr(value, "value", value))
    return code if code.isidentifier() else "UNKNOWN"


def _usage(figures: Any) -> Usage:
    thoughts = _tokens(figures.thoughts_token_count)
    return Usage(
        input=_tokens(figures.prompt_token_count) + _tokens(figures.tool_use_prompt_token_count),
        cached=_tokens(figures.cached_content_token_count),
        output=_tokens(figures.candidates_token_count) + thoughts,
        reasoning=thoughts,
    )


def _tokens(value: object) -> int:
    return value if is_figure(value) else 0


class Gemini:
    """A provider over the models of a client of Google's SDK, which stays its owner's."""

    name = NAME

    def __init__(self, models: AsyncModels) -> None:
        self._models = models

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `Provider.stream`."""
        decoder = _Decoder(request)
        with provider_errors(lambda: fills_context(request)):
            config = encode_config(request, HttpOptions(extra_body=_conversation(request)))
            chunks = await self._models.generate_content_stream(model=request.model, contents=_PLACE, config=config)
            async with aclosing(closing_its_source(chunks)) as open_chunks:
                async for chunk in open_chunks:
                    for event in decoder.on_chunk(chunk):
                        yield event
                    if decoder.finish_reason:
                        break
                while decoder.finish_reason and (late := await late_events(open_chunks, decoder.on_chunk)):
                    for event in late:
                        yield event
        for event in decoder.on_end():
            yield event

    def caching(self, request: Request) -> Mapping[str, Any]:
        """See `Provider.caching`: the implicit cache finds what begins alike without being asked."""
        return {}

    async def list_models(self) -> list[ListedModel]:
        """See `Provider.list_models`; models that do not generate text are left out."""
        with provider_errors():
            config = ListModelsConfig(page_size=_MODELS_PER_PAGE, http_options=_SHORT_ANSWER)
            models = [model async for model in await self._models.list(config=config)]
        if not models:
            # Google always lists some; the SDK takes any JSON object for a page, and one without models for the last
            raise BadStream("the server does not list models")
        return sorted((_listed(model) for model in models if _generates(model)), key=lambda each: each.id)

    async def count_tokens(self, request: Request) -> int:
        """See `CountsTokens.count_tokens`."""
        with provider_errors(lambda: fills_context(request)):
            options = HttpOptions(timeout=_SHORT_ANSWER.timeout, extra_body=_counted(request))
            response = await self._models.count_tokens(
                model=request.model, contents=_PLACE, config=CountTokensConfig(http_options=options)
            )
        if response.total_tokens is None:
            raise BadStream("the server does not count tokens")
        return response.total_tokens


def _conversation(request: Request) -> dict[str, Any]:
    """Return what of a request's body grows with the conversation, and the tools.

    As arguments the SDK would go through every value of them three times, in the event loop, for ever longer.
    """
    contents = [_as_json(content) for content in encode_contents(request)]
    tools = [_as_json(tool) for tool in encode_tools(request.tools)]
    return {"contents": contents, "tools": tools} if tools else {"contents": contents}


def _counted(request: Request) -> dict[str, Any]:
    """Return the body that counts a whole request.

    The SDK refuses a system instruction and tools with this API, which takes them in a request inside of the request
    and then no contents beside it: https://ai.google.dev/api/tokens#request-body
    """
    model = request.model if "/" in request.model else f"models/{request.model}"
    system = encode_system(request.messages)
    inner = {
        "model": model,
        "systemInstruction": _as_json(Content(parts=[Part(text=system)])) if system else None,
        **_conversation(request),
    }
    return {"contents": [], "generateContentRequest": {key: value for key, value in inner.items() if value}}


def _as_json(value: Any) -> dict[str, Any]:
    body: dict[str, Any] = value.model_dump(by_alias=True, exclude_none=True, mode="json")
    return body


def _generates(model: Model) -> bool:
    return model.supported_actions is None or _GENERATES in model.supported_actions


def _listed(model: Model) -> ListedModel:
    if not model.name:
        raise BadStream("a listed model has no name")
    return ListedModel(model.name.removeprefix("models/"), model.input_token_limit, model.output_token_limit)
