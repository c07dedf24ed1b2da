"""Decode Responses answers: convert JSON events to this integration's events, with one small method per event type.

The order is "response.created", each output item from "output_item.added" to "output_item.done", and one terminal
event. A function call is read from its "output_item.done", which is complete. Other events add no information.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ..decoder import Decoder
from ..errors import BadStream, Incomplete, ProviderError
from ..events import Event, Request, TextDelta
from ..json_values import SurrogateJoiner, as_text, get_member, get_objects
from .fields import FLEXIBLE_TIER, build_stream_error, convert_error_event, read_usage, refusal

type _Item = dict[str, Any]

_PARAGRAPH_BREAK = "\n\n"

# Types of items that only the server that wrote them can read.
_ENCRYPTED_TYPES = ("reasoning", "compaction")
# The events that stream the parts of a message.
_DELTA_EVENT_BY_TYPE = {"output_text": "response.output_text.delta", "refusal": "response.refusal.delta"}


class ResponseDecoder(Decoder):
    """Decodes one answer. Its residue is the list of output items in order, without text and arguments.

    A message is stored as the start and end of its text within the complete text (in characters), a call as its id.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._search_tool = request.search_tool
        self._text_spans: dict[int, tuple[int, int]] = {}
        self._items: dict[int, _Item] = {}
        self._has_incomplete_call = False
        self._is_refused = False
        self._failure: ProviderError | None = None

    def on_event(self, event: Any) -> Sequence[Event]:
        """Return the events for one event of the response, see `Decoder.on_event`."""
        if (event.get("error") or event.get("type") == "error") and not self.is_complete:
            raise convert_error_event(event)
        match event.get("type"):
            case "response.output_item.added" | "response.output_text.annotation.added":
                return self._on_added(event)
            case "response.output_text.delta":
                return self._on_text_delta(event)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._on_reasoning(as_text(event.get("delta")))
            case "response.refusal.delta" | "response.refusal.done":
                self._is_refused = True
            case "response.output_item.done":
                return self._on_item_done(event["item"], self._item_index(event))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._on_final_event(event)
        return ()

    def to_stream_events(self, answer: Any) -> Iterator[Any]:
        """Return the events of an unstreamed answer; its status determines the terminal event."""
        for at, item in enumerate(get_objects(get_member(answer, "output"))):
            yield {"type": "response.output_item.added", "output_index": at, "item": item}
            for part in get_objects(item.get("content")):
                delta = {"output_index": at, "delta": part.get("text")}
                yield {"type": _DELTA_EVENT_BY_TYPE.get(as_text(part.get("type")), ""), **delta}
                for annotation in get_objects(part.get("annotations")):
                    yield {"type": "response.output_text.annotation.added", "annotation": annotation}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        ended = {"response": answer} if get_member(answer, "status") else answer
        yield {"type": f"response.{get_member(answer, 'status')}", **ended}

    def _final_error(self) -> ProviderError | None:
        if error := super()._final_error() or self._failure:
            return error
        if self._is_refused:
            return refusal("refusal")
        return BadStream("a tool call is not whole") if self._has_incomplete_call else None

    def _on_search(self, action: Any) -> None:
        self._is_after_search = True
        # Opening a found page costs nothing.
        self._searches.count += get_member(action, "type") == "search"
        for source in get_objects(get_member(action, "sources")):
            self._searches.add_source(source.get("url"), source.get("title"), is_cited=False)

    def _on_added(self, event: Any) -> Sequence[Event]:
        if event["type"] == "response.output_text.annotation.added":
            # An annotation without a URL cites a file.
            self._searches.add_source(*(get_member(event.get("annotation"), name) for name in ("url", "title")))
            return ()
        item = event["item"]
        # A commentary before the final answer becomes a separate paragraph.
        if item.get("type") == "message" and item.get("phase") and self._text_chars:
            self._text_chars += len(_PARAGRAPH_BREAK)
            return (TextDelta(_PARAGRAPH_BREAK),)
        return ()

    def _on_text_delta(self, event: Any) -> Sequence[Event]:
        at, begins = self._item_index(event), self._text_chars
        deltas = self._on_text(as_text(event.get("delta")))
        if deltas:
            self._text_spans[at] = self._text_spans.get(at, (begins, begins))[0], self._text_chars
        return deltas

    def _on_item_done(self, item: Any, at: int) -> Sequence[Event]:
        # An item that cannot be sent back keeps only its type, so that the reasoning before it is not sent either.
        kind = as_text(item.get("type"))
        self._items[at] = {"type": kind}
        if kind == "web_search_call":
            self._on_search(item.get("action"))
        if kind == "function_call":
            return self._on_call(item, at)
        if kind == "tool_search_call" and self._search_tool:
            return self._on_call({**item, "name": self._search_tool}, at)
        if kind == "message":
            start, end = self._text_spans.get(at, (self._text_chars, self._text_chars))
            self._items[at].update(start=start, end=end, **_pick_texts(item, "phase"))
        elif kind in _ENCRYPTED_TYPES and item.get("encrypted_content"):
            self._items[at].update(_pick_texts(item, "id", "encrypted_content"))
            if kind == "reasoning":
                texts = [SurrogateJoiner().feed(as_text(part.get("text"))) for part in item.get("summary") or ()]
                self._items[at]["summary"] = [{"type": "summary_text", "text": text} for text in texts]
        return ()

    def _on_call(self, item: Any, at: int) -> Sequence[Event]:
        arguments = self._calls.begin_call()
        arguments.add_fragment(item.get("arguments"))
        name, given = as_text(item.get("name")), arguments.parse()
        if given is None or not name:
            # The call was cut off by a limit or is broken; the terminal event shows which.
            self._has_incomplete_call = True
            return ()
        done = self._calls.finish_call(as_text(item.get("call_id")), name, given)
        self._items[at]["call_id"] = done.call.id
        return (done,)

    def _on_final_event(self, event: Any) -> None:
        self.is_complete, self._native_reason = True, "completed"
        match event["type"]:
            case "response.incomplete":
                reason = as_text(get_member(event["response"].get("incomplete_details"), "reason"))
                filtered = reason == "content_filter"
                self._failure = refusal(reason) if filtered else Incomplete("the answer was cut off at a limit")
            case "response.failed":
                error = event["response"].get("error")
                self._failure = build_stream_error(get_member(error, "code"), get_member(error, "type"))
        if (usage := get_member(event.get("response"), "usage")) is not None:
            self._usage = read_usage(usage, "input", "output")
            self._is_flexible = event["response"].get("service_tier") == FLEXIBLE_TIER

    def _item_index(self, event: Any) -> int:
        """Return the index of the event's item in the output, or the next index if the server does not send one."""
        place = event.get("output_index")
        return place if isinstance(place, int) else len(self._items)

    def _native_value(self) -> list[_Item] | None:
        """Return the items, or None if they contain nothing that only this provider could send back."""
        items = [self._items[at] for at in sorted(self._items)]
        return items if any("encrypted_content" in item or "phase" in item for item in items) else None


def _pick_texts(item: Any, *names: str) -> _Item:
    values = {name: as_text(item.get(name)) for name in names}
    return {name: value for name, value in values.items() if value}
