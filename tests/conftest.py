"""The servers that tests of several layers talk to.

Imports the integration first: the pytest plugin of Home Assistant brings a `custom_components` package of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

import custom_components.windowed_conversation  # noqa: F401
from demo.model_server import ModelServer
from tests.clock import IdleClock, LeapingClock
from tests.open_generators import OpenGenerators
from tests.providers.byte_server import ByteServer

# the newest SDKs are tested without it
with suppress(ImportError):
    from hypothesis import HealthCheck, settings

    settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any_machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace halves of characters that were logged: a test's process could not tell the one that prints of it."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report


# the plugin gives a fixture that is no coroutine its loop as well, which its types do not say
_in_loop: Any = pytest_asyncio.fixture


@_in_loop(autouse=True)
def enable_event_loop_debug() -> None:
    """Have the loop check its callers as Home Assistant's harness does, but keep no traceback of every future.

    Each is as deep as the stack, and they take a quarter of the time. A test that fails for one can ask for them.
    """
    loop: Any = asyncio.get_event_loop()
    loop.set_debug(True)
    loop.get_debug = lambda: False


@_in_loop(autouse=True)
def _generators_end() -> Iterator[None]:
    """Close the SDKs' open generators at the very end of each test, and fail it where the integration leaves any."""
    loop = asyncio.get_event_loop()
    generators = OpenGenerators(loop)
    yield
    assert loop.run_until_complete(generators.close()) == []


@_in_loop
def idle_clock() -> Iterator[None]:
    """Have the event loop's time pass only where the loop waits: how long the machine takes is no time at all."""
    clock = IdleClock(asyncio.get_event_loop())
    clock.start()
    yield
    clock.stop()


@_in_loop
def leaping_clock() -> Iterator[None]:
    """Have nobody wait for a timer: the loop's time leaps to the next one. For tests whose servers are in the loop."""
    clock = LeapingClock(asyncio.get_event_loop())
    clock.start()
    yield
    clock.stop()


@pytest.fixture
async def model_server(socket_enabled: None) -> AsyncIterator[ModelServer]:
    """Return a scripted model that refuses requests which break the format's rules; a test uses up its script."""
    async with ModelServer(strict=True) as server:
        yield server
        assert list(server.scripted.left) == []


@pytest.fixture
async def byte_server(socket_enabled: None) -> AsyncIterator[ByteServer]:
    """Return a server that answers with given bytes."""
    async with ByteServer() as server:
        yield server
