"""Errors in Anthropic's format: each has a type, and none has a code.

https://platform.claude.com/docs/en/api/errors
"""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from .refusal import Reason, Refusal

NO_VERSION = Refusal(400, "invalid_request_error", None, "anthropic-version: header is required")

_WORDS: dict[Reason, tuple[int, str]] = {
    Reason.INVALID: (400, "invalid_request_error"),
    Reason.WRONG_KEY: (401, "authentication_error"),
    Reason.UNAUTHENTICATED: (401, "authentication_error"),
    Reason.FORBIDDEN: (403, "permission_error"),
    Reason.NO_SUCH_MODEL: (404, "not_found_error"),
    Reason.NOT_FOUND: (404, "not_found_error"),
    Reason.TOO_LARGE: (413, "request_too_large"),
    Reason.UNPROCESSABLE: (422, "invalid_request_error"),
    Reason.RATE_LIMITED: (429, "rate_limit_error"),
    Reason.NO_CREDIT: (402, "billing_error"),
    Reason.TOO_LONG: (400, "invalid_request_error"),
    Reason.FILTERED: (400, "invalid_request_error"),
    Reason.FOREIGN_RESIDUE: (400, "invalid_request_error"),
    Reason.SERVER_ERROR: (500, "api_error"),
    Reason.UNAVAILABLE: (503, "api_error"),
    Reason.OVERLOADED: (529, "overloaded_error"),
}
_MESSAGES = {
    Reason.WRONG_KEY: "invalid x-api-key",
    Reason.NO_CREDIT: "Your credit balance is too low to access the API.",
    Reason.TOO_LONG: "prompt is too long: {size} tokens > {limit} maximum",
    Reason.FOREIGN_RESIDUE: "Invalid `signature` in `thinking` block",
    Reason.OVERLOADED: "Overloaded",
}


def anthropic_words(refusal: Refusal) -> Refusal:
    """Return the refusal with Anthropic's status and type; an HTML page or HTTP 200 is not changed."""
    if refusal.html:
        return refusal
    status, kind = _WORDS[refusal.reason]
    message = refusal.message
    if refusal.reason in _MESSAGES:
        message = _MESSAGES[refusal.reason].format(size=refusal.size, limit=refusal.limit)
    return replace(refusal, status=200 if refusal.status == 200 else status, kind=kind, message=message)


def anthropic_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    error = {"type": refusal.kind, "message": refusal.message}
    return {"type": "error", "error": error, "request_id": f"req_{uuid4().hex[:24]}"}
