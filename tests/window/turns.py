"""A turn in a window of a registry, as tests take it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from custom_components.windowed_conversation.window import Window, WindowRegistry


@asynccontextmanager
async def begin_turn(windows: WindowRegistry, key: str, timeout: float | None = None) -> AsyncIterator[Window]:  # noqa: ASYNC109
    """Return a context manager with exclusive use of a key's window."""
    with windows.reserve(key) as place:
        yield await place.enter(timeout)
