"""Errors of OpenAI's two formats: one error object, distinguished by its code."""

from dataclasses import replace
from typing import Any

from .refusal import Refusal, RefusalReason


def convert_to_openai(refusal: Refusal) -> Refusal:
    """Return the refusal with OpenAI's code for its reason."""
    if refusal.reason is RefusalReason.INVALID_SIGNATURE:
        return replace(refusal, code="invalid_encrypted_content")
    return refusal


def build_openai_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    error = {"message": refusal.message, "type": refusal.kind, "param": None, "code": refusal.code}
    return {"error": error | refusal.extra}
