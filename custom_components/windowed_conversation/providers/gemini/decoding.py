"""Decode Gemini's answers, and map the errors of Google's servers and SDK to `ProviderError`s.

Errors are classified by status, canonical code and structured details, never by message text.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from .. import errors
from ..decoder import Decoder, finish_reason
from ..events import Event, Request, Usage
from ..json_values import code_of, count_at, count_or_none, member, objects, text_of
from ..sizes import fills_context
from .encoding import Signatures, SignedText, tool_names

# Canonical codes that are more specific than the status. FAILED_PRECONDITION means that the free tier is not available
# in the country and billing is not enabled (https://ai.google.dev/gemini-api/docs/troubleshooting).
_BY_CODE: dict[str, type[errors.ProviderError]] = {
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
# The errors by `ErrorInfo.reason`: a wrong key is a 400 INVALID_ARGUMENT, and only the reason identifies it.
_BY_REASON: dict[str, type[errors.ProviderError]] = {
    "API_KEY_EXPIRED": errors.AuthError,
    "API_KEY_INVALID": errors.AuthError,
    "BILLING_DISABLED": errors.QuotaError,
}
# `QuotaFailure.violations[].quotaId` looks like GenerateRequestsPerDayPerProjectPerModel-FreeTier. It makes no sense to
# wait for a daily quota, which is reset only the next day.
_PER_DAY = "PerDay"

_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)

_STOP = "STOP"
_UNKNOWN = "UNKNOWN"
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"

# Finish reasons of an answer that was cut off. Every finish reason that is not handled, including any new one, is an
# error: https://ai.google.dev/api/generate-content#FinishReason
_CUT_OFF = {"MAX_TOKENS", "CONTINUATION"}

_DECLINED = {
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
_OTHER_ALPHABET = str.maketrans("-_", "+/")


class GoogleError(Exception):
    """An error of a server, like `google.genai.errors.APIError`, but without the server's message in its text.

    `status` is the HTTP status. `body` is the server's JSON, or any other value if Google did not send the response.
    """

    def __init__(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"status {status}")
        error = member(body[0] if isinstance(body, list) and len(body) == 1 else body, "error")
        code = member(error, "status")
        self.status = status
        self.code = code if isinstance(code, str) and code in _BY_CODE else ""
        self.details = objects(member(error, "details"))
        self.headers = headers or {}


@contextmanager
def provider_errors(request: Request | None = None) -> Iterator[None]:
    """Convert every error of the server and the HTTP client into a `ProviderError`. `request` is the sent request.

    If a request exceeds the model's context, Gemini only reports an invalid argument.
    """
    try:
        with errors.transport_errors():
            yield
    except GoogleError as err:
        raise _translated(err, lambda: request is not None and fills_context(request)) from err
    except _UNREADABLE as err:
        # The SDK's own models and converters raise these errors, too, and include the server's text in them.
        raise errors.BadStream(f"the answer is not of the expected form ({type(err).__name__})") from None


def error_in_event(event: object) -> errors.ProviderError:
    """Return the `ProviderError` for an event, or a complete answer, that reports an error."""
    code = count_or_none(member(member(event, "error"), "code"))
    return _translated(GoogleError(code or HTTPStatus.INTERNAL_SERVER_ERROR, event))


def _translated(err: GoogleError, may_be_too_long: Callable[[], bool] | None = None) -> errors.ProviderError:
    reasons = (each.get("reason") for each in err.details)
    by_reason = next(
        (_BY_REASON[reason] for reason in reasons if isinstance(reason, str) and reason in _BY_REASON), None
    )
    kind, delay = by_reason or _BY_CODE.get(err.code), _retry_after(err)
    error = errors.server_error(err.status, err.code, kind, delay=delay, may_be_too_long=may_be_too_long)
    return errors.QuotaError(str(error)) if isinstance(error, errors.RateLimited) and _is_daily(err.details) else error


def _is_daily(details: list[dict[str, Any]]) -> bool:
    violations = [each for detail in details for each in objects(detail.get("violations"))]
    return any(_PER_DAY in str(each.get("quotaId", "")) for each in violations)


def _retry_after(err: GoogleError) -> float | None:
    """Return the seconds to wait from `RetryInfo.retryDelay`, a duration such as `34.5s`, or else from the header."""
    delays = (each["retryDelay"] for each in err.details if isinstance(each.get("retryDelay"), str))
    seconds = (errors.seconds_of(delay.removesuffix("s")) for delay in delays)
    named = next((each for each in seconds if each is not None), None)
    return errors.retry_after(err.headers) if named is None else named


class GeminiDecoder(Decoder):
    """Decodes one answer. The terminal marker is a finish reason; every chunk contains the usage so far."""

    def __init__(self, request: Request) -> None:
        super().__init__(request, tool_names(request))
        self._signed: list[tuple[int, int, bytes]] = []
        self._ids: dict[str, str] = {}
        self._signatures: dict[str, bytes] = {}
        self._blocked = ""

    def as_stream(self, answer: Any) -> list[Any]:
        """Return the events of an unstreamed answer: without `alt=sse`, it is a list of the stream's chunks."""
        return answer if isinstance(answer, list) else [answer]

    def on_event(self, event: Any) -> Iterator[Event]:
        """Return the events of one chunk, see `Decoder.on_event`."""
        if event.get("error") is not None and not self.is_complete:
            raise error_in_event(event)
        if event.get("usageMetadata") is not None:
            self._usage = _usage(event["usageMetadata"])
        if reason := member(event.get("promptFeedback"), "blockReason"):
            self._blocked = code_of(reason) or _UNKNOWN
        for candidate in event.get("candidates") or ():
            yield from self._on_candidate(candidate)

    def _on_candidate(self, candidate: Any) -> Iterator[Event]:
        for part in (candidate.get("content") or {}).get("parts") or ():
            yield from self._on_part(part)
        reason = candidate.get("finishReason")
        if reason and reason != _UNSPECIFIED and not self.is_complete:
            self.is_complete, self._ended = True, finish_reason(code_of(reason))

    def _on_part(self, part: Any) -> Iterator[Event]:
        signature = b64decode(text_of(part.get("thoughtSignature")).translate(_OTHER_ALPHABET))
        if "functionCall" in part:
            yield self._on_call(part["functionCall"], signature)
        elif part.get("text") is None:
            return
        elif part.get("thought"):
            yield from self._on_reasoning(text_of(part["text"]))
        else:
            start = self._length
            yield from self._on_text(text_of(part["text"]))
            if signature:
                self._signed.append((start, self._length, signature))

    def _on_call(self, call: Any, signature: bytes) -> Event:
        arguments = self._calls.begin()
        arguments.add(call.get("args"))
        given_id = text_of(call.get("id"))
        done = self._calls.announce(given_id, text_of(call.get("name")), arguments.value())
        if given_id:
            self._ids[done.call.id] = given_id
        if signature:
            self._signatures[done.call.id] = signature
        return done

    def _error(self) -> errors.ProviderError | None:
        """Return the error of the answer, see `Decoder._error`. Complete calls are used despite a later error."""
        reason = self._ended
        if self._blocked:
            return errors.Refused(f"the prompt was blocked, reason {self._blocked}", self._blocked)
        if not self.is_complete or reason == _STOP or self._calls.count:
            return super()._error()
        message = f"finish reason {reason}"
        if reason in _CUT_OFF:
            return errors.Incomplete(message)
        return errors.Refused(message, reason) if reason in _DECLINED else errors.BadStream(message)

    def _residue(self) -> Any:
        length = self._length
        texts = (SignedText(length - start, length - end, signature) for start, end, signature in self._signed)
        return Signatures(self._ids, self._signatures, tuple(texts)).as_json()


def _usage(metadata: object) -> Usage:
    thoughts = count_at(metadata, "thoughtsTokenCount")
    return Usage(
        input=count_at(metadata, "promptTokenCount") + count_at(metadata, "toolUsePromptTokenCount"),
        cached=count_at(metadata, "cachedContentTokenCount"),
        output=count_at(metadata, "candidatesTokenCount") + thoughts,
        reasoning=thoughts,
    )
