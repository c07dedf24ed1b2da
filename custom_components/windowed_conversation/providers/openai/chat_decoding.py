"""Decode Chat Completions answers: convert JSON chunks to events, without I/O.

Compatible servers send calls and reasoning in various forms; comments name the server where its form is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...window import ToolCall
from ..decoder import CallArguments, Decoder, sanitize_finish_reason
from ..encoder import is_short_id
from ..errors import Incomplete, ProviderError
from ..events import Event, Request
from ..json_values import as_text, get_member, get_objects
from .chat_encoding import NativeFieldsReader, estimate_native_tokens
from .fields import FLEXIBLE_TIER, convert_error_event, read_usage, refusal

# The fields that identify the server: its fingerprint (Ollama and others), a router's chosen model, and its provider.
_SERVER_FIELDS = ("system_fingerprint", "model", "provider")
_MAX_FIELD_CHARS = 100


@dataclass(slots=True)
class _OpenCall:
    """A tool call whose arguments are still arriving."""

    index: object
    id: str
    name: str
    arguments: CallArguments
    extra_content: Any = None
    finished_call: ToolCall | None = None


def _starts_new_call(newest: _OpenCall, fragment: Any, function: Any) -> bool:
    if fragment.get("id"):
        other = fragment["id"] != newest.id
        return other or bool(function.get("name") and newest.finished_call and function.get("arguments"))
    return bool(function.get("name")) and (fragment.get("index") is None or newest.finished_call is not None)


class ChatDecoder(Decoder):
    """Decodes one answer. The terminal marker is a finish reason; the usage follows in a later chunk."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._native_reader = NativeFieldsReader()
        self._open_calls: list[_OpenCall] = []
        self._is_refused = False

    def to_stream_events(self, answer: Any) -> Sequence[Any]:
        """Return the events of an unstreamed answer: its message is treated as one large delta."""
        choices = [{**choice, "delta": choice.get("message")} for choice in get_objects(get_member(answer, "choices"))]
        return [{**answer, "choices": choices}] if choices else [answer]

    def on_event(self, event: Any) -> Sequence[Event]:
        """Return the events of one chunk, see `Decoder.on_event`."""
        if (event.get("error") or event.get("type") == "error") and not self.is_complete:
            raise convert_error_event(event)
        if not self._server:
            words = [event.get(name) for name in _SERVER_FIELDS]
            self._server = " ".join([word[:_MAX_FIELD_CHARS] for word in words if word and isinstance(word, str)])
        if (usage := event.get("usage")) is not None:
            self._usage = read_usage(usage, "prompt", "completion")
            self._is_flexible = event.get("service_tier") == FLEXIBLE_TIER
        events: list[Event] = []
        for choice in event.get("choices") or ():
            if delta := choice.get("delta"):
                self._on_delta(delta, events)
            if reason := choice.get("finish_reason"):
                self._on_finish(reason, events)
        return events

    def _on_delta(self, delta: Any, events: list[Event]) -> None:
        content = delta.get("content")
        text, thought = _split_chunks(content) if isinstance(content, list) else (as_text(content), "")
        if thought := self._native_reader.on_delta(delta) or thought:
            events += self._on_reasoning(thought)
        if text:
            events += self._on_text(text)
        if delta.get("refusal"):
            self._is_refused = True
        for annotation in get_objects(delta.get("annotations")):
            self._searches.add_source(*[get_member(annotation.get("url_citation"), name) for name in ("url", "title")])
        for fragment in delta.get("tool_calls") or ():
            events += self._on_fragment(fragment)

    def _on_finish(self, reason: object, events: list[Event]) -> None:
        if self.is_complete:
            return
        self.is_complete, self._native_reason = True, sanitize_finish_reason(as_text(reason))
        if self._native_reason not in ("length", "content_filter"):
            # This includes calls without arguments.
            for call in self._open_calls:
                events += self._announce_call(call)

    def _on_fragment(self, fragment: Any) -> Iterator[Event]:
        """Add a fragment of a call. A complete JSON object cannot grow, so its call is announced at once."""
        function = fragment.get("function") or {}
        call = self._find_or_add_call(fragment, function)
        call.arguments.add_fragment(function.get("arguments"))
        extra = fragment.get("extra_content")
        if extra and self._native_reader.reserve_chars(extra):
            call.extra_content = extra
        if call.arguments.parse_if_complete():
            yield from self._announce_call(call)

    def _find_or_add_call(self, fragment: Any, function: Any) -> _OpenCall:
        """Return the call that a fragment belongs to: the newest call with its number, or a new call.

        OpenAI numbers its calls and sends each name once. Ollama numbers every parallel call 0 and gives each a new id.
        Other servers omit the number or the id, or send the arguments as an object:
        https://github.com/ollama/ollama/issues/15457
        """
        index, call_id, name = fragment.get("index"), as_text(fragment.get("id")), as_text(function.get("name"))
        candidates = [call for call in self._open_calls if index in (call.index, None)]
        if candidates and not _starts_new_call(candidates[-1], fragment, function):
            return candidates[-1]
        call = _OpenCall(index, call_id, name, self._calls.begin_call())
        self._open_calls.append(call)
        return call

    def _announce_call(self, call: _OpenCall) -> Iterator[Event]:
        """Yield the event of a call, unless it was announced before. Raises `BadStream` for an incomplete call."""
        if not call.finished_call:
            done = self._calls.finish_call(call.id, call.name, call.arguments.parse())
            call.finished_call = done.call
            yield done

    def _final_error(self) -> ProviderError | None:
        match self._native_reason:
            case "length":
                return Incomplete("finish reason length")
            case "content_filter":
                return refusal(self._native_reason)
        return super()._final_error() or (refusal("refusal") if self._is_refused else None)

    def _native_value(self) -> dict[str, Any] | None:
        """Return the residue. An empty object marks calls with ids that only the same server accepts."""
        extras = {call.finished_call.id: call.extra_content for call in self._open_calls if call.finished_call}
        value = self._native_reader.build_value({call_id: extra for call_id, extra in extras.items() if extra})
        if not value and all(map(is_short_id, extras)):
            return None
        # Use the server's reasoning count, or an estimate if the server does not count reasoning separately.
        reasoning = self._usage.reasoning if self._usage else 0
        self._native_tokens = (reasoning or estimate_native_tokens(value)) if value else 0
        return value


def _split_chunks(content: list[Any]) -> tuple[str, str]:
    """Return the text and the reasoning in the content chunks of Mistral's reasoning models.

    https://docs.mistral.ai/capabilities/reasoning
    """
    texts = [as_text(chunk.get("text")) for chunk in content if chunk["type"] == "text"]
    thoughts = [part for chunk in content if chunk["type"] == "thinking" for part in get_objects(chunk.get("thinking"))]
    return "".join(texts), "".join(as_text(part.get("text")) for part in thoughts)
