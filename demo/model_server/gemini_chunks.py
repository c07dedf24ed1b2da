"""The stream of an answer from Gemini: each chunk is a complete response and has the usage so far.

A function call is never split. The first function call of an answer has the thought signature; a text answer with
thoughts has it on an empty part at its end. The chunk with the finish reason is the last one; no other event ends the
stream.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from .conversation import AnswerFinish, Call
from .gemini_prompt import get_object
from .residue import seal_content
from .shapes import split_text
from .usage import encode_json, estimate_tokens
from .wire import Frame, FrameKind, Reply

_FINISH_REASON_BY_FINISH = {
    AnswerFinish.LENGTH: "MAX_TOKENS",
    AnswerFinish.WINDOW_EXCEEDED: "MAX_TOKENS",
    AnswerFinish.CONTENT_FILTER: "SAFETY",
    AnswerFinish.MALFORMED_CALL: "MALFORMED_FUNCTION_CALL",
}

type _PartsOfKind = tuple[FrameKind, list[dict[str, Any]]]


def encode_event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"data: " + encode_json(value) + b"\r\n\r\n"


def iter_chunks(reply: Reply) -> Iterator[Frame]:
    """Yield the chunks of a streamed answer."""
    if reply.answer.finish is AnswerFinish.PROMPT_BLOCKED:
        yield Frame(FrameKind.TERMINAL, encode_event(_build_blocked_response(reply)))
        return
    thought, spoken = bytearray(), bytearray()
    for kind, parts in _iter_pieces(reply):
        written = thought if kind is FrameKind.REASONING else spoken
        written += "".join(part.get("text", "") for part in parts).encode()
        yield Frame(
            kind,
            encode_event(
                {
                    "candidates": [_build_candidate(parts)],
                    **_build_head(reply, _build_partial_usage(reply, thought, spoken)),
                }
            ),
        )
    ending = {**_build_candidate(_build_last_parts(reply)), **_build_finish_field(reply), **_build_grounding(reply)}
    yield Frame(
        FrameKind.TERMINAL, encode_event({"candidates": [ending], **_build_head(reply, _build_final_usage(reply))})
    )


def build_document(reply: Reply) -> dict[str, Any]:
    """Return the complete document of an answer that is not streamed."""
    if reply.answer.finish is AnswerFinish.PROMPT_BLOCKED:
        return _build_blocked_response(reply)
    parts: list[dict[str, Any]] = []
    if reply.answer.reasoning and _includes_thoughts(reply):
        parts.append({"text": reply.answer.reasoning, "thought": True})
    parts += _build_search_parts(reply)
    if reply.answer.text:
        parts.append({"text": reply.answer.text, **_build_text_signature(reply)})
    parts += _build_calls(reply)
    candidate = {**_build_candidate(parts), **_build_finish_field(reply), **_build_grounding(reply)}
    return {"candidates": [candidate], **_build_head(reply, _build_final_usage(reply))}


def _build_search_parts(reply: Reply) -> list[dict[str, Any]]:
    """Return the introduction and the parts of the searches, which the model shows only beside functions."""
    search, config = reply.answer.search, get_object(reply.prompt.body, "toolConfig")
    if search is None or not config.get("includeServerSideToolInvocations"):
        return []
    parts: list[dict[str, Any]] = []
    for query in search.queries:
        where = {"toolType": "GOOGLE_SEARCH_WEB", "id": uuid4().hex[:8]}
        parts.append({"toolCall": {**where, "args": {"queries": [query]}}})
        parts.append({"toolResponse": {**where, "response": {"search_suggestions": "<div></div>"}}})
    signed = [{**part, "thoughtSignature": seal_content(reply.model, encode_json(part))} for part in parts]
    return [{"text": search.introduction}, *signed]


def _build_grounding(reply: Reply) -> dict[str, Any]:
    search = reply.answer.search
    if search is None:
        return {}
    chunks = [{"web": {"uri": page.url, "title": page.url.split("/")[2]}} for page in search.pages]
    rendered = {"renderedContent": "<div></div>"}
    found = {"webSearchQueries": list(search.queries), "groundingChunks": chunks, "searchEntryPoint": rendered}
    return {"groundingMetadata": found}


def _build_head(reply: Reply, usage: dict[str, Any]) -> dict[str, Any]:
    reported = {} if "no_usage" in reply.shapes else {"usageMetadata": usage}
    return {**reported, "modelVersion": reply.model, "responseId": reply.id[:22]}


def _build_candidate(parts: list[dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model"}
    return {"content": content | ({"parts": parts} if parts else {}), "index": 0}


def _build_finish_field(reply: Reply) -> dict[str, Any]:
    reason = _FINISH_REASON_BY_FINISH.get(reply.answer.finish, "STOP")
    return {"finishReason": "PROHIBITED_CONTENT" if reply.answer.refusal else reason}


def _build_blocked_response(reply: Reply) -> dict[str, Any]:
    usage = {"promptTokenCount": reply.usage.prompt, "totalTokenCount": reply.usage.prompt}
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_build_head(reply, usage)}


def _includes_thoughts(reply: Reply) -> bool:
    config = get_object(get_object(reply.prompt.body, "generationConfig"), "thinkingConfig")
    return config.get("includeThoughts") is True


def _build_signature(reply: Reply) -> dict[str, Any]:
    return {"thoughtSignature": seal_content(reply.model, uuid4().bytes)}


def _build_text_signature(reply: Reply) -> dict[str, Any]:
    return _build_signature(reply) if reply.answer.reasoning and not reply.answer.calls else {}


def _iter_pieces(reply: Reply) -> Iterator[_PartsOfKind]:
    if _includes_thoughts(reply):
        for piece in split_text(reply.answer.reasoning, reply.shapes):
            yield FrameKind.REASONING, [{"text": piece, "thought": True}]
    for part in _build_search_parts(reply):
        yield FrameKind.TEXT if "text" in part else FrameKind.SEARCH, [part]
    for piece in split_text(reply.answer.text, reply.shapes):
        yield FrameKind.TEXT, [{"text": piece}]
    calls = _build_calls(reply)
    if calls and "one_chunk" in reply.shapes:
        yield FrameKind.CALL, calls
    else:
        yield from ((FrameKind.CALL, [call]) for call in calls)


def _build_last_parts(reply: Reply) -> list[dict[str, Any]]:
    answer = reply.answer
    return [{"text": "", **_build_text_signature(reply)}] if answer.text or answer.calls else []


def _build_calls(reply: Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"functionCall": _build_call(call, reply.shapes)} for call in reply.answer.calls]
    if parts:
        parts[0] |= _build_signature(reply)
    return parts


def _build_call(call: Call, shapes: tuple[str, ...]) -> dict[str, Any]:
    said: dict[str, Any] = {"name": call.name, "args": dict(call.arguments)}
    if "no_id" in shapes:
        return said
    return {**said, "id": "" if "empty_id" in shapes else uuid4().hex[:8]}


def _build_partial_usage(reply: Reply, thought: bytearray, spoken: bytearray) -> dict[str, Any]:
    return _build_usage(
        reply, min(estimate_tokens(bytes(thought)), reply.usage.reasoning), estimate_tokens(bytes(spoken))
    )


def _build_final_usage(reply: Reply) -> dict[str, Any]:
    return _build_usage(reply, reply.usage.reasoning, reply.usage.completion - reply.usage.reasoning)


def _build_usage(reply: Reply, thoughts: int, candidates: int) -> dict[str, Any]:
    """Return the usage as Gemini reports it, without counts that are zero."""
    prompt = reply.usage.prompt
    counts = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": reply.usage.cached,
        "candidatesTokenCount": candidates,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": prompt + candidates + thoughts,
    }
    details = [{"modality": "TEXT", "tokenCount": prompt}]
    return {name: count for name, count in counts.items() if count} | {"promptTokensDetails": details}
