"""A pytest plugin that shuffles the files, and the tests in each file, to reveal tests that depend on their order.

The seed is printed first, and can be given in the environment variable `RANDOM_ORDER_SEED`.
"""

from itertools import groupby
import os
from random import Random

import pytest


def read_seed() -> str:
    """Return the given seed, or else one that all worker processes of a run share."""
    given = os.environ.get("RANDOM_ORDER_SEED")
    return given or os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())


def pytest_report_header() -> str:
    """Return the line that names the seed of a run in one process."""
    return f"random order: RANDOM_ORDER_SEED={read_seed()}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the tests. Those of a file stay together, because they share fixtures."""
    items[:] = shuffle(items, read_seed())


def shuffle(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return the items in an order that depends only on their names and the seed."""
    random = Random(seed)
    files = [list(group) for _, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    random.shuffle(files)
    for file in files:
        random.shuffle(file)
    return [item for file in files for item in file]
