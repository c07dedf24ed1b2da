"""Tests for generators left open by a test: those of SDKs are closed, those of the integration fail the test."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
import gc
from importlib import import_module
from typing import Any

import pytest

from .open_generators import OpenGenerators
from .providers.conftest import CLIENTS

# The namespace of a module that looks like a part of the integration.
_integration_globals: dict[str, Any] = {"__name__": "custom_components.made_up", "aclosing": aclosing}
exec(
    """
async def read(events):
    async with aclosing(events):
        async for event in events:
            yield event
""",
    _integration_globals,
)
read = _integration_globals["read"]


class Stream:
    """An endless stream. `ends` counts how many times it was closed."""

    def __init__(self) -> None:
        self.ends = 0

    async def events(self) -> AsyncGenerator[bytes]:
        try:
            while True:
                yield b"event"
        finally:
            await asyncio.sleep(0)
            self.ends += 1

    async def make_client_reader(self, package: str) -> Any:
        """Return an HTTP client's started reader of the stream, in a reference cycle like one that an error creates."""
        answer: Any = import_module(package).Response(200, content=self.events())
        answer.pieces = answer.aiter_bytes()
        await anext(answer.pieces)
        return [answer.pieces, answer]

    async def read_by_us(self) -> Any:
        """Return the integration's started reader of the stream."""
        events: Any = read(self.events())
        await anext(events)
        return [events]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def collector(runner: asyncio.Runner) -> OpenGenerators:
    return OpenGenerators(runner.get_loop())


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.mark.parametrize("package", CLIENTS)
def test_what_a_client_leaves_is_closed_though_somebody_holds_it(
    package: str, runner: asyncio.Runner, collector: OpenGenerators, stream: Stream
) -> None:
    pieces, _ = runner.run(stream.make_client_reader(package))

    assert runner.run(collector.close()) == []
    assert pieces.ag_frame is None


@pytest.mark.parametrize("package", CLIENTS)
def test_what_a_client_leaves_to_the_garbage_collector_is_closed_only_when_it_is_told_to(
    package: str, runner: asyncio.Runner, collector: OpenGenerators, stream: Stream
) -> None:
    async def collected() -> None:
        await stream.make_client_reader(package)
        gc.collect()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    runner.run(collected())

    assert stream.ends == 0
    assert runner.run(collector.close()) == []
    assert stream.ends == 1


@pytest.mark.parametrize("is_collected", [False, True])
def test_generator_that_the_integration_leaves_is_told(
    runner: asyncio.Runner, collector: OpenGenerators, stream: Stream, *, is_collected: bool
) -> None:
    left = runner.run(stream.read_by_us())
    if is_collected:
        left.clear()
        gc.collect()

    assert runner.run(collector.close()) == ["read"]
    assert stream.ends == 1


def test_what_was_closed_is_not_told(runner: asyncio.Runner, collector: OpenGenerators, stream: Stream) -> None:
    async def leaves() -> None:
        async with aclosing(read(stream.events())) as events:
            await anext(events)

    runner.run(leaves())

    assert runner.run(collector.close()) == []
