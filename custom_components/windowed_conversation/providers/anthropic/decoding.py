"""Decoding the stream of Anthropic's Messages API: its events as JSON in, our events out.

Blocks are identified by their index. Unknown types of events, blocks and deltas are skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..calls import Arguments, Calls
from ..characters import WholeCharacters
from ..errors import BadStream, ContextOverflow, Incomplete, ProviderError, Refused
from ..events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, Usage
from ..json_values import figure, member, objects, text_of
from ..names import own_names, sent_name
from .encoding import THINKING, Block
from .errors import error_in_event
from .request import cleared_tokens
from .tools import renamed, renamed_arguments

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
    """A content block that is still arriving."""

    type: str
    characters: WholeCharacters = field(default_factory=WholeCharacters)
    is_blank: bool = True
    thought: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    data: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    arguments: Arguments | None = None

    def residue(self) -> Iterator[Block]:
        """Yield the block as it must be sent back, unmodified. Text and calls only leave their position."""
        match self.type:
            case "thinking" if self.signature:
                yield {"type": "thinking", "thinking": "".join(self.thought), "signature": "".join(self.signature)}
            case "redacted_thinking":
                yield {"type": "redacted_thinking", "data": self.data}
            case "text" if not self.is_blank:
                yield {"type": "text"}
            case "tool_use":
                yield {"type": "tool_use"}

    def on_signature(self, signature: object) -> None:
        """Append a piece of a signature."""
        self.signature += filter(None, (text_of(signature),))

    def on_arguments(self, written: object) -> None:
        """Append a piece of a call's arguments. Those of a server tool are ignored."""
        text = text_of(written)
        if self.arguments:
            self.arguments.add(text)

    def given(self) -> dict[str, Any] | None:
        """Return a call's arguments, or None if they are not a whole JSON object."""
        return self.arguments.whole() if self.arguments else None


