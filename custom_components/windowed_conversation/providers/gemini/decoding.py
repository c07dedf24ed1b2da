"""Decode Gemini's answers, and map the errors of Google's servers to `ProviderError`s.

Errors are classified by status, canonical code and structured details, never by message text.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from .. import errors
from ..decoder import Decoder, sanitize_finish_reason
from ..events import Event, Request, Usage
from ..json_values import as_code, as_text, count_or_none, get_count, get_member, get_objects
from ..models import ReasoningStyle
from ..sizes import exceeds_context
from .encoding import TURN_PARTS, Signatures, SignedText, gemini_name

# Canonical codes that are more specific than the status. FAILED_PRECONDITION means that the free tier is not available
# in the country and billing is not enabled (https://ai.google.dev/gemini-api/docs/troubleshooting).
_ERROR_BY_CODE: dict[str, type[errors.ProviderError]] = {
    "CANCELLED": errors.Unavailable,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "FAILED_PRECONDITION": errors.QuotaError,
    "INTERNAL": errors.Unavailable,
    "NOT_FOUND": errors.ModelNotFound,
    "PERMISSION_DENIED": errors.AuthError,
    "RESOURCE_EXHAUSTED": errors.RateLimited,
    "UNAUTHENTICATED": errors.AuthError,
    "UNAVAILABLE": errors.Unavailable,
}
# The errors by the reason in an ErrorInfo: a wrong key is a 400 INVALID_ARGUMENT, and only the reason identifies it.
_ERROR_BY_REASON: dict[str, type[errors.ProviderError]] = {
    "API_KEY_EXPIRED": errors.AuthError,
    "API_KEY_INVALID": errors.AuthError,
    "BILLING_DISABLED": errors.QuotaError,
}
# `QuotaFailure.violations[].quotaId` looks like GenerateRequestsPerDayPerProjectPerModel-FreeTier. It makes no sense to
# wait for a daily quota, which is reset only the next day.
_DAILY_QUOTA_WORD = "PerDay"

_STOP_REASON = "STOP"
# The parts of the searches that the server runs.
_SEARCH_PARTS = ("toolCall", "toolResponse")
_MAX_QUERIES = 100
_UNKNOWN_REASON = "UNKNOWN"
_UNSPECIFIED_REASON = "FINISH_REASON_UNSPECIFIED"

# Finish reasons of an answer that was cut off. Every finish reason that is not handled, including any new one, is an
# error: https://ai.google.dev/api/generate-content#FinishReason
_CUT_OFF_REASONS = {"MAX_TOKENS", "CONTINUATION"}

_REFUSAL_REASONS = {
    "BLOCKLIST",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "LANGUAGE",
    "MODEL_ARMOR",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
}
# JSON for protocol buffers allows either base64 alphabet.
_URL_SAFE_TO_STANDARD = str.maketrans("-_", "+/")


class GoogleError(Exception):
    """An error of a server, without the server's message in its text.

    `status` is the HTTP status. `body` is the server's JSON, or any other value if Google did not send the response.
    """

    def __init__(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"status {status}")
        error = get_member(body[0] if isinstance(body, list) and len(body) == 1 else body, "error")
        code = get_member(error, "status")
        self.status = status
        self.code = code if isinstance(code, str) and code in _ERROR_BY_CODE else ""
        self.details = get_objects(get_member(error, "details"))
        self.headers = headers or {}


@contextmanager
def convert_errors(request: Request | None = None) -> Iterator[None]:
    """Convert every error of the server and the HTTP client into a `ProviderError`. `request` is the sent request.

    If a request exceeds the model's context, Gemini only reports an invalid argument.
    """
    try:
        with errors.convert_transport_errors():
            yield
    except GoogleError as err:
        raise _convert_error(err, lambda: request is not None and exceeds_context(request)) from err


def convert_error_event(event: object) -> errors.ProviderError:
    """Return the `ProviderError` for an event, or a complete answer, that reports an error."""
    code = count_or_none(get_member(get_member(event, "error"), "code"))
    return _convert_error(GoogleError(code or HTTPStatus.INTERNAL_SERVER_ERROR, event))


def _convert_error(err: GoogleError, may_be_too_long: Callable[[], bool] | None = None) -> errors.ProviderError:
    reasons = (each.get("reason") for each in err.details)
    by_reason = next(
        (_ERROR_BY_REASON[reason] for reason in reasons if isinstance(reason, str) and reason in _ERROR_BY_REASON), None
    )
    kind, delay = by_reason or _ERROR_BY_CODE.get(err.code), _parse_retry_after(err)
    error = errors.build_server_error(err.status, err.code, kind, delay=delay, may_be_too_long=may_be_too_long)
    violations = [each for detail in err.details for each in get_objects(detail.get("violations"))]
    is_daily = any(_DAILY_QUOTA_WORD in str(each.get("quotaId", "")) for each in violations)
    return errors.QuotaError(str(error)) if is_daily and isinstance(error, errors.RateLimited) else error


def _parse_retry_after(err: GoogleError) -> float | None:
    """Return the seconds to wait: the `retryDelay` in the details, a duration such as "34.5s", or else the header."""
    delays = (each["retryDelay"] for each in err.details if isinstance(each.get("retryDelay"), str))
    seconds = (errors.parse_seconds(delay.removesuffix("s")) for delay in delays)
    named = next((each for each in seconds if each is not None), None)
    return errors.parse_retry_after(err.headers) if named is None else named


class GeminiDecoder(Decoder):
    """Decodes one answer. The terminal marker is a finish reason; every chunk contains the usage so far."""

    def __init__(self, request: Request) -> None:
        super().__init__(request, gemini_name)
        self._signed_spans: list[tuple[int, int, bytes]] = []
        self._gemini_id_by_call_id: dict[str, str] = {}
        self._signature_by_call_id: dict[str, bytes] = {}
        self._block_reason = ""
        # Gemini 3 bills each query, earlier models each request with a search.
        self._bills_queries = request.profile.reasoning is ReasoningStyle.LEVEL
        self._queries: set[str] = set()
        self._keeps_parts = request.web_search is not None
        self._parts: list[Any] = []

    def to_stream_events(self, answer: Any) -> list[Any]:
        """Return the events of an unstreamed answer, which is a list of the stream's chunks."""
        return answer if isinstance(answer, list) else [answer]

    def on_event(self, event: Any) -> Iterator[Event]:
        """Return the events of one chunk, see `Decoder.on_event`."""
        if event.get("error") is not None and not self.is_complete:
            raise convert_error_event(event)
        if event.get("usageMetadata") is not None:
            metadata = event["usageMetadata"]
            thoughts = get_count(metadata, "thoughtsTokenCount")
            self._usage = Usage(
                input=get_count(metadata, "promptTokenCount") + get_count(metadata, "toolUsePromptTokenCount"),
                cached=get_count(metadata, "cachedContentTokenCount"),
                output=get_count(metadata, "candidatesTokenCount") + thoughts,
                reasoning=thoughts,
            )
        if reason := get_member(event.get("promptFeedback"), "blockReason"):
            self._block_reason = as_code(reason) or _UNKNOWN_REASON
        for candidate in event.get("candidates") or ():
            yield from self._on_candidate(candidate)

    def _on_candidate(self, candidate: Any) -> Iterator[Event]:
        for part in (candidate.get("content") or {}).get("parts") or ():
            yield from self._on_part(part)
        grounding = candidate.get("groundingMetadata")
        self._on_queries(get_member(grounding, "webSearchQueries"))
        for chunk in get_objects(get_member(grounding, "groundingChunks")):
            self._searches.add_source(get_member(chunk.get("web"), "uri"), get_member(chunk.get("web"), "title"))
        reason = candidate.get("finishReason")
        if reason and reason != _UNSPECIFIED_REASON and not self.is_complete:
            self.is_complete, self._native_reason = True, sanitize_finish_reason(as_code(reason))

    def _on_part(self, part: Any) -> Iterator[Event]:
        signature = b64decode(as_text(part.get("thoughtSignature")).translate(_URL_SAFE_TO_STANDARD))
        if "functionCall" in part:
            yield self._on_call(part["functionCall"], signature)
            self._keep_part(part)
        elif any(kind in part for kind in _SEARCH_PARTS):
            self._is_after_search = True
            self._on_queries(get_member(get_member(part.get("toolCall"), "args"), "queries"))
            self._searches.count = max(self._searches.count, 1)
            self._keep_part(part)
        elif part.get("text") is None:
            return
        elif part.get("thought"):
            yield from self._on_reasoning(as_text(part["text"]))
        else:
            start = self._text_chars
            yield from self._on_text(as_text(part["text"]))
            self._keep_part(part)
            if signature:
                self._signed_spans.append((start, self._text_chars, signature))

    def _keep_part(self, part: Any) -> None:
        # An empty part would be refused unless it is signed.
        if self._keeps_parts and (part.keys() - {"text"} or part["text"]):
            self._parts.append(self._searches.prepare_item(part))

    def _on_queries(self, queries: object) -> None:
        given = queries[:_MAX_QUERIES] if isinstance(queries, list) else []
        self._queries.update(each for each in given if isinstance(each, str) and each)
        billed = len(self._queries) if self._bills_queries else min(len(self._queries), 1)
        self._searches.count = max(self._searches.count, min(billed, _MAX_QUERIES))

    def _on_call(self, call: Any, signature: bytes) -> Event:
        arguments = self._calls.begin_call()
        arguments.add_fragment(call.get("args"))
        given_id = as_text(call.get("id"))
        done = self._calls.finish_call(given_id, as_text(call.get("name")), arguments.parse())
        if given_id:
            self._gemini_id_by_call_id[done.call.id] = given_id
        if signature:
            self._signature_by_call_id[done.call.id] = signature
        return done

    def _final_error(self) -> errors.ProviderError | None:
        """Return the error of the answer, see `Decoder._final_error`. Complete calls are used despite a later error."""
        reason = self._native_reason
        if self._block_reason:
            return errors.AnswerRefused(f"the prompt was blocked, reason {self._block_reason}", self._block_reason)
        if not self.is_complete or reason == _STOP_REASON or self._calls.count:
            return super()._final_error()
        message = f"finish reason {reason}"
        if reason in _CUT_OFF_REASONS:
            return errors.Incomplete(message)
        return errors.AnswerRefused(message, reason) if reason in _REFUSAL_REASONS else errors.BadStream(message)

    def _native_value(self) -> Any:
        length = self._text_chars
        texts = (SignedText(length - start, length - end, signature) for start, end, signature in self._signed_spans)
        return Signatures(self._gemini_id_by_call_id, self._signature_by_call_id, tuple(texts)).as_json()

    def _turn_value(self) -> Any:
        has_search = any(kind in part for part in self._parts for kind in _SEARCH_PARTS)
        others = {"ids": {}, "signatures": {}, "texts": [], **(self._native_value() or {})}
        return {**others, TURN_PARTS: self._parts} if has_search else None
