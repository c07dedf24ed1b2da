"""The stream of Anthropic's Messages API: its events in, as plain JSON, ours out, one small step for each.

Blocks are told apart by their index, and an event, block or delta of a type that nobody here knows is passed over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
import json
from typing import Any
from uuid import uuid4

from ...window import ToolCall
from ...window.figures import is_figure
from ..characters import WholeCharacters, whole_json
from ..errors import BadStream, ContextOverflow, Incomplete, ProviderError, Refused
from ..events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, ToolCallDone, Usage
from ..json_values import member, text_of
from ..names import own_names
from .context import cleared_tokens
from .encoding import THINKING, Block

# Why an answer is not whole. `pause_turn` is for tools that the server itself runs; we offer none.
_CUT_OFF: dict[str, type[ProviderError]] = {
    "max_tokens": Incomplete,
    "pause_turn": Incomplete,
    "refusal": Refused,
    "model_context_window_exceeded": ContextOverflow,
}

_FIGURES = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_DETAILS = ("thinking_tokens",)


@dataclass(slots=True)
class _OpenBlock:
    """A content block that is still arriving; `written` is the JSON of a call's arguments."""

    type: str
    characters: WholeCharacters = field(default_factory=WholeCharacters)
    thought: list[str] = field(default_factory=list)
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    written: list[str] = field(default_factory=list)

    def residue(self) -> Iterator[Block]:
        """Yield the block as it is to be sent back, unmodified; of text and calls only where they stood."""
        match self.type:
            case "thinking" if self.signature:
                yield {"type": "thinking", "thinking": "".join(self.thought), "signature": self.signature}
            case "redacted_thinking":
                yield {"type": "redacted_thinking", "data": self.data}
            case "text" | "tool_use":
                yield {"type": self.type}

    def arguments(self) -> dict[str, Any] | None:
        """Return a call's arguments, None where they are no whole JSON object; there may be none at all."""
        written = "".join(self.written)
        if not written.strip():
            return self.input if isinstance(self.input, dict) else {}
        try:
            value = whole_json(written)
        except json.JSONDecodeError, RecursionError:
            return None
        return value if isinstance(value, dict) else None


