"""Tests for storing turns in memory: only if it is enabled, and a failure of memory never costs a turn its answer."""

from pathlib import Path
from threading import Event
import time

from homeassistant.const import EVENT_HOMEASSISTANT_CLOSE
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation import backup
from custom_components.windowed_conversation.const import (
    CONF_MEMORY,
    CONF_MEMORY_DAYS,
    CONF_RECORD,
    CONF_SCOPE,
    RecordLevel,
)
from custom_components.windowed_conversation.diagnostics import async_get_config_entry_diagnostics
from custom_components.windowed_conversation.memory.core import PastTurn
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import ModelServer

from .conftest import SayAtOnce, SayFn, SetUpFn, flush_store, get_speech, until
from .remembered import add_fact, memory_of
from .store_file import Disk, issues

DAY = 86_400.0
SECRET = "pelican"


async def test_the_file_is_there_before_the_first_turn(home: HomeAssistant, entry, disk: Disk) -> None:
    await flush_store(home)

    assert disk.said == []


async def test_turn_of_the_model_is_in_the_file(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    anna = MockUser(id="anna", name="Anna").add_to_hass(home)
    answer = get_speech(await say("hello there", "mine", context=Context(user_id=anna.id), device_id="satellite"))

    ((said, answered, *names),) = disk.execute("SELECT said, answer, conversation, person, device, agent FROM turn")
    assert (said, answered) == ("hello there", answer)
    assert names == ["mine", "anna", "satellite", *entry.subentries]


async def test_of_tools_the_names_are_kept_and_of_the_prompt_nothing(entry, say: SayFn, disk: Disk) -> None:
    await say("please turn on the hall light for us, will you")

    ((said, answer, tools),) = disk.execute("SELECT said, answer, tools FROM turn")
    assert said == "please turn on the hall light for us, will you"
    assert tools == "intent__HassTurnOn"
    assert "CONTEXT" not in said + answer
    assert "success" not in answer


async def test_no_answer_is_kept_that_may_repeat_what_an_unknown_speaker_said_of_themselves(
    entry, say: SayFn, disk: Disk
) -> None:
    await say("my name is Ada", "one", device_id="kitchen")
    await say("hello there", "one", device_id="kitchen")
    heard = get_speech(await say("hello there", "two", device_id="kitchen"))

    assert disk.execute("SELECT said, answer FROM turn") == [("hello there", ""), ("hello there", heard)]


async def test_no_answer_to_an_unknown_speaker_is_kept_of_a_window_that_all_share(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    anna = MockUser(name="Anna").add_to_hass(home)
    await set_up(**{CONF_SCOPE: Scope.AGENT})
    heard = get_speech(await say("hello from Anna", context=Context(user_id=anna.id)))
    await say("hello there", device_id="kitchen")

    assert disk.execute("SELECT said, answer FROM turn") == [("hello from Anna", heard), ("hello there", "")]


@pytest.mark.parametrize("user_id", ["system", "nobody"])
async def test_users_that_are_no_persons_speak_for_the_home(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, *, user_id: str
) -> None:
    MockUser(id="system", name="Voice over IP", system_generated=True).add_to_hass(home)
    context = Context(user_id=user_id)
    await say("my name is Ada", context=context)
    await say("hello there", context=context)

    assert disk.execute("SELECT said, person FROM turn") == [("hello there", None)]


async def test_turn_that_is_local_or_has_no_answer_is_not_kept(
    entry, say: SayFn, disk: Disk, model_server: ModelServer
) -> None:
    await say("turn on kitchen light")
    model_server.fault("401")
    await say("hello there")

    assert disk.said == []


async def test_agent_without_memory_and_record_keeps_nothing(set_up: SetUpFn, say: SayFn, disk: Disk) -> None:
    await set_up(**{CONF_MEMORY: "off", CONF_RECORD: RecordLevel.OFF})
    await say("hello there")

    assert disk.said == []
    assert disk.execute("SELECT count(*) FROM turn_record") == [(0,)]


async def test_reload_keeps_the_thread_that_writes(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    await say("hello there")
    before = memory_of(home)

    await home.config_entries.async_reload(entry.entry_id)
    await say("hello again")

    assert memory_of(home) is before
    assert disk.said == ["hello there", "hello again"]


async def test_stop_writes_what_waits_and_closes_the_file(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    await say("hello there")
    memory_of(home).writer.put(PastTurn("mine", 1.0, "last words", ""))
    await flush_store(home)
    home.bus.async_fire(EVENT_HOMEASSISTANT_CLOSE)
    await home.async_block_till_done()

    assert disk(lambda path: [each.name for each in path.parent.iterdir()]) == [disk.path.name]
    assert disk.said == ["hello there", "last words"]


async def test_answer_waits_for_no_disk(home: HomeAssistant, entry, say_at_once: SayAtOnce, disk: Disk) -> None:
    writer, may_go_on = memory_of(home).writer, Event()
    writer.submit(lambda memory: may_go_on.wait())
    await say_at_once("hello there")
    for agent in entry.runtime_data.agents.values():
        agent.notify_listeners()
    may_go_on.set()
    await flush_store(home)

    assert disk.said == ["hello there"]


async def test_what_is_said_is_not_logged_when_it_cannot_be_written(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    await say("hello there")
    lock = disk.lock()
    caplog.clear()
    await say(f"remember the {SECRET}")
    await until(lambda: issues(home) == {"memory_locked"})
    disk(lambda path: lock.close())
    await flush_store(home)
    await until(lambda: issues(home) == set())

    ours = [record.getMessage() for record in caplog.records if record.name.startswith("custom_components")]
    assert "The store is off: locked" in ours
    assert [line for line in ours if SECRET in line] == []


async def test_what_was_changed_meanwhile_is_in_the_file_after_a_backup(
    home: HomeAssistant, entry, say: SayFn, say_at_once: SayAtOnce, disk: Disk
) -> None:
    await say("hello there")
    await backup.async_pre_backup(home)
    copy = disk(Path.read_bytes)
    await say_at_once("hello again")
    await until(lambda: memory_of(home).writer.counts.queued > 0)
    assert disk(Path.read_bytes) == copy

    await backup.async_post_backup(home)
    await flush_store(home)

    assert disk.said == ["hello there", "hello again"]
    disk(lambda path: path.with_name("copy").write_bytes(copy))
    assert Disk(disk.path.with_name("copy")).said == ["hello there"]


async def test_removed_person_takes_along_what_is_theirs(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    anna = MockUser(name="Anna").add_to_hass(home)
    await say("hello from Anna", context=Context(user_id=anna.id))
    await say("hello there")

    await home.auth.async_remove_user(anna)
    await home.async_block_till_done()
    await flush_store(home)

    assert disk.said == ["hello there"]
    assert disk.execute("SELECT count(*) FROM turn_record") == [(1,)]


async def test_turns_are_deleted_after_the_days_of_their_account(
    home: HomeAssistant, entry, say: SayFn, disk: Disk
) -> None:
    (agent_id,) = entry.subentries
    for days in (1, 20, 100):
        memory_of(home).writer.put(PastTurn("mine", time.time() - days * DAY, f"{days} days", "", agent_id))
    await say("hello there")

    home.config_entries.async_update_entry(entry, options={CONF_MEMORY_DAYS: 10})
    await home.async_block_till_done()
    await until(lambda: disk.said == ["1 days", "hello there"])


async def test_sensors_show_how_much_there_is(home: HomeAssistant, entry, say: SayFn, figure) -> None:
    assert [figure(f"memory_{name}") for name in ("facts", "turns")] == ["0", "0"]

    await add_fact(home, "Tea at five")
    await say("hello there")

    await until(lambda: (figure("memory_facts"), figure("memory_turns")) == ("1", "1"))
    assert float(figure("memory_size")) > 0


async def test_diagnostics_have_figures_of_memory_and_no_text(home: HomeAssistant, entry, say: SayFn) -> None:
    await say(f"remember the {SECRET}")

    diagnostics = await async_get_config_entry_diagnostics(home, entry)

    assert diagnostics["memory"]["counts"]["written"] >= 1
    assert SECRET not in str(diagnostics)
