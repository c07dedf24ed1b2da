"""Tests that an answer closes the HTTP client's streams when it ends, without waiting for garbage collection."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
import gc
from types import AsyncGeneratorType
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Event
from tests.providers.byte_server import ByteServer, ForEver
from tests.providers.conftest import Ask, Hear, over_either_client
from tests.providers.wires.parts import Text, Wire
from tests.waiting import until

pytestmark = over_either_client


@pytest.fixture(autouse=True)
def _uncollected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Disable garbage collection in a test, and close unreferenced generators as a regular event loop does."""
    monkeypatch.delattr(asyncio.get_event_loop(), "_asyncgen_finalizer_hook")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def open_generators() -> list[Any]:
    """Return the generators of an HTTP client that have started and not ended."""
    return [
        found
        for found in gc.get_objects()
        if isinstance(found, AsyncGeneratorType) and found.ag_frame and "httpcore" in found.ag_code.co_filename
    ]


async def first_event(answer: Any) -> Event:
    """Return the first event of an answer, and close the stream without reading the rest."""
    events: AsyncIterator[Event]
    async with aclosing(answer) as events:
        return await anext(events)


async def test_an_answer_with_more_behind_its_end(wire: Wire, hear: Hear) -> None:
    await hear(*wire.answer(Text(("hello",))), ForEver(b":\n\n"))

    await until(lambda: open_generators() == [])


async def test_an_answer_that_is_abandoned(wire: Wire, ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(*wire.answer(Text(("hello",))), ForEver(b":\n\n"))

    await first_event(ask())

    await until(lambda: open_generators() == [])
