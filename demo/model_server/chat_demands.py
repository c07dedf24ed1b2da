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
from .residue import is_signature_valid, sign_text
from .shapes import DEMAND_SHAPES, split_text
from .wire import Reply, get_objects

_MISTRAL_ID_PATTERN = re.compile(r"[a-zA-Z0-9]{9}")

# The prefixes of call ids by which each server recognizes its own calls.
_DEEPSEEK_PREFIX, _OPENROUTER_PREFIX, _GOOGLE_PREFIX = "call_00_", "tool_", "function-call-"

type Message = dict[str, Any]


def find_demand(shapes: tuple[str, ...]) -> str | None:
    """Return the first shape that names one of these servers, or None."""
    return next((shape for shape in shapes if shape in DEMAND_SHAPES), None)


def add_demanded_fields(call: dict[str, Any], reply: Reply, at: int) -> dict[str, Any]:
    """Return call number `at`, or a fragment of it, with the id and the signature that this server would add."""
    if "id" not in call:
        return call
    match find_demand(reply.shapes):
        case "deepseek":
            return {**call, "id": f"{_DEEPSEEK_PREFIX}{_hash_reasoning(reply.answer.reasoning)}_{reply.id[:8]}{at}"}
        case "openrouter":
            return {**call, "id": _build_openrouter_id(reply, at)}
        case "google":
            call_id = f"{_GOOGLE_PREFIX}{int(reply.id[:15], 16)}{at}"
            signed = {"google": {"thought_signature": sign_text(reply.model, call_id)}}
            return {**call, "id": call_id, **({} if at else {"extra_content": signed})}
        case "mistral":
            return {**call, "id": f"{reply.id[:8]}{at}"}
    return call


def build_reasoning_details(reply: Reply) -> list[dict[str, Any]]:
    """Return the fragments of "reasoning_details"; the list is empty if this server does not write the field."""
    if find_demand(reply.shapes) != "openrouter":
        return []
    head = {"format": "google-gemini-v1", "index": 0}
    texts = [{"type": "reasoning.text", "text": piece, **head} for piece in split_text(reply.answer.reasoning, ())]
    if not reply.answer.calls:
        return texts
    call_id = _build_openrouter_id(reply, 0)
    return [*texts, {"type": "reasoning.encrypted", "id": call_id, "data": sign_text(reply.model, call_id), **head}]


def check_demands(body: dict[str, Any], shapes: tuple[str, ...]) -> None:
    """Raise RefusedError if a request lacks a field that the server requires, or has a field that it refuses."""
    demand = find_demand(shapes)
    if demand is None:
        return
    messages = get_objects(body.get("messages"))
    if any(_BREAKS_RULE_BY_SHAPE[demand](message, str(body.get("model"))) for message in messages):
        raise RefusedError(_REFUSAL_BY_SHAPE[demand])


def _breaks_deepseek_rule(message: Message, _model: str) -> bool:
    if message.get("role") != "assistant":
        return False
    reasoning = message.get("reasoning_content")
    own = [call_id for call_id in _iter_call_ids(message) if call_id.startswith(_DEEPSEEK_PREFIX)]
    return (
        not isinstance(reasoning, str)
        or not reasoning
        or any(_hash_reasoning(reasoning) not in call_id for call_id in own)
    )


def _breaks_openrouter_rule(message: Message, model: str) -> bool:
    own = [call_id for call_id in _iter_call_ids(message) if call_id.startswith(_OPENROUTER_PREFIX)]
    signed = {each.get("id"): each.get("data") for each in get_objects(message.get("reasoning_details"))}
    return bool(own) and not is_signature_valid(model, own[0], signed.get(own[0]))


def _breaks_google_rule(message: Message, model: str) -> bool:
    for call in get_objects(message.get("tool_calls"))[:1]:
        extra = call.get("extra_content")
        google = extra.get("google") if isinstance(extra, dict) else None
        signature = google.get("thought_signature") if isinstance(google, dict) else None
        call_id = str(call.get("id"))
        return call_id.startswith(_GOOGLE_PREFIX) and not is_signature_valid(model, call_id, signature)
    return False


def _breaks_mistral_rule(message: Message, _model: str) -> bool:
    answered = message.get("tool_call_id")
    ids = [*_iter_call_ids(message), *([answered] if answered is not None else [])]
    return not all(isinstance(each, str) and _MISTRAL_ID_PATTERN.fullmatch(each) for each in ids)


def _breaks_groq_rule(message: Message, _model: str) -> bool:
    return "reasoning" in message or "reasoning_content" in message


_BREAKS_RULE_BY_SHAPE: dict[str, Callable[[Message, str], bool]] = {
    "deepseek": _breaks_deepseek_rule,
    "openrouter": _breaks_openrouter_rule,
    "google": _breaks_google_rule,
    "mistral": _breaks_mistral_rule,
    "groq": _breaks_groq_rule,
}
_ERROR_TYPE = "invalid_request_error"
_REFUSAL_BY_SHAPE = {
    "deepseek": Refusal(
        400, _ERROR_TYPE, _ERROR_TYPE, "The `reasoning_content` in the thinking mode must be passed back to the API."
    ),
    "openrouter": Refusal(400, _ERROR_TYPE, None, "Provider returned error", extra={"code": 400}),
    "google": Refusal(
        400, _ERROR_TYPE, None, "Function call is missing a thought_signature.", extra={"status": "INVALID_ARGUMENT"}
    ),
    "mistral": Refusal(
        400,
        "invalid_function_call",
        "3280",
        "Tool call id must be a-z, A-Z, 0-9, with a length of 9.",
    ),
    "groq": Refusal(400, _ERROR_TYPE, None, "for 'role:assistant' property 'reasoning' is unsupported"),
}


def _iter_call_ids(message: Message) -> Iterator[str]:
    yield from (str(call.get("id")) for call in get_objects(message.get("tool_calls")))


def _build_openrouter_id(reply: Reply, at: int) -> str:
    return f"{_OPENROUTER_PREFIX}{reply.id[:12]}_{at}"


def _hash_reasoning(reasoning: str) -> str:
    return sha256(reasoning.encode()).hexdigest()[:16]
