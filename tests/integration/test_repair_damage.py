"""Tests for the repair flow of a damaged file that was set aside: it is deleted or kept, and nothing else changes."""

from http import HTTPStatus
from pathlib import Path
import stat
from typing import Any

from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.memory.core import Memory

from .actions import act
from .conftest import SayFn, flush_store, get_speech, listed, start, stop, until
from .remembered import add_fact, list_facts, memory_of
from .repair_flows import RepairFlows
from .store_file import Disk, issues, placeholders

ISSUE = "memory_damaged_all"
TABLES = ("fact", "turn", "summary", "turn_record", "conversation", "exchange")


async def damage(home: HomeAssistant, say: SayFn, disk: Disk) -> None:
    """Overwrite all pages of the file but the first, and let a turn find it."""
    # what the writer has not written yet would replace damaged pages
    await flush_store(home)
    memory = memory_of(home).writer.open_store
    assert isinstance(memory, Memory)

    def overwrite(path: Path) -> None:
        memory.checkpoint()
        with path.open("r+b") as opened:
            opened.seek(4_096)
            opened.write(b"\xff" * (path.stat().st_size - 4_096))

    disk(overwrite)
    await say("hello there")
    await until(lambda: issues(home) == {"memory_damaged"})


@pytest.fixture
async def damaged(home: HomeAssistant, entry: MockConfigEntry, say: SayFn, disk: Disk) -> MockConfigEntry:
    """Return an account whose damaged file was set aside, with a fact and a conversation in the new file."""
    await say("my name is Ada")
    await damage(home, say, disk)
    await add_fact(home, "the key is under the quokka")
    await flush_store(home)
    return entry


def list_damaged(disk: Disk) -> dict[str, bytes]:
    """Return the contents of the damaged files by name, including those that a user has kept."""
    return disk(lambda path: {each.name: each.read_bytes() for each in path.parent.glob("*.damaged*")})


def stored(disk: Disk) -> list[list[tuple[Any, ...]]]:
    """Return all rows of memory, the record and the conversations."""
    return [disk.execute(f"SELECT * FROM {table}") for table in TABLES]


async def test_issue_names_the_damaged_file(damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk) -> None:
    menu = await repairs.open(ISSUE)

    assert (menu["type"], menu["menu_options"]) == ("menu", ["delete", "keep"])
    assert menu["description_placeholders"] == {"path": f"{disk.path}.damaged"}
    assert f"{disk.path.name}.damaged" in list_damaged(disk)


@pytest.mark.parametrize("option", ["delete", "keep"])
async def test_nothing_else_is_lost(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk, *, say: SayFn, option: str
) -> None:
    before = stored(disk)

    done = await repairs.choose(await repairs.open(ISSUE), option)
    await flush_store(home)

    assert (done["type"], issues(home)) == ("create_entry", set())
    assert stored(disk) == before
    assert len(before[0]) == 1
    assert "the key is under the quokka" in [fact.text for fact in await list_facts(home)]
    assert get_speech(await say("what is my name?")) == "Your name is Ada."


async def test_deleted_file_is_gone(damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk) -> None:
    await repairs.choose(await repairs.open(ISSUE), "delete")

    assert list_damaged(disk) == {}
    assert disk.path.name in disk.files()


async def test_kept_file_has_the_same_bytes_and_only_its_owner_may_read_it(
    damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk
) -> None:
    before = list_damaged(disk)

    await repairs.choose(await repairs.open(ISSUE), "keep")

    after = list_damaged(disk)
    modes = disk(lambda path: {stat.S_IMODE(each.stat().st_mode) for each in path.parent.glob("*.damaged.kept-*")})
    assert [*after.values()] == [*before.values()]
    assert [name for name in after if not name.startswith(f"{disk.path.name}.damaged.kept-")] == []
    assert modes == {0o600}


