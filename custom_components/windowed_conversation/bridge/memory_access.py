"""How memory is reached from Home Assistant's event loop."""

from collections.abc import Callable
from typing import Protocol

from ..memory import Forgotten, Memory

# Takes what was forgotten, which windows and prompts may still hold. Called in the event loop.
type OnForgotten = Callable[[Forgotten], None]


class MemoryAccess(Protocol):
    """Runs work on the one memory in a thread; each raises MemoryUnavailable while the file cannot be used."""

    async def async_read[Result](self, read: Callable[[Memory], Result], nothing: Result) -> Result:
        """Return what the work reads, or `nothing` if there is no file yet."""
        ...

    async def async_change[Result](self, work: Callable[[Memory], Result]) -> Result:
        """Return what the work returns when its change is on disk."""
        ...
