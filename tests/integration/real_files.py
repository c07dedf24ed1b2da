"""Fixtures for tests that check the files that Home Assistant writes. Each test has its own configuration folder."""

from typing import Any

import pytest


@pytest.fixture
def hass_config_dir(hass_tmp_config_dir: str) -> str:
    """Use a separate configuration folder for each test."""
    return hass_tmp_config_dir


@pytest.fixture(autouse=True)
def _never_blocks(hass_config_dir: str, _never_blocks: None) -> None:
    """Create the configuration folder before the detector of blocking calls is active."""


@pytest.fixture
def hass_storage() -> dict[str, Any]:
    """Disable the mock of Home Assistant's storage, so that Store objects read and write real files."""
    return {}
