"""A pytest plugin that delays the work of threads, to reveal tests and code that depend on how soon it ends."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
import time
from typing import Any

import pytest

_MAX_DELAY = 0.03
"""In seconds, before the work and once more after it."""

_submit = ThreadPoolExecutor.submit
_random = Random()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Delay each call that a pool of threads makes from now on."""
    pytest.MonkeyPatch().setattr(ThreadPoolExecutor, "submit", _submit_with_delays)


def _submit_with_delays[T](
    pool: ThreadPoolExecutor, function: Callable[..., T], /, *args: Any, **named: Any
) -> Future[T]:
    def call_late() -> T:
        time.sleep(_random.random() * _MAX_DELAY)
        try:
            return function(*args, **named)
        finally:
            time.sleep(_random.random() * _MAX_DELAY)

    return _submit(pool, call_late)
