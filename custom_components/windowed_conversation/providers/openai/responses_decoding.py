"""Decoding Responses answers: events as JSON in, our events out. One small method for each event.

The order is `response.created`, each output item from `output_item.added` to `output_item.done`, and one terminal
event. A function call is read from its `output_item.done`, which has all of it. Other events say nothing new.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..calls import Calls
from ..characters import WholeCharacters
from ..errors import BadStream, Incomplete, ProviderError
from ..events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, Usage
from ..json_values import member, objects, text_of, tokens_of
from ..names import own_names
from .errors import error_in_event, error_in_stream, is_error, refused

type _Handler = Callable[[Any], Sequence[Event]]
type _Item = dict[str, Any]

# Items that only the server that wrote them can read.
_ENCRYPTED = ("reasoning", "compaction")
# The events by which the parts of a message are streamed.
_DELTAS = {"output_text": "response.output_text.delta", "refusal": "response.refusal.delta"}


class ResponseDecoder:
    """Decodes one answer. Its residue is the list of output items in order, without text and arguments.

    A message is kept as the start and end of its text in the whole text (characters), a call as its id.
    """

    def __init__(self, request: Request) -> None:
        self.is_whole = False
        self._calls = Calls(request, own_names(request.tools))
        self._text = WholeCharacters()
        self._reasoning = WholeCharacters()
        self._length = 0
        self._spans: dict[int, tuple[int, int]] = {}
        self._items: dict[int, _Item] = {}
        self._usage: Usage | None = None
        self._half_a_call = False
        self._refused = False
        self._error: ProviderError | None = None
        self._handlers: dict[str, _Handler] = {
            "response.output_item.added": self._on_item_added,
            "response.output_text.delta": self._on_text,
            "response.reasoning_summary_text.delta": self._on_reasoning,
            "response.reasoning_text.delta": self._on_reasoning,
            "response.refusal.delta": self._on_refusal,
            "response.refusal.done": self._on_refusal,
            "response.output_item.done": self._on_item_done,
            "response.completed": self._on_completed,
            "response.incomplete": self._on_incomplete,
            "response.failed": self._on_failed,
        }

    def on_event(self, event: Any) -> Sequence[Event]:
        """See `Decoder.on_event`."""
        if is_error(event) and not self.is_whole:
            raise error_in_event(event)
        handler = self._handlers.get(event.get("type"))
        return handler(event) if handler else ()

    def as_stream(self, answer: Any) -> Iterator[Any]:
        """See `Decoder.as_stream`: a response names its events by how it ended."""
        for at, item in enumerate(objects(member(answer, "output"))):
            yield {"type": "response.output_item.added", "output_index": at, "item": item}
            for part in objects(item.get("content")):
                delta = {"output_index": at, "delta": part.get("text")}
                yield {"type": _DELTAS.get(text_of(part.get("type")), ""), **delta}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        ended = {"response": answer} if member(answer, "status") else answer
        yield {"type": f"response.{member(answer, 'status')}", **ended}

    def on_end(self) -> Iterator[Event]:
        """See `Decoder.on_end`."""
        if self._usage:
            yield self._usage
        if not self.is_whole:
            raise BadStream("the stream ended without a terminal event")
        if self._error:
            raise self._error
        if self._refused:
            raise refused("refusal")
        if self._half_a_call:
            raise BadStream("a tool call is not whole")
        reason = FinishReason.TOOL_CALLS if self._calls else FinishReason.STOP
        yield Finished(reason, "completed", self._residue())

    def _on_item_added(self, event: Any) -> Sequence[Event]:
        item = event.get("item")
        # a commentary before the final answer is a paragraph of its own
        if item.get("type") == "message" and item.get("phase") and self._length:
            return (self._said("\n\n"),)
        return ()

    def _on_text(self, event: Any) -> Sequence[Event]:
        text = self._text.feed(text_of(event.get("delta")))
        if not text:
            return ()
        at, begins = self._place(event), self._length
        said = self._said(text)
        span = self._spans.get(at)
        self._spans[at] = (span[0] if span else begins), self._length
        return (said,)

    def _on_reasoning(self, event: Any) -> Sequence[Event]:
        text = self._reasoning.feed(text_of(event.get("delta")))
        return (ReasoningDelta(text),) if text else ()

    def _on_refusal(self, _: Any) -> tuple[()]:
        self._refused = True
        return ()

    def _on_item_done(self, event: Any) -> Sequence[Event]:
        item, at = event.get("item"), self._place(event)
        # what cannot be sent back leaves its type: the reasoning before it is of no use without it
        kind = text_of(item.get("type"))
        self._items[at] = {"type": kind}
        if kind == "function_call":
            return self._on_call(item, at)
        if kind == "message":
            start, end = self._spans.get(at, (self._length, self._length))
            self._items[at].update(start=start, end=end, **_given(item, "phase"))
        elif kind in _ENCRYPTED and item.get("encrypted_content"):
            self._items[at].update(_given(item, "id", "encrypted_content"))
            if kind == "reasoning":
                self._items[at]["summary"] = _summary(item)
        return ()

    def _on_call(self, item: Any, at: int) -> Sequence[Event]:
        arguments = self._calls.begin()
        arguments.add(item.get("arguments"))
        name, given = text_of(item.get("name")), arguments.whole()
        if given is None or not name:
            # cut off by a limit, or broken: the terminal event tells
            self._half_a_call = True
            return ()
        done = self._calls.announce(text_of(item.get("call_id")), name, given)
        self._items[at]["call_id"] = done.call.id
        return (done,)

    def _on_completed(self, event: Any) -> tuple[()]:
        self._end(event)
        return ()

    def _on_incomplete(self, event: Any) -> tuple[()]:
        reason = text_of(member(event["response"].get("incomplete_details"), "reason"))
        filtered = reason == "content_filter"
        self._error = refused(reason) if filtered else Incomplete("the answer was cut off at a limit")
        self._end(event)
        return ()

    def _on_failed(self, event: Any) -> tuple[()]:
        error = event["response"].get("error")
        self._error = error_in_stream(member(error, "code"), member(error, "type"))
        self._end(event)
        return ()

    def _end(self, event: Any) -> None:
        self.is_whole = True
        usage = member(event.get("response"), "usage")
        if usage is not None:
            self._usage = usage_of(usage)

    def _place(self, event: Any) -> int:
        """Return the index of the event's item in the output; the next one if the server does not say."""
        place = event.get("output_index")
        return place if isinstance(place, int) else len(self._items)

    def _said(self, text: str) -> TextDelta:
        self._length += len(text)
        return TextDelta(text)

    def _residue(self) -> list[_Item] | None:
        """Return the items, or None if any other provider could send back as much."""
        items = [self._items[at] for at in sorted(self._items)]
        return items if any("encrypted_content" in item or "phase" in item for item in items) else None


def usage_of(usage: object) -> Usage:
    """Return the usage of a response or a compaction."""
    read, written = member(usage, "input_tokens_details"), member(usage, "output_tokens_details")
    return Usage(
        input=tokens_of(usage, "input_tokens"),
        cached=tokens_of(read, "cached_tokens"),
        output=tokens_of(usage, "output_tokens"),
        cache_written=tokens_of(read, "cache_write_tokens"),
        reasoning=tokens_of(written, "reasoning_tokens"),
    )


def _given(item: Any, *names: str) -> _Item:
    values = {name: text_of(item.get(name)) for name in names}
    return {name: value for name, value in values.items() if value}


def _summary(item: Any) -> list[_Item]:
    texts = (WholeCharacters().feed(text_of(part.get("text"))) for part in item.get("summary") or ())
    return [{"type": "summary_text", "text": text} for text in texts]
