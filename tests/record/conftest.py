"""Fixtures with a memory file that has the record of turns."""

import pytest

from custom_components.windowed_conversation.record import RecordedTurns
from tests.store.files import opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path):
    memory = opened(path)
    yield memory
    memory.close()


@pytest.fixture
def turns(memory):
    return RecordedTurns(memory.database)
