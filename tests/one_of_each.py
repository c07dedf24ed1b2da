"""A pytest plugin that runs each test with one set of its parameters, for a quick look; none that is marked `long`.

Hypothesis tries a fifth of its examples where a test names no number of its own.
Which one follows from the test's name: formats, faults and options take turns, and one run is like the next.
"""

from zlib import crc32

from hypothesis import settings
import pytest


def pytest_configure() -> None:
    """Have Hypothesis try fewer examples than in the profile that the tests have loaded."""
    assert settings.default is not None
    usual = settings.get_current_profile_name()
    settings.register_profile("quick", settings.get_profile(usual), max_examples=settings.default.max_examples // 5)
    settings.load_profile("quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect all others."""
    chosen = one_of_each([item for item in items if item.get_closest_marker("long") is None])
    config.hook.pytest_deselected(items=list(set(items).difference(chosen)))
    items[:] = chosen


def one_of_each(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return an item of each test, in the order of the tests."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [sets[crc32(name.encode()) % len(sets)] for name, sets in tests.items()]