class Decoder:
    """Takes one answer in; the terminal marker is `message_stop`. `thinks`: whether the model was asked to think."""

    def __init__(self, request: Request, *, thinks: bool) -> None:
        self.stopped = False
        self._thinks = thinks
        self._own_names = own_names(request.tools)
        self._taken_ids = {call.id for message in request.messages for call in message.tool_calls}
        self._blocks: dict[int, _OpenBlock] = {}
        self._held: list[_OpenBlock] = []
        self._called = False
        self._residue: list[Block] = []
        self._figures: dict[str, int] = {}
        self._cleared = 0
        self._stop_reason = ""
        self._category = ""

    def decode(self, event: object) -> Sequence[Event]:
        """Return what an event means. It is JSON as the server wrote it; raises `BadStream` for one of another form."""
        try:
            return self._on_event(event)
        except (AttributeError, LookupError, TypeError, ValueError) as err:
            raise BadStream(f"an event is not of the expected form ({type(err).__name__})") from err

    def end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event; raises what the end of the stream means."""
        if self._figures:
            yield self._usage()
        if not self.stopped:
            raise BadStream("the stream ended without message_stop")
        if kind := _CUT_OFF.get(self._stop_reason):
            message = f"stop reason {self._stop_reason}"
            raise Refused(message, self._category) if kind is Refused else kind(message)
        reason = FinishReason.TOOL_CALLS if self._called else FinishReason.STOP
        yield Finished(reason, self._stop_reason, self._own_residue())

    def _on_event(self, event: Any) -> Sequence[Event]:
        match text_of(event.get("type")):
            case "content_block_delta":
                return self._on_delta(self._blocks[event["index"]], event["delta"])
            case "content_block_start":
                return self._on_start(event["index"], event["content_block"])
            case "content_block_stop":
                return self._on_stop(event["index"])
            case "message_start":
                self._on_usage(member(event.get("message"), "usage"))
            case "message_delta":
                self._on_usage(event.get("usage"))
                self._cleared += cleared_tokens(event)
                return self._on_stop_reason(event["delta"])
            case "message_stop":
                return self._on_message_stop()
        return ()

    def _on_start(self, index: int, content: Any) -> Sequence[Event]:
        block = self._blocks[index] = _OpenBlock(text_of(content.get("type")))
        match block.type:
            case "text":
                return self._on_text(block, content.get("text"))
            case "thinking":
                block.signature = text_of(content.get("signature"))
                return self._on_thought(block, content.get("thinking"))
            case "redacted_thinking":
                block.data = text_of(content.get("data"))
            case "tool_use":
                block.id, block.name = text_of(content.get("id")), text_of(content.get("name"))
                block.input = content.get("input")
        return ()

    def _on_delta(self, block: _OpenBlock, delta: Any) -> Sequence[Event]:
        match text_of(delta.get("type")):
            case "text_delta":
                return self._on_text(block, delta.get("text"))
            case "thinking_delta":
                return self._on_thought(block, delta.get("thinking"))
            case "signature_delta":
                block.signature += text_of(delta.get("signature"))
            case "input_json_delta":
                block.written.append(text_of(delta.get("partial_json")))
        return ()

    def _on_text(self, block: _OpenBlock, text: object) -> Sequence[Event]:
        whole = block.characters.feed(text_of(text))
        return (TextDelta(whole),) if whole else ()

    def _on_thought(self, block: _OpenBlock, thought: object) -> Sequence[Event]:
        whole = block.characters.feed(text_of(thought))
        block.thought.append(whole)
        return (ReasoningDelta(whole),) if whole else ()

    def _on_stop(self, index: int) -> Sequence[Event]:
        block = self._blocks.pop(index)
        self._residue += block.residue()
        if block.type != "tool_use":
            return ()
        self._held.append(block)
        return self._announce() if all(call.arguments() for call in self._held) else ()

    def _on_stop_reason(self, delta: Any) -> Sequence[Event]:
        reason = text_of(delta.get("stop_reason"))
        if not reason:
            return ()
        self._stop_reason = reason
        category = member(delta.get("stop_details"), "category")
        self._category = category if isinstance(category, str) and category.isidentifier() else ""
        return () if reason in _CUT_OFF else self._announce()

    def _on_message_stop(self) -> Sequence[Event]:
        self.stopped = True
        if self._stop_reason in _CUT_OFF:
            return ()
        left = [event for index in list(self._blocks) for event in self._on_stop(index)]
        return (*left, *self._announce())

    def _announce(self) -> Sequence[Event]:
        """Announce the calls that were held; raises `BadStream` for half a call.

        A call without arguments is held until the stop reason says that it was not cut off before them.
        """
        held, self._held = self._held, []
        return [self._announced(call) for call in held]

    def _announced(self, block: _OpenBlock) -> ToolCallDone:
        arguments = block.arguments()
        if arguments is None or not block.name:
            raise BadStream("a tool call is not whole")
        self._called = True
        name = self._own_names.get(block.name, block.name)
        return ToolCallDone(ToolCall(self._unique(block.id), name, arguments))

    def _unique(self, call_id: str) -> str:
        """Return the server's id, or one of ours where it has none or used it before."""
        if not call_id or call_id in self._taken_ids:
            call_id = f"toolu_{uuid4().hex}"
        self._taken_ids.add(call_id)
        return call_id

    def _on_usage(self, usage: object) -> None:
        """Take the figures over: each is the sum so far, and one that is left out stays as it was."""
        details = member(usage, "output_tokens_details")
        for reported, names in ((usage, _FIGURES), (details, _DETAILS)):
            for name in names:
                if is_figure(figure := member(reported, name)):
                    self._figures[name] = figure

    def _usage(self) -> Usage:
        """Return the usage; to Anthropic the input is only what the cache had no part in."""
        figures = self._figures
        cached, written = figures.get("cache_read_input_tokens", 0), figures.get("cache_creation_input_tokens", 0)
        return Usage(
            input=figures.get("input_tokens", 0) + cached + written,
            cached=cached,
            output=figures.get("output_tokens", 0),
            cache_written=written,
            reasoning=figures.get("thinking_tokens", 0),
            cleared=self._cleared,
        )

    def _own_residue(self) -> list[Block] | None:
        """Return what to send back; empty, as a stamp only, where the model was to think and found it unnecessary."""
        thought = any(block["type"] in THINKING for block in self._residue)
        if thought:
            return self._residue
        return [] if self._thinks else None
