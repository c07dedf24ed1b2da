"""Decode the stream of Anthropic's Messages API, and map the errors of the API and the SDK to `ProviderError`s.

Blocks are identified by their index. Unknown types of events, blocks and deltas are skipped. Errors are classified by
status, type and code, never by message text.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import anthropic

from .. import errors
from ..decoder import Arguments, Decoder, finish_reason
from ..encoder import sent_name
from ..events import Event, ReasoningDelta, Request, TextDelta, Usage
from ..json_values import SurrogateJoiner, code_of, count_or_none, member, objects, text_of
from ..sizes import named_context_tokens
from ..transport import sdk_errors
from .encoding import THINKING, Block, argument_names, cleared_tokens, may_be_too_long, rename_keys

# The error types of the API: https://platform.claude.com/docs/en/api/errors
_BY_TYPE: dict[str, type[errors.ProviderError]] = {
    "api_error": errors.Unavailable,
    "authentication_error": errors.AuthError,
    "billing_error": errors.QuotaError,
    "invalid_request_error": errors.BadRequest,
    "not_found_error": errors.ModelNotFound,
    "overloaded_error": errors.Unavailable,
    "permission_error": errors.AuthError,
    "rate_limit_error": errors.RateLimited,
    "request_too_large": errors.ContextOverflow,
    "timeout_error": errors.DeadlineExceeded,
}

# Error types that explain nothing. A proxy may send no type at all.
_GENERIC = ("", "invalid_request_error")

# Codes that are more specific than their error type: the API reports these as rate limits.
_BY_CODE: dict[str, type[errors.ProviderError]] = {
    "contract_spend_limit_reached": errors.QuotaError,
    "enforced_spend_limit_reached": errors.QuotaError,
}

# Newer SDK versions import this and about a hundred other modules at their first error: that blocks the event loop.
_ERROR_DETAILS = "anthropic.types.shared.error_details"
if find_spec(_ERROR_DETAILS):
    import_module(_ERROR_DETAILS)

# Stop reasons of incomplete answers. `pause_turn` is for tools that the server itself runs; this provider offers none.
_CUT_OFF: dict[str, type[errors.ProviderError]] = {
    "max_tokens": errors.Incomplete,
    "pause_turn": errors.Incomplete,
    "refusal": errors.Refused,
    "model_context_window_exceeded": errors.ContextOverflow,
}

_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_DETAILS = ("thinking_tokens",)


def provider_errors(request: Request | None = None) -> AbstractContextManager[None]:
    """Convert every error of the SDK and its HTTP client into a `ProviderError`. `request` is the sent request."""
    return sdk_errors(anthropic, lambda err: _error(err.status_code, err.body, err.response.headers, request))


def error_in_event(event: object) -> errors.ProviderError:
    """Return the `ProviderError` for an event, or a complete answer, that reports an error."""
    return _error(HTTPStatus.OK, event, {}, None)


def _error(status: int, body: object, headers: Mapping[str, str], request: Request | None) -> errors.ProviderError:
    # If the error is plain text, it has neither a type nor a code.
    error = member(body, "error")
    kind, code = code_of(member(error, "type")), code_of(member(member(error, "details"), "error_code"))
    # "prompt is too long" has no type or code of its own, so a request about as long as the context counts as too long.
    is_generic = kind in _GENERIC
    return errors.server_error(
        status,
        code or kind,
        _BY_CODE.get(code) or _BY_TYPE.get(kind),
        delay=errors.retry_after(headers),
        context_tokens=named_context_tokens(error),
        may_be_too_long=lambda: is_generic and request is not None and may_be_too_long(request),
    )


@dataclass(slots=True)
class _OpenBlock:
    """A content block that is still arriving; `content` is the content of its first event."""

    type: str
    content: Any
    characters: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    is_blank: bool = True
    thought: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    arguments: Arguments | None = None

    def residue(self) -> Iterator[Block]:
        """Yield the block exactly as it must be sent back. Of a text or a call, only its position is kept."""
        match self.type:
            case "thinking" if any(self.signature):
                yield {"type": "thinking", "thinking": "".join(self.thought), "signature": "".join(self.signature)}
            case "redacted_thinking":
                yield {"type": "redacted_thinking", "data": text_of(self.content.get("data"))}
            case "text" if not self.is_blank:
                yield {"type": "text"}
            case "tool_use":
                yield {"type": "tool_use"}


class MessageDecoder(Decoder):
    """Decodes one answer. The terminal marker is `message_stop`. `thinks`: whether the request enabled thinking."""

    def __init__(self, request: Request, *, thinks: bool) -> None:
        super().__init__(request)
        self._thinks = thinks
        self._own_arguments = {
            sent_name(tool): {sent: own for own, sent in names.items()}
            for tool, names in argument_names(request.tools).items()
        }
        self._blocks: dict[int, _OpenBlock] = {}
        # Tool calls that have not been announced yet, with their arguments.
        self._pending: list[tuple[_OpenBlock, Arguments]] = []
        self._residue_blocks: list[Block] = []
        self._counts: dict[str, int] = {}
        self._cleared = 0
        self._category = ""

    def as_stream(self, answer: Any) -> Iterator[Any]:
        """Return the events of an unstreamed answer: the start of the message, its blocks, and its end."""
        if member(answer, "type") != "message":
            yield answer
            return
        yield {"type": "message_start", "message": answer}
        for index, block in enumerate(objects(member(answer, "content"))):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": answer, "usage": member(answer, "usage")}
        yield {"type": "message_stop"}

    def on_event(self, event: Any) -> Sequence[Event]:
        """Return the events for one event of the server's message, see `Decoder.on_event`."""
        match text_of(event.get("type")):
            case "content_block_delta":
                return self._on_delta(self._blocks[event["index"]], event["delta"])
            case "content_block_start":
                return self._on_start(event["index"], event["content_block"])
            case "content_block_stop":
                return self._on_stop(event["index"])
            case "message_start":
                self._on_message_start(event.get("message"))
            case "message_delta":
                self._cleared += cleared_tokens(event)
                self._on_usage(event.get("usage"))
                return self._on_stop_reason(event["delta"])
            case "message_stop":
                return self._on_message_stop()
            case "error" if not self.is_complete:
                raise error_in_event(event)
        return ()

    def _on_message_start(self, message: object) -> None:
        """Start an answer, or restart it: a proxy may have sent the request again in the middle of an answer."""
        self._blocks.clear()
        self._pending.clear()
        self._residue_blocks.clear()
        self._on_usage(member(message, "usage"))
        if member(message, "type") == "error":
            raise error_in_event(message)

    def _on_start(self, index: int, content: Any) -> Sequence[Event]:
        block = self._blocks[index] = _OpenBlock(text_of(content.get("type")), content)
        match block.type:
            case "text":
                return self._on_block_text(block, content.get("text"))
            case "thinking":
                block.signature.append(text_of(content.get("signature")))
                return self._on_thinking(block, content.get("thinking"))
            case "tool_use":
                block.arguments = self._calls.begin()
        return ()

    def _on_delta(self, block: _OpenBlock, delta: Any) -> Sequence[Event]:
        match text_of(delta.get("type")):
            case "text_delta":
                return self._on_block_text(block, delta.get("text"))
            case "thinking_delta":
                return self._on_thinking(block, delta.get("thinking"))
            case "signature_delta":
                block.signature.append(text_of(delta.get("signature")))
            case "input_json_delta":
                fragment = text_of(delta.get("partial_json"))
                # Tools that the server itself runs have no arguments to collect.
                if block.arguments:
                    block.arguments.add(fragment)
        return ()

    def _on_block_text(self, block: _OpenBlock, text: object) -> Sequence[Event]:
        whole = block.characters.feed(text_of(text))
        block.is_blank = block.is_blank and not whole.strip()
        return (TextDelta(whole),) if whole else ()

    def _on_thinking(self, block: _OpenBlock, thought: object) -> Sequence[Event]:
        whole = block.characters.feed(text_of(thought))
        block.thought.append(whole)
        return (ReasoningDelta(whole),) if whole else ()

    def _on_stop(self, index: int) -> Sequence[Event]:
        block = self._blocks.pop(index)
        self._residue_blocks += block.residue()
        if block.arguments is None:
            return ()
        block.arguments.add_if_empty(block.content.get("input"))
        self._pending.append((block, block.arguments))
        return self._announce() if all(arguments.value() for _, arguments in self._pending) else ()

    def _on_stop_reason(self, delta: Any) -> Sequence[Event]:
        reason = text_of(delta.get("stop_reason"))
        if not reason:
            return ()
        self._ended = finish_reason(reason)
        self._category = code_of(member(delta.get("stop_details"), "category"))
        return () if reason in _CUT_OFF else self._announce()

    def _on_message_stop(self) -> Sequence[Event]:
        self.is_complete = True
        if self._ended in _CUT_OFF:
            return ()
        left = [event for index in list(self._blocks) for event in self._on_stop(index)]
        return (*left, *self._announce())

    def _announce(self) -> Sequence[Event]:
        """Return the events of the pending calls. Raises `BadStream` for an incomplete call.

        A call without arguments stays pending until the stop reason shows that they were not cut off.
        """
        pending, self._pending = self._pending, []
        events = []
        for block, arguments in pending:
            name, value = text_of(block.content.get("name")), arguments.value()
            if value and name in self._own_arguments:
                value = rename_keys(value, self._own_arguments[name])
            events.append(self._calls.announce(text_of(block.content.get("id")), name, value))
        return events

    def _on_usage(self, usage: object) -> None:
        """Update the usage. Each count is a running total; a missing count keeps its last value."""
        details = member(usage, "output_tokens_details")
        for source, names in ((usage, _USAGE), (details, _DETAILS)):
            for name in names:
                if (tokens := count_or_none(member(source, name))) is not None:
                    self._counts[name] = tokens
        if not self._counts:
            return
        # Anthropic's input tokens exclude the tokens that were read from the cache or written to it.
        read, cached, cache_written, output, reasoning = (self._counts.get(name, 0) for name in (*_USAGE, *_DETAILS))
        self._usage = Usage(read + cached + cache_written, cached, output, cache_written, reasoning, self._cleared)

    def _error(self) -> errors.ProviderError | None:
        kind, message = _CUT_OFF.get(self._ended), f"stop reason {self._ended}"
        if kind is None or not self.is_complete:
            return super()._error()
        return errors.Refused(message, self._category) if kind is errors.Refused else kind(message)

    def _residue(self) -> list[Block] | None:
        """Return the blocks to send back; an empty list marks the answer if the model could think but did not."""
        if any(block["type"] in THINKING for block in self._residue_blocks):
            return self._residue_blocks
        return [] if self._thinks else None
