"""The stream of an answer from Gemini: each chunk is a complete response and has the usage so far.

A function call is never split. The first function call of an answer has the thought signature; a text answer with
thoughts has it on an empty part at its end. The chunk with the finish reason is the last one; no other event ends the
stream.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from .conversation import Call, Finish
from .gemini_prompt import inner
from .residue import seal
from .shapes import pieces
from .usage import to_bytes, tokens
from .wire import Frame, FrameKind, Reply

_FINISH_REASONS = {
    Finish.LENGTH: "MAX_TOKENS",
    Finish.WINDOW_EXCEEDED: "MAX_TOKENS",
    Finish.CONTENT_FILTER: "SAFETY",
    Finish.MALFORMED_CALL: "MALFORMED_FUNCTION_CALL",
}

type _Parts = tuple[FrameKind, list[dict[str, Any]]]


def event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"data: " + to_bytes(value) + b"\r\n\r\n"


def chunks(reply: Reply) -> Iterator[Frame]:
    """Yield the chunks of a streamed answer."""
    if reply.answer.finish is Finish.PROMPT_BLOCKED:
        yield Frame(FrameKind.TERMINAL, event(_blocked(reply)))
        return
    thought, spoken = bytearray(), bytearray()
    for kind, parts in _pieces(reply):
        written = thought if kind is FrameKind.REASONING else spoken
        written += "".join(part.get("text", "") for part in parts).encode()
        yield Frame(kind, event({"candidates": [_candidate(parts)], **_head(reply, _usage(reply, thought, spoken))}))
    ending = {**_candidate(_last_parts(reply)), **_finish(reply)}
    yield Frame(FrameKind.TERMINAL, event({"candidates": [ending], **_head(reply, _whole_usage(reply))}))


def document(reply: Reply) -> dict[str, Any]:
    """Return the complete document of an answer that is not streamed."""
    if reply.answer.finish is Finish.PROMPT_BLOCKED:
        return _blocked(reply)
    parts: list[dict[str, Any]] = []
    if reply.answer.reasoning and _shows_thoughts(reply):
        parts.append({"text": reply.answer.reasoning, "thought": True})
    if reply.answer.text:
        parts.append({"text": reply.answer.text, **_text_signature(reply)})
    parts += _calls(reply)
    candidate = {**_candidate(parts), **_finish(reply)}
    return {"candidates": [candidate], **_head(reply, _whole_usage(reply))}


def _head(reply: Reply, usage: dict[str, Any]) -> dict[str, Any]:
    reported = {} if "no_usage" in reply.shapes else {"usageMetadata": usage}
    return {**reported, "modelVersion": reply.model, "responseId": reply.id[:22]}


def _candidate(parts: list[dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model"}
    return {"content": content | ({"parts": parts} if parts else {}), "index": 0}


def _finish(reply: Reply) -> dict[str, Any]:
    reason = _FINISH_REASONS.get(reply.answer.finish, "STOP")
    return {"finishReason": "PROHIBITED_CONTENT" if reply.answer.refusal else reason}


def _blocked(reply: Reply) -> dict[str, Any]:
    usage = {"promptTokenCount": reply.usage.prompt, "totalTokenCount": reply.usage.prompt}
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_head(reply, usage)}


def _shows_thoughts(reply: Reply) -> bool:
    config = inner(inner(reply.prompt.body, "generationConfig"), "thinkingConfig")
    return config.get("includeThoughts") is True


def _signature(reply: Reply) -> dict[str, Any]:
    return {"thoughtSignature": seal(reply.model, uuid4().bytes)}


def _text_signature(reply: Reply) -> dict[str, Any]:
    return _signature(reply) if reply.answer.reasoning and not reply.answer.calls else {}


def _pieces(reply: Reply) -> Iterator[_Parts]:
    if _shows_thoughts(reply):
        for piece in pieces(reply.answer.reasoning, reply.shapes):
            yield FrameKind.REASONING, [{"text": piece, "thought": True}]
    for piece in pieces(reply.answer.text, reply.shapes):
        yield FrameKind.TEXT, [{"text": piece}]
    calls = _calls(reply)
    if calls and "one_chunk" in reply.shapes:
        yield FrameKind.CALL, calls
    else:
        yield from ((FrameKind.CALL, [call]) for call in calls)


def _last_parts(reply: Reply) -> list[dict[str, Any]]:
    answer = reply.answer
    return [{"text": "", **_text_signature(reply)}] if answer.text or answer.calls else []


def _calls(reply: Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"functionCall": _call(call, reply.shapes)} for call in reply.answer.calls]
    if parts:
        parts[0] |= _signature(reply)
    return parts


def _call(call: Call, shapes: tuple[str, ...]) -> dict[str, Any]:
    said: dict[str, Any] = {"name": call.name, "args": dict(call.arguments)}
    if "no_id" in shapes:
        return said
    return {**said, "id": "" if "empty_id" in shapes else uuid4().hex[:8]}


def _usage(reply: Reply, thought: bytearray, spoken: bytearray) -> dict[str, Any]:
    return _counts(reply, min(tokens(bytes(thought)), reply.usage.reasoning), tokens(bytes(spoken)))


def _whole_usage(reply: Reply) -> dict[str, Any]:
    return _counts(reply, reply.usage.reasoning, reply.usage.completion - reply.usage.reasoning)


def _counts(reply: Reply, thoughts: int, candidates: int) -> dict[str, Any]:
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
