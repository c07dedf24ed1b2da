"""Tests for memory after the last account is removed: the next account uses it unless it was deleted."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
import time
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from homeassistant.components.repairs import repairs_flow_manager
from homeassistant.const import CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers import issue_registry as ir
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
from homeassistant.util.async_ import get_scheduled_timer_handles
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser, async_fire_time_changed

from custom_components.windowed_conversation.agents.setup import async_get_closing_lock
from custom_components.windowed_conversation.agents.store import async_get_store
from custom_components.windowed_conversation.const import (
    CONF_PERSISTENCE,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_NONE,
)
from custom_components.windowed_conversation.memory.core import PastTurn, Summary

from .conftest import SayFn, SetUpFn, flush_store, listed, stop, until
from .remembered import add_fact, list_facts, memory_of
from .store_file import Disk, issues, placeholders

ISSUE = "memory_left_all"
ONE_WEEK = timedelta(days=7)
# The marker words of a fact, of a turn and of a summary.
MARKS = ("quokka", "wombat", "numbat")

type Choose = Callable[[], Coroutine[Any, Any, Any]]


@pytest.fixture
async def told(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> MockConfigEntry:
    """Return an account whose agent has a stored fact, conversation turns, and a summary."""
    (agent_id,) = entry.subentries
    await add_fact(home, "the key is under the quokka")
    await say("the wombat is asleep", "mine")
    writer = memory_of(home).writer
    for place in range(2):
        writer.put(PastTurn("old", time.time() - 50 + place, f"hello {place}", "I see.", agent_id))
    now, said = time.time(), ("hello 0", "hello 1")
    writer.put(Summary("old", now - 60, now, "we spoke of the numbat", agent_id, user_texts=said))
    await flush_store(home)
    return entry


async def remove(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()


@pytest.fixture
async def choose(home: HomeAssistant) -> Choose:
    """Return a function that selects the option in the repair flow of the issue about the remaining memory."""
    assert await async_setup_component(home, "repairs", {})

    async def choose() -> Any:
        flows = repairs_flow_manager(home)
        assert flows is not None
        menu = await flows.async_init(DOMAIN, context={"issue_id": ISSUE})
        assert menu["type"] is FlowResultType.MENU
        assert menu["menu_options"] == ["delete"]
        return await flows.async_configure(menu["flow_id"], {"next_step_id": "delete"})

    return choose


async def later(home: HomeAssistant, freezer: FrozenDateTimeFactory, days: float) -> None:
    """Advance the clock by some days and fire the timers. The code under test decides by the clock."""
    freezer.tick(timedelta(days=days))
    async_fire_time_changed(home, dt_util.utcnow() + ONE_WEEK)
    await home.async_block_till_done(wait_background_tasks=True)


def marks(disk: Disk) -> list[str]:
    """Return the marker words that occur in any file of the store."""

    def look(path: Path) -> list[str]:
        content = b"".join(each.read_bytes() for each in path.parent.iterdir())
        return [mark for mark in MARKS if mark.encode() in content]

    return disk(look)


def kept(disk: Disk) -> tuple[list[tuple[Any, ...]], ...]:
    """Return all rows of memory: facts, turns, summaries and turn records."""
    return tuple(disk.execute(f"SELECT * FROM {table}") for table in ("fact", "turn", "summary", "turn_record"))


async def test_memory_of_the_last_account_is_there_for_the_next_one(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, disk: Disk
) -> None:
    before = kept(disk)

    await remove(home, told)
    assert disk.files() == [disk.path.name]
    assert issues(home) == {"memory_left"}
    await set_up(account={CONF_PROVIDER: PROVIDER_NONE, CONF_URL: None})
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert [len(rows) for rows in before] == [1, 3, 1, 1]
    assert kept(disk) == before
    assert [fact.text for fact in await list_facts(home)] == ["the key is under the quokka"]
    assert issues(home) == set()


async def test_memory_is_still_there_after_the_next_starts(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, disk: Disk, freezer: FrozenDateTimeFactory
) -> None:
    before = kept(disk)
    await remove(home, told)
    entry = await set_up()

    await later(home, freezer, 8)
    await stop(home, entry)
    assert await home.config_entries.async_setup(entry.entry_id)
    await listed(home)
    await flush_store(home)

    assert kept(disk) == before


async def test_conversations_and_totals_go_with_the_last_account(
    home: HomeAssistant, told: MockConfigEntry, disk: Disk
) -> None:
    home.config_entries.async_update_entry(told, options={CONF_PERSISTENCE: "all"})
    await remove(home, told)

    left = disk.execute("SELECT owner FROM value")
    assert (disk.conversation_ids, disk.exchange_text, left) == ([], "", [("",)])


async def test_issue_says_until_when(
    home: HomeAssistant, told: MockConfigEntry, freezer: FrozenDateTimeFactory
) -> None:
    freezer.move_to("2026-12-01 12:00:00+00:00")
    await remove(home, told)

    issue = ir.async_get(home).async_get_issue(DOMAIN, ISSUE)
    assert issue is not None
    assert issue.is_fixable
    assert placeholders(home) == {"memory_left": {"until": "2026-12-08"}}


async def test_deleting_now_leaves_no_byte(
    home: HomeAssistant, told: MockConfigEntry, choose: Choose, disk: Disk
) -> None:
    disk(lambda path: path.with_name(f"{path.name}.damaged").write_text("quokka"))
    await remove(home, told)
    assert marks(disk) == [*MARKS]

    done = await choose()

    assert done["type"] is FlowResultType.CREATE_ENTRY
    assert (marks(disk), disk.files(), issues(home)) == ([], [], set())


async def test_choice_that_cannot_be_made_is_told(
    home: HomeAssistant, told: MockConfigEntry, choose: Choose, disk: Disk
) -> None:
    await remove(home, told)
    disk(Path.unlink)
    disk(Path.mkdir)

    done = await choose()

    assert (done["type"], done["reason"]) == (FlowResultType.ABORT, "not_possible")
    assert issues(home) == {"memory_left"}


async def test_nothing_is_deleted_that_is_in_use_again(
    home: HomeAssistant, told: MockConfigEntry, choose: Choose, set_up: SetUpFn, disk: Disk
) -> None:
    await remove(home, told)
    flows = repairs_flow_manager(home)
    assert flows is not None
    menu = await flows.async_init(DOMAIN, context={"issue_id": ISSUE})
    await set_up()

    done = await flows.async_configure(menu["flow_id"], {"next_step_id": "delete"})

    assert done["type"] is FlowResultType.ABORT
    assert marks(disk) != []


async def test_file_is_deleted_after_the_days(
    home: HomeAssistant, told: MockConfigEntry, disk: Disk, freezer: FrozenDateTimeFactory
) -> None:
    await remove(home, told)

    await later(home, freezer, 6.9)
    assert marks(disk) == [*MARKS]
    await later(home, freezer, 0.2)

    assert (disk.files(), issues(home)) == ([], set())


async def test_file_that_is_due_at_the_next_start_is_deleted_before_anything_is_read(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, disk: Disk
) -> None:
    await remove(home, told)
    # No timer runs while there is no account, so the deadline is moved in the file.
    disk.execute("UPDATE value SET value = ?", f"{time.time() - 1}")

    await set_up()
    await flush_store(home)

    assert marks(disk) == []
    assert await list_facts(home) == []
    assert issues(home) == set()


async def test_days_start_again_when_the_next_account_is_removed(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, disk: Disk, freezer: FrozenDateTimeFactory
) -> None:
    await remove(home, told)
    await later(home, freezer, 5)
    await remove(home, await set_up())

    await later(home, freezer, 5)
    assert "quokka" in marks(disk)
    await later(home, freezer, 2.1)

    assert disk.files() == []


async def test_person_who_is_removed_meanwhile_is_forgotten(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    anna = MockUser(name="Anna").add_to_hass(home)
    await say("hello from Anna", context=Context(user_id=anna.id))
    await remove(home, told)
    assert "hello from Anna" in (disk.said or [])
    await home.auth.async_remove_user(anna)

    await set_up()
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert "hello from Anna" not in (disk.said or [])
    assert "quokka" in marks(disk)


async def test_account_that_is_added_while_the_last_one_is_removed_has_its_memory(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, disk: Disk
) -> None:
    async with async_get_closing_lock(home):
        removing = asyncio.create_task(home.config_entries.async_remove(told.entry_id))
        await until(lambda: not home.config_entries.async_entries(DOMAIN))
        await asyncio.sleep(0.01)
        adding = asyncio.create_task(set_up())
        await until(lambda: bool(home.config_entries.async_entries(DOMAIN)))
    await asyncio.gather(removing, adding)
    await flush_store(home)

    assert disk.execute("SELECT value FROM value WHERE owner = ''") == []
    assert "quokka" in marks(disk)


async def test_one_of_two_accounts_leaves_no_issue(
    home: HomeAssistant, told: MockConfigEntry, set_up: SetUpFn, disk: Disk
) -> None:
    other = await set_up(account={CONF_URL: f"{told.data[CONF_URL]}/"})

    await remove(home, other)

    assert issues(home) == set()
    assert async_get_store(home) is not None


async def test_account_that_was_not_set_up_since_the_start_leaves_its_memory(
    home: HomeAssistant, told: MockConfigEntry, disk: Disk
) -> None:
    before = kept(disk)
    await stop(home, told)

    await remove(home, told)

    assert (kept(disk), disk.conversation_ids, issues(home)) == (before, [], {"memory_left"})


async def test_account_whose_memory_has_nothing_leaves_nothing(
    home: HomeAssistant, entry: MockConfigEntry, disk: Disk
) -> None:
    await remove(home, entry)

    assert (disk.files(), issues(home)) == ([], set())


async def test_change_that_comes_after_the_last_account_schedules_no_write(
    home: HomeAssistant, entry: MockConfigEntry
) -> None:
    store = async_get_store(home)
    assert store is not None
    await remove(home, entry)

    store.async_save_soon()

    timers = [handle for handle in get_scheduled_timer_handles(home.loop) if not handle.cancelled()]
    assert [handle for handle in timers if "AgentStore" in repr(handle)] == []
