"""Fixtures for tests that look at the files that Home Assistant really writes, in a folder of its own for each test."""

from typing import Any

import pytest


@pytest.fixture
def hass_config_dir(hass_tmp_config_dir: str) -> str:
    """Have a folder of its own for each test."""
    return hass_tmp_config_dir


@pytest.fixture(autouse=True)
def _never_blocks(hass_config_dir: str, _never_blocks: None) -> None:
    """Have the folder before the detector is there."""


@pytest.fixture
def hass_storage() -> dict[str, Any]:
    """Have the real Store write and read real files."""
    return {}
