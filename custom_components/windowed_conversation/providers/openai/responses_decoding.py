"""Decode Responses answers: convert JSON events to this integration's events, with one small method per event type.

The order is `response.created`, each output item from `output_item.added` to `output_item.done`, and one terminal
event. A function call is read from its `output_item.done`, which is complete. Other events add no information.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ..decoder import Decoder
from ..errors import BadStream, Incomplete, ProviderError
from ..events import Event, Request, TextDelta
from ..json_values import SurrogateJoiner, member, objects, text_of
from .fields import error_in_event, error_in_stream, refused, usage_of

type _Item = dict[str, Any]

_PARAGRAPH = "\n\n"

# Types of items that only the server that wrote them can read.
_ENCRYPTED = ("reasoning", "compaction")
# The events that stream the parts of a message.
_DELTAS = {"output_text": "response.output_text.delta", "refusal": "response.refusal.delta"}


class ResponseDecoder(Decoder):
    """Decodes one answer. Its residue is the list of output items in order, without text and arguments.

    A message is stored as the start and end of its text within the complete text (in characters), a call as its id.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._spans: dict[int, tuple[int, int]] = {}
        self._items: dict[int, _Item] = {}
        self._half_a_call = False
        self._refused = False
        self._failure: ProviderError | None = None

    def on_event(self, event: Any) -> Sequence[Event]:
        """Return the events for one event of the response, see `Decoder.on_event`."""
        if (event.get("error") or event.get("type") == "error") and not self.is_complete:
            raise error_in_event(event)
        match event.get("type"):
            case "response.output_item.added":
                return self._on_item_added(event["item"])
            case "response.output_text.delta":
                return self._on_text_delta(event)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._on_reasoning(text_of(event.get("delta")))
            case "response.refusal.delta" | "response.refusal.done":
                self._refused = True
            case "response.output_item.done":
                return self._on_item_done(event["item"], self._place(event))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._on_terminal(event)
        return ()

    def as_stream(self, answer: Any) -> Iterator[Any]:
        """Return the events of an unstreamed answer; its status determines the terminal event."""
        for at, item in enumerate(objects(member(answer, "output"))):
            yield {"type": "response.output_item.added", "output_index": at, "item": item}
            for part in objects(item.get("content")):
                delta = {"output_index": at, "delta": part.get("text")}
                yield {"type": _DELTAS.get(text_of(part.get("type")), ""), **delta}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        ended = {"response": answer} if member(answer, "status") else answer
        yield {"type": f"response.{member(answer, 'status')}", **ended}

    def _error(self) -> ProviderError | None:
        if error := super()._error() or self._failure:
            return error
        if self._refused:
            return refused("refusal")
        return BadStream("a tool call is not whole") if self._half_a_call else None

    def _on_item_added(self, item: Any) -> Sequence[Event]:
        # A commentary before the final answer becomes a separate paragraph.
        if item.get("type") == "message" and item.get("phase") and self._length:
            self._length += len(_PARAGRAPH)
            return (TextDelta(_PARAGRAPH),)
        return ()

    def _on_text_delta(self, event: Any) -> Sequence[Event]:
        at, begins = self._place(event), self._length
        deltas = self._on_text(text_of(event.get("delta")))
        if deltas:
            self._spans[at] = self._spans.get(at, (begins, begins))[0], self._length
        return deltas

    def _on_item_done(self, item: Any, at: int) -> Sequence[Event]:
        # Of an item that cannot be sent back, only the type is kept: the reasoning before it cannot be sent without it.
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
        name, given = text_of(item.get("name")), arguments.value()
        if given is None or not name:
            # The call was cut off by a limit or is broken; the terminal event shows which.
            self._half_a_call = True
            return ()
        done = self._calls.announce(text_of(item.get("call_id")), name, given)
        self._items[at]["call_id"] = done.call.id
        return (done,)

    def _on_terminal(self, event: Any) -> None:
        self.is_complete, self._ended = True, "completed"
        match event["type"]:
            case "response.incomplete":
                reason = text_of(member(event["response"].get("incomplete_details"), "reason"))
                filtered = reason == "content_filter"
                self._failure = refused(reason) if filtered else Incomplete("the answer was cut off at a limit")
            case "response.failed":
                error = event["response"].get("error")
                self._failure = error_in_stream(member(error, "code"), member(error, "type"))
        if (usage := member(event.get("response"), "usage")) is not None:
            self._usage = usage_of(usage, "input", "output")

    def _place(self, event: Any) -> int:
        """Return the index of the event's item in the output, or the next index if the server does not send one."""
        place = event.get("output_index")
        return place if isinstance(place, int) else len(self._items)

    def _residue(self) -> list[_Item] | None:
        """Return the items, or None if they contain nothing that only this provider could send back."""
        items = [self._items[at] for at in sorted(self._items)]
        return items if any("encrypted_content" in item or "phase" in item for item in items) else None


def _given(item: Any, *names: str) -> _Item:
    values = {name: text_of(item.get(name)) for name in names}
    return {name: value for name, value in values.items() if value}


def _summary(item: Any) -> list[_Item]:
    texts = (SurrogateJoiner().feed(text_of(part.get("text"))) for part in item.get("summary") or ())
    return [{"type": "summary_text", "text": text} for text in texts]
