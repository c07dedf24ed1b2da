"""Errors of the OpenAI SDK, and of the HTTP client under it, in our words.

Decided by type, status and code, never by message text. The messages of ours name the status and the code only:
a server's own text may repeat what people said.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
import json
import math

import openai

from .errors import (
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ProviderError,
    QuotaError,
    RateLimited,
    Refused,
    Unavailable,
)

# The SDK runs on httpx2; a client of httpx may be handed to it, and then httpx's errors come out mid-stream.
_HTTP = tuple(import_module(name) for name in ("httpx", "httpx2") if find_spec(name))
_TIMEOUTS: tuple[type[Exception], ...] = tuple(module.TimeoutException for module in _HTTP)
_TRANSPORT: tuple[type[Exception], ...] = tuple(module.HTTPError for module in _HTTP)
_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)

_BY_CODE: dict[str, type[ProviderError]] = {
    "content_filter": Refused,
    "context_length_exceeded": ContextOverflow,
    "exceed_context_size_error": ContextOverflow,
    "insufficient_quota": QuotaError,
    "invalid_api_key": AuthError,
    "rate_limit_exceeded": RateLimited,
    "server_error": Unavailable,
}
_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthError,
    402: QuotaError,
    403: AuthError,
    408: DeadlineExceeded,
    413: ContextOverflow,
    429: RateLimited,
}


@contextmanager
def provider_errors() -> Iterator[None]:
    """Raise a `ProviderError` for everything that the SDK and its HTTP client raise."""
    try:
        yield
    except openai.APIStatusError as err:
        raise _from_status(err) from err
    except openai.APITimeoutError as err:
        raise DeadlineExceeded("no connection or no answer in time") from err
    except openai.APIConnectionError as err:
        raise Unavailable(f"no connection ({type(err.__cause__).__name__})") from err
    except openai.APIResponseValidationError as err:
        raise BadStream("the answer is not of the expected form") from err
    except openai.APIError as err:
        code = _code(err)
        raise _BY_CODE.get(code, Unavailable)(f"error in the stream, code {code or 'none'}") from err
    except _TIMEOUTS as err:
        raise DeadlineExceeded("the stream fell silent") from err
    except _TRANSPORT as err:
        raise Unavailable(f"the connection broke ({type(err).__name__})") from err
    except _UNREADABLE as err:
        raise BadStream(f"the answer could not be read ({type(err).__name__})") from err


def _from_status(err: openai.APIStatusError) -> ProviderError:
    status, code = err.status_code, _code(err)
    message = f"status {status}, code {code or 'none'}"
    otherwise = Unavailable if status >= HTTPStatus.INTERNAL_SERVER_ERROR else BadRequest
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, otherwise)
    if kind is RateLimited:
        return RateLimited(message, _retry_after(err))
    return kind(message)


def _code(err: openai.APIError) -> str:
    """Return the code, or the type where servers put the code there (llama.cpp does); a text is no code."""
    for value in (err.code, err.type):
        if isinstance(value, str) and value in _BY_CODE:
            return value
    return err.code if isinstance(err.code, str) and err.code.isidentifier() else ""


def _retry_after(err: openai.APIStatusError) -> float | None:
    """Return the seconds to wait, where the server says so in seconds."""
    try:
        seconds = float(err.response.headers["retry-after"])
    except KeyError, ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
