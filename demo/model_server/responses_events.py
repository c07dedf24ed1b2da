"""The stream of an answer in OpenAI's Responses: each item is added, filled in pieces and completed in one response.

Parallel calls follow one another; with the shape `interleaved`, their pieces alternate.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from .responses_items import Items, document, head
from .shapes import fragments, pieces
from .usage import to_bytes
from .wire import Frame, FrameKind, Reply

type _Step = tuple[FrameKind, dict[str, Any]]


def event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event, named by its type."""
    return b"event: " + str(value["type"]).encode() + b"\ndata: " + to_bytes(value) + b"\n\n"


def events(reply: Reply) -> Iterator[Frame]:
    """Yield the numbered events of a streamed answer."""
    for number, (kind, value) in enumerate(_steps(reply)):
        yield Frame(kind, event({**value, "sequence_number": number}))


def _steps(reply: Reply) -> Iterator[_Step]:
    items = Items(reply)
    for kind in ("response.created", "response.in_progress"):
        yield FrameKind.OPENING, {"type": kind, "response": head(reply)}
    at = 0
    if items.reasoning:
        yield from _reasoning(items, items.reasoning)
        at += 1
    if items.message:
        yield from _message(items, items.message, at)
        at += 1
    calls = [list(_call(item, at + more, reply.shapes)) for more, item in enumerate(items.calls)]
    yield from _in_turns(calls) if "interleaved" in reply.shapes else (step for call in calls for step in call)
    finished = document(reply, output=items.all)
    yield FrameKind.TERMINAL, {"type": f"response.{finished['status']}", "response": finished}


def _in_turns(calls: list[list[_Step]]) -> Iterator[_Step]:
    for row in zip_longest(*calls):
        yield from (step for step in row if step)


def _item(kind: FrameKind, event_type: str, at: int, item: dict[str, Any]) -> _Step:
    return kind, {"type": f"response.output_item.{event_type}", "output_index": at, "item": item}


def _reasoning(items: Items, item: dict[str, Any]) -> Iterator[_Step]:
    kind = FrameKind.REASONING
    where = {"item_id": item["id"], "output_index": 0}
    # The encrypted content is complete only when the item is done.
    begun = {**item, "summary": [], "encrypted_content": (item.get("encrypted_content") or "")[:16]}
    yield _item(kind, "added", 0, {key: each for key, each in begun.items() if key != "content"})
    text = items.answer.reasoning
    if items.raw:
        part = {**where, "content_index": 0}
        for piece in pieces(text, items.reply.shapes):
            yield kind, {"type": "response.reasoning_text.delta", **part, "delta": piece}
        yield kind, {"type": "response.reasoning_text.done", **part, "text": text}
    if items.summarized:
        part = {**where, "summary_index": 0}
        whole = {"type": "summary_text", "text": text}
        empty = {"type": "summary_text", "text": ""}
        yield kind, {"type": "response.reasoning_summary_part.added", **part, "part": empty}
        for piece in pieces(text, items.reply.shapes):
            yield kind, {"type": "response.reasoning_summary_text.delta", **part, "delta": piece}
        yield kind, {"type": "response.reasoning_summary_text.done", **part, "text": text}
        yield kind, {"type": "response.reasoning_summary_part.done", **part, "part": whole}
    yield _item(kind, "done", 0, item)


def _message(items: Items, item: dict[str, Any], at: int) -> Iterator[_Step]:
    opening = FrameKind.OPENING
    where = {"item_id": item["id"], "output_index": at, "content_index": 0}
    part = items.part
    field = "refusal" if part["type"] == "refusal" else "text"
    name = "refusal" if field == "refusal" else "output_text"
    extra: dict[str, Any] = {"logprobs": []} if field == "text" else {}
    yield _item(opening, "added", at, {**item, "status": "in_progress", "content": []})
    yield opening, {"type": "response.content_part.added", **where, "part": {**part, field: ""}}
    for piece in pieces(part[field], items.reply.shapes):
        yield FrameKind.TEXT, {"type": f"response.{name}.delta", **where, "delta": piece, **extra}
    # The complete part is sent again, because clients take this event as the end of the text.
    yield FrameKind.CLOSING, {"type": f"response.{name}.done", **where, field: part[field], **extra}
    yield FrameKind.CLOSING, {"type": "response.content_part.done", **where, "part": part}
    yield _item(FrameKind.CLOSING, "done", at, item)


def _call(item: dict[str, Any], at: int, shapes: tuple[str, ...]) -> Iterator[_Step]:
    where = {"item_id": item["id"], "output_index": at}
    yield _item(FrameKind.CALL, "added", at, {**item, "status": "in_progress", "arguments": ""})
    for fragment in fragments(item["arguments"], shapes):
        yield FrameKind.CALL, {"type": "response.function_call_arguments.delta", **where, "delta": fragment}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield FrameKind.CALL, {"type": "response.function_call_arguments.done", **where, **done}
    yield _item(FrameKind.CALL, "done", at, item)
