"""Access to memory from Home Assistant's event loop."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ..memory import Memory
from ..turn.remember_requests import MemoryReply

# Does work that forgets, also in windows and prompts. Raises MemoryUnavailable.
type Forget = Callable[[Callable[[Memory], MemoryReply]], Coroutine[Any, Any, MemoryReply]]


class MemoryAccess(Protocol):
    """Runs work on the one memory in a thread; each raises MemoryUnavailable while the file cannot be used."""

    async def async_read[Result](self, read: Callable[[Memory], Result], nothing: Result) -> Result:
        """Return the result of `read`, or `nothing` if there is no file yet."""
        ...

    async def async_change[Result](self, work: Callable[[Memory], Result]) -> Result:
        """Return the result of `work` when its change is on disk."""
        ...
