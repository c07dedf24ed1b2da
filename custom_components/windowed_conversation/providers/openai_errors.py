"""Errors of the OpenAI SDK, and of the HTTP client under it, in our words.

Decided by type, status and code, never by message text. The messages of ours name the status and the code only:
a server's own text may repeat what people said.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import openai

from .errors import (
    AuthError,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ProviderError,
    QuotaError,
    RateLimited,
    Refused,
    Unavailable,
)
from .http_errors import error_of_status, retry_after, transport_errors

_BY_CODE: dict[str, type[ProviderError]] = {
    "content_filter": Refused,
    "context_length_exceeded": ContextOverflow,
    "exceed_context_size_error": ContextOverflow,
    "insufficient_quota": QuotaError,
    "invalid_api_key": AuthError,
    "rate_limit_exceeded": RateLimited,
    "server_error": Unavailable,
}


@contextmanager
def provider_errors() -> Iterator[None]:
    """Raise a `ProviderError` for everything that the SDK and its HTTP client raise."""
    try:
        with transport_errors():
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


def _from_status(err: openai.APIStatusError) -> ProviderError:
    status, code = err.status_code, _code(err)
    message = f"status {status}, code {code or 'none'}"
    kind = _BY_CODE.get(code) or error_of_status(status)
    if kind is RateLimited:
        return RateLimited(message, retry_after(err.response.headers))
    return kind(message)


def _code(err: openai.APIError) -> str:
    """Return the code, or the type where servers put the code there (llama.cpp does); a text is no code."""
    for value in (err.code, err.type):
        if isinstance(value, str) and value in _BY_CODE:
            return value
    return err.code if isinstance(err.code, str) and err.code.isidentifier() else ""
