"""Who listens no more gets the connection closed, at once and for good."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import ProviderError
from custom_components.windowed_conversation.providers.events import TextDelta
from demo.model_server import ModelServer

from ..conftest import Ask, over_either_client
from ..heard import Heard
from .conftest import Connect

STORY = "tell me a story about the sea"

pytestmark = over_either_client


async def until(condition: Callable[[], bool], *, within: float = 5.0) -> None:
    """Wait for something that is to happen in so many seconds."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + within
    while not condition():
        assert loop.time() < ends_at
        await asyncio.sleep(0.002)


@pytest.fixture
def slow_server(model_server: ModelServer) -> ModelServer:
    """Return the scripted model, which needs a minute for a story."""
    model_server.change(delay=0.2)
    return model_server


async def test_cancelling_frees_the_connection(ask: Ask, slow_server: ModelServer) -> None:
    heard = Heard()
    listening = asyncio.create_task(heard.listen(ask(STORY)))
    await until(lambda: heard.text != "")

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    await until(lambda: slow_server.open_streams == slow_server.open_connections == 0)
    assert slow_server.requests[-1].client_left


@pytest.mark.parametrize("fault", ["no_answer", "silence_after_headers", "silence_mid_stream"])
async def test_cancelling_frees_a_silent_connection(fault: str, ask: Ask, model_server: ModelServer) -> None:
    model_server.fault(fault)
    listening = asyncio.create_task(Heard().listen(ask(STORY)))
    await until(lambda: model_server.open_streams == 1)

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    await until(lambda: model_server.open_streams == model_server.open_connections == 0)


async def test_closing_early_frees_the_connection(ask: Ask, slow_server: ModelServer) -> None:
    async with aclosing(ask(STORY)) as events:
        assert await anext(events) == TextDelta("Once ")

    await until(lambda: slow_server.open_streams == slow_server.open_connections == 0)


async def test_stream_that_nobody_began_sends_nothing(ask: Ask, model_server: ModelServer) -> None:
    async with aclosing(ask(STORY)):
        pass

    assert model_server.requests == []


@pytest.mark.parametrize("fault", ["malformed_event", "error_in_stream", "no_terminal", "length", "500"])
async def test_failed_answer_leaves_no_stream_open(fault: str, ask: Ask, model_server: ModelServer) -> None:
    model_server.fault(fault)

    with pytest.raises(ProviderError):
        await Heard().listen(ask(STORY))

    await until(lambda: model_server.open_streams == 0)


async def test_whole_answer_leaves_no_stream_open(ask: Ask, model_server: ModelServer) -> None:
    await Heard().listen(ask(STORY))

    await until(lambda: model_server.open_streams == 0)


async def test_client_stays_its_owners(http_client: Any, ask: Ask, model_server: ModelServer) -> None:
    model_server.fault("cut_mid_stream", 1)
    with pytest.raises(ProviderError):
        await Heard().listen(ask(STORY))
    async with aclosing(ask(STORY)) as events:
        await anext(events)

    await Heard().listen(ask("hello"))

    assert not http_client.is_closed


async def test_streams_side_by_side_do_not_mix(connect: Connect, ask: Ask, model_server: ModelServer) -> None:
    model_server.change(delay=0.001)

    heard = await asyncio.gather(*(Heard().listen(ask(f"remember that the number {n} is lucky")) for n in range(8)))

    assert [each.text for each in heard] == [f"I will remember that the number {n} is lucky." for n in range(8)]
