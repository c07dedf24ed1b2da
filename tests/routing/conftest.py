"""Fixtures: a real Home Assistant in which homes are built, and a model server that counts requests."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
import logging
from pathlib import Path
from typing import Any

from homeassistant.core import HomeAssistant
import pytest

from tests.integration.done_once import cache_setup

from .homes import Home, HomePlan, build
from .stub import Stub

type Build = Callable[[HomePlan], Coroutine[Any, Any, Home]]


@pytest.fixture(autouse=True, scope="session")
def _cached_setup() -> Iterator[None]:
    """Let all homes share the parts that are the same in each of them."""
    with cache_setup():
        yield


@pytest.fixture(autouse=True)
def _real_world(enable_custom_integrations: None, socket_enabled: None, idle_clock: None) -> None:
    """Enable this integration and connections to the server on loopback, independently of the machine's speed."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Disable logging, because hundreds of sentences would flood the log."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with Stub() as stub:
        yield stub


@pytest.fixture
async def build_home(hass: HomeAssistant, tmp_path: Path) -> AsyncIterator[Build]:
    """Yield a function that builds a home with its own files; its timers are removed after the test."""
    hass.config.config_dir = str(tmp_path)
    homes: list[Home] = []

    async def build_home(plan: HomePlan) -> Home:
        homes.append(await build(hass, plan))
        return homes[-1]

    yield build_home
    for home in homes:
        home.timers.clear()
    await hass.async_block_till_done()
