"""How many requests are under way to an account's server at a time; the others wait in the order they came in."""

import asyncio
from typing import Self

# More than a server of one's own works on at once, and fewer than a provider takes for an attack.
MOST_REQUESTS = 16


class RequestLimit:
    """Lets at most so many requests through at a time, first come, first served."""

    def __init__(self, most: int = MOST_REQUESTS) -> None:
        self._free = asyncio.Semaphore(most)

    def permit(self) -> Permit:
        """Return a context of one request, which is entered when the request may be sent."""
        return Permit(self._free)


class Permit:
    """The leave to send one request; `waited` tells whether others had to end first."""

    __slots__ = ("_free", "_is_held", "waited")

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_held = False
        self.waited = False

    async def __aenter__(self) -> Self:
        """Wait for the request's turn; who is cancelled meanwhile leaves the queue."""
        self.waited = self._free.locked()
        await self._free.acquire()
        self._is_held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let the next request through, when the answer is there and what follows it takes longer."""
        if self._is_held:
            self._is_held = False
            self._free.release()
