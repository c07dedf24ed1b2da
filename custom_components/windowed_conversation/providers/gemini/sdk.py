"""Google's SDK, used for requests whose answer is small and unstreamed: token counts, and the test of a model.

Importing it takes up to a second and 50 MB, so nothing imports this module before its first use. A turn never does.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any

import google.auth.aio.credentials  # noqa: F401 - the SDK would import it in the event loop, with its first client
from google.genai import Client
from google.genai.errors import APIError
from google.genai.types import (
    AutomaticFunctionCallingConfig,
    CountTokensConfig,
    GenerateContentConfig,
    HttpOptions,
)

from .decoding import GoogleError

# In milliseconds, between two parts of an answer. The SDK also sends it to the server, which applies it to the complete
# answer.
_TIMEOUT_MS = 15_000

# A placeholder, because the SDK requires contents. Its options replace them with the contents of the conversation.
_PLACEHOLDER = " "

# Without this setting, the SDK logs that it may call functions.
_NO_FUNCTION_CALLING = AutomaticFunctionCallingConfig(disable=True)


class GoogleSdk:
    """The asynchronous model methods of an SDK client. The caller keeps ownership of the HTTP client."""

    def __init__(self, url: str, api_version: str, api_key: str, http_client: Any, ssl_context: SSLContext) -> None:
        """Create the client. Reads no file and opens no connection, but looks up the platform.

        `http_client` is an httpx or an httpx2 client: every supported version of the SDK accepts either. `ssl_context`
        is for clients that the SDK creates but never uses: without it, the SDK would load the certificates three times.
        """
        options = HttpOptions(
            base_url=url,
            api_version=api_version,
            httpx_async_client=http_client,
            client_args={"verify": ssl_context},
            async_client_args={"verify": ssl_context, "ssl": ssl_context},
        )
        self._models = Client(vertexai=False, api_key=api_key, http_options=options).aio.models

    async def count_tokens(self, model: str, body: Mapping[str, Any]) -> object:
        """Return the server's token count for a request. Raises `GoogleError`."""
        with _convert_sdk_errors():
            config = CountTokensConfig(http_options=_build_http_options(body))
            return (await self._models.count_tokens(model=model, contents=_PLACEHOLDER, config=config)).total_tokens

    async def generate_content(self, model: str, body: Mapping[str, Any]) -> bytes:
        """Return the body of an unstreamed answer exactly as the server sent it. Raises `GoogleError`."""
        config = GenerateContentConfig(
            http_options=_build_http_options(body),
            should_return_http_response=True,
            automatic_function_calling=_NO_FUNCTION_CALLING,
        )
        with _convert_sdk_errors():
            response = await self._models.generate_content(model=model, contents=_PLACEHOLDER, config=config)
        answer = response.sdk_http_response
        return ((answer and answer.body) or "").encode()


def _build_http_options(body: Mapping[str, Any]) -> HttpOptions:
    return HttpOptions(timeout=_TIMEOUT_MS, extra_body=dict(body))


@contextmanager
def _convert_sdk_errors() -> Iterator[None]:
    """Convert an `APIError`, whose text repeats the server's text, into a `GoogleError`."""
    try:
        yield
    except APIError as err:
        headers = getattr(err.response, "headers", None)
        raise GoogleError(err.code, err.details, headers) from None
