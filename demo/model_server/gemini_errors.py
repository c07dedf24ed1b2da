"""Errors in Gemini's format: a status name beside the number, and details with the exceeded quota and the delay.

https://ai.google.dev/gemini-api/docs/troubleshooting; the details have the types of google.rpc.
"""

from dataclasses import replace
from typing import Any

from .refusal import Refusal, RefusalReason

_ERROR_BY_REASON: dict[RefusalReason, tuple[int, str]] = {
    RefusalReason.INVALID: (400, "INVALID_ARGUMENT"),
    RefusalReason.WRONG_KEY: (400, "INVALID_ARGUMENT"),
    RefusalReason.UNAUTHENTICATED: (401, "UNAUTHENTICATED"),
    RefusalReason.FORBIDDEN: (403, "PERMISSION_DENIED"),
    RefusalReason.NO_SUCH_MODEL: (404, "NOT_FOUND"),
    RefusalReason.NOT_FOUND: (404, "NOT_FOUND"),
    RefusalReason.TOO_LARGE: (413, "INVALID_ARGUMENT"),
    RefusalReason.UNPROCESSABLE: (400, "INVALID_ARGUMENT"),
    RefusalReason.RATE_LIMITED: (429, "RESOURCE_EXHAUSTED"),
    RefusalReason.NO_CREDIT: (429, "RESOURCE_EXHAUSTED"),
    RefusalReason.TOO_LONG: (400, "INVALID_ARGUMENT"),
    RefusalReason.FILTERED: (400, "INVALID_ARGUMENT"),
    RefusalReason.INVALID_SIGNATURE: (400, "INVALID_ARGUMENT"),
    RefusalReason.SERVER_ERROR: (500, "INTERNAL"),
    RefusalReason.UNAVAILABLE: (503, "UNAVAILABLE"),
    RefusalReason.OVERLOADED: (503, "UNAVAILABLE"),
}
_MESSAGE_BY_REASON = {
    RefusalReason.WRONG_KEY: "API key not valid. Please pass a valid API key.",
    RefusalReason.NO_SUCH_MODEL: "The model is not found for API version v1beta, or is not supported for this method.",
    RefusalReason.RATE_LIMITED: "You exceeded your current quota, please check your plan and billing details.",
    RefusalReason.NO_CREDIT: "You exceeded your current quota, please check your plan and billing details.",
    RefusalReason.TOO_LONG: "The input token count ({size}) exceeds the maximum number of tokens allowed ({limit}).",
    RefusalReason.INVALID_SIGNATURE: "Corrupted thought signature.",
    RefusalReason.OVERLOADED: "The model is overloaded. Please try again later.",
}
_TYPE_PREFIX = "type.googleapis.com/google.rpc."
_QUOTA_PERIOD_BY_REASON = {RefusalReason.RATE_LIMITED: "PerMinute", RefusalReason.NO_CREDIT: "PerDay"}


def convert_to_gemini(refusal: Refusal) -> Refusal:
    """Return the refusal with Gemini's status and details; an HTML page or HTTP 200 is not changed."""
    if refusal.is_html:
        return refusal
    status, kind = _ERROR_BY_REASON[refusal.reason]
    message = refusal.message
    if refusal.reason in _MESSAGE_BY_REASON:
        message = _MESSAGE_BY_REASON[refusal.reason].format(size=refusal.size, limit=refusal.limit)
    return replace(
        refusal,
        status=200 if refusal.status == 200 else status,
        kind=kind,
        code=str(status),
        message=message,
        # Gemini puts the retry delay into the details, not into a header.
        retry_after=None,
        extra=_build_details(refusal),
    )


def build_gemini_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    code = int(refusal.code or refusal.status)
    return {"error": {"code": code, "message": refusal.message, "status": refusal.kind, **refusal.extra}}


def _build_details(refusal: Refusal) -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    if refusal.reason in (RefusalReason.WRONG_KEY, RefusalReason.UNAUTHENTICATED):
        reason = "API_KEY_INVALID" if refusal.reason is RefusalReason.WRONG_KEY else "CREDENTIALS_MISSING"
        details.append({"@type": f"{_TYPE_PREFIX}ErrorInfo", "reason": reason, "domain": "googleapis.com"})
    if refusal.reason in _QUOTA_PERIOD_BY_REASON:
        quota = f"GenerateRequests{_QUOTA_PERIOD_BY_REASON[refusal.reason]}PerProjectPerModel-FreeTier"
        details.append({"@type": f"{_TYPE_PREFIX}QuotaFailure", "violations": [{"quotaId": quota, "quotaValue": "20"}]})
    if refusal.retry_after is not None:
        details.append({"@type": f"{_TYPE_PREFIX}RetryInfo", "retryDelay": f"{refusal.retry_after:g}s"})
    return {"details": details} if details else {}
