"""The stream of an answer in OpenAI's Responses: each item is added, filled in pieces and completed in one response.

Parallel calls follow one another; with the shape `interleaved`, their pieces alternate.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from .responses_items import OutputItems, build_document, build_initial_response
from .shapes import split_arguments, split_text
from .usage import encode_json
from .wire import Frame, FrameKind, Reply

type _EventFields = tuple[FrameKind, dict[str, Any]]


def encode_event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event, named by its type."""
    return b"event: " + str(value["type"]).encode() + b"\ndata: " + encode_json(value) + b"\n\n"


def iter_events(reply: Reply) -> Iterator[Frame]:
    """Yield the numbered events of a streamed answer."""
    for number, (kind, value) in enumerate(_iter_all_events(reply)):
        yield Frame(kind, encode_event({**value, "sequence_number": number}))


def _iter_all_events(reply: Reply) -> Iterator[_EventFields]:
    items = OutputItems(reply)
    for kind in ("response.created", "response.in_progress"):
        yield FrameKind.OPENING, {"type": kind, "response": build_initial_response(reply)}
    at = 0
    if items.reasoning:
        yield from _iter_reasoning_events(items, items.reasoning)
        at += 1
    for item in filter(None, (items.introduction, *items.searches, items.message)):
        is_search = item["type"] == "web_search_call"
        yield from _iter_search_events(item, at) if is_search else _iter_message_events(items, item, at)
        at += 1
    calls = [list(_iter_call_events(item, at + more, reply.shapes)) for more, item in enumerate(items.calls)]
    yield from _interleave(calls) if "interleaved" in reply.shapes else (step for call in calls for step in call)
    finished = build_document(reply, output=items.all_items)
    yield FrameKind.TERMINAL, {"type": f"response.{finished['status']}", "response": finished}


def _interleave(calls: list[list[_EventFields]]) -> Iterator[_EventFields]:
    for row in zip_longest(*calls):
        yield from (step for step in row if step)


def _build_item_event(kind: FrameKind, event_type: str, at: int, item: dict[str, Any]) -> _EventFields:
    return kind, {"type": f"response.output_item.{event_type}", "output_index": at, "item": item}


def _iter_reasoning_events(items: OutputItems, item: dict[str, Any]) -> Iterator[_EventFields]:
    kind = FrameKind.REASONING
    where = {"item_id": item["id"], "output_index": 0}
    # The encrypted content is complete only when the item is done.
    begun = {**item, "summary": [], "encrypted_content": (item.get("encrypted_content") or "")[:16]}
    yield _build_item_event(kind, "added", 0, {key: each for key, each in begun.items() if key != "content"})
    text = items.answer.reasoning
    if items.has_raw_reasoning:
        part = {**where, "content_index": 0}
        for piece in split_text(text, items.reply.shapes):
            yield kind, {"type": "response.reasoning_text.delta", **part, "delta": piece}
        yield kind, {"type": "response.reasoning_text.done", **part, "text": text}
    if items.has_summary:
        part = {**where, "summary_index": 0}
        whole = {"type": "summary_text", "text": text}
        empty = {"type": "summary_text", "text": ""}
        yield kind, {"type": "response.reasoning_summary_part.added", **part, "part": empty}
        for piece in split_text(text, items.reply.shapes):
            yield kind, {"type": "response.reasoning_summary_text.delta", **part, "delta": piece}
        yield kind, {"type": "response.reasoning_summary_text.done", **part, "text": text}
        yield kind, {"type": "response.reasoning_summary_part.done", **part, "part": whole}
    yield _build_item_event(kind, "done", 0, item)


def _iter_message_events(items: OutputItems, item: dict[str, Any], at: int) -> Iterator[_EventFields]:
    opening = FrameKind.OPENING
    where = {"item_id": item["id"], "output_index": at, "content_index": 0}
    part = item["content"][0]
    field = "refusal" if part["type"] == "refusal" else "text"
    name = "refusal" if field == "refusal" else "output_text"
    extra: dict[str, Any] = {"logprobs": []} if field == "text" else {}
    yield _build_item_event(opening, "added", at, {**item, "status": "in_progress", "content": []})
    yield opening, {"type": "response.content_part.added", **where, "part": {**part, field: ""}}
    for piece in split_text(part[field], items.reply.shapes):
        yield FrameKind.TEXT, {"type": f"response.{name}.delta", **where, "delta": piece, **extra}
    for number, annotation in enumerate(part.get("annotations", ())):
        added = {"annotation_index": number, "annotation": annotation}
        yield FrameKind.CLOSING, {"type": "response.output_text.annotation.added", **where, **added}
    # The complete part is sent again, because clients take this event as the end of the text.
    yield FrameKind.CLOSING, {"type": f"response.{name}.done", **where, field: part[field], **extra}
    yield FrameKind.CLOSING, {"type": "response.content_part.done", **where, "part": part}
    yield _build_item_event(FrameKind.CLOSING, "done", at, item)


def _iter_search_events(item: dict[str, Any], at: int) -> Iterator[_EventFields]:
    where = {"item_id": item["id"], "output_index": at}
    begun = {key: value for key, value in item.items() if key != "action"}
    yield _build_item_event(FrameKind.SEARCH, "added", at, {**begun, "status": "in_progress"})
    for stage in ("in_progress", "searching", "completed"):
        yield FrameKind.SEARCH, {"type": f"response.web_search_call.{stage}", **where}
    yield _build_item_event(FrameKind.SEARCH, "done", at, item)


def _iter_call_events(item: dict[str, Any], at: int, shapes: tuple[str, ...]) -> Iterator[_EventFields]:
    where = {"item_id": item["id"], "output_index": at}
    if item["type"] == "tool_search_call":
        yield _build_item_event(FrameKind.CALL, "added", at, {**item, "status": "in_progress", "arguments": {}})
        yield _build_item_event(FrameKind.CALL, "done", at, item)
        return
    yield _build_item_event(FrameKind.CALL, "added", at, {**item, "status": "in_progress", "arguments": ""})
    for fragment in split_arguments(item["arguments"], shapes):
        yield FrameKind.CALL, {"type": "response.function_call_arguments.delta", **where, "delta": fragment}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield FrameKind.CALL, {"type": "response.function_call_arguments.done", **where, **done}
    yield _build_item_event(FrameKind.CALL, "done", at, item)
