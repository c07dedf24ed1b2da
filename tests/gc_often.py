"""A pytest plugin that makes garbage collection frequent, to reveal code that depends on its timing."""

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage after each ten new objects, once `conftest.py` has set the usual threshold."""
    gc.set_threshold(10)
