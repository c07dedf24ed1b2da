"""Fixtures with servers that the tests of several layers use.

Imports the integration first, because Home Assistant's pytest plugin contains another `custom_components` package.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
import functools
import gc
import sys
from typing import Any

import pytest
import pytest_asyncio

import custom_components.windowed_conversation  # noqa: F401
from demo.model_server import ModelServer
from tests.clock import IdleClock, LeapingClock
from tests.open_generators import OpenGenerators
from tests.providers.byte_server import ByteServer

# the newest SDKs are tested without Hypothesis
with suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # the same examples each time: luck does not decide about a commit, tests/new_examples.py looks for others
    settings.register_profile(
        "any_machine", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any_machine")

# only Home Assistant's plugin brings freezegun along
with suppress(ImportError):
    import freezegun

    # At the end of a test, freezegun reads each attribute of the modules that were imported meanwhile. Some of
    # pydantic's attributes import a module then, which blocks the event loop.
    freezegun.configure(extend_ignore_list=["pydantic"])


# The number of new objects after which Python collects garbage. With its default of 2,000, it visits most objects of a
# home dozens of times in a test, and all modules again and again while they are imported.
_NEW_OBJECTS = 200_000
gc.set_threshold(_NEW_OBJECTS)


def pytest_collection_finish() -> None:
    """Exempt all that was imported from the garbage collections that tests ask for, which take a second otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def garbage_collection() -> None:
    """Collect the garbage of a file's tests before the next file, and exempt what is left from further collections.

    What is left are modules and caches, such as the parsed sentences of a language with up to 500,000 objects. Visiting
    them again takes ten times as long as the rest of a collection. Home Assistant's plugin freezes them too, but with
    the last home of each file, which is then never freed.
    """
    forget_last_home()
    gc.collect()
    gc.freeze()


def forget_last_home() -> None:
    """Empty Home Assistant's caches for the one home of a process."""
    modules = [module for name, module in sys.modules.items() if name.startswith("homeassistant.") and module]
    for value in [value for module in modules for value in list(vars(module).values())]:
        if isinstance(value, functools._lru_cache_wrapper) and value.cache_parameters()["maxsize"] == 1:
            value.cache_clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace lone surrogates in logged text, because pytest-xdist cannot send them from a worker process."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Drop the output of a test that has passed, which workers would send, and pytest keep until the end of the run."""
    if report.passed:
        report.sections = []


# pytest-asyncio also provides its event loop to synchronous fixtures, but its types do not allow that
_in_loop: Any = pytest_asyncio.fixture


@pytest.fixture(autouse=True)
def _checked_event_loop(request: pytest.FixtureRequest) -> None:
    """Check the event loop of an asynchronous test. Other tests do without a loop, which takes longer than most."""
    if pytest_asyncio.is_async_test(request.node):
        for fixture in ("enable_event_loop_debug", "generators_end"):
            request.getfixturevalue(fixture)


@_in_loop
def enable_event_loop_debug() -> None:
    """Enable the loop's debug checks as Home Assistant's test harness does, but without tracebacks of each origin.

    Those of futures are as deep as the stack, those of coroutines ten frames, and collecting them takes a quarter of
    the time. A failing test can enable them. A callback that is a coroutine function is found without the loop's check:
    its coroutine is never awaited, and warnings are errors.
    """
    loop: Any = asyncio.get_event_loop()
    loop.set_debug(True)
    loop.get_debug = lambda: False
    loop._set_coroutine_origin_tracking = loop._check_callback = lambda *_: None


@_in_loop
def generators_end() -> Iterator[None]:
    """Close the SDKs' open generators at the end of each test, and fail the test if the integration left any open."""
    loop = asyncio.get_event_loop()
    generators = OpenGenerators(loop)
    yield
    assert loop.run_until_complete(generators.close()) == []


@_in_loop
def idle_clock() -> Iterator[IdleClock]:
    """Let the event loop's time advance only while the loop is idle, so that the speed of the machine has no effect."""
    clock = IdleClock(asyncio.get_event_loop())
    clock.start()
    yield clock
    clock.stop()


@_in_loop
def leaping_clock() -> Iterator[None]:
    """Let the event loop's time leap to the next timer without waiting. For tests whose servers run in the loop."""
    clock = LeapingClock(asyncio.get_event_loop())
    clock.start()
    yield
    clock.stop()


@pytest.fixture
async def model_server(socket_enabled: None) -> AsyncIterator[ModelServer]:
    """Yield a scripted model server that refuses invalid requests. The test must use all answers of its script."""
    async with ModelServer(strict=True) as server:
        yield server
        assert list(server.answer_script.remaining_answers) == []


@pytest.fixture
async def byte_server(socket_enabled: None) -> AsyncIterator[ByteServer]:
    """Yield a server that answers with given bytes."""
    async with ByteServer() as server:
        yield server
