"""Mapping errors of Google's SDK and its HTTP client to ours.

Decided by status, canonical code (google.rpc.Code) and the structured details (google/rpc/error_details.proto), never
by message text. Our messages contain only the codes: a server's own text may repeat what people said.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
import math
from typing import Any

from google.genai.errors import APIError

from ..errors import (
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from ..http_errors import error_of_status, refused_request, retry_after, transport_errors
from ..json_values import figure, member, objects

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


@contextmanager
def provider_errors(is_too_long: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Raise a `ProviderError` for every error of the SDK and its HTTP client.

    For a request that is longer than the model can read, Gemini only says that an argument is invalid. If there is no
    other reason, `is_too_long` decides whether that was the reason.
    """
    try:
        with transport_errors():
            yield
    except APIError as err:
        error = _from_api(err)
        raise (refused_request(err.code, str(error), is_too_long) if type(error) is BadRequest else error) from err
    except UnicodeEncodeError as err:
        # the key goes into a header, in ASCII, and the model into the address, in UTF-8
        kind = AuthError if err.encoding == "ascii" else BadRequest
        raise kind(f"what is to be sent cannot be written in {err.encoding}") from None
    except _UNREADABLE as err:
        # the SDK's own models and converters raise these, and its check of an error without a code (errors.py)
        raise BadStream(f"the answer is not of the expected form ({type(err).__name__})") from err


def error_in_event(event: object) -> ProviderError:
    """Return the error for an event or an answer that is itself an error."""
    code = figure(member(member(event, "error"), "code"))
    return _from_api(APIError(code or HTTPStatus.INTERNAL_SERVER_ERROR, event))


def _from_api(err: APIError) -> ProviderError:
    code, details = _code(err), _details(err)
    message = f"status {err.code}, code {code or 'none'}"
    kind = _meaning(err.code, code, details)
    if err.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ContextOverflow(message)
    if kind is RateLimited:
        if _is_daily(details):
            return QuotaError(message)
        return RateLimited(message, _retry_after(err, details))
    return kind(message)


def _meaning(status: int, code: str, details: list[dict[str, Any]]) -> type[ProviderError]:
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthError
    return _by_reason(details) or _BY_CODE.get(code) or error_of_status(status)


def _code(err: APIError) -> str:
    """Return the canonical code if it decides anything. The SDK also puts the HTTP reason phrase there."""
    return err.status if isinstance(err.status, str) and err.status in _BY_CODE else ""


def _by_reason(details: list[dict[str, Any]]) -> type[ProviderError] | None:
    reasons = [reason for each in details if isinstance(reason := each.get("reason"), str)]
    return next((_BY_REASON[reason] for reason in reasons if reason in _BY_REASON), None)


def _is_daily(details: list[dict[str, Any]]) -> bool:
    violations = [each for detail in details for each in objects(detail.get("violations"))]
    return any(_PER_DAY in str(each.get("quotaId", "")) for each in violations)


def _retry_after(err: APIError, details: list[dict[str, Any]]) -> float | None:
    """Return the seconds to wait: `RetryInfo.retryDelay`, a duration such as `34.5s`, or else the header."""
    for delay in [each["retryDelay"] for each in details if isinstance(each.get("retryDelay"), str)]:
        try:
            seconds = float(delay.removesuffix("s"))
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return retry_after(getattr(err.response, "headers", None) or {})


def _details(err: APIError) -> list[dict[str, Any]]:
    return objects(member(member(err.details, "error"), "details"))
