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
from .media import Attachment, decode_data_url
from .openai_errors import build_openai_error, convert_to_openai
from .refusal import Refusal, RefusedError
from .residue import seal_content, unseal_content
from .responses_events import encode_event, iter_events
from .responses_items import UNBOUND_PREFIX, build_document
from .responses_validation import find_responses_violations, is_search
from .tool_loading import expand_responses, find_search_violations
from .usage import encode_json, encode_prompt, estimate_tokens
from .violations import Violation
from .wire import Frame, Prompt, Reply, WireFormat, get_bearer_token, get_objects, parse_tools, split_document


class ResponsesFormat(WireFormat):
    """The format of `POST /v1/responses`. Nothing is stored, even if the request sets "store"."""

    name = "openai_responses"

    @override
    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the API key from the request headers."""
        return get_bearer_token(headers)

    @override
    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Accept every request, because this format requires nothing outside the body."""

    @override
    def find_violations(self, body: Any) -> list[Violation]:
        """Return the violations of the format's rules in the request."""
        return [*find_search_violations(body), *find_responses_violations(expand_responses(body)[0])]

    @override
    def parse_request(self, body: Any) -> Prompt:
        """Return the parsed request. Raises RefusedError if its input is neither text nor a list of objects."""
        sent = body.get("input") if isinstance(body, dict) else None
        items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            message = "'input' must be a text or a list of objects."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message))
        if body.get("previous_response_id") is not None:
            message = "Previous response not found."
            raise RefusedError(Refusal(400, "invalid_request_error", "previous_response_not_found", message))
        sent_tools = get_objects(body.get("tools"))
        plain, loaded = expand_responses({**body, "input": items} if isinstance(body, dict) else body)
        tools = get_objects(plain.get("tools"))
        instructions = [body["instructions"]] if isinstance(body.get("instructions"), str) else []
        system = (Turn("system", each) for each in instructions)
        return Prompt(
            model=str(body.get("model")),
            conversation=Conversation(
                (*system, *_parse_turns(plain["input"], str(body.get("model")))),
                () if body.get("tool_choice") == "none" else parse_tools((*tools, *loaded)),
                can_search=body.get("tool_choice") != "none" and any(map(is_search, tools)),
            ),
            cache_bytes=encode_prompt(sent_tools, (*instructions, *items)),
            is_streamed=body.get("stream") is True,
            body=body,
        )

    @override
    def iter_frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer as server-sent events if it is streamed, or as the two halves of one document."""
        return iter_events(reply) if reply.prompt.is_streamed else split_document(encode_json(build_document(reply)))

    @override
    def convert_refusal(self, refusal: Refusal) -> Refusal:
        """Return the refusal with OpenAI's code for its reason."""
        return convert_to_openai(refusal)

    @override
    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the JSON error document for the refusal."""
        return build_openai_error(refusal)

    @override
    def build_error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the `error` event: flat as documented, or with a nested error object, as some servers send it."""
        error: dict[str, Any] = {"code": refusal.code or refusal.kind, "message": refusal.message, "param": None}
        if "nested_error" in reply.shapes:
            error = {"error": {"type": refusal.kind, **error}}
        return encode_event({"type": "error", **error, "sequence_number": sent})

    @override
    def build_failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the `response.failed` event."""
        error = {"code": refusal.code or refusal.kind, "message": refusal.message}
        failed = {**build_document(reply, output=[]), "status": "failed", "error": error, "usage": None}
        return encode_event({"type": "response.failed", "response": failed, "sequence_number": sent})

    @override
    def build_malformed_event(self) -> bytes:
        """Return an event that is not valid JSON."""
        return b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"half an ev\n\n'


def build_count_body(prompt: Prompt) -> dict[str, Any]:
    """Return the response body of `POST /v1/responses/input_tokens`."""
    return {"object": "response.input_tokens", "input_tokens": estimate_tokens(prompt.cache_bytes)}


def build_compaction_body(prompt: Prompt) -> dict[str, Any]:
    """Return the body of `POST /v1/responses/compact`: the user's messages, then the rest as one sealed item.

    The content of an earlier compaction is sealed again with the rest.
    """
    sent = prompt.body["input"]
    items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
    kept = [item for item in items if item.get("role") == "user"]
    compacted = list[dict[str, Any]]()
    for item in items:
        if item.get("type") == "compaction":
            compacted += _unseal_items(item, prompt.model)
        elif item.get("role") != "user":
            compacted.append(item)
    sealed = seal_content(prompt.model, zlib.compress(encode_json(compacted)))
    output = [_build_kept_message(item) for item in kept]
    output.append({"type": "compaction", "id": f"cmp_{uuid4().hex}", "encrypted_content": sealed})
    size, written = estimate_tokens(prompt.cache_bytes), estimate_tokens(sealed.encode())
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


def _build_kept_message(item: dict[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    item_id = f"msg_{UNBOUND_PREFIX}{uuid4().hex[: len(UNBOUND_PREFIX)]}"
    return {"id": item_id, "type": "message", "status": "completed", "role": "user", "content": parts}


def _parse_turns(items: list[dict[str, Any]], model: str) -> list[Turn]:
    """Return the items as turns; consecutive calls, or calls after an assistant's text, belong to the same turn."""
    turns: list[Turn] = []
    for item in items:
        match item.get("type", "message"):
            case "message":
                turns.append(_parse_message(item))
            case "function_call":
                before = turns.pop() if turns and turns[-1].role == "assistant" else Turn("assistant", "")
                turns.append(Turn("assistant", before.text, (*before.calls, _parse_call(item))))
            case "function_call_output":
                text, _ = _parse_content(item.get("output"))
                turns.append(Turn("tool", text, call_id=str(item.get("call_id"))))
            case "compaction":
                turns.extend(_parse_turns(_unseal_items(item, model), model))
    return turns


def _parse_message(item: dict[str, Any]) -> Turn:
    role = str(item.get("role"))
    text, attachments = _parse_content(item.get("content"))
    return Turn("system" if role == "developer" else role, text, attachments=attachments)


def _parse_content(content: object) -> tuple[str, tuple[Attachment, ...]]:
    parts = [{"text": content}] if isinstance(content, str) else get_objects(content)
    urls = (part.get("image_url", part.get("file_data")) for part in parts)
    found = (decode_data_url(url) for url in urls if url is not None)
    text = "\n".join(str(part["text"]) for part in parts if part.get("text"))
    return text, tuple(each for each in found if each)


def _parse_call(item: dict[str, Any]) -> Call:
    try:
        arguments = json.loads(item.get("arguments") or "{}")
    except TypeError, ValueError:
        arguments = {}
    arguments = arguments if isinstance(arguments, dict) else {}
    return Call(str(item.get("name")), arguments, str(item.get("call_id", "")))


def _unseal_items(item: dict[str, Any], model: str) -> list[dict[str, Any]]:
    content = unseal_content(model, item.get("encrypted_content"))
    try:
        return get_objects(json.loads(zlib.decompress(content))) if content else []
    except ValueError, zlib.error:
        return []
