"""Mapping errors of Google's servers, of its SDK, and of the HTTP client to ours.

Decided by status, canonical code (google.rpc.Code) and the structured details (google/rpc/error_details.proto), never
by message text. Our messages contain only the codes: a server's own text may repeat the conversation.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from ..errors import (
    AuthError,
    BadStream,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from ..events import Request
from ..http_errors import retry_after, seconds_of, server_error, transport_errors
from ..json_values import count_or_none, member, objects
from ..sizes import fills_context

# Canonical codes that say more than the status. FAILED_PRECONDITION: the free tier is not available in the country, and
# billing is not enabled (https://ai.google.dev/gemini-api/docs/troubleshooting).
_BY_CODE: dict[str, type[ProviderError]] = {
    "CANCELLED": Unavailable,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "FAILED_PRECONDITION": QuotaError,
    "INTERNAL": Unavailable,
    "NOT_FOUND": ModelNotFound,
    "PERMISSION_DENIED": AuthError,
    "RESOURCE_EXHAUSTED": RateLimited,
    "UNAUTHENTICATED": AuthError,
    "UNAVAILABLE": Unavailable,
}
# `ErrorInfo.reason`: a wrong key is a 400 INVALID_ARGUMENT that says so in here only.
_BY_REASON: dict[str, type[ProviderError]] = {
    "API_KEY_EXPIRED": AuthError,
    "API_KEY_INVALID": AuthError,
    "BILLING_DISABLED": QuotaError,
}
# `QuotaFailure.violations[].quotaId` reads like GenerateRequestsPerDayPerProjectPerModel-FreeTier: a quota that is full
# again tomorrow is none to wait for.
_PER_DAY = "PerDay"

_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)


class GoogleError(Exception):
    """An error of a server, as `google.genai.errors.APIError` has it, but without the server's words in its text.

    `status` is that of HTTP. `body` is the server's JSON, or anything else if it is not Google that answered.
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
    """Raise a `ProviderError` for every error of the server and the HTTP client. `request` is the sent request.

    For a request that is longer than the model can read, Gemini only says that an argument is invalid.
    """
    try:
        with transport_errors():
            yield
    except GoogleError as err:
        raise _translated(err, lambda: request is not None and fills_context(request)) from err
    except _UNREADABLE as err:
        # the SDK's own models and converters raise these, too, with the server's words in their text
        raise BadStream(f"the answer is not of the expected form ({type(err).__name__})") from None


def error_in_event(event: object) -> ProviderError:
    """Return the error for an event or an answer that is itself an error."""
    code = count_or_none(member(member(event, "error"), "code"))
    return _translated(GoogleError(code or HTTPStatus.INTERNAL_SERVER_ERROR, event))


def _translated(err: GoogleError, may_be_too_long: Callable[[], bool] | None = None) -> ProviderError:
    reasons = (each.get("reason") for each in err.details)
    by_reason = next(
        (_BY_REASON[reason] for reason in reasons if isinstance(reason, str) and reason in _BY_REASON), None
    )
    known, delay = by_reason or _BY_CODE.get(err.code), _retry_after(err)
    error = server_error(err.status, err.code, known, delay=delay, may_be_too_long=may_be_too_long)
    return QuotaError(str(error)) if isinstance(error, RateLimited) and _is_daily(err.details) else error


def _is_daily(details: list[dict[str, Any]]) -> bool:
    violations = [each for detail in details for each in objects(detail.get("violations"))]
    return any(_PER_DAY in str(each.get("quotaId", "")) for each in violations)


def _retry_after(err: GoogleError) -> float | None:
    """Return the seconds to wait: `RetryInfo.retryDelay`, a duration such as `34.5s`, or else the header."""
    delays = (each["retryDelay"] for each in err.details if isinstance(each.get("retryDelay"), str))
    seconds = (seconds_of(delay.removesuffix("s")) for delay in delays)
    named = next((each for each in seconds if each is not None), None)
    return retry_after(err.headers) if named is None else named
