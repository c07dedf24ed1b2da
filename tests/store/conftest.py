"""Fixtures with the database file and all of its rooms."""

import pytest

from .files import opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path):
    memory = opened(path)
    yield memory
    memory.close()
