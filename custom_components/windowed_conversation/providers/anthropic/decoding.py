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
from ..decoder import CallArguments, Decoder, sanitize_finish_reason
from ..encoder import encode_name
from ..events import Event, ReasoningDelta, Request, TextDelta, Usage
from ..json_values import SurrogateJoiner, as_code, as_text, count_or_none, get_member, get_objects
from ..sizes import read_context_tokens
from ..transport import map_errors
from .encoding import (
    SEARCH_TYPES,
    THINKING_TYPES,
    Block,
    count_cleared_tokens,
    map_argument_names,
    may_be_too_long,
    rename_keys,
)

# The error types of the API: https://platform.claude.com/docs/en/api/errors
_ERROR_BY_TYPE: dict[str, type[errors.ProviderError]] = {
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
_GENERIC_ERROR_TYPES = ("", "invalid_request_error")

# Codes that are more specific than their error type: the API reports these as rate limits.
_ERROR_BY_CODE: dict[str, type[errors.ProviderError]] = {
    "contract_spend_limit_reached": errors.QuotaError,
    "enforced_spend_limit_reached": errors.QuotaError,
}

# Newer SDK versions import this and about a hundred other modules at their first error: that blocks the event loop.
_ERROR_DETAILS_MODULE = "anthropic.types.shared.error_details"
if find_spec(_ERROR_DETAILS_MODULE):
    import_module(_ERROR_DETAILS_MODULE)

_PAUSE_REASON = "pause_turn"
# The server pauses a long answer with searches, and continues it once it is sent back. More pauses are an error.
_MAX_PAUSES = 5

# Stop reasons of incomplete answers.
_ERROR_BY_STOP_REASON: dict[str, type[errors.ProviderError]] = {
    "max_tokens": errors.Incomplete,
    _PAUSE_REASON: errors.Incomplete,
    "refusal": errors.AnswerRefused,
    "model_context_window_exceeded": errors.ContextOverflow,
}

_USAGE_FIELDS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_USAGE_DETAIL_FIELDS = ("thinking_tokens",)
_USAGE_SEARCH_FIELDS = ("web_search_requests",)


def convert_errors(request: Request | None = None) -> AbstractContextManager[None]:
    """Convert every error of the SDK and its HTTP client into a `ProviderError`. `request` is the sent request."""
    return map_errors(anthropic, lambda err: _make_error(err.status_code, err.body, err.response.headers, request))


def convert_error_event(event: object) -> errors.ProviderError:
    """Return the `ProviderError` for an event, or a complete answer, that reports an error."""
    return _make_error(HTTPStatus.OK, event, {}, None)


def _make_error(status: int, body: object, headers: Mapping[str, str], request: Request | None) -> errors.ProviderError:
    # If the error is plain text, it has neither a type nor a code.
    error = get_member(body, "error")
    kind, code = as_code(get_member(error, "type")), as_code(get_member(get_member(error, "details"), "error_code"))
    # "prompt is too long" has no type or code of its own, so a request about as long as the context counts as too long.
    is_generic = kind in _GENERIC_ERROR_TYPES
    return errors.build_server_error(
        status,
        code or kind,
        _ERROR_BY_CODE.get(code) or _ERROR_BY_TYPE.get(kind),
        delay=errors.parse_retry_after(headers),
        context_tokens=read_context_tokens(error),
        may_be_too_long=lambda: is_generic and request is not None and may_be_too_long(request),
    )


@dataclass(slots=True)
class _OpenBlock:
    """A content block that is still arriving; `content` is the content of its first event."""

    type: str
    content: Any
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    is_blank: bool = True
    text_fragments: list[str] = field(default_factory=list)
    citations: list[Any] = field(default_factory=list)
    thought_fragments: list[str] = field(default_factory=list)
    signature_fragments: list[str] = field(default_factory=list)
    arguments: CallArguments | None = None

    def iter_native_blocks(self) -> Iterator[Block]:
        """Yield the block as it must be sent back. A call or a text that is not kept only marks its position."""
        match self.type:
            case "thinking" if any(self.signature_fragments):
                yield {
                    "type": "thinking",
                    "thinking": "".join(self.thought_fragments),
                    "signature": "".join(self.signature_fragments),
                }
            case "redacted_thinking":
                yield {"type": "redacted_thinking", "data": as_text(self.content.get("data"))}
            case "text" if not self.is_blank:
                text = {"text": "".join(self.text_fragments)} if self.text_fragments else {}
                yield {"type": "text", **text, **({"citations": self.citations} if self.citations else {})}
            case "server_tool_use":
                given = (self.arguments and self.arguments.parse()) or self.content.get("input") or {}
                yield {name: self.content[name] for name in ("type", "id", "name")} | {"input": given}
            case "web_search_tool_result" | "web_fetch_tool_result":
                yield {name: self.content[name] for name in ("type", "tool_use_id", "content")}
            case "tool_use":
                yield {"type": "tool_use"}


class MessageDecoder(Decoder):
    """Decodes one answer. The terminal marker is `message_stop`. `thinks`: whether the request enabled thinking."""

    def __init__(self, request: Request, *, thinks: bool) -> None:
        super().__init__(request)
        self._thinking_enabled = thinks
        self._own_argument_names = {
            encode_name(tool): {sent: own for own, sent in names.items()}
            for tool, names in map_argument_names((*request.tools, *request.deferred_tools)).items()
        }
        self._keeps_text = request.web_search is not None
        self._pauses = 0
        # The blocks and the usage before the newest pause.
        self._paused_blocks: list[Block] = []
        self._paused_usage = Usage()
        self._blocks: dict[int, _OpenBlock] = {}
        # Tool calls that have not been announced yet, with their arguments.
        self._pending_calls: list[tuple[_OpenBlock, CallArguments]] = []
        self._native_blocks: list[Block] = []
        self._usage_counts: dict[str, int] = {}
        self._cleared = 0
        self._refusal_category = ""

    def to_stream_events(self, answer: Any) -> Iterator[Any]:
        """Return the events of an unstreamed answer: the start of the message, its blocks, and its end."""
        if get_member(answer, "type") != "message":
            yield answer
            return
        yield {"type": "message_start", "message": answer}
        for index, block in enumerate(get_objects(get_member(answer, "content"))):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": answer, "usage": get_member(answer, "usage")}
        yield {"type": "message_stop"}

    def on_event(self, event: Any) -> Sequence[Event]:
        """Return the events for one event of the server's message, see `Decoder.on_event`."""
        match as_text(event.get("type")):
            case "content_block_delta":
                return self._on_block_delta(self._blocks[event["index"]], event["delta"])
            case "content_block_start":
                return self._on_block_start(event["index"], event["content_block"])
            case "content_block_stop":
                return self._on_block_stop(event["index"])
            case "message_start":
                self._on_message_start(event.get("message"))
            case "message_delta":
                self._cleared += count_cleared_tokens(event)
                self._on_usage(event.get("usage"))
                return self._on_stop_reason(event["delta"])
            case "message_stop":
                return self._on_message_stop()
            case "error" if not self.is_complete:
                raise convert_error_event(event)
        return ()

    @property
    def is_paused(self) -> bool:
        """Whether the server has paused the answer, and can continue it."""
        can_resume = self._pauses < _MAX_PAUSES and self._searches.can_send_back and not self._calls.count
        return self.is_complete and self._native_reason == _PAUSE_REASON and can_resume

    def resume(self) -> list[Block]:
        """Prepare for the rest of a paused answer, which arrives as a new message. Return the blocks to send back."""
        self._pauses += 1
        self.is_complete, self._native_reason = False, ""
        self._paused_usage, self._paused_blocks = self._usage or Usage(), [*self._native_blocks]
        self._usage_counts.clear()
        self._cleared = 0
        return self._paused_blocks

    def on_end(self) -> Iterator[Event]:
        """Yield the last events of the answer, see `Decoder.on_end`, or none if it is paused."""
        if not self.is_paused:
            yield from super().on_end()

    def _on_message_start(self, message: object) -> None:
        """Start an answer, or restart it: a proxy may have sent the request again in the middle of an answer."""
        self._blocks.clear()
        self._pending_calls.clear()
        self._native_blocks[:] = self._paused_blocks
        self._on_usage(get_member(message, "usage"))
        if get_member(message, "type") == "error":
            raise convert_error_event(message)

    def _on_block_start(self, index: int, content: Any) -> Sequence[Event]:
        block = self._blocks[index] = _OpenBlock(as_text(content.get("type")), content)
        match block.type:
            case "text":
                return self._on_block_text(block, content.get("text"))
            case "thinking":
                block.signature_fragments.append(as_text(content.get("signature")))
                return self._on_thinking(block, content.get("thinking"))
            case "tool_use":
                block.arguments = self._calls.begin_call()
            case "web_fetch_tool_result":
                page = content.get("content")
                self._searches.add_source(get_member(page, "url"), get_member(get_member(page, "content"), "title"))
            case "server_tool_use":
                block.arguments = CallArguments(self._calls)
                self._is_after_search = True
        return ()

    def _on_block_delta(self, block: _OpenBlock, delta: Any) -> Sequence[Event]:
        match as_text(delta.get("type")):
            case "text_delta":
                return self._on_block_text(block, delta.get("text"))
            case "thinking_delta":
                return self._on_thinking(block, delta.get("thinking"))
            case "signature_delta":
                block.signature_fragments.append(as_text(delta.get("signature")))
            case "input_json_delta":
                fragment = as_text(delta.get("partial_json"))
                if block.arguments:
                    block.arguments.add_fragment(fragment)
            case "citations_delta" if self._keeps_text:
                citation = delta["citation"]
                self._searches.add_source(citation.get("url"), citation.get("title"))
                block.citations.append(self._searches.prepare_item(citation))
        return ()

    def _on_block_text(self, block: _OpenBlock, text: object) -> Sequence[Event]:
        whole = block.joiner.feed(as_text(text))
        block.is_blank = block.is_blank and not whole.strip()
        if self._keeps_text:
            block.text_fragments.append(whole)
        return (TextDelta(self._separate_from_search(whole)),) if whole else ()

    def _on_thinking(self, block: _OpenBlock, thought: object) -> Sequence[Event]:
        whole = block.joiner.feed(as_text(thought))
        block.thought_fragments.append(whole)
        return (ReasoningDelta(whole),) if whole else ()

    def _on_block_stop(self, index: int) -> Sequence[Event]:
        block = self._blocks.pop(index)
        for native in block.iter_native_blocks():
            self._native_blocks.append(
                self._searches.prepare_item(native) if native["type"] in SEARCH_TYPES else native
            )
        if block.arguments is None or block.type != "tool_use":
            return ()
        block.arguments.add_if_empty(block.content.get("input"))
        self._pending_calls.append((block, block.arguments))
        return self._finish_calls() if all(arguments.parse() for _, arguments in self._pending_calls) else ()

    def _on_stop_reason(self, delta: Any) -> Sequence[Event]:
        reason = as_text(delta.get("stop_reason"))
        if not reason:
            return ()
        self._native_reason = sanitize_finish_reason(reason)
        self._refusal_category = as_code(get_member(delta.get("stop_details"), "category"))
        return () if reason in _ERROR_BY_STOP_REASON else self._finish_calls()

    def _on_message_stop(self) -> Sequence[Event]:
        self.is_complete = True
        if self._native_reason in _ERROR_BY_STOP_REASON:
            return ()
        left = [event for index in list(self._blocks) for event in self._on_block_stop(index)]
        return (*left, *self._finish_calls())

    def _finish_calls(self) -> Sequence[Event]:
        """Return the events of the pending calls. Raises `BadStream` for an incomplete call.

        A call without arguments stays pending until the stop reason shows that they were not cut off.
        """
        pending, self._pending_calls = self._pending_calls, []
        events = []
        for block, arguments in pending:
            name, value = as_text(block.content.get("name")), arguments.parse()
            if value and name in self._own_argument_names:
                value = rename_keys(value, self._own_argument_names[name])
            events.append(self._calls.finish_call(as_text(block.content.get("id")), name, value))
        return events

    def _on_usage(self, usage: object) -> None:
        """Update the usage. Each count is a running total; a missing count keeps its last value."""
        details, searches = get_member(usage, "output_tokens_details"), get_member(usage, "server_tool_use")
        named = ((usage, _USAGE_FIELDS), (details, _USAGE_DETAIL_FIELDS), (searches, _USAGE_SEARCH_FIELDS))
        for source, names in named:
            for name in names:
                if (tokens := count_or_none(get_member(source, name))) is not None:
                    self._usage_counts[name] = tokens
        if not self._usage_counts:
            return
        # Anthropic's input tokens exclude the tokens that were read from the cache or written to it.
        read, cached, cache_written, output, reasoning, searched = (
            self._usage_counts.get(name, 0) for name in (*_USAGE_FIELDS, *_USAGE_DETAIL_FIELDS, *_USAGE_SEARCH_FIELDS)
        )
        billed = Usage(read + cached + cache_written, cached, output, cache_written, reasoning, self._cleared, searched)
        self._usage = self._paused_usage + billed

    def _final_error(self) -> errors.ProviderError | None:
        kind, message = _ERROR_BY_STOP_REASON.get(self._native_reason), f"stop reason {self._native_reason}"
        if kind is None or not self.is_complete:
            return super()._final_error()
        return errors.AnswerRefused(message, self._refusal_category) if kind is errors.AnswerRefused else kind(message)

    def _native_value(self) -> list[Block] | None:
        """Return the blocks to send back; an empty list marks the answer if the model could think but did not."""
        lasting = [block for block in self._native_blocks if block and block["type"] not in SEARCH_TYPES]
        if any(block["type"] in THINKING_TYPES for block in lasting):
            return [{"type": "text"} if block["type"] == "text" else block for block in lasting]
        return [] if self._thinking_enabled else None

    def _turn_value(self) -> list[Block]:
        return self._native_blocks
