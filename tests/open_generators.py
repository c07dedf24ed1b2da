"""Async generators that are left open: those of the SDKs are closed, one of the integration is a defect."""

import asyncio
from collections.abc import Iterator
from types import AsyncGeneratorType
from typing import Any, cast

type Generator = AsyncGeneratorType[Any, Any]

OURS = "custom_components"
# An SDK leaves its generators, and those of the HTTP client under it, to the garbage collector: after an error, and
# some of them after the last event as well.
SDKS = {"anthropic", "google", "httpcore", "httpcore2", "httpx", "httpx2", "openai"}


class OpenGenerators:
    """Keeps a loop from closing generators when they are collected, and closes them on request.

    Made before the loop runs the watched generators.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Any = loop
        self._collected: list[Generator] = []
        # as a loop does it, a task of its own closes each of them, whenever garbage happens to be collected
        cast("Any", loop)._asyncgen_finalizer_hook = self._collected.append

    async def close(self) -> list[str]:
        """Close the open ones and return the names of the integration's own."""
        ours = list[str]()
        while left := list(self._left()):
            ours += [each.__qualname__ for each in left if _package(each) == OURS]
            for each in left:
                await each.aclose()
        return ours

    def _left(self) -> Iterator[Generator]:
        yield from filter(_is_open, self._collected)
        # all others that are open here are fixtures
        yield from (each for each in list(self._loop._asyncgens) if _is_open(each) and _package(each) in {OURS, *SDKS})


def _is_open(generator: Generator) -> bool:
    return generator.ag_frame is not None and not generator.ag_running


def _package(generator: Generator) -> str:
    return str(generator.ag_frame.f_globals["__name__"]).partition(".")[0] if generator.ag_frame else ""
