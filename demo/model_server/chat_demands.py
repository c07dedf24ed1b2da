"""Chat Completions servers that require the client to return their fields with text and calls, or refuse them.

Shapes name these servers. The fields are taken from their documentation and from bug reports, not from any client:
https://api-docs.deepseek.com/guides/thinking_mode#tool-calls, https://github.com/deepseek-ai/DeepSeek-V3/issues/1262,
https://openrouter.ai/docs/use-cases/reasoning-tokens, https://ai.google.dev/gemini-api/docs/thought-signatures,
https://github.com/langchain-ai/langchain/issues/24668, https://github.com/karthink/gptel/issues/774
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
import re
from typing import Any

from .refusal import Refusal, RefusedError
from .residue import is_signed, sign
from .shapes import DEMANDS, pieces
from .wire import Reply, objects

_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")

# The prefixes of call ids by which each server recognizes its own calls.
_DEEPSEEK, _OPENROUTER, _GOOGLE = "call_00_", "tool_", "function-call-"

type Message = dict[str, Any]


def demand_of(shapes: tuple[str, ...]) -> str | None:
    """Return the first shape that names one of these servers, or None."""
    return next((shape for shape in shapes if shape in DEMANDS), None)


def with_demands(call: dict[str, Any], reply: Reply, at: int) -> dict[str, Any]:
    """Return call number `at`, or a fragment of it, with the id and the signature that this server would add."""
    if "id" not in call:
        return call
    match demand_of(reply.shapes):
        case "deepseek":
            return {**call, "id": f"{_DEEPSEEK}{_digest(reply.answer.reasoning)}_{reply.id[:8]}{at}"}
        case "openrouter":
            return {**call, "id": _openrouter_id(reply, at)}
        case "google":
            call_id = f"{_GOOGLE}{int(reply.id[:15], 16)}{at}"
            signed = {"google": {"thought_signature": sign(reply.model, call_id)}}
            return {**call, "id": call_id, **({} if at else {"extra_content": signed})}
        case "mistral":
            return {**call, "id": f"{reply.id[:8]}{at}"}
    return call


def details(reply: Reply) -> list[dict[str, Any]]:
    """Return the fragments of `reasoning_details`; the list is empty if this server does not write the field."""
    if demand_of(reply.shapes) != "openrouter":
        return []
    head = {"format": "google-gemini-v1", "index": 0}
    texts = [{"type": "reasoning.text", "text": piece, **head} for piece in pieces(reply.answer.reasoning, ())]
    if not reply.answer.calls:
        return texts
    call_id = _openrouter_id(reply, 0)
    return [*texts, {"type": "reasoning.encrypted", "id": call_id, "data": sign(reply.model, call_id), **head}]


def check_demands(body: dict[str, Any], shapes: tuple[str, ...]) -> None:
    """Raise RefusedError if a request lacks a field that the server requires, or has a field that it refuses."""
    demand = demand_of(shapes)
    if demand is None:
        return
    messages = objects(body.get("messages"))
    if any(_REFUSES[demand](message, str(body.get("model"))) for message in messages):
        raise RefusedError(_REFUSALS[demand])


def _deepseek(message: Message, _model: str) -> bool:
    if message.get("role") != "assistant":
        return False
    reasoning = message.get("reasoning_content")
    own = [call_id for call_id in _call_ids(message) if call_id.startswith(_DEEPSEEK)]
    return not isinstance(reasoning, str) or not reasoning or any(_digest(reasoning) not in call_id for call_id in own)


def _openrouter(message: Message, model: str) -> bool:
    own = [call_id for call_id in _call_ids(message) if call_id.startswith(_OPENROUTER)]
    signed = {each.get("id"): each.get("data") for each in objects(message.get("reasoning_details"))}
    return bool(own) and not is_signed(model, own[0], signed.get(own[0]))


def _google(message: Message, model: str) -> bool:
    for call in objects(message.get("tool_calls"))[:1]:
        extra = call.get("extra_content")
        google = extra.get("google") if isinstance(extra, dict) else None
        signature = google.get("thought_signature") if isinstance(google, dict) else None
        call_id = str(call.get("id"))
        return call_id.startswith(_GOOGLE) and not is_signed(model, call_id, signature)
    return False


def _mistral(message: Message, _model: str) -> bool:
    answered = message.get("tool_call_id")
    ids = [*_call_ids(message), *([answered] if answered is not None else [])]
    return not all(isinstance(each, str) and _MISTRAL_ID.fullmatch(each) for each in ids)


def _groq(message: Message, _model: str) -> bool:
    return "reasoning" in message or "reasoning_content" in message


_REFUSES: dict[str, Callable[[Message, str], bool]] = {
    "deepseek": _deepseek,
    "openrouter": _openrouter,
    "google": _google,
    "mistral": _mistral,
    "groq": _groq,
}
_KIND = "invalid_request_error"
_REFUSALS = {
    "deepseek": Refusal(
        400, _KIND, _KIND, "The `reasoning_content` in the thinking mode must be passed back to the API."
    ),
    "openrouter": Refusal(400, _KIND, None, "Provider returned error", extra={"code": 400}),
    "google": Refusal(
        400, _KIND, None, "Function call is missing a thought_signature.", extra={"status": "INVALID_ARGUMENT"}
    ),
    "mistral": Refusal(
        400,
        "invalid_function_call",
        "3280",
        "Tool call id must be a-z, A-Z, 0-9, with a length of 9.",
    ),
    "groq": Refusal(400, _KIND, None, "for 'role:assistant' property 'reasoning' is unsupported"),
}


def _call_ids(message: Message) -> Iterator[str]:
    yield from (str(call.get("id")) for call in objects(message.get("tool_calls")))


def _openrouter_id(reply: Reply, at: int) -> str:
    return f"{_OPENROUTER}{reply.id[:12]}_{at}"


def _digest(reasoning: str) -> str:
    return sha256(reasoning.encode()).hexdigest()[:16]
