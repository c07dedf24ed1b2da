"""Errors in Anthropic's format: each has a type, and none has a code.

https://platform.claude.com/docs/en/api/errors
"""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from .refusal import Refusal, RefusalReason

MISSING_VERSION_REFUSAL = Refusal(400, "invalid_request_error", None, "anthropic-version: header is required")

_ERROR_BY_REASON: dict[RefusalReason, tuple[int, str]] = {
    RefusalReason.INVALID: (400, "invalid_request_error"),
    RefusalReason.WRONG_KEY: (401, "authentication_error"),
    RefusalReason.UNAUTHENTICATED: (401, "authentication_error"),
    RefusalReason.FORBIDDEN: (403, "permission_error"),
    RefusalReason.NO_SUCH_MODEL: (404, "not_found_error"),
    RefusalReason.NOT_FOUND: (404, "not_found_error"),
    RefusalReason.TOO_LARGE: (413, "request_too_large"),
    RefusalReason.UNPROCESSABLE: (422, "invalid_request_error"),
    RefusalReason.RATE_LIMITED: (429, "rate_limit_error"),
    RefusalReason.NO_CREDIT: (402, "billing_error"),
    RefusalReason.TOO_LONG: (400, "invalid_request_error"),
    RefusalReason.FILTERED: (400, "invalid_request_error"),
    RefusalReason.INVALID_SIGNATURE: (400, "invalid_request_error"),
    RefusalReason.SERVER_ERROR: (500, "api_error"),
    RefusalReason.UNAVAILABLE: (503, "api_error"),
    RefusalReason.OVERLOADED: (529, "overloaded_error"),
}
_MESSAGE_BY_REASON = {
    RefusalReason.WRONG_KEY: "invalid x-api-key",
    RefusalReason.NO_CREDIT: "Your credit balance is too low to access the API.",
    RefusalReason.TOO_LONG: "prompt is too long: {size} tokens > {limit} maximum",
    RefusalReason.INVALID_SIGNATURE: "Invalid `signature` in `thinking` block",
    RefusalReason.OVERLOADED: "Overloaded",
}


def convert_to_anthropic(refusal: Refusal) -> Refusal:
    """Return the refusal with Anthropic's status and type; an HTML page or HTTP 200 is not changed."""
    if refusal.is_html:
        return refusal
    status, kind = _ERROR_BY_REASON[refusal.reason]
    message = refusal.message
    if refusal.reason in _MESSAGE_BY_REASON:
        message = _MESSAGE_BY_REASON[refusal.reason].format(size=refusal.size, limit=refusal.limit)
    return replace(refusal, status=200 if refusal.status == 200 else status, kind=kind, message=message)


def build_anthropic_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    error = {"type": refusal.kind, "message": refusal.message}
    return {"type": "error", "error": error, "request_id": f"req_{uuid4().hex[:24]}"}
