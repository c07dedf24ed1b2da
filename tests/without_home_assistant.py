"""A pytest plugin for the tests of the folders that know no Home Assistant, which cannot be imported in such a run.

    .venv/test/bin/python -m pytest -p no:homeassistant -p tests.without_home_assistant tests/window

It takes the place of Home Assistant's own plugin, which costs more than most of these tests, and checks the same at the
end of a test: no task, timer or thread is left, and no socket leads to another machine.
"""

import asyncio
from collections.abc import Iterator
import logging
from pathlib import Path
import sys
import threading
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
import pytest_socket

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "custom_components.windowed_conversation"

# pytest-asyncio also provides its event loop to synchronous fixtures, but its types do not allow that
_in_loop: Any = pytest_asyncio.fixture


def pytest_configure() -> None:
    """Make Home Assistant impossible to import, and the integration's folders importable without its `__init__.py`."""
    for name in ("homeassistant", "probatio", "voluptuous"):
        sys.modules[name] = None  # type: ignore[assignment]
    package = ModuleType(PACKAGE)
    package.__path__ = [str(REPOSITORY.joinpath(*PACKAGE.split(".")))]
    sys.modules[PACKAGE] = package


def pytest_runtest_setup() -> None:
    """Allow connections to this machine only, and only in tests that ask for sockets."""
    pytest_socket.socket_allow_hosts(["127.0.0.1"])
    pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.fixture(name="caplog")
def _caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Collect debug messages, too."""
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    """Fail a test that leaves a thread."""
    before = frozenset(threading.enumerate())
    yield
    assert frozenset(threading.enumerate()) - before == frozenset()


@pytest.fixture(autouse=True)
def _loop_ends(request: pytest.FixtureRequest, _threads_end: None) -> None:
    if pytest_asyncio.is_async_test(request.node):
        request.getfixturevalue("emptied_loop")


@_in_loop
def emptied_loop() -> Iterator[None]:
    """Fail a test that leaves a task or a timer in its event loop."""
    loop: Any = asyncio.get_event_loop()
    before = asyncio.all_tasks(loop)
    yield
    loop.run_until_complete(loop.shutdown_default_executor())
    assert asyncio.all_tasks(loop) - before == set()
    assert [each for each in loop._scheduled if not each.cancelled()] == []
