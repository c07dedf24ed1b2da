"""Mapping errors of the OpenAI SDK and its HTTP client to ours.

Decided by type, status and code, never by message text. Our messages contain only the status and the code: a server's
own text may repeat the conversation.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from http import HTTPStatus
from typing import Any

import openai

from ..errors import (
    AuthError,
    BadRequest,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Refused,
    Unavailable,
)
from ..events import Request
from ..http_errors import retry_after, seconds_of, server_error
from ..json_values import code_of, member
from ..sdk import sdk_errors
from ..sizes import fills_context, named_context_tokens

# Codes of error bodies, of errors in the stream, and of failed responses (openai/types/responses/response_error.py).
_CODES: dict[type[ProviderError], str] = {
    AuthError: "invalid_api_key",
    BadRequest: (
        "data_residency_mismatch empty_image_file image_file_too_large image_parse_error image_too_large "
        "image_too_small invalid_base64_image invalid_encrypted_content invalid_function_parameters invalid_image "
        "invalid_image_format invalid_image_mode invalid_type invalid_value missing_required_parameter "
        "unknown_parameter unsupported_image_media_type unsupported_parameter unsupported_value"
    ),
    ContextOverflow: "context_length_exceeded exceed_context_size_error",
    ModelNotFound: "DeploymentNotFound NotFoundError model_not_found not_found_error",
    QuotaError: "billing_hard_limit_reached billing_not_active insufficient_quota",
    RateLimited: "rate_limit_exceeded",
    Refused: "bio_policy content_filter image_content_policy_violation invalid_prompt misalignment_policy_violation",
    Unavailable: "server_error",
}
_BY_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}

# vLLM names the parameter that is too large, or several: https://github.com/vllm-project/vllm/issues/33425
_TOO_LARGE = "input_tokens"


def provider_errors(request: Request | None = None) -> AbstractContextManager[None]:
    """Raise a `ProviderError` for every error of the SDK and its HTTP client. `request` is the sent request."""
    return sdk_errors(openai, partial(_from_status, request))


def is_error(event: Any) -> bool:
    """Return whether an event or an answer is itself an error. After a whole answer an error revokes nothing."""
    return bool(event.get("error") or event.get("type") == "error")


def error_in_event(event: object) -> ProviderError:
    """Return the error for an event or an answer that is itself an error."""
    error = member(event, "error")
    return error_in_stream(member(error, "code"), member(error, "type"), member(event, "code"))


def error_in_stream(*codes: object) -> ProviderError:
    """Return the error for a server's error codes mid-stream; the first known code counts."""
    code = known_code(*codes)
    return server_error(HTTPStatus.OK, code, _BY_CODE.get(code))


def refused(reason: str) -> Refused:
    """Return the error for an answer that the model or a filter withheld."""
    return Refused(f"kept back, reason {reason}", reason)


def known_code(*codes: object) -> str:
    """Return the first known code, or else the first if it is a code at all. A longer text is not a code."""
    known = (code for code in codes if isinstance(code, str) and code in _BY_CODE)
    return next(known, code_of(codes[0]))


def is_about_form(err: openai.APIStatusError, request: Request) -> bool:
    """Return whether a server refused a request neither for its length nor for its model, nor for a limit."""
    return type(_from_status(request, err)) is BadRequest


def _from_status(request: Request | None, err: openai.APIStatusError) -> ProviderError:
    # llama.cpp and vLLM put their code where the type belongs
    status, code = err.status_code, known_code(err.code, err.type)
    named = err.param.split(",") if isinstance(err.param, str) else ()
    is_too_large = status == HTTPStatus.BAD_REQUEST and _TOO_LARGE in map(str.strip, named)
    return server_error(
        status,
        code,
        ContextOverflow if is_too_large else _BY_CODE.get(code),
        delay=_delay(err.response.headers),
        context_tokens=named_context_tokens(err.body),
        may_be_too_long=None if code in _BY_CODE else lambda: request is not None and fills_context(request),
    )


def _delay(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait. Azure also gives milliseconds, which are more precise."""
    milliseconds = seconds_of(headers.get("retry-after-ms"))
    return retry_after(headers) if milliseconds is None else milliseconds / 1000
