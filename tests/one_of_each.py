"""A pytest plugin for a quick look: each test with one set of its parameters, and none that is marked `long`.

Of the tests with a real Home Assistant in process every second one of a file runs: most of their time is its set-up.
Hypothesis tries a fifth of its examples where a test names no number of its own.
The choice follows from names and places: formats, faults and options take turns, and one run is like the next.
"""

from collections.abc import Sequence
from itertools import groupby
from zlib import crc32

from hypothesis import settings
import pytest


def pytest_configure() -> None:
    """Have Hypothesis try fewer examples than in the profile that the tests have loaded."""
    assert settings.default is not None
    usual = settings.get_current_profile_name()
    settings.register_profile("quick", settings.get_profile(usual), max_examples=settings.default.max_examples // 5)
    settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> object:
    """Leave a test one set of its parameters, before there is an item for each: collecting takes half the time."""
    result = yield
    if metafunc._calls:
        metafunc._calls = [one_of(metafunc._calls, metafunc.definition.nodeid)]
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect all others."""
    chosen = half_of_integration([item for item in items if item.get_closest_marker("long") is None])
    config.hook.pytest_deselected(items=list(set(items).difference(chosen)))
    items[:] = chosen


def one_of[Call](calls: Sequence[Call], name: str) -> Call:
    """Return one of the calls of the test with this name."""
    return calls[crc32(name.encode()) % len(calls)]


def half_of_integration(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items without every second one of each file in tests/integration."""
    files = [list(group) for _, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    return [item for group in files for item in (group[::2] if "integration/" in group[0].nodeid else group)]
