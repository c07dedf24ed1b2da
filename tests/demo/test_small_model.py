"""Tests for the small real model of the demo where its packages are not installed."""

import pytest

from demo.errors import DemoError
from demo.small_model import SmallModelServer


async def test_a_model_that_is_not_installed_is_one_sentence_with_what_to_run():
    with pytest.raises(DemoError, match="not installed: run scripts/setup smollm2"):
        await SmallModelServer().__aenter__()
