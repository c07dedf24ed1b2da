"""Anthropic's Messages: reads requests, and writes token counts and answers that are not streamed.

`anthropic_events` streams answers, `anthropic_prompt` interprets requests, and `anthropic_validation` checks them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, override

from .anthropic_context import edited
from .anthropic_errors import NO_VERSION, anthropic_error, anthropic_words
from .anthropic_events import document, event, events
from .anthropic_prompt import cached_parts, turns
from .anthropic_validation import anthropic_violations
from .conversation import Conversation
from .refusal import Refusal, RefusedError
from .usage import to_bytes, tokens
from .violations import Violation
from .wire import Frame, Prompt, Reply, WireFormat, bearer, halves, objects


class AnthropicMessages(WireFormat):
    """The format of `POST /v1/messages`, with the betas from the request's header."""

    name = "anthropic"

    def __init__(self, betas: frozenset[str]) -> None:
        self._betas = betas

    @override
    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        # Version 0.x of the SDK sends the x-api-key header, and version 2.x sends a bearer token.
        return headers.get("x-api-key") or bearer(headers)

    @override
    def check(self, headers: Mapping[str, str]) -> None:
        if "anthropic-version" not in headers:
            raise RefusedError(NO_VERSION)

    @override
    def violations(self, body: Any) -> list[Violation]:
        return anthropic_violations(body, self._betas)

    @override
    def read(self, body: Any) -> Prompt:
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            raise RefusedError(Refusal(400, "invalid_request_error", None, "messages: Input should be a valid list"))
        body, applied = edited(body, tokens(cached_parts(body)[0]))
        written, caching = cached_parts(body)
        names = (tool["name"] for tool in objects(body.get("tools")) if isinstance(tool.get("name"), str))
        thinking, choice = body.get("thinking"), body.get("tool_choice")
        kind = thinking.get("type") if isinstance(thinking, dict) else None
        no_tools = isinstance(choice, dict) and choice.get("type") == "none"
        return Prompt(
            model=str(body.get("model")),
            conversation=Conversation(tuple(turns(body)), () if no_tools else tuple(names)),
            cached_form=written,
            caching=caching,
            stream=body.get("stream") is True,
            body={**body, "applied_edits": applied},
            thinks=kind in ("enabled", "adaptive"),
            always_thinks=kind == "enabled",
        )

    @override
    def frames(self, reply: Reply) -> Iterator[Frame]:
        return events(reply) if reply.prompt.stream else halves(to_bytes(document(reply)))

    @override
    def in_own_words(self, refusal: Refusal) -> Refusal:
        return anthropic_words(refusal)

    @override
    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        return anthropic_error(refusal)

    @override
    def error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return event(anthropic_error(refusal))

    @override
    def failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return self.error_event(refusal, reply, sent)

    @override
    def malformed_event(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"half an ev\n\n'


def count_body(prompt: Prompt) -> dict[str, Any]:
    """Return the response body of `POST /v1/messages/count_tokens`."""
    return {"input_tokens": tokens(prompt.cached_form)}
