"""Requests through OpenAI's and Anthropic's SDKs, which are alike because one tool generates both, and their errors.

The methods for an endpoint look every value of a body up in their types, and build objects for each event of a stream,
in the event loop, which costs several times as much as everything else in a turn. The methods for any path do not:
https://github.com/openai/openai-python#undocumented-endpoints
https://github.com/anthropics/anthropic-sdk-python#undocumented-endpoints
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import BadStream, DeadlineExceeded, ProviderError, Unavailable
from .http_errors import transport_errors


async def post(client: Any, path: str, body: Mapping[str, Any], **options: Any) -> Any:
    """Return the JSON value that answers a request. `options` are the SDK's: `headers`, `timeout`."""
    return await client.post(path, cast_to=object, body=body, options=options)


async def post_for_stream(client: Any, stream: Any, path: str, body: Mapping[str, Any], **options: Any) -> Any:
    """Return the SDK's `stream` that answers a request. Read its `response`, and close it."""
    return await client.post(path, cast_to=object, body=body, options=options, stream=True, stream_cls=stream[object])


@contextmanager
def sdk_errors(sdk: Any, read: Callable[[Any], ProviderError]) -> Iterator[None]:
    """Raise a `ProviderError` for every error of OpenAI's or Anthropic's SDK, and of its HTTP client.

    One tool generates both SDKs, so `sdk` is either module. `read` returns the error for one with a status.
    """
    try:
        with transport_errors():
            yield
    except sdk.APIStatusError as err:
        raise read(err) from err
    except sdk.APITimeoutError as err:
        raise DeadlineExceeded("no connection or no answer in time") from err
    except sdk.APIConnectionError as err:
        # it may wrap an error of our transport
        cause = err.__cause__
        kind = type(cause).__name__
        raise (cause if isinstance(cause, ProviderError) else Unavailable(f"no connection ({kind})")) from err
    except sdk.APIError as err:
        raise BadStream(f"the answer is not of the expected form ({type(err).__name__})") from err
