"""Anthropic's Messages: reads requests, and writes token counts and answers that are not streamed.

`anthropic_events` streams answers, `anthropic_prompt` interprets requests, and `anthropic_validation` checks them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, override

from .anthropic_context import apply_edits
from .anthropic_errors import MISSING_VERSION_REFUSAL, build_anthropic_error, convert_to_anthropic
from .anthropic_events import build_document, encode_event, iter_events
from .anthropic_prompt import measure_prompt, parse_turns
from .anthropic_validation import find_anthropic_violations, is_search
from .conversation import Conversation
from .refusal import Refusal, RefusedError
from .tool_loading import expand_messages, find_loading_violations
from .usage import encode_json, estimate_tokens
from .violations import Violation
from .wire import Frame, Prompt, Reply, WireFormat, get_bearer_token, get_objects, parse_tools, split_document


class AnthropicMessagesFormat(WireFormat):
    """The format of `POST /v1/messages`, with the betas from the request's header."""

    name = "anthropic"

    def __init__(self, betas: frozenset[str]) -> None:
        self._betas = betas

    @override
    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        # Version 0.x of the SDK sends the x-api-key header, and version 2.x sends a bearer token.
        return headers.get("x-api-key") or get_bearer_token(headers)

    @override
    def check_headers(self, headers: Mapping[str, str]) -> None:
        if "anthropic-version" not in headers:
            raise RefusedError(MISSING_VERSION_REFUSAL)

    @override
    def find_violations(self, body: Any) -> list[Violation]:
        return [*find_loading_violations(body), *find_anthropic_violations(expand_messages(body)[0], self._betas)]

    @override
    def parse_request(self, body: Any) -> Prompt:
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            raise RefusedError(Refusal(400, "invalid_request_error", None, "messages: Input should be a valid list"))
        body, loaded = expand_messages(body)
        body, applied = apply_edits(body, estimate_tokens(measure_prompt(body)[0]))
        written, caching = measure_prompt(body)
        thinking, choice = body.get("thinking"), body.get("tool_choice")
        kind = thinking.get("type") if isinstance(thinking, dict) else None
        no_tools = isinstance(choice, dict) and choice.get("type") == "none"
        return Prompt(
            model=str(body.get("model")),
            conversation=Conversation(
                tuple(parse_turns(body)),
                () if no_tools else parse_tools((*get_objects(body.get("tools")), *loaded)),
                can_search=not no_tools and any(map(is_search, get_objects(body.get("tools")))),
                is_resumed=messages[-1].get("role") == "assistant",
            ),
            cache_bytes=written,
            cache_rules=caching,
            is_streamed=body.get("stream") is True,
            body={**body, "applied_edits": applied},
            can_think=kind in ("enabled", "adaptive"),
            must_think=kind == "enabled",
        )

    @override
    def iter_frames(self, reply: Reply) -> Iterator[Frame]:
        return iter_events(reply) if reply.prompt.is_streamed else split_document(encode_json(build_document(reply)))

    @override
    def convert_refusal(self, refusal: Refusal) -> Refusal:
        return convert_to_anthropic(refusal)

    @override
    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        return build_anthropic_error(refusal)

    @override
    def build_error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return encode_event(build_anthropic_error(refusal))

    @override
    def build_failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return self.build_error_event(refusal, reply, sent)

    @override
    def build_malformed_event(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"half an ev\n\n'


def build_count_body(prompt: Prompt) -> dict[str, Any]:
    """Return the response body of `POST /v1/messages/count_tokens`."""
    return {"input_tokens": estimate_tokens(prompt.cache_bytes)}
