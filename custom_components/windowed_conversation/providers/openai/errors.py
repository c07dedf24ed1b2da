"""Mapping errors of the OpenAI SDK and its HTTP client to ours.

Decided by type, status and code, never by message text. Our messages contain only the status and the code: a server's
own text may repeat what people said.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import openai

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
    Refused,
    Unavailable,
)
from ..events import Request
from ..http_errors import connection_error, error_of_status, refused_request, retry_after, transport_errors
from ..json_values import member
from ..sizes import fills_context, named_context_tokens

# Codes of error bodies, of errors in the stream, and of failed responses (openai/types/responses/response_error.py).
_BY_CODE: dict[str, type[ProviderError]] = {
    "DeploymentNotFound": ModelNotFound,
    "NotFoundError": ModelNotFound,
    "billing_hard_limit_reached": QuotaError,
    "billing_not_active": QuotaError,
    "bio_policy": Refused,
    "content_filter": Refused,
    "context_length_exceeded": ContextOverflow,
    "data_residency_mismatch": BadRequest,
    "empty_image_file": BadRequest,
    "exceed_context_size_error": ContextOverflow,
    "image_content_policy_violation": Refused,
    "image_file_too_large": BadRequest,
    "image_parse_error": BadRequest,
    "image_too_large": BadRequest,
    "image_too_small": BadRequest,
    "insufficient_quota": QuotaError,
    "invalid_api_key": AuthError,
    "invalid_base64_image": BadRequest,
    "invalid_encrypted_content": BadRequest,
    "invalid_function_parameters": BadRequest,
    "invalid_image": BadRequest,
    "invalid_image_format": BadRequest,
    "invalid_image_mode": BadRequest,
    "invalid_prompt": Refused,
    "invalid_type": BadRequest,
    "invalid_value": BadRequest,
    "misalignment_policy_violation": Refused,
    "missing_required_parameter": BadRequest,
    "model_not_found": ModelNotFound,
    "not_found_error": ModelNotFound,
    "rate_limit_exceeded": RateLimited,
    "server_error": Unavailable,
    "unknown_parameter": BadRequest,
    "unsupported_image_media_type": BadRequest,
    "unsupported_parameter": BadRequest,
    "unsupported_value": BadRequest,
}


# vLLM names the parameter that is too large.
_TOO_LARGE = "input_tokens"


@contextmanager
def provider_errors(request: Request | None = None) -> Iterator[None]:
    """Raise a `ProviderError` for every error of the SDK and its HTTP client. `request` is what was sent."""
    try:
        with transport_errors():
            yield
    except openai.APIStatusError as err:
        raise _from_status(err, request) from err
    except openai.APITimeoutError as err:
        raise DeadlineExceeded("no connection or no answer in time") from err
    except openai.APIConnectionError as err:
        raise connection_error(err) from err
    except openai.APIResponseValidationError as err:
        raise BadStream("the answer is not of the expected form") from err
    except openai.APIError as err:
        raise error_in_stream(err.code, err.type) from err
    except UnicodeError as err:
        raise _from_letters(err) from err


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
    message = f"error in the stream, code {code or 'none'}"
    if code not in _BY_CODE:
        return Unavailable(message, is_unexplained=True)
    return _error(_BY_CODE[code], message, code)


def refused(reason: str) -> Refused:
    """Return the error for an answer that the model or a filter withheld."""
    return Refused(f"kept back, reason {reason}", reason)


def known_code(*codes: object) -> str:
    """Return the first known code, or else the first if it is a code at all. A longer text is not a code."""
    for code in codes:
        if isinstance(code, str) and code in _BY_CODE:
            return code
    first = codes[0]
    return first if isinstance(first, str) and first.isidentifier() else ""


def _from_status(err: openai.APIStatusError, request: Request | None) -> ProviderError:
    # llama.cpp and vLLM put their code where the type belongs
    status, code = err.status_code, known_code(err.code, err.type)
    message = f"status {status}, code {code or 'none'}"
    kind = _BY_CODE.get(code, error_of_status(status)) if status != HTTPStatus.UNAUTHORIZED else AuthError
    if _is_overflow(err, kind):
        return ContextOverflow(message, named_context_tokens(err.body))
    if kind is BadRequest and code not in _BY_CODE:
        return refused_request(status, message, lambda: request is not None and fills_context(request))
    return _error(kind, message, code, _delay(err.response.headers))


def _is_overflow(err: openai.APIStatusError, kind: type[ProviderError]) -> bool:
    """Return whether a request was too long. Groq's 413 has the code of a rate limit."""
    status = err.status_code
    named = status == HTTPStatus.BAD_REQUEST and err.param == _TOO_LARGE
    return named or kind is ContextOverflow or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _from_letters(err: UnicodeError) -> ProviderError:
    """Return the error for a request that cannot be written: headers are ASCII, the body is UTF-8."""
    if not isinstance(err, UnicodeEncodeError):
        return BadRequest("the address is not valid")
    return AuthError("the key cannot be sent") if err.encoding == "ascii" else BadRequest("the text cannot be sent")


def _error(kind: type[ProviderError], message: str, code: str, delay: float | None = None) -> ProviderError:
    if kind is RateLimited:
        return RateLimited(message, delay)
    if kind is Refused:
        return Refused(message, code)
    return kind(message)


def _delay(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait. Azure also gives milliseconds, which are more precise."""
    milliseconds = retry_after({"retry-after": headers.get("retry-after-ms", "")})
    return retry_after(headers) if milliseconds is None else milliseconds / 1000
