"""Streams of Google's SDK that let go of their connection as soon as nobody listens any more, or they fail.

The SDK's generators are nested, and the inner ones are in a reference cycle with the response: closing the outer one,
or an error in it, leaves the connection open until the garbage collector comes by. What a stream is made of is not
looked at in here.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextvars import ContextVar, copy_context
from importlib import import_module
from typing import Any

# How many items are received before the first is taken: many that wait are gone through by the garbage collector again
# and again, one at a time costs a change of tasks each.
_AHEAD = 32

_opened = ContextVar[list[Any]]("opened")


class _Lent:
    """A transport over somebody else's client, of httpx or httpx2, that remembers the responses of a stream."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def handle_async_request(self, request: Any) -> Any:
        response = await self._client.send(request, stream=True)
        if (opened := _opened.get(None)) is not None:
            opened.append(response)
        return response

    async def aclose(self) -> None:
        """Close nothing: the client stays its owner's."""


def lent(http_client: Any) -> Any:
    """Return a client of the same package that asks over the given one; `closing_its_source` sees what it opens."""
    packages = [base.__module__.partition(".")[0] for base in type(http_client).__mro__]
    package: Any = import_module("httpx2" if "httpx2" in packages else "httpx")
    return package.AsyncClient(transport=_Lent(http_client), headers=http_client.headers)


async def closing_its_source[T](source: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield what a source yields and raise what it raises; when this ends, the source has let go of its responses.

    A cancellation, other than a close, goes all the way down. So the source runs in a task of its own, which is
    cancelled where this is closed.
    """
    opened: list[Any] = []
    context = copy_context()
    context.run(_opened.set, opened)
    received = asyncio.Queue[T](_AHEAD)
    task = asyncio.create_task(_receive(source, received), context=context)
    try:
        while True:
            try:
                item = await received.get()
            except asyncio.QueueShutDown:
                break
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            # an error after the last listener left is not to be reported as never retrieved
            task.exception()
        for response in opened:
            await response.aclose()


async def _receive[T](source: AsyncIterator[T], received: asyncio.Queue[T]) -> None:
    try:
        async for item in source:
            await received.put(item)
    finally:
        received.shutdown()
