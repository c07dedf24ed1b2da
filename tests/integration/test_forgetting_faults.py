"""Tests for forgetting text that is not in memory, and for forgetting that fails or is interrupted."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
import shutil
import time

from freezegun import api
from freezegun.api import FrozenDateTimeFactory
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_RECORD, RecordLevel
from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.store import writer
from demo.model_server import ModelServer

from .actions import act
from .conftest import SayFn, SetUpFn, flush_store, get_speech, start, stop
from .remembered import memory_of
from .store_file import Disk
from .test_memory_faults import full, lock_file, read_only

SECRET = "swordfish"
TOLD = f"the wifi password is {SECRET}"

type Fault = Callable[[Disk, Memory], AbstractContextManager[None]]


def texts(disk: Disk) -> str:
    """Return all conversation text in the store's file."""
    tables = ("fact", "turn", "summary", "exchange", "record_words", "record_content")
    return str([disk.execute(f"SELECT * FROM {table}") for table in tables])


def is_in_files(disk: Disk) -> bool:
    """Return whether any file of the store contains the secret."""
    return disk(lambda path: any(SECRET.encode() in each.read_bytes() for each in path.parent.iterdir()))


async def test_a_kill_as_soon_as_memory_has_forgotten_leaves_nothing_in_any_conversation(
    set_up: SetUpFn, say: SayFn, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_up(**{CONF_RECORD: RecordLevel.FULL})
    await say(f"by the way, {TOLD}", "mine")
    await say(f"remember that {TOLD}", "other")
    await say("what is the wifi password?", "third")
    killed = Disk(Path(f"{disk.path.parent} killed") / disk.path.name)
    killed(lambda path: path.parent.mkdir())
    erase = Memory.erase

    def erase_and_copy_files(memory: Memory) -> bool:
        for each in disk.path.parent.iterdir():
            shutil.copy(each, killed.path.parent)
        return erase(memory)

    monkeypatch.setattr(Memory, "erase", erase_and_copy_files)
    assert disk.exchange_text.count(SECRET) > 2

    await say(f"forget that {TOLD}", "fourth")

    assert SECRET not in texts(killed)


async def test_words_that_memory_never_had_are_forgotten_in_conversations_and_counted(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, model_server: ModelServer
) -> None:
    await say("how are you?", "mine", device_id="kitchen")
    await say(f"my {SECRET} is in the cellar", "mine", device_id="kitchen")
    await say("hello there", "mine", device_id="kitchen")
    assert (SECRET in disk.exchange_text, SECRET in str(disk.said)) == (True, False)

    forgotten = await async_forget_everywhere(home, query=f"{SECRET} in the cellar")

    assert (forgotten.turns, forgotten.exchange_count) == ((), 1)
    assert not is_in_files(disk)
    await say("hello again", "mine", device_id="kitchen")
    sent = str(model_server.requests[-1].body)
    assert ("how are you?" in sent, "hello there" in sent, SECRET in sent) == (True, True, False)


async def test_words_of_a_turn_that_memory_has_no_more_are_forgotten_in_conversations(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, model_server: ModelServer
) -> None:
    await say(f"by the way, {TOLD}", "mine")
    await memory_of(home).async_change(lambda memory: memory.forget_expired({}, time.time() + 60))
    assert (SECRET in disk.exchange_text, disk.said) == (True, [])

    await act(home, "forget", query=TOLD)

    assert not is_in_files(disk)
    await say("hello again", "mine")
    assert SECRET not in str(model_server.requests[-1].body)


@pytest.mark.parametrize("is_read", [True, False], ids=["in working memory", "only on disk"])
async def test_words_are_forgotten_in_the_conversations_of_an_agent_without_memory(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk, model_server: ModelServer, is_read: bool
) -> None:
    entry = await set_up(**{CONF_MEMORY: "off"})
    await say(f"by the way, {TOLD}", "mine")
    await ([restarted, unchanged][is_read])(home, entry)

    forgotten = await async_forget_everywhere(home, query=TOLD)

    assert forgotten.exchange_count == 1
    assert not is_in_files(disk)
    await say("hello again", "mine")
    assert SECRET not in str(model_server.requests[-1].body)


async def restarted(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await stop(home, entry)
    await start(home, entry)


async def unchanged(home: HomeAssistant, entry: MockConfigEntry) -> None:
    """Change nothing."""


def _refusing(table: str) -> Fault:
    """Return a fault that makes deletions from a table fail in the middle of the transaction."""

    @contextmanager
    def refusing(disk: Disk, memory: Memory) -> Iterator[None]:
        disk.execute(f"CREATE TRIGGER refusing BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END")
        yield
        disk.execute("DROP TRIGGER refusing")

    return refusing


@pytest.mark.parametrize(
    "fault",
    [lock_file, read_only, _refusing("exchange"), _refusing("fact"), _refusing("turn")],
    ids=["locked", "read-only", "conversations fail", "facts fail", "turns fail"],
)
async def test_forgetting_that_fails_is_told_does_nothing_by_half_and_can_be_repeated(
    *,
    home: HomeAssistant,
    entry,
    say: SayFn,
    disk: Disk,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE_SECONDS", 0.01)
    await say(f"by the way, {TOLD}", "mine")
    await say(f"remember that {TOLD}", "other")
    before = texts(disk)
    memory = memory_of(home).writer.open_store
    assert memory is not None
    with fault(disk, memory), pytest.raises(HomeAssistantError):
        await act(home, "forget", query=TOLD)
    assert texts(disk) == before
    await say("hello there", "mine")
    assert SECRET in str(model_server.requests[-1].body)

    await act(home, "forget", query=TOLD)

    assert not is_in_files(disk)
    await say("hello again", "mine")
    assert SECRET not in str(model_server.requests[-1].body)


async def test_sentence_that_forgets_says_so_when_it_fails(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    await say(f"remember that {TOLD}", "other")
    memory = memory_of(home).writer.open_store
    assert memory is not None

    with read_only(disk, memory):
        answer = get_speech(await say(f"forget that {TOLD}", "mine"))

    assert "can't" in answer


async def test_disk_that_is_full_keeps_nothing_from_being_forgotten(
    *, home: HomeAssistant, entry, say: SayFn, disk: Disk, model_server: ModelServer
) -> None:
    await say(f"by the way, {TOLD}", "mine")
    await say(f"remember that {TOLD}", "other")
    memory = memory_of(home).writer.open_store
    assert memory is not None

    with full(disk, memory):
        await act(home, "forget", query=TOLD)
        assert SECRET not in texts(disk)

    await memory_of(home).async_change(Memory.erase)
    assert not is_in_files(disk)


async def test_person_who_was_removed_while_nothing_was_set_up_leaves_nothing_behind(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    entry = await set_up(**{CONF_RECORD: RecordLevel.FULL})
    anna = MockUser(name="Anna").add_to_hass(home)
    await say(f"consider that {TOLD}", "hers", context=Context(user_id=anna.id))
    await say("my name is Ada", "mine")
    await stop(home, entry)
    await home.auth.async_remove_user(anna)
    await home.async_block_till_done()

    await start(home, entry)
    await flush_store(home)

    assert not is_in_files(disk)
    assert disk.conversation_ids == ["mine"]


async def test_conversations_of_a_person_without_any_memory_go_with_the_person(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    entry = await set_up(**{CONF_MEMORY: "off", CONF_RECORD: RecordLevel.OFF})
    anna = MockUser(name="Anna").add_to_hass(home)
    await say(f"consider that {TOLD}", "hers", context=Context(user_id=anna.id))
    await stop(home, entry)
    await home.auth.async_remove_user(anna)

    await start(home, entry)
    await flush_store(home)

    assert (disk.conversation_ids, is_in_files(disk)) == ([], False)


@pytest.mark.parametrize("days", [1, -1], ids=["ahead", "behind"])
async def test_what_is_said_after_something_was_forgotten_by_a_wrong_clock_is_kept(
    *,
    home: HomeAssistant,
    entry,
    say: SayFn,
    disk: Disk,
    freezer: FrozenDateTimeFactory,
    monkeypatch: pytest.MonkeyPatch,
    days: int,
) -> None:
    # Setting the system clock does not change the monotonic clock.
    monkeypatch.setattr(time, "monotonic", api.real_monotonic)
    await say(f"remember that {TOLD}", "mine")
    freezer.tick(timedelta(days=days))
    await say(f"forget that {TOLD}", "mine")
    freezer.tick(timedelta(days=-days))

    await say("hello pelican", "mine")

    assert disk.said == ["hello pelican"]
    assert "pelican" in disk.exchange_text
