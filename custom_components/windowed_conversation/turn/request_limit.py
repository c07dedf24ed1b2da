"""The limit of concurrent requests to a provider."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

# The maximum number of concurrent requests: more than a local server handles at once, but few enough that a provider
# does not take them for an attack.
MAX_CONCURRENT_REQUESTS = 16


class RequestLimiter:
    """Limits the number of concurrent requests, first come, first served.

    `is_loading` means that a request stays open beyond its turn, so that the server keeps loading a model.
    """

    def __init__(self, most: int = MAX_CONCURRENT_REQUESTS) -> None:
        self.is_loading = False
        self._semaphore = asyncio.Semaphore(most)

    @asynccontextmanager
    async def acquire_permit(self) -> AsyncGenerator[RequestPermit]:
        """Wait until a request may be sent, and yield its `RequestPermit`. A cancelled wait leaves the queue."""
        waited = self._semaphore.locked()
        await self._semaphore.acquire()
        permit = RequestPermit(self._semaphore, waited)
        try:
            yield permit
        finally:
            permit.release()


@dataclass(slots=True)
class RequestPermit:
    """The permission to send one request; `had_to_wait` is true if it was not available at once."""

    _semaphore: asyncio.Semaphore
    had_to_wait: bool
    _is_released: bool = False

    def release(self) -> None:
        """Let the next request start while the answer to this one is still being processed."""
        if not self._is_released:
            self._is_released = True
            self._semaphore.release()
