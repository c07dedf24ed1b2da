"""Fixtures with a memory file in a temporary folder."""

import pytest

from custom_components.windowed_conversation.memory.core import Memory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path):
    memory = Memory(path, ("en", "de"))
    yield memory
    memory.close()
