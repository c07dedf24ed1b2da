"""Helper to wait for something in another task, with a timeout."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], *, within: float = 5.0) -> None:
    """Wait until the condition is true. Raises `AssertionError` after `within` seconds."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + within
    while not condition():
        assert loop.time() < ends_at
        await asyncio.sleep(0.002)
