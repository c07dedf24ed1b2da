"""HTTP: connections, a client wrapper that follows no redirects and limits responses, and requests through the SDKs."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
import time
from typing import Any
from urllib.parse import urlsplit

from .errors import BadStream, DeadlineExceeded, ProviderError, Redirected, Unavailable, convert_transport_errors

_MEGABYTE = 2**20
# The limit of an answer in bytes, including the JSON around each piece of text.
_MAX_ANSWER_BYTES = 32 * _MEGABYTE
# The limit of a response to GET, such as a model list, in bytes.
_MAX_GET_BYTES = 8 * _MEGABYTE
# How many bytes of an error response are read: parsing a megabyte of small objects would block the event loop for a
# tenth of a second. The rest is ignored, as the status is already known.
_MAX_ERROR_BYTES = _MEGABYTE // 16

_ENCODING_HEADER = "content-encoding"

# The maximum time, in seconds, until the client notices that the server had closed a connection before a request
# arrived on it.
_CLOSE_NOTICE_SECONDS = 1.0
# The HTTP clients' trace event for a new connection: https://www.encode.io/httpcore/extensions/#trace
_CONNECT_EVENT = "connection.connect"


def bounded_client(http_client: Any) -> Any:
    """Return a client of the same package, httpx or httpx2, that sends its requests through the given client.

    The caller keeps ownership. Requests raise `Redirected`, and `BadStream` if a response is too long or compressed:
    compression is not requested, because a few compressed bytes can expand to megabytes.
    """
    package = _import_http_package(http_client)
    stream = type("BoundedStream", (_BoundedStream, package.AsyncByteStream), {})
    headers = {**http_client.headers, "accept-encoding": "identity"}
    return package.AsyncClient(transport=_BoundedTransport(http_client, package, stream), headers=headers)


async def preconnect(http_client: Any, url: str) -> None:
    """Open a connection to the server of a URL, for the client's next request to it. Raises `ProviderError`.

    Requests the headers of the server's root page and sends nothing else of the URL: no key, name or query.
    """
    parts = urlsplit(url)
    with convert_transport_errors():
        request = http_client.build_request("HEAD", f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/")
        answer = await _send_with_retry(http_client, _import_http_package(http_client), request)
        # The response has no body, but the connection is only released after reading to its end.
        await answer.aread()


def _import_http_package(http_client: Any) -> Any:
    packages = [base.__module__.partition(".")[0] for base in type(http_client).__mro__]
    return import_module("httpx2" if "httpx2" in packages else "httpx")


async def _send_with_retry(client: Any, package: Any, request: Any) -> Any:
    """Return the response to a request, which is sent again if the server was just closing an idle connection.

    In that case, the server has not read the request: https://datatracker.ietf.org/doc/html/rfc9112#section-9.3.1. If a
    new connection breaks, or any connection breaks later, that is the server's failure.
    """
    connects: list[str] = []

    async def trace(event: str, _info: Any) -> None:
        if event.startswith(_CONNECT_EVENT):
            connects.append(event)

    request.extensions = {**request.extensions, "trace": trace}
    began = time.monotonic()
    try:
        return await client.send(request, stream=True, follow_redirects=False)
    except package.NetworkError, package.RemoteProtocolError:
        if connects or time.monotonic() - began > _CLOSE_NOTICE_SECONDS:
            raise
    return await client.send(request, stream=True, follow_redirects=False)


class _BoundedTransport:
    """A transport that sends through a shared client. `bound` creates the stream of a response's body."""

    def __init__(self, client: Any, package: Any, bound: Callable[..., Any]) -> None:
        self._client = client
        self._package = package
        self._stream_factory = bound

    async def handle_async_request(self, request: Any) -> Any:
        response = await _send_with_retry(self._client, self._package, request)
        if response.has_redirect_location:
            await response.aclose()
            raise Redirected(str(response.url.join(response.headers["location"]).copy_with(query=None, fragment=None)))
        # the status of an error is enough, so its body may be of any encoding
        encoding = response.headers.get(_ENCODING_HEADER, "").strip().lower()
        if encoding not in ("", "identity") and response.status_code < HTTPStatus.BAD_REQUEST:
            await response.aclose()
            raise BadStream("the answer is in an encoding that was not asked for")
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() != _ENCODING_HEADER]
        return self._package.Response(
            response.status_code,
            headers=headers,
            stream=self._stream_factory(response, request.method),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close nothing: the shared client stays open."""


class _BoundedStream(AsyncIterator[bytes]):
    """A response body, up to a limit.

    This is an iterator class, because httpx does not close generators that were not read to the end.
    """

    def __init__(self, response: Any, method: str) -> None:
        self._response = response
        self._is_error = response.status_code >= HTTPStatus.BAD_REQUEST
        self._bytes_left = (
            _MAX_ERROR_BYTES if self._is_error else _MAX_GET_BYTES if method == "GET" else _MAX_ANSWER_BYTES
        )
        self._chunks: AsyncGenerator[bytes] = aiter(response.stream)

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        self._bytes_left -= len(chunk)
        if self._bytes_left >= 0:
            return chunk
        await self.aclose()
        if self._is_error:
            raise StopAsyncIteration
        raise BadStream("the server sent more than it may")

    async def aclose(self) -> None:
        await self._response.aclose()
        # Closing the response does not close its generators; the garbage collector would finalize them in any thread.
        await self._chunks.aclose()


async def post_json(client: Any, path: str, body: Mapping[str, Any], **options: Any) -> Any:
    """Send a POST request and return the JSON value of the response. `options` are the SDK's, such as a timeout."""
    return await client.post(path, cast_to=object, body=body, options=options)


async def post_for_stream(client: Any, stream: Any, path: str, body: Mapping[str, Any], **options: Any) -> Any:
    """Send a POST request and return its answer as a `stream` of the SDK, to be closed by the caller."""
    return await client.post(path, cast_to=object, body=body, options=options, stream=True, stream_cls=stream[object])


@contextmanager
def map_errors(sdk: Any, read: Callable[[Any], ProviderError]) -> Iterator[None]:
    """Convert every error of the OpenAI or Anthropic SDK, or of its HTTP client, into a `ProviderError`.

    Both SDKs are generated by the same tool, so `sdk` can be either module. `read` converts an SDK error that has an
    HTTP status.
    """
    try:
        with convert_transport_errors():
            yield
    except sdk.APIStatusError as err:
        raise read(err) from err
    except sdk.APITimeoutError as err:
        raise DeadlineExceeded("no connection or no answer in time") from err
    except sdk.APIConnectionError as err:
        # The cause may be an error that the bounded transport raised.
        cause = err.__cause__
        kind = type(cause).__name__
        raise (cause if isinstance(cause, ProviderError) else Unavailable(f"no connection ({kind})")) from err
    except sdk.APIError as err:
        raise BadStream(f"the answer is not of the expected form ({type(err).__name__})") from err
