"""Mapping errors of the Anthropic SDK and its HTTP client to ours.

Decided by status, type and code, never by message text. Our messages contain only these: a server's own text may repeat
what people said.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec

import anthropic

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
from ..events import Request
from ..http_errors import connection_error, error_of_status, refused_request, retry_after, transport_errors
from ..json_values import member
from ..sizes import named_context_tokens
from .request import may_be_too_long

# https://platform.claude.com/docs/en/api/errors
_BY_TYPE: dict[str, type[ProviderError]] = {
    "api_error": Unavailable,
    "authentication_error": AuthError,
    "billing_error": QuotaError,
    "invalid_request_error": BadRequest,
    "not_found_error": ModelNotFound,
    "overloaded_error": Unavailable,
    "permission_error": AuthError,
    "rate_limit_error": RateLimited,
    "request_too_large": ContextOverflow,
    "timeout_error": DeadlineExceeded,
}

# Types that explain nothing. A proxy may give none.
_GENERIC = ("", "invalid_request_error")

# Codes that say more than their type: the API calls these rate limits.
_BY_CODE: dict[str, type[ProviderError]] = {
    "contract_spend_limit_reached": QuotaError,
    "enforced_spend_limit_reached": QuotaError,
}

# Newer versions of the SDK import this, some hundred modules, at their first error, which would be in the event loop.
_DETAILS = "anthropic.types.shared.error_details"
if find_spec(_DETAILS):
    import_module(_DETAILS)


@contextmanager
def provider_errors(request: Request | None = None) -> Iterator[None]:
    """Raise a `ProviderError` for every error of the SDK and its HTTP client. `request` is what was sent."""
    try:
        with transport_errors():
            yield
    except anthropic.APIStatusError as err:
        raise _error(err.status_code, err.body, err.response.headers, request) from err
    except anthropic.APITimeoutError as err:
        raise DeadlineExceeded("no connection or no answer in time") from err
    except anthropic.APIConnectionError as err:
        raise connection_error(err) from err
    except UnicodeEncodeError as err:
        # a key goes into a header, in ASCII, the request into a body, in UTF-8; the cause would hold the whole of it
        kind = AuthError if err.encoding == "ascii" else BadRequest
        raise kind(f"what is to be sent cannot be written in {err.encoding}") from None
    except anthropic.APIError as err:
        raise BadStream(f"the answer is not of the expected form ({type(err).__name__})") from err


def error_in_event(event: object) -> ProviderError:
    """Return the error for an event or an answer that is itself an error."""
    return _error(HTTPStatus.OK, event, {}, None)


def _error(status: int, body: object, headers: Mapping[str, str], request: Request | None) -> ProviderError:
    """Return the error. An error in the stream has a type, and the status of the answer that it came in."""
    kind, code = _type_and_code(body)
    message = f"status {status}, type {kind or 'none'}, code {code or 'none'}"
    meaning = _meaning(status, kind, code)
    if meaning is ContextOverflow or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ContextOverflow(message, named_context_tokens(member(body, "error")))
    if meaning is RateLimited:
        return RateLimited(message, retry_after(headers))
    if meaning is BadRequest:
        # "prompt is too long" has no type or code of its own: what is about as long as the context was too long
        is_generic = kind in _GENERIC
        return refused_request(status, message, lambda: is_generic and request is not None and may_be_too_long(request))
    in_stream = status < HTTPStatus.MULTIPLE_CHOICES
    return meaning(message, is_unexplained=in_stream and kind not in _BY_TYPE)


def _meaning(status: int, kind: str, code: str) -> type[ProviderError]:
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthError
    return _BY_CODE.get(code) or _BY_TYPE.get(kind) or _without_type(status)


def _without_type(status: int) -> type[ProviderError]:
    return Unavailable if status < HTTPStatus.MULTIPLE_CHOICES else error_of_status(status)


def _type_and_code(body: object) -> tuple[str, str]:
    """Return the error's type and code, empty if it has none. An error that is a plain text has neither."""
    error = member(body, "error")
    return _word(member(error, "type")), _word(member(member(error, "details"), "error_code"))


def _word(value: object) -> str:
    return value if isinstance(value, str) and value.isidentifier() else ""
