"""All errors of requests to a model, and their mapping from HTTP statuses and exceptions of HTTP clients.

Error messages are for the log, so they never contain text of a conversation or a key. Users see a translated text.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
import json
import math

# The maximum length in characters of a redirect address that a server sends.
_MAX_ADDRESS_CHARS = 200

# Each SDK runs on one or both of these packages. A failure in mid-stream raises the HTTP client's own error.
_HTTP_PACKAGES = tuple(import_module(name) for name in ("httpx", "httpx2") if find_spec(name))

_TIMEOUT_ERRORS: tuple[type[Exception], ...] = tuple(module.TimeoutException for module in _HTTP_PACKAGES)
_HTTP_ERRORS: tuple[type[Exception], ...] = tuple(module.HTTPError for module in _HTTP_PACKAGES)
_INVALID_URL_ERRORS: tuple[type[Exception], ...] = (*(module.InvalidURL for module in _HTTP_PACKAGES), UnicodeError)
_PARSE_ERRORS = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
_UNEXPLAINED_STATUSES = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class ProviderError(Exception):
    """A request to a model failed.

    `is_unexplained` marks a `BadRequest` or an `Unavailable` without a known reason, which may be due to the request's
    length.
    """

    def __init__(self, *message: str, is_unexplained: bool = False) -> None:
        super().__init__(*message)
        self.is_unexplained = is_unexplained


class AuthError(ProviderError):
    """The key is wrong or lacks a permission."""


class QuotaError(ProviderError):
    """The account's credit is exhausted."""


class RateLimited(ProviderError):
    """Too many requests were sent. `retry_after` is in seconds, or None if the server does not say."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContextOverflow(ProviderError):
    """The request exceeds the model's context of `context_tokens`, which is None if the server does not say."""

    def __init__(self, message: str, context_tokens: int | None = None) -> None:
        super().__init__(message)
        self.context_tokens = context_tokens


class AnswerRefused(ProviderError):
    """The model or a filter refused to answer. `reason` is the provider's own code, or empty."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Incomplete(ProviderError):
    """The answer was cut off at a length limit."""


class Unavailable(ProviderError):
    """The server is unreachable or has a problem. `has_answered`: whether the server or a proxy reported it."""

    def __init__(self, *message: str, is_unexplained: bool = False, has_answered: bool = False) -> None:
        super().__init__(*message, is_unexplained=is_unexplained)
        self.has_answered = has_answered


class DeadlineExceeded(ProviderError):
    """No part of the answer arrived in time."""


# The errors that mean that a server cannot be reached.
CONNECTION_ERRORS = (Unavailable, DeadlineExceeded)


class BadRequest(ProviderError):
    """The server does not accept the request, for example because of a wrong URL or parameter."""


class ModelNotFound(BadRequest):
    """The server has no such model or deployment."""


class Redirected(BadRequest):
    """The server redirects to another address.

    Redirects are not followed, because the key is meant only for the server that the user entered.
    """

    def __init__(self, address: str) -> None:
        """Store the new address. It is shown to the user but not logged, because the server controls its text."""
        self.address = address[:_MAX_ADDRESS_CHARS]
        super().__init__("the server redirects")


class BadStream(ProviderError):
    """The answer could not be read, or ended without its terminal marker."""


_BY_STATUS: dict[int, type[ProviderError]] = {402: QuotaError, 403: AuthError, 408: DeadlineExceeded, 429: RateLimited}


@contextmanager
def convert_transport_errors() -> Iterator[None]:
    """Convert the errors of an HTTP client while sending a request or reading an answer into a `ProviderError`."""
    try:
        yield
    except _TIMEOUT_ERRORS as err:
        raise DeadlineExceeded("the stream fell silent") from err
    except _HTTP_ERRORS as err:
        raise Unavailable(f"the connection broke ({type(err).__name__})") from err
    except UnicodeEncodeError as err:
        # The key is sent in a header, which is ASCII; everything else is UTF-8. The original exception is dropped
        # because it contains the whole request.
        kind = AuthError if err.encoding == "ascii" else BadRequest
        raise kind(f"what is to be sent cannot be written in {err.encoding}") from None
    except _PARSE_ERRORS as err:
        raise BadStream(f"the answer could not be read ({type(err).__name__})") from err
    except _INVALID_URL_ERRORS as err:
        raise BadRequest("the address is not valid") from err


def build_server_error(
    status: int,
    code: str,
    kind_by_code: type[ProviderError] | None,
    *,
    delay: float | None = None,
    context_tokens: int | None = None,
    may_be_too_long: Callable[[], bool] | None = None,
) -> ProviderError:
    """Return the error for an HTTP status and the server's code. `kind_by_code` is the error class for a known code.

    An error in the stream has the status of the answer, 200. `delay` is in seconds. Most servers have no code for a
    request that exceeds the model's context, so if no code explains the error, `may_be_too_long` is called to decide by
    the estimated size. Otherwise the length may still be the reason, because the model's context size may be unknown.
    """
    in_stream = status == HTTPStatus.OK
    message = f"{'error in the stream' if in_stream else f'status {status}'}, code {code or 'none'}"
    kind = _choose_error_class(status, kind_by_code)
    if kind is RateLimited:
        return RateLimited(message, delay)
    if kind is ContextOverflow:
        return ContextOverflow(message, context_tokens)
    if kind is AnswerRefused:
        return AnswerRefused(message, code)
    if kind is BadRequest and may_be_too_long and status in _UNEXPLAINED_STATUSES:
        return ContextOverflow(message) if may_be_too_long() else BadRequest(message, is_unexplained=True)
    is_unexplained = in_stream and kind_by_code is None
    if kind is Unavailable:
        return Unavailable(message, is_unexplained=is_unexplained, has_answered=True)
    return kind(message, is_unexplained=is_unexplained)


def _choose_error_class(status: int, kind_by_code: type[ProviderError] | None) -> type[ProviderError]:
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return AuthError
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            # For this error, Groq sends the code of a rate limit.
            return ContextOverflow
    is_refused = status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.OK
    return kind_by_code or _BY_STATUS.get(status) or (BadRequest if is_refused else Unavailable)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from the `Retry-After` header, or None if it is missing or not a number of seconds."""
    return parse_seconds(headers.get("retry-after"))


def parse_seconds(text: str | None) -> float | None:
    """Return the number of seconds in a text, or None if the text is not a number of seconds."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
