"""Mapping errors of the Anthropic SDK and its HTTP client to ours.

Decided by status, type and code, never by message text. Our messages contain only these: a server's own text may repeat
the conversation.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec

import anthropic

from ..errors import (
    AuthError,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from ..events import Request
from ..http_errors import retry_after, server_error
from ..json_values import code_of, member
from ..sdk import sdk_errors
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
_ERROR_DETAILS = "anthropic.types.shared.error_details"
if find_spec(_ERROR_DETAILS):
    import_module(_ERROR_DETAILS)


def provider_errors(request: Request | None = None) -> AbstractContextManager[None]:
    """Raise a `ProviderError` for every error of the SDK and its HTTP client. `request` is the sent request."""
    return sdk_errors(anthropic, lambda err: _error(err.status_code, err.body, err.response.headers, request))


def error_in_event(event: object) -> ProviderError:
    """Return the error for an event or an answer that is itself an error."""
    return _error(HTTPStatus.OK, event, {}, None)


def _error(status: int, body: object, headers: Mapping[str, str], request: Request | None) -> ProviderError:
    # an error that is a plain text has neither
    error = member(body, "error")
    kind, code = code_of(member(error, "type")), code_of(member(member(error, "details"), "error_code"))
    # "prompt is too long" has no type or code of its own: a request about as long as the context was too long
    is_generic = kind in _GENERIC
    return server_error(
        status,
        code or kind,
        _BY_CODE.get(code) or _BY_TYPE.get(kind),
        delay=retry_after(headers),
        context_tokens=named_context_tokens(error),
        may_be_too_long=lambda: is_generic and request is not None and may_be_too_long(request),
    )
