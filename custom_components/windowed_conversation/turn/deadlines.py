"""Deadlines of a turn, and the pauses that a provider asks for: a slow model is told from a working one by its silence.

How a stream is closed is the provider's business: here it is only cancelled.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
import time

from ..providers.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a turn may take, in seconds, and how often it may go round the tool loop."""

    silence: float = 10.0
    turn: float = 60.0
    tool_iterations: int = 10


class Pause:
    """The time for which a provider wants to be left alone, in seconds on the monotonic clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = 0.0

    @property
    def seconds_left(self) -> float:
        """How long it still lasts, 0 when there is none."""
        return max(0.0, self._ends_at - self._clock())

    def begin(self, seconds: float) -> None:
        """Leave the provider alone for so many seconds from now on."""
        self._ends_at = max(self._ends_at, self._clock() + seconds)


async def without_silence[E](events: AsyncIterator[E], seconds: float) -> AsyncGenerator[E]:
    """Pass the events on; raises `DeadlineExceeded` when none comes for so many seconds."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            async with asyncio.timeout_at(loop.time() + seconds):
                event = await anext(events)
        except StopAsyncIteration:
            return
        except TimeoutError as err:
            raise DeadlineExceeded(f"silent for {seconds:g} seconds") from err
        yield event
