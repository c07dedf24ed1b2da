"""Waiting for something in another task: until it has happened, and not for ever."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], *, within: float = 5.0) -> None:
    """Wait for something that is to happen in this many seconds."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + within
    while not condition():
        assert loop.time() < ends_at
        await asyncio.sleep(0.002)
