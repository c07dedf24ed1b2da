"""Gemini's generateContent: reads requests, and writes token counts and answers that are not streamed.

`gemini_chunks` streams answers, `gemini_prompt` interprets requests, and `gemini_validation` checks them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, override

from .conversation import Conversation
from .gemini_chunks import chunks, document, event
from .gemini_errors import gemini_error, gemini_words
from .gemini_prompt import declarations, in_camel_case, inner, may_call, turns
from .gemini_validation import gemini_violations
from .prompt_cache import Caching
from .refusal import Refusal, RefusedError
from .usage import prompt_bytes, to_bytes, tokens
from .violations import Violation
from .wire import Frame, Prompt, Reply, WireFormat, halves, objects

# https://ai.google.dev/gemini-api/docs/caching: implicit caching starts at 2048 tokens, or at 4096 for models from
# Gemini 3 on.
_MINIMUM_TOKENS = {"gemini-3": 4096, "gemini-4": 4096}
_DEFAULT_MINIMUM_TOKENS = 2048


class GeminiContent(WireFormat):
    """The format of `generateContent` and `streamGenerateContent`; the URL may contain the model and the key."""

    name = "gemini"

    def __init__(self, model: str, *, stream: bool = False, key: str | None = None) -> None:
        self._model = model
        self._stream = stream
        self._key = key

    @override
    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-goog-api-key", self._key)

    @override
    def check(self, headers: Mapping[str, str]) -> None:
        """Accept every request, because this format requires nothing outside the URL and the body."""

    @override
    def violations(self, body: Any) -> list[Violation]:
        return gemini_violations(_request(body), self._model)

    @override
    def read(self, body: Any) -> Prompt:
        body = _request(body)
        contents = body.get("contents") if isinstance(body, dict) else None
        if not isinstance(contents, list) or not all(isinstance(each, dict) for each in contents):
            raise RefusedError(Refusal(400, "invalid_request_error", None, "contents is not specified"))
        declared = [each for each in declarations(body) if isinstance(each, dict)]
        names = (each["name"] for each in declared if isinstance(each.get("name"), str))
        system = [body["systemInstruction"]] if "systemInstruction" in body else []
        return Prompt(
            model=self._model,
            conversation=Conversation(tuple(turns(body)), tuple(names) if may_call(body) else ()),
            cached_form=prompt_bytes([*system, *objects(body.get("tools"))], contents),
            caching=Caching(minimum=_minimum(self._model), step=1),
            stream=self._stream,
            body=body,
            thinks=inner(inner(body, "generationConfig"), "thinkingConfig").get("thinkingBudget") != 0,
        )

    @override
    def frames(self, reply: Reply) -> Iterator[Frame]:
        return chunks(reply) if reply.prompt.stream else halves(to_bytes(document(reply)))

    @override
    def in_own_words(self, refusal: Refusal) -> Refusal:
        return gemini_words(refusal)

    @override
    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        return gemini_error(refusal)

    @override
    def error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return event(gemini_error(refusal))

    @override
    def failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return self.error_event(refusal, reply, sent)

    @override
    def malformed_event(self) -> bytes:
        return b'data: {"candidates": [{"content": {"parts": [{"text": "half an ev\r\n\r\n'


def count_body(prompt: Prompt) -> dict[str, Any]:
    """Return the response body of `countTokens`."""
    size = tokens(prompt.cached_form)
    return {"totalTokens": size, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": size}]}


def _request(body: Any) -> Any:
    """Return the request whose tokens are counted: the one nested in the body, if any, or the body itself."""
    body = in_camel_case(body)
    if not isinstance(body, dict) or "generateContentRequest" not in body:
        return body
    return {key: value for key, value in inner(body, "generateContentRequest").items() if key != "model"}


def _minimum(model: str) -> int:
    found = (size for start, size in _MINIMUM_TOKENS.items() if model.startswith(start))
    return next(found, _DEFAULT_MINIMUM_TOKENS)
