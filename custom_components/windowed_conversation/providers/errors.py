"""All errors of a request to a model, and their mapping from HTTP statuses and HTTP clients' exceptions.

Messages are for the log: they never contain words of a conversation, nor a key. Users get a translated text.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
import json
import math

# The maximum length of an address that a server names, in characters.
_LONGEST_ADDRESS = 200

# The SDKs run on one of these or on either. A failure mid-stream raises the client's own error.
_HTTP = tuple(import_module(name) for name in ("httpx", "httpx2") if find_spec(name))

_TIMEOUTS: tuple[type[Exception], ...] = tuple(module.TimeoutException for module in _HTTP)
_TRANSPORT: tuple[type[Exception], ...] = tuple(module.HTTPError for module in _HTTP)
_INVALID_ADDRESSES: tuple[type[Exception], ...] = (*(module.InvalidURL for module in _HTTP), UnicodeError)
_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
_UNEXPLAINED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class ProviderError(Exception):
    """A request to a model failed.

    `is_unexplained`: a `BadRequest` or an `Unavailable` without a known reason, so that the length of the request may
    be the reason.
    """

    def __init__(self, *message: str, is_unexplained: bool = False) -> None:
        super().__init__(*message)
        self.is_unexplained = is_unexplained


class AuthError(ProviderError):
    """The key is wrong or lacks a permission."""


class QuotaError(ProviderError):
    """The account's credit is used up."""


class RateLimited(ProviderError):
    """Too many requests. `retry_after` is in seconds, or None if the server does not say."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContextOverflow(ProviderError):
    """The request is longer than the model can read: `context_tokens`, or None if the server does not say."""

    def __init__(self, message: str, context_tokens: int | None = None) -> None:
        super().__init__(message)
        self.context_tokens = context_tokens


class Refused(ProviderError):
    """The model or a filter declined. `reason` is the provider's own code, or empty."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Incomplete(ProviderError):
    """The answer was cut off at a length limit."""


class Unavailable(ProviderError):
    """No connection, or the server has a problem. `has_answered`: the server, or a proxy before it, says so itself."""

    def __init__(self, *message: str, is_unexplained: bool = False, has_answered: bool = False) -> None:
        super().__init__(*message, is_unexplained=is_unexplained)
        self.has_answered = has_answered


class DeadlineExceeded(ProviderError):
    """No part of the answer arrived in time."""


# The errors of a server that cannot be reached.
CONNECTION_ERRORS = (Unavailable, DeadlineExceeded)


class BadRequest(ProviderError):
    """The server does not accept the request: a wrong URL, a wrong parameter."""


class ModelNotFound(BadRequest):
    """The server has no such model or deployment."""


class Redirected(BadRequest):
    """The server has moved. Redirects are not followed: the key is meant for the server that the user entered."""

    def __init__(self, address: str) -> None:
        """Store the new address, which is for the user: in the log it would be words of the server's own."""
        self.address = address[:_LONGEST_ADDRESS]
        super().__init__("the server redirects")


class BadStream(ProviderError):
    """The answer could not be read, or ended without its terminal marker."""


_BY_STATUS: dict[int, type[ProviderError]] = {402: QuotaError, 403: AuthError, 408: DeadlineExceeded, 429: RateLimited}


@contextmanager
def transport_errors() -> Iterator[None]:
    """Raise a `ProviderError` for errors of an HTTP client while a request is sent or an answer is read."""
    try:
        yield
    except _TIMEOUTS as err:
        raise DeadlineExceeded("the stream fell silent") from err
    except _TRANSPORT as err:
        raise Unavailable(f"the connection broke ({type(err).__name__})") from err
    except UnicodeEncodeError as err:
        # the key goes into a header, in ASCII, the rest is in UTF-8; the cause would hold the whole request
        kind = AuthError if err.encoding == "ascii" else BadRequest
        raise kind(f"what is to be sent cannot be written in {err.encoding}") from None
    except _UNREADABLE as err:
        raise BadStream(f"the answer could not be read ({type(err).__name__})") from err
    except _INVALID_ADDRESSES as err:
        raise BadRequest("the address is not valid") from err


def server_error(
    status: int,
    code: str,
    kind_by_code: type[ProviderError] | None,
    *,
    delay: float | None = None,
    context_tokens: int | None = None,
    may_be_too_long: Callable[[], bool] | None = None,
) -> ProviderError:
    """Return the error for an HTTP status and the server's code. `kind_by_code` is the error for a known code.

    An error in the stream has the status of the answer, 200. `delay` is in seconds. Most servers have no code for a
    request that is longer than the model can read: if no code explains the error, `may_be_too_long` tells whether it is
    by the estimate. If not, the length may be the reason all the same, as the model's size may be unknown.
    """
    in_stream = status == HTTPStatus.OK
    message = f"{'error in the stream' if in_stream else f'status {status}'}, code {code or 'none'}"
    kind = _kind(status, kind_by_code)
    if kind is RateLimited:
        return RateLimited(message, delay)
    if kind is ContextOverflow:
        return ContextOverflow(message, context_tokens)
    if kind is Refused:
        return Refused(message, code)
    if kind is BadRequest and may_be_too_long and status in _UNEXPLAINED:
        return ContextOverflow(message) if may_be_too_long() else BadRequest(message, is_unexplained=True)
    is_unexplained = in_stream and kind_by_code is None
    if kind is Unavailable:
        return Unavailable(message, is_unexplained=is_unexplained, has_answered=True)
    return kind(message, is_unexplained=is_unexplained)


def _kind(status: int, kind_by_code: type[ProviderError] | None) -> type[ProviderError]:
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return AuthError
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            # Groq sends the code of a rate limit
            return ContextOverflow
    is_refused = status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.OK
    return kind_by_code or _BY_STATUS.get(status) or (BadRequest if is_refused else Unavailable)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, if the server says so in seconds."""
    return seconds_of(headers.get("retry-after"))


def seconds_of(text: str | None) -> float | None:
    """Return a number of seconds, or None if a text is none."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
