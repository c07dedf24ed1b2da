"""Tests that a new home imports what released versions have exported, with the same content."""

import json
from pathlib import Path
from typing import Any

from homeassistant.auth.const import GROUP_ID_USER
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.const import CONF_MEMORY_DAYS
from tests import kept_home as kept
from tests.kept_home import KeptHome

from .actions import act, export
from .conftest import SayFn, SetUpFn, get_speech
from .test_memory_actions import folder

__all__ = ["folder"]

# The files are read at import time, because reading files in the event loop is not allowed.
HOMES = {version: kept.read_home(kept.KEPT / version) for version in kept.VERSIONS}


@pytest.fixture(params=kept.VERSIONS)
async def exported(request: pytest.FixtureRequest, home: HomeAssistant, set_up: SetUpFn) -> KeptHome:
    """Return the home of each version, whose people live in the new home, too, which keeps old turns."""
    await set_up(options={CONF_MEMORY_DAYS: 3650})
    users = await home.auth.async_get_group(GROUP_ID_USER)
    assert users is not None
    for name, person in HOMES[request.param].people.items():
        MockUser(id=person, name=name.capitalize(), groups=[users]).add_to_hass(home)
    return HOMES[request.param]


def read_exchanges(export: dict[str, Any]) -> list[tuple[list[str], list[dict[str, Any]]]]:
    """Return the tags and the messages of each exchange in an export, without tokens, which are counted anew."""
    return [
        (each["tags"], [{**message, "tokens": None} for message in each["messages"]]) for each in export["exchanges"]
    ]


async def test_memories_are_imported_as_they_were(home: HomeAssistant, exported: KeptHome, folder: Path) -> None:
    loaded = await act(home, "import_memories", memories=exported.memories)

    await act(home, "export_memories", everyone=True, filename="exports/memories.jsonl")
    text = await home.async_add_executor_job((folder / "memories.jsonl").read_text)
    lines = {(line["kind"], line["id"]): line for line in map(json.loads, text.splitlines())}
    before = [json.loads(line) for line in exported.memories]
    memories = [each for each in before if each["kind"] != "forgotten"]
    assert loaded == {"added": len(memories), "known": 0, "refused": 0}
    assert len(memories) < len(before)
    assert [each for each in before if not each.items() <= lines[each["kind"], each["id"]].items()] == []


async def test_imported_memories_are_found_and_private(home: HomeAssistant, exported: KeptHome) -> None:
    await act(home, "import_memories", memories=exported.memories)

    owner, guest = (Context(user_id=exported.people[each]) for each in (kept.OWNER, kept.GUEST))
    for word in kept.WORDED_BY.split(", "):
        found = await act(home, "recall", owner, query=word, kinds="fact")
        assert [each["text"] for each in found["memories"]] == [kept.WORDED_FACT]
    assert (await act(home, "recall", guest, query=kept.OWNERS_FACT, kinds="fact"))["memories"] == []


async def test_conversation_is_imported_as_it_was(home: HomeAssistant, exported: KeptHome, say: SayFn) -> None:
    await act(home, "import_conversation", conversation_id=None, export=exported.conversation)

    assert read_exchanges(await export(home, kept.DIARY)) == read_exchanges(exported.conversation)
    assert kept.NAME in get_speech(await say("what is my name?", kept.DIARY))
