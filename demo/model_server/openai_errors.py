"""Errors as OpenAI's two formats write them: one error object, told apart by its code."""

from dataclasses import replace
from typing import Any

from .refusal import Reason, Refusal


def openai_words(refusal: Refusal) -> Refusal:
    """Return the refusal with the code that OpenAI has for its reason."""
    if refusal.reason is Reason.FOREIGN_RESIDUE:
        return replace(refusal, code="invalid_encrypted_content")
    return refusal


def openai_error(refusal: Refusal) -> dict[str, Any]:
    """Return the document that says the refusal."""
    error = {"message": refusal.message, "type": refusal.kind, "param": None, "code": refusal.code}
    return {"error": error | refusal.extra}
