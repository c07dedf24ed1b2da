"""Tests that the homes which released versions have left start, talk, remember and forget in a real Home Assistant.

They hold for every home in `tests/kept`, with the oldest and the newest Home Assistant.
"""

from dataclasses import dataclass
from itertools import product
import sys
from typing import Any

import pytest
import pytest_asyncio

from demo.home_assistant import REPOSITORY
from demo.model_server import ModelServer
from tests import kept_home as kept
from tests.e2e.house import tell_tales
from tests.e2e.kept_house import KeptHouse, restore_logins, run_kept_house

_PYTHONS = {"oldest": str(REPOSITORY / ".venv" / "test" / "bin" / "python"), "newest": sys.executable}
_NEW_FACT = "the key of the shed is under the blue pot"


@dataclass(frozen=True, slots=True)
class Stay:
    """The results of a stay in a kept home, most of them before and after something was forgotten."""

    accounts: dict[str, str]
    expected_accounts: dict[str, str]
    unavailable: list[str]
    name: str
    about_owner: str
    about_guest: str
    remembered: list[str]
    forgotten: list[str]
    diary_before: str
    diary_after: str
    tales: list[str]


async def list_facts(house: KeptHouse, person: str) -> list[str]:
    """Return the texts of the facts that a person may see."""
    return [each["text"] for each in (await house.act(person, "recall", kinds="fact", limit=100))["memories"]]


async def read_diary(house: KeptHouse) -> str:
    """Return the messages of the diary as text."""
    return str(await house.act(kept.OWNER, "get_conversation", entity_id=kept.STUDY, conversation_id=kept.DIARY))


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=product(kept.VERSIONS, _PYTHONS), ids="-".join)
async def stay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stay:
    """Start the home of each version with each Home Assistant, talk, remember and forget, and stop it."""
    version, release = request.param
    folder, python = tmp_path_factory.mktemp("kept") / version, _PYTHONS[release]
    seen: dict[str, Any] = {}
    async with ModelServer(strict=True, models=("scripted", "gpt-5-mini")) as model:
        home = kept.copy_home(version, folder, model.address)
        restore_logins(folder, kept.OWNER, kept.GUEST)
        async with run_kept_house(folder, python) as house:
            entries = await house.people.owner.send_command("config_entries/get", domain=kept.DOMAIN)
            states = await house.people.owner.fetch_states()
            seen["accounts"] = {each["entry_id"]: each["state"] for each in entries}
            seen["unavailable"] = [each for each in home.entity_ids if states[each]["state"] == "unavailable"]
            seen["name"] = await house.say(kept.OWNER, kept.STUDY, "what is my name?", kept.DIARY)
            question = "what do you know about me?"
            seen["about_owner"] = await house.say(kept.OWNER, kept.HOUSE, question, "new")
            seen["about_guest"] = await house.say(kept.GUEST, kept.HOUSE, question, "the guest's")
            await house.say(kept.GUEST, kept.HOUSE, f"remember that {_NEW_FACT}", "the guest's")
            seen["remembered"] = await list_facts(house, kept.OWNER)
            seen["diary_before"] = await read_diary(house)
            await house.say(kept.OWNER, kept.HOUSE, f"forget that {kept.OWNERS_FACT}", "new")
            seen["forgotten"] = await list_facts(house, kept.OWNER)
            seen["diary_after"] = await read_diary(house)
    log = house.home_assistant.output_file.read_text()
    said = (kept.OWNERS_FACT, kept.GUESTS_FACT, kept.WORDED_FACT, _NEW_FACT)
    return Stay(**seen, expected_accounts=dict.fromkeys(home.account_ids, "loaded"), tales=tell_tales(log, said))


async def test_kept_home_starts(stay: Stay) -> None:
    assert stay.accounts == stay.expected_accounts
    assert stay.unavailable == []


async def test_kept_home_talks(stay: Stay) -> None:
    assert kept.NAME in stay.name


async def test_kept_home_remembers(stay: Stay) -> None:
    assert kept.OWNERS_FACT in stay.about_owner
    assert kept.GUESTS_FACT in stay.about_guest
    assert {kept.HOMES_FACT, kept.WORDED_FACT, _NEW_FACT} <= set(stay.remembered)


async def test_kept_home_forgets(stay: Stay) -> None:
    assert kept.OWNERS_FACT in stay.diary_before
    assert kept.OWNERS_FACT not in stay.diary_after
    assert kept.OWNERS_FACT not in stay.forgotten


async def test_log_of_a_kept_home_has_no_fault_and_nothing_that_was_said(stay: Stay) -> None:
    assert stay.tales == []
