"""What the errors of all SDKs share: HTTP statuses, headers, and errors of the HTTP client."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
import json
import math

from .errors import (
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)

# The SDKs run on one of these or on either. What breaks mid-stream is raised as the client's own error.
_HTTP = tuple(import_module(name) for name in ("httpx", "httpx2") if find_spec(name))
_TIMEOUTS: tuple[type[Exception], ...] = tuple(module.TimeoutException for module in _HTTP)
_TRANSPORT: tuple[type[Exception], ...] = tuple(module.HTTPError for module in _HTTP)
_INVALID_ADDRESSES: tuple[type[Exception], ...] = tuple(module.InvalidURL for module in _HTTP)
_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthError,
    402: QuotaError,
    403: AuthError,
    408: DeadlineExceeded,
    413: ContextOverflow,
    429: RateLimited,
}


_UNEXPLAINED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


@contextmanager
def transport_errors() -> Iterator[None]:
    """Raise a `ProviderError` for errors of an HTTP client while an answer is read."""
    try:
        yield
    except _TIMEOUTS as err:
        raise DeadlineExceeded("the stream fell silent") from err
    except _TRANSPORT as err:
        raise Unavailable(f"the connection broke ({type(err).__name__})") from err
    except _INVALID_ADDRESSES as err:
        raise BadRequest("the address is not valid") from err
    except _UNREADABLE as err:
        raise BadStream(f"the answer could not be read ({type(err).__name__})") from err


def connection_error(error: Exception) -> ProviderError:
    """Return the error for an SDK's connection error, which may wrap one of our transport's."""
    cause = error.__cause__
    return cause if isinstance(cause, ProviderError) else Unavailable(f"no connection ({type(cause).__name__})")


def error_of_status(status: int) -> type[ProviderError]:
    """Return the error for an HTTP status without a more specific code."""
    otherwise = Unavailable if status >= HTTPStatus.INTERNAL_SERVER_ERROR else BadRequest
    return _BY_STATUS.get(status, otherwise)


def refused_request(status: int, message: str, is_too_long: Callable[[], bool]) -> ProviderError:
    """Return the error for a request that was refused without a known reason.

    Most servers have no code for a request that is longer than the model can read. `is_too_long` tells whether it is by
    the estimate. If not, the length may be the reason all the same, as the model's size may be unknown.
    """
    if status not in _UNEXPLAINED:
        return BadRequest(message)
    return ContextOverflow(message) if is_too_long() else BadRequest(message, is_unexplained=True)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, if the server says so in seconds."""
    try:
        seconds = float(headers["retry-after"])
    except KeyError, ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
