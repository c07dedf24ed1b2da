"""A pytest plugin for a quick run: each test with one set of parameters, and no tests that are marked `long`.

In `tests/integration`, only every second test of a file runs, because most of the time is spent on setting up Home
Assistant. Hypothesis tries a fifth of its examples if a test does not specify a number. The selection depends only on
the names and order of tests, so it is the same for each run, and it covers all formats, faults and options.
"""

from collections.abc import Sequence
from itertools import groupby
from zlib import crc32

from hypothesis import settings
import pytest


def pytest_configure() -> None:
    """Let Hypothesis try a fifth of the default number of examples."""
    assert settings.default is not None
    usual = settings.get_current_profile_name()
    settings.register_profile("quick", settings.get_profile(usual), max_examples=settings.default.max_examples // 5)
    settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> object:
    """Reduce a test to one set of parameters before its items are created, which halves the time of collection."""
    result = yield
    if metafunc._calls:
        metafunc._calls = [select_one(metafunc._calls, metafunc.definition.nodeid)]
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect long tests and every second integration test."""
    chosen = half_of_integration([item for item in items if item.get_closest_marker("long") is None])
    config.hook.pytest_deselected(items=list(set(items).difference(chosen)))
    items[:] = chosen


def select_one[Call](calls: Sequence[Call], name: str) -> Call:
    """Return one of the parameter sets of a test, selected by the name of the test."""
    return calls[crc32(name.encode()) % len(calls)]


def half_of_integration(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items, but only every second one of each file in tests/integration."""
    files = [list(group) for _, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    return [item for group in files for item in (group[::2] if "integration/" in group[0].nodeid else group)]