async def test_log_of_the_file_is_kept_with_it(damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk) -> None:
    disk(lambda path: path.with_name(f"{path.name}.damaged-wal").write_bytes(b"log"))

    await repairs.choose(await repairs.open(ISSUE), "keep")

    names = sorted(list_damaged(disk))
    assert len(names) == 2
    assert names[1] == f"{names[0]}-wal"


@pytest.mark.parametrize("option", ["delete", "keep"])
async def test_issue_does_not_come_back_at_the_next_start(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk, *, say: SayFn, option: str
) -> None:
    await repairs.choose(await repairs.open(ISSUE), option)

    await stop(home, damaged)
    await start(home, damaged)
    await say("hello again")

    assert issues(home) == set()


async def test_kept_file_stays_when_everything_is_forgotten_and_after_the_next_damage(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk, *, say: SayFn
) -> None:
    await repairs.choose(await repairs.open(ISSUE), "keep")
    kept = list_damaged(disk)

    await act(home, "forget", everyone=True, everything=True)
    await say("hello again")
    await damage(home, say, disk)

    after = list_damaged(disk)
    assert after.items() > kept.items()
    assert f"{disk.path.name}.damaged" in after


async def test_file_that_cannot_be_deleted_keeps_its_issue(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk
) -> None:
    menu = await repairs.open(ISSUE)
    # the writer thread, which looks for the file now and then, must not miss it between the two steps
    await memory_of(home).async_change(lambda _: _replace_by_folder(disk.path.with_name(f"{disk.path.name}.damaged")))

    done = await repairs.choose(menu, "delete")

    assert (done["type"], done["reason"], issues(home)) == ("abort", "not_possible", {"memory_damaged"})


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


async def test_file_that_is_gone_cannot_be_kept_and_has_no_issue_any_more(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk
) -> None:
    menu = await repairs.open(ISSUE)
    disk(lambda path: path.with_name(f"{path.name}.damaged").unlink())

    done = await repairs.choose(menu, "keep")

    assert (done["type"], done["reason"], issues(home)) == ("abort", "not_possible", set())


@pytest.mark.parametrize("option", ["delete", "keep"])
async def test_nothing_changes_while_a_backup_is_made(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk, *, option: str
) -> None:
    menu = await repairs.open(ISSUE)
    before = list_damaged(disk)
    await memory_of(home).async_pause_writes()

    done = await repairs.choose(menu, option)

    assert (done["type"], done["reason"]) == ("abort", "not_possible")
    assert (list_damaged(disk), issues(home)) == (before, {"memory_damaged"})


async def test_second_of_two_open_flows_does_not_claim_to_delete_what_the_first_has_kept(
    damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk
) -> None:
    first, second = [await repairs.open(ISSUE) for _ in range(2)]
    await repairs.choose(first, "keep")
    kept = list_damaged(disk)

    done = await repairs.choose(second, "delete")

    assert (done["type"], done["reason"]) == ("abort", "not_possible")
    assert list_damaged(disk) == kept


async def test_solved_issue_has_no_flow(damaged: MockConfigEntry, repairs: RepairFlows) -> None:
    await repairs.choose(await repairs.open(ISSUE), "delete")

    assert "not found" in (await repairs.open(ISSUE, HTTPStatus.BAD_REQUEST))["message"]


async def test_option_that_does_not_exist_changes_nothing(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk
) -> None:
    before = list_damaged(disk)

    await repairs.choose(await repairs.open(ISSUE), "burn", HTTPStatus.BAD_REQUEST)

    assert (list_damaged(disk), issues(home)) == (before, {"memory_damaged"})


async def test_flow_that_is_open_while_the_account_is_reloaded_still_works(
    home: HomeAssistant, damaged: MockConfigEntry, repairs: RepairFlows, disk: Disk
) -> None:
    menu = await repairs.open(ISSUE)
    assert await home.config_entries.async_reload(damaged.entry_id)
    await listed(home)

    done = await repairs.choose(menu, "delete")

    assert (done["type"], list_damaged(disk), placeholders(home)) == ("create_entry", {}, {})