class Decoder:
    """Decodes one answer. The terminal marker is `message_stop`. `thinks`: whether the model was asked to think."""

    def __init__(self, request: Request, *, thinks: bool) -> None:
        self.is_whole = False
        self._thinks = thinks
        self._calls = Calls(request, own_names(request.tools))
        self._own_arguments = {
            sent_name(tool): {sent: own for own, sent in names.items()}
            for tool, names in renamed_arguments(request.tools).items()
        }
        self._blocks: dict[int, _OpenBlock] = {}
        self._held: list[_OpenBlock] = []
        self._residue: list[Block] = []
        self._figures: dict[str, int] = {}
        self._cleared = 0
        self._stop_reason = ""
        self._category = ""

    def as_stream(self, answer: Any) -> Iterator[Any]:
        """See `Decoder.as_stream`: a message begins, brings its blocks, and stops."""
        if member(answer, "type") != "message":
            yield answer
            return
        yield {"type": "message_start", "message": answer}
        for index, block in enumerate(objects(member(answer, "content"))):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": answer, "usage": member(answer, "usage")}
        yield {"type": "message_stop"}

    def on_end(self) -> Iterator[Event]:
        """See `Decoder.on_end`."""
        if self._figures:
            yield self._usage()
        if not self.is_whole:
            raise BadStream("the stream ended without message_stop")
        if kind := _CUT_OFF.get(self._stop_reason):
            message = f"stop reason {self._stop_reason}"
            raise Refused(message, self._category) if kind is Refused else kind(message)
        reason = FinishReason.TOOL_CALLS if self._calls else FinishReason.STOP
        yield Finished(reason, self._stop_reason, self._own_residue())

    def on_event(self, event: Any) -> Sequence[Event]:
        """See `Decoder.on_event`."""
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
                self._on_usage(event.get("usage"))
                self._cleared += cleared_tokens(event)
                return self._on_stop_reason(event["delta"])
            case "message_stop":
                return self._on_message_stop()
            case "error" if not self.is_whole:
                raise error_in_event(event)
        return ()

    def _on_message_start(self, message: object) -> None:
        """Start an answer, or start over: a proxy may have asked again after the first half of an answer."""
        self._blocks.clear()
        self._held.clear()
        self._residue.clear()
        self._on_usage(member(message, "usage"))
        if member(message, "type") == "error":
            raise error_in_event(message)

    def _on_start(self, index: int, content: Any) -> Sequence[Event]:
        block = self._blocks[index] = _OpenBlock(text_of(content.get("type")))
        match block.type:
            case "text":
                return self._on_text(block, content.get("text"))
            case "thinking":
                block.on_signature(content.get("signature"))
                return self._on_thought(block, content.get("thinking"))
            case "redacted_thinking":
                block.data = text_of(content.get("data"))
            case "tool_use":
                block.id, block.name = text_of(content.get("id")), text_of(content.get("name"))
                block.arguments, block.input = self._calls.begin(), content.get("input")
        return ()

    def _on_delta(self, block: _OpenBlock, delta: Any) -> Sequence[Event]:
        match text_of(delta.get("type")):
            case "text_delta":
                return self._on_text(block, delta.get("text"))
            case "thinking_delta":
                return self._on_thought(block, delta.get("thinking"))
            case "signature_delta":
                block.on_signature(delta.get("signature"))
            case "input_json_delta":
                block.on_arguments(delta.get("partial_json"))
        return ()

    def _on_text(self, block: _OpenBlock, text: object) -> Sequence[Event]:
        whole = block.characters.feed(text_of(text))
        block.is_blank = block.is_blank and not whole.strip()
        return (TextDelta(whole),) if whole else ()

    def _on_thought(self, block: _OpenBlock, thought: object) -> Sequence[Event]:
        whole = block.characters.feed(text_of(thought))
        block.thought.append(whole)
        return (ReasoningDelta(whole),) if whole else ()

    def _on_stop(self, index: int) -> Sequence[Event]:
        block = self._blocks.pop(index)
        self._residue += block.residue()
        if block.arguments is None:
            return ()
        block.arguments.or_else(block.input)
        self._held.append(block)
        return self._announce() if all(call.given() for call in self._held) else ()

    def _on_stop_reason(self, delta: Any) -> Sequence[Event]:
        reason = text_of(delta.get("stop_reason"))
        if not reason:
            return ()
        self._stop_reason = reason
        category = member(delta.get("stop_details"), "category")
        self._category = category if isinstance(category, str) and category.isidentifier() else ""
        return () if reason in _CUT_OFF else self._announce()

    def _on_message_stop(self) -> Sequence[Event]:
        self.is_whole = True
        if self._stop_reason in _CUT_OFF:
            return ()
        left = [event for index in list(self._blocks) for event in self._on_stop(index)]
        return (*left, *self._announce())

    def _announce(self) -> Sequence[Event]:
        """Announce the calls that were held back. Raises `BadStream` for an incomplete call.

        A call without arguments is held back until the stop reason shows that it was not cut off before them.
        """
        held, self._held = self._held, []
        return [self._calls.announce(call.id, call.name, self._in_own_words(call)) for call in held]

    def _in_own_words(self, call: _OpenBlock) -> dict[str, Any] | None:
        given, own = call.given(), self._own_arguments.get(call.name)
        return renamed(given, own) if given and own else given

    def _on_usage(self, usage: object) -> None:
        """Update the usage. Each figure is a running total, and a missing one is unchanged."""
        details = member(usage, "output_tokens_details")
        for reported, names in ((usage, _FIGURES), (details, _DETAILS)):
            for name in names:
                if (tokens := figure(member(reported, name))) is not None:
                    self._figures[name] = tokens

    def _usage(self) -> Usage:
        """Return the usage. Anthropic's input tokens exclude what was read from and written to the cache."""
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
        """Return what to send back; empty, as a mere stamp, if the model was to think and did not."""
        thought = any(block["type"] in THINKING for block in self._residue)
        if thought:
            return self._residue
        return [] if self._thinks else None
