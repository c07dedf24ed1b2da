"""Deadlines of a turn: a slow model is told apart from a working one by its silence.

How a stream is closed is the provider's business: here it is only cancelled.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from ..providers.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a turn may take, in seconds, and how often it may go round the tool loop."""

    silence: float = 10.0
    turn: float = 60.0
    tool_iterations: int = 10


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
