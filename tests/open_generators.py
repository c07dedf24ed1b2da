"""Async generators that are left open. Those of SDKs are closed; one of the integration is reported as a defect."""

import asyncio
from collections.abc import Iterator
from types import AsyncGeneratorType
from typing import Any, cast

type Generator = AsyncGeneratorType[Any, Any]

OURS = "custom_components"
# SDKs leave their generators, and those of the HTTP client below them, to the garbage collector: after an error, and
# some also after the last event.
SDKS = {"anthropic", "google", "httpcore", "httpcore2", "httpx", "httpx2", "openai"}


class OpenGenerators:
    """Prevents a loop from closing generators when they are garbage-collected, and closes them on request.

    Create it before the loop runs the generators.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Any = loop
        self._collected: list[Generator] = []
        # by default, the loop closes each generator in a separate task at the time of an unpredictable garbage
        # collection
        cast("Any", loop)._asyncgen_finalizer_hook = self._collected.append

    async def close(self) -> list[str]:
        """Close the open generators, and return the names of those that belong to the integration."""
        ours = list[str]()
        while left := list(self._left()):
            ours += [each.__qualname__ for each in left if _get_package(each) == OURS]
            for each in left:
                await each.aclose()
        return ours

    def _left(self) -> Iterator[Generator]:
        yield from filter(_is_open, self._collected)
        # all other open generators belong to fixtures
        yield from (
            each for each in list(self._loop._asyncgens) if _is_open(each) and _get_package(each) in {OURS, *SDKS}
        )


def _is_open(generator: Generator) -> bool:
    return generator.ag_frame is not None and not generator.ag_running


def _get_package(generator: Generator) -> str:
    return str(generator.ag_frame.f_globals["__name__"]).partition(".")[0] if generator.ag_frame else ""
