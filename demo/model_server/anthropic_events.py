"""An answer in Anthropic's Messages format, streamed as a sequence of blocks, or as a complete message.

A thinking block ends with its signature; with `display: omitted` it consists of only the signature.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from .conversation import AnswerFinish, Call, Page, WebSearch
from .residue import seal_content, sign_text
from .shapes import format_arguments, split_arguments, split_text
from .usage import encode_json
from .wire import Frame, FrameKind, Reply

_STOP_REASONS = {
    AnswerFinish.LENGTH: "max_tokens",
    AnswerFinish.WINDOW_EXCEEDED: "model_context_window_exceeded",
    AnswerFinish.CONTENT_FILTER: "refusal",
    AnswerFinish.PROMPT_BLOCKED: "refusal",
}
_CLOSING_KIND = FrameKind.CLOSING
# Of the encrypted content of each result of a search.
_RESULT_BYTES = 6000


def encode_event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event, named by its type."""
    return b"event: " + str(value["type"]).encode() + b"\ndata: " + encode_json(value) + b"\n\n"


def iter_events(reply: Reply) -> Iterator[Frame]:
    """Yield the events of a streamed answer."""
    usage = _build_usage(reply)
    start = {**_build_head(reply), "stop_reason": None, "stop_details": None}
    if usage:
        start["usage"] = {**usage, "output_tokens": 1}
    yield Frame(FrameKind.OPENING, encode_event({"type": "message_start", "message": start}))
    for index, block in enumerate(_build_blocks(reply)):
        yield from _iter_block_frames(block, index, reply)
    ending: dict[str, Any] = {"type": "message_delta", "delta": _build_end_fields(reply)}
    if usage:
        ending["usage"] = {key: usage[key] for key in _CUMULATIVE_USAGE_KEYS if key in usage}
    if "context_management" in reply.prompt.body:
        ending["context_management"] = {"applied_edits": reply.prompt.body["applied_edits"]}
    yield Frame(FrameKind.TERMINAL, encode_event(ending))
    yield Frame(FrameKind.TERMINAL, encode_event({"type": "message_stop"}))


def build_document(reply: Reply) -> dict[str, Any]:
    """Return the complete message of an answer that is not streamed."""
    message = {**_build_head(reply), **_build_end_fields(reply), "content": _build_blocks(reply)}
    if usage := _build_usage(reply):
        message["usage"] = usage
    if "context_management" in reply.prompt.body:
        message["context_management"] = {"applied_edits": reply.prompt.body["applied_edits"]}
    return message


def _build_head(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.id[:24]}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_sequence": None,
    }


def _build_blocks(reply: Reply) -> list[dict[str, Any]]:
    answer = reply.answer
    blocks: list[dict[str, Any]] = []
    if answer.reasoning and "redacted" in reply.shapes:
        blocks.append({"type": "redacted_thinking", "data": seal_content(reply.model, reply.id.encode())})
    elif answer.reasoning:
        shown = "" if _is_thinking_omitted(reply) else answer.reasoning
        blocks.append({"type": "thinking", "thinking": shown, "signature": sign_text(reply.model, shown)})
    if answer.search:
        blocks += _build_search_blocks(answer.search, reply.model)
    if answer.search and answer.search.paused:
        return blocks
    cited = [_build_cited_text(sentence, page, reply.model) for sentence, page in answer.cited_sentences]
    if cited:
        blocks += cited
    elif answer.text:
        blocks.append({"type": "text", "text": answer.text})
    return blocks + [_build_tool_use(call) for call in answer.calls]


def _build_search_blocks(search: WebSearch, model: str) -> Iterator[dict[str, Any]]:
    yield {"type": "text", "text": search.introduction}
    for query in search.queries:
        call_id = f"srvtoolu_{uuid4().hex[:24]}"
        yield {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}}
        results = [
            {
                "type": "web_search_result",
                "url": page.url,
                "title": page.title,
                "page_age": "2 days ago",
                "encrypted_content": seal_content(model, bytes(_RESULT_BYTES)),
            }
            for page in search.pages
        ]
        yield {"type": "web_search_tool_result", "tool_use_id": call_id, "content": results}


def _build_cited_text(sentence: str, page: Page, model: str) -> dict[str, Any]:
    citation = {
        "type": "web_search_result_location",
        "url": page.url,
        "title": page.title,
        "cited_text": sentence.strip(),
        "encrypted_index": seal_content(model, page.url.encode()),
    }
    return {"type": "text", "text": sentence, "citations": [citation]}


def _is_thinking_omitted(reply: Reply) -> bool:
    thinking = reply.prompt.body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("display") == "omitted"


def _build_tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": call.name, "input": dict(call.arguments)}


def _iter_block_frames(block: dict[str, Any], index: int, reply: Reply) -> Iterator[Frame]:
    kind, begun, deltas = _split_block(block, reply)
    where = {"index": index}
    opening = FrameKind.OPENING if kind is FrameKind.TEXT else kind
    yield Frame(opening, encode_event({"type": "content_block_start", **where, "content_block": begun}))
    if index == 0:
        yield Frame(FrameKind.OPENING, encode_event({"type": "ping"}))
    for delta in deltas:
        yield Frame(kind, encode_event({"type": "content_block_delta", **where, "delta": delta}))
    yield Frame(_CLOSING_KIND, encode_event({"type": "content_block_stop", **where}))


def _split_block(block: dict[str, Any], reply: Reply) -> tuple[FrameKind, dict[str, Any], list[dict[str, Any]]]:
    """Return the FrameKind of a block's deltas, the block in its initial form, and its deltas."""
    shapes = reply.shapes
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in split_text(block["text"], shapes)]
            citations = block.get("citations", [])
            deltas += [{"type": "citations_delta", "citation": citation} for citation in citations]
            return FrameKind.TEXT, {**block, "text": "", **({"citations": []} if citations else {})}, deltas
        case "server_tool_use":
            parts = ["", *split_arguments(encode_json(block["input"]).decode(), shapes)]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
            return FrameKind.SEARCH, {**block, "input": {}}, deltas
        case "web_search_tool_result":
            return FrameKind.SEARCH, block, []
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in split_text(block["thinking"], shapes)]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return FrameKind.REASONING, {**block, "thinking": "", "signature": ""}, deltas
        case "tool_use":
            written = format_arguments(Call(block["name"], block["input"]), shapes)
            parts = ["", *split_arguments("" if written == "{}" else written, shapes)]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
            return FrameKind.CALL, {**block, "input": {}}, deltas
        case _:
            return FrameKind.REASONING, block, []


def _build_end_fields(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    reason = _STOP_REASONS.get(answer.finish, "tool_use" if answer.calls else "end_turn")
    reason = "pause_turn" if answer.search and answer.search.paused else reason
    reason = "refusal" if answer.refusal else reason
    details = {"type": "refusal", "category": "general_harms", "explanation": "The request was declined."}
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": details if reason == "refusal" else None}


_CUMULATIVE_USAGE_KEYS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
    "server_tool_use",
)


def _build_usage(reply: Reply) -> dict[str, Any]:
    """Return the usage, empty if it is never reported. `input_tokens` excludes tokens that the cache read or wrote."""
    usage = reply.usage
    if "no_usage" in reply.shapes:
        return {}
    return {
        "input_tokens": usage.prompt - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - usage.written_long,
            "ephemeral_1h_input_tokens": usage.written_long,
        },
        "output_tokens": usage.completion,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
        **({"server_tool_use": {"web_search_requests": usage.searches}} if usage.searches else {}),
    }
