"""Gemini's generateContent: reads requests, and writes token counts and answers that are not streamed.

`gemini_chunks` streams answers, `gemini_prompt` interprets requests, and `gemini_validation` checks them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, override

from .conversation import Conversation
from .gemini_chunks import build_document, encode_event, iter_chunks
from .gemini_errors import build_gemini_error, convert_to_gemini
from .gemini_prompt import can_call, get_declarations, get_object, parse_turns, to_camel_case
from .gemini_validation import find_gemini_violations
from .prompt_cache import CacheRules
from .refusal import Refusal, RefusedError
from .usage import encode_json, encode_prompt, estimate_tokens
from .violations import Violation
from .wire import Frame, Prompt, Reply, WireFormat, get_objects, parse_tools, split_document

# https://ai.google.dev/gemini-api/docs/caching: implicit caching starts at 2048 tokens, or at 4096 for models from
# Gemini 3 on.
_MIN_TOKENS_BY_PREFIX = {"gemini-3": 4096, "gemini-4": 4096}
_DEFAULT_MIN_TOKENS = 2048


class GeminiContentFormat(WireFormat):
    """The format of "generateContent" and "streamGenerateContent"; the URL may contain the model and the key."""

    name = "gemini"

    def __init__(self, model: str, *, stream: bool = False, key: str | None = None) -> None:
        self._model = model
        self._is_streamed = stream
        self._api_key = key

    @override
    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-goog-api-key", self._api_key)

    @override
    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Accept every request, because this format requires nothing outside the URL and the body."""

    @override
    def find_violations(self, body: Any) -> list[Violation]:
        return find_gemini_violations(_unwrap_request(body), self._model)

    @override
    def parse_request(self, body: Any) -> Prompt:
        body = _unwrap_request(body)
        contents = body.get("contents") if isinstance(body, dict) else None
        if not isinstance(contents, list) or not all(isinstance(each, dict) for each in contents):
            raise RefusedError(Refusal(400, "invalid_request_error", None, "contents is not specified"))
        declared = [each for each in get_declarations(body) if isinstance(each, dict)]
        system = [body["systemInstruction"]] if "systemInstruction" in body else []
        return Prompt(
            model=self._model,
            conversation=Conversation(
                tuple(parse_turns(body)),
                parse_tools(declared) if can_call(body) else (),
                can_search=any("googleSearch" in tool for tool in get_objects(body.get("tools"))),
            ),
            cache_bytes=encode_prompt([*system, *get_objects(body.get("tools"))], contents),
            cache_rules=CacheRules(min_tokens=_find_min_tokens(self._model), step_tokens=1),
            is_streamed=self._is_streamed,
            body=body,
            can_think=get_object(get_object(body, "generationConfig"), "thinkingConfig").get("thinkingBudget") != 0,
        )

    @override
    def iter_frames(self, reply: Reply) -> Iterator[Frame]:
        return iter_chunks(reply) if reply.prompt.is_streamed else split_document(encode_json(build_document(reply)))

    @override
    def convert_refusal(self, refusal: Refusal) -> Refusal:
        return convert_to_gemini(refusal)

    @override
    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        return build_gemini_error(refusal)

    @override
    def build_error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return encode_event(build_gemini_error(refusal))

    @override
    def build_failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        return self.build_error_event(refusal, reply, sent)

    @override
    def build_malformed_event(self) -> bytes:
        return b'data: {"candidates": [{"content": {"parts": [{"text": "half an ev\r\n\r\n'


def build_count_body(prompt: Prompt) -> dict[str, Any]:
    """Return the response body of "countTokens"."""
    size = estimate_tokens(prompt.cache_bytes)
    return {"totalTokens": size, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": size}]}


def _unwrap_request(body: Any) -> Any:
    """Return the request whose tokens are counted: the one nested in the body, if any, or the body itself."""
    body = to_camel_case(body)
    if not isinstance(body, dict) or "generateContentRequest" not in body:
        return body
    return {key: value for key, value in get_object(body, "generateContentRequest").items() if key != "model"}


def _find_min_tokens(model: str) -> int:
    found = (size for start, size in _MIN_TOKENS_BY_PREFIX.items() if model.startswith(start))
    return next(found, _DEFAULT_MIN_TOKENS)
