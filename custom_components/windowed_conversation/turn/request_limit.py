"""A limit on concurrent requests to an account's server. Others wait in the order in which they came."""

import asyncio
from typing import Self

# More than a local server handles at once, and fewer than a provider would take for an attack.
MOST_REQUESTS = 16


class RequestLimit:
    """Limits the number of concurrent requests, first come, first served.

    `is_loading`: whether a request stays open beyond its turn, so that the server goes on loading a model.
    """

    def __init__(self, most: int = MOST_REQUESTS) -> None:
        self.is_loading = False
        self._free = asyncio.Semaphore(most)

    def permit(self) -> Permit:
        """Return a context for one request. Entering it waits until the request may be sent."""
        return Permit(self._free)


class Permit:
    """The permission to send one request; `waited` tells whether it had to wait."""

    __slots__ = ("_free", "_is_held", "waited")

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_held = False
        self.waited = False

    async def __aenter__(self) -> Self:
        """Wait for the request's turn. A cancelled wait leaves the queue."""
        self.waited = self._free.locked()
        await self._free.acquire()
        self._is_held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let the next request start while this one's answer is still being processed."""
        if self._is_held:
            self._is_held = False
            self._free.release()
