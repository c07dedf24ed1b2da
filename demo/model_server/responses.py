"""OpenAI's Responses: reads requests, and writes token counts, compactions and answers that are not streamed.

`responses_events` streams answers, `responses_items` creates their items, and `responses_validation` checks requests.
"""

from collections.abc import Iterator, Mapping
import json
import time
from typing import Any, override
from uuid import uuid4
import zlib

from .conversation import Call, Conversation, Turn
from .media import Attachment, from_data_url
from .openai_errors import openai_error, openai_words
from .refusal import Refusal, RefusedError
from .residue import seal, unseal
from .responses_events import event, events
from .responses_items import UNBOUND, document
from .responses_validation import responses_violations
from .usage import prompt_bytes, to_bytes, tokens
from .violations import Violation
from .wire import Frame, Prompt, Reply, WireFormat, bearer, halves, objects


class Responses(WireFormat):
    """The format of `POST /v1/responses`. Nothing is stored, even if the request sets `store`."""

    name = "openai_responses"

    @override
    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the API key from the request headers."""
        return bearer(headers)

    @override
    def check(self, headers: Mapping[str, str]) -> None:
        """Accept every request, because this format requires nothing outside the body."""

    @override
    def violations(self, body: Any) -> list[Violation]:
        """Return the violations of the format's rules in the request."""
        return responses_violations(body)

    @override
    def read(self, body: Any) -> Prompt:
        """Return the parsed request. Raises RefusedError if its input is neither text nor a list of objects."""
        sent = body.get("input") if isinstance(body, dict) else None
        items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            message = "'input' must be a text or a list of objects."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message))
        if body.get("previous_response_id") is not None:
            message = "Previous response not found."
            raise RefusedError(Refusal(400, "invalid_request_error", "previous_response_not_found", message))
        tools = objects(body.get("tools"))
        instructions = [body["instructions"]] if isinstance(body.get("instructions"), str) else []
        names = (tool["name"] for tool in tools if isinstance(tool.get("name"), str))
        system = (Turn("system", each) for each in instructions)
        return Prompt(
            model=str(body.get("model")),
            conversation=Conversation(
                (*system, *_turns(items, str(body.get("model")))),
                () if body.get("tool_choice") == "none" else tuple(names),
            ),
            cached_form=prompt_bytes(tools, (*instructions, *items)),
            stream=body.get("stream") is True,
            body=body,
        )

    @override
    def frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer as server-sent events if it is streamed, or as the two halves of one document."""
        return events(reply) if reply.prompt.stream else halves(to_bytes(document(reply)))

    @override
    def in_own_words(self, refusal: Refusal) -> Refusal:
        """Return the refusal with OpenAI's code for its reason."""
        return openai_words(refusal)

    @override
    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the JSON error document for the refusal."""
        return openai_error(refusal)

    @override
    def error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the `error` event: flat as documented, or with a nested error object, as some servers send it."""
        error: dict[str, Any] = {"code": refusal.code or refusal.kind, "message": refusal.message, "param": None}
        if "nested_error" in reply.shapes:
            error = {"error": {"type": refusal.kind, **error}}
        return event({"type": "error", **error, "sequence_number": sent})

    @override
    def failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the `response.failed` event."""
        error = {"code": refusal.code or refusal.kind, "message": refusal.message}
        failed = {**document(reply, output=[]), "status": "failed", "error": error, "usage": None}
        return event({"type": "response.failed", "response": failed, "sequence_number": sent})

    @override
    def malformed_event(self) -> bytes:
        """Return an event that is not valid JSON."""
        return b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"half an ev\n\n'


def count_body(prompt: Prompt) -> dict[str, Any]:
    """Return the response body of `POST /v1/responses/input_tokens`."""
    return {"object": "response.input_tokens", "input_tokens": tokens(prompt.cached_form)}


def compaction_body(prompt: Prompt) -> dict[str, Any]:
    """Return the body of `POST /v1/responses/compact`: the user's messages, then the rest as one sealed item."""
    sent = prompt.body["input"]
    items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
    kept = [item for item in items if item.get("role") == "user"]
    compacted = [item for item in items if item.get("role") != "user"]
    sealed = seal(prompt.model, zlib.compress(to_bytes(compacted)))
    output = [_kept_message(item) for item in kept]
    output.append({"type": "compaction", "id": f"cmp_{uuid4().hex}", "encrypted_content": sealed})
    size, written = tokens(prompt.cached_form), tokens(sealed.encode())
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": output,
        "usage": {
            "input_tokens": size,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": size + written,
        },
    }


def _kept_message(item: dict[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    item_id = f"msg_{UNBOUND}{uuid4().hex[: len(UNBOUND)]}"
    return {"id": item_id, "type": "message", "status": "completed", "role": "user", "content": parts}


def _turns(items: list[dict[str, Any]], model: str) -> list[Turn]:
    """Return the items as turns; consecutive calls, or calls after an assistant's text, belong to the same turn."""
    turns: list[Turn] = []
    for item in items:
        match item.get("type", "message"):
            case "message":
                turns.append(_message(item))
            case "function_call":
                before = turns.pop() if turns and turns[-1].role == "assistant" else Turn("assistant", "")
                turns.append(Turn("assistant", before.text, (*before.calls, _call(item))))
            case "function_call_output":
                text, _ = _content(item.get("output"))
                turns.append(Turn("tool", text, call_id=str(item.get("call_id"))))
            case "compaction":
                turns.extend(_turns(_compacted(item, model), model))
    return turns


def _message(item: dict[str, Any]) -> Turn:
    role = str(item.get("role"))
    text, attachments = _content(item.get("content"))
    return Turn("system" if role == "developer" else role, text, attachments=attachments)


def _content(content: object) -> tuple[str, tuple[Attachment, ...]]:
    parts = [{"text": content}] if isinstance(content, str) else objects(content)
    urls = (part.get("image_url", part.get("file_data")) for part in parts)
    found = (from_data_url(url) for url in urls if url is not None)
    text = "\n".join(str(part["text"]) for part in parts if part.get("text"))
    return text, tuple(each for each in found if each)


def _call(item: dict[str, Any]) -> Call:
    try:
        arguments = json.loads(item.get("arguments") or "{}")
    except TypeError, ValueError:
        arguments = {}
    arguments = arguments if isinstance(arguments, dict) else {}
    return Call(str(item.get("name")), arguments, str(item.get("call_id", "")))


def _compacted(item: dict[str, Any], model: str) -> list[dict[str, Any]]:
    content = unseal(model, item.get("encrypted_content"))
    try:
        return objects(json.loads(zlib.decompress(content))) if content else []
    except ValueError, zlib.error:
        return []
