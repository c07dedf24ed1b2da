"""Errors in Gemini's format: a status name beside the number, and details with the exceeded quota and the delay.

https://ai.google.dev/gemini-api/docs/troubleshooting; the details have the types of google.rpc.
"""

from dataclasses import replace
from typing import Any

from .refusal import Reason, Refusal

_WORDS: dict[Reason, tuple[int, str]] = {
    Reason.INVALID: (400, "INVALID_ARGUMENT"),
    Reason.WRONG_KEY: (400, "INVALID_ARGUMENT"),
    Reason.UNAUTHENTICATED: (401, "UNAUTHENTICATED"),
    Reason.FORBIDDEN: (403, "PERMISSION_DENIED"),
    Reason.NO_SUCH_MODEL: (404, "NOT_FOUND"),
    Reason.NOT_FOUND: (404, "NOT_FOUND"),
    Reason.TOO_LARGE: (413, "INVALID_ARGUMENT"),
    Reason.UNPROCESSABLE: (400, "INVALID_ARGUMENT"),
    Reason.RATE_LIMITED: (429, "RESOURCE_EXHAUSTED"),
    Reason.NO_CREDIT: (429, "RESOURCE_EXHAUSTED"),
    Reason.TOO_LONG: (400, "INVALID_ARGUMENT"),
    Reason.FILTERED: (400, "INVALID_ARGUMENT"),
    Reason.FOREIGN_RESIDUE: (400, "INVALID_ARGUMENT"),
    Reason.SERVER_ERROR: (500, "INTERNAL"),
    Reason.UNAVAILABLE: (503, "UNAVAILABLE"),
    Reason.OVERLOADED: (503, "UNAVAILABLE"),
}
_MESSAGES = {
    Reason.WRONG_KEY: "API key not valid. Please pass a valid API key.",
    Reason.NO_SUCH_MODEL: "The model is not found for API version v1beta, or is not supported for this method.",
    Reason.RATE_LIMITED: "You exceeded your current quota, please check your plan and billing details.",
    Reason.NO_CREDIT: "You exceeded your current quota, please check your plan and billing details.",
    Reason.TOO_LONG: "The input token count ({size}) exceeds the maximum number of tokens allowed ({limit}).",
    Reason.FOREIGN_RESIDUE: "Corrupted thought signature.",
    Reason.OVERLOADED: "The model is overloaded. Please try again later.",
}
_TYPE = "type.googleapis.com/google.rpc."
_QUOTAS = {Reason.RATE_LIMITED: "PerMinute", Reason.NO_CREDIT: "PerDay"}


def gemini_words(refusal: Refusal) -> Refusal:
    """Return the refusal with Gemini's status and details; an HTML page or HTTP 200 is not changed."""
    if refusal.html:
        return refusal
    status, kind = _WORDS[refusal.reason]
    message = refusal.message
    if refusal.reason in _MESSAGES:
        message = _MESSAGES[refusal.reason].format(size=refusal.size, limit=refusal.limit)
    return replace(
        refusal,
        status=200 if refusal.status == 200 else status,
        kind=kind,
        code=str(status),
        message=message,
        # Gemini puts the retry delay into the details, not into a header.
        retry_after=None,
        extra=_details(refusal),
    )


def gemini_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    code = int(refusal.code or refusal.status)
    return {"error": {"code": code, "message": refusal.message, "status": refusal.kind, **refusal.extra}}


def _details(refusal: Refusal) -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    if refusal.reason in (Reason.WRONG_KEY, Reason.UNAUTHENTICATED):
        reason = "API_KEY_INVALID" if refusal.reason is Reason.WRONG_KEY else "CREDENTIALS_MISSING"
        details.append({"@type": f"{_TYPE}ErrorInfo", "reason": reason, "domain": "googleapis.com"})
    if refusal.reason in _QUOTAS:
        quota = f"GenerateRequests{_QUOTAS[refusal.reason]}PerProjectPerModel-FreeTier"
        details.append({"@type": f"{_TYPE}QuotaFailure", "violations": [{"quotaId": quota, "quotaValue": "20"}]})
    if refusal.retry_after is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{refusal.retry_after:g}s"})
    return {"details": details} if details else {}
