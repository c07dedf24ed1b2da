"""Tests for stored conversations: they are restored unchanged, never lost silently, and deleted with their agent."""

from collections.abc import Callable
from pathlib import Path
import time

from homeassistant.components import conversation
from homeassistant.const import CONF_URL, EVENT_HOMEASSISTANT_STOP
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_EXPIRY_HOURS,
    CONF_HISTORY_TOKENS,
    CONF_MEMORY,
    CONF_PERSISTENCE,
    CONF_RECORD,
    CONF_SUMMARIZE,
    DOMAIN,
    Persistence,
    RecordLevel,
)
from custom_components.windowed_conversation.store import writer
from custom_components.windowed_conversation.turn.routing import WindowKey
from demo.model_server import ModelServer
from tests.window.turns import begin_turn

from .account_forms import open_options
from .actions import act, export
from .conftest import AGENT, SayFn, SetUpFn, flush_store, get_speech, start, stop, until
from .more_agents import remove_agent
from .remembered import memory_of
from .store_file import Disk, issues, placeholders

NOTHING_KEPT = {CONF_MEMORY: "off", CONF_RECORD: RecordLevel.OFF}
OFF = {CONF_PERSISTENCE: Persistence.OFF}

type GetAgentFn = Callable[[MockConfigEntry], Agent]


async def restart(home: HomeAssistant, entry: MockConfigEntry) -> None:
    """Stop and start the account, as a restart of Home Assistant does."""
    await stop(home, entry)
    await start(home, entry)


def ids(agent: Agent) -> list[str]:
    """Return the ids of an agent's conversations, newest first."""
    return [WindowKey.parse(key).conversation for key in agent.windows.stats()]


def a_person(home: HomeAssistant, name: str) -> Context:
    """Create a user and return a context of that user."""
    return Context(user_id=MockUser(name=name).add_to_hass(home).id)


async def test_conversation_goes_on_after_a_restart_with_the_same_bytes(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    await say("my name is Ada", "mine")
    await say("I would like the hall light switched on", "mine")
    answer = get_speech(await say("tell me a story about the sea", "mine"))
    before = model_server.requests[-1].body["messages"]

    await restart(home, entry)

    assert "Ada" in get_speech(await say("what is my name?", "mine"))
    after = model_server.requests[-1].body["messages"]
    assert str(after[: len(before)]) == str(before)
    assert after[len(before) : -1] == [{"role": "assistant", "content": answer}]


@pytest.mark.parametrize("server", ["deepseek", "openrouter", "google"])
async def test_server_gets_back_after_a_restart_what_it_wrote(
    server: str, home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.change(shapes=(server,))
    await say("my name is Ada", "mine")
    await say("I would like the hall light switched on", "mine")

    await restart(home, entry)

    assert "Ada" in get_speech(await say("what is my name?", "mine"))
    assert [record.status for record in model_server.requests] == [200] * 4


async def test_turn_of_the_last_moment_is_written(home: HomeAssistant, entry, disk: Disk) -> None:
    await conversation.async_converse(home, "turn on kitchen light", "mine", Context(), "en", AGENT)

    home.bus.async_fire(EVENT_HOMEASSISTANT_STOP)
    await flush_store(home)

    assert "turn on kitchen light" in disk.exchange_text


async def test_turn_after_a_quiet_time_is_written_by_itself(home: HomeAssistant, entry, disk: Disk) -> None:
    # the file exists before it is read
    await flush_store(home)
    await conversation.async_converse(home, "turn on kitchen light", "mine", Context(), "en", AGENT)

    await until(lambda: "turn on kitchen light" in disk.exchange_text)


async def test_summary_is_sent_after_a_restart_as_before(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, get_agent: GetAgentFn
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 600, CONF_SUMMARIZE: True}, **{CONF_MEMORY: "off"})
    await say("my name is Ada", "mine")
    (window,) = get_agent(entry).windows.loaded_windows().values()
    while not window.stats().trims:
        await say("tell me a story in 120 words", "mine")
    await until(lambda: "summary" in window.stats().tag_distribution)
    await say("who am I?", "mine")
    before = model_server.requests[-1].body["messages"]

    await restart(home, entry)

    (stats,) = get_agent(entry).windows.stats().values()
    assert stats.tag_distribution["summary"] == 1
    assert "Ada" in get_speech(await say("what is my name?", "mine"))
    assert str(model_server.requests[-1].body["messages"][: len(before)]) == str(before)


async def test_contents_and_figures_are_the_same_after_a_restart_but_for_the_prompt_that_each_turn_sets(
    home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn, figure
) -> None:
    await say("turn on kitchen light", "mine")
    await say("my name is Ada", "mine")
    (before,) = get_agent(entry).windows.loaded_windows().values()
    stats = get_agent(entry).windows.stats()

    await restart(home, entry)

    assert get_agent(entry).windows.stats() == stats
    assert figure("active_conversations") == "1"
    after = await get_agent(entry).windows.load("mine")
    assert after is not None
    assert after.snapshot() == before.snapshot()._replace(system=None)


async def test_newest_conversation_is_still_the_newest_and_one_is_read_when_somebody_goes_on_with_it(
    home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn
) -> None:
    for conversation_id in ("one", "two", "one"):
        await say("my name is Ada", conversation_id)

    await restart(home, entry)

    assert ids(get_agent(entry)) == ["one", "two"]

    windows = get_agent(entry).windows
    assert windows.loaded_windows() == {}
    await say("what is my name?", "one")
    assert [*windows.loaded_windows()] == ["one"]


async def test_conversation_is_still_nobody_elses(home: HomeAssistant, entry, say: SayFn) -> None:
    ada, grace = a_person(home, "One"), a_person(home, "Two")
    with_separator = "a\x1fb"
    await say("my name is Ada", with_separator, context=ada)

    await restart(home, entry)

    assert "Ada" not in get_speech(await say("what is my name?", with_separator, context=grace))
    assert "Ada" not in get_speech(await say("what is my name?", with_separator))
    assert "Ada" in get_speech(await say("what is my name?", with_separator, context=ada))


async def test_conversation_of_a_device_goes_on(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> None:
    entry = await set_up(scope="device")
    await say("my name is Ada", None, device_id="satellite")

    await restart(home, entry)

    assert "Ada" in get_speech(await say("what is my name?", None, device_id="satellite"))


@pytest.mark.parametrize("persistence", Persistence)
async def test_only_what_was_chosen_is_kept(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent: GetAgentFn, disk: Disk, persistence: Persistence
) -> None:
    entry = await set_up(options={CONF_PERSISTENCE: persistence})
    await say("my name is Ada", "mine")
    session = str((await say("my name is Grace", None)).conversation_id)

    await restart(home, entry)

    expected = {Persistence.OFF: set[str](), Persistence.OWN_IDS: {"mine"}, Persistence.ALL: {"mine", session}}
    assert {*ids(get_agent(entry))} == {*disk.conversation_ids} == expected[persistence]


async def test_nothing_is_written_before_anything_is_said(home: HomeAssistant, entry, disk: Disk) -> None:
    (agent,) = entry.runtime_data.agents.values()
    agent.windows.expire_windows()
    agent.notify_listeners()
    await flush_store(home)

    assert (disk.conversation_ids, disk.exchange_text, disk.said) == ([], "", [])


async def test_there_is_no_file_while_nothing_is_kept(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, figure, disk: Disk
) -> None:
    await set_up(options=OFF, **NOTHING_KEPT)
    await say("my name is Ada", "mine")

    assert "Ada" in get_speech(await say("what is my name?", "mine"))
    assert figure("turns_model") == "2"
    assert disk.files() == []


async def test_file_is_left_alone_while_nothing_changes(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    await say("my name is Ada", "mine")
    await restart(home, entry)
    await until(lambda: memory_of(home).writer.state.statistics is not None)
    before = disk(lambda path: [each.read_bytes() for each in sorted(path.parent.iterdir())])

    for agent in entry.runtime_data.agents.values():
        agent.windows.expire_windows()
        agent.notify_listeners()
    await flush_store(home)

    assert disk(lambda path: [each.read_bytes() for each in sorted(path.parent.iterdir())]) == before


async def test_turn_writes_its_own_exchange_only(home: HomeAssistant, entry, say: SayFn, disk: Disk) -> None:
    await say("my name is Ada", "mine")
    await say("hello there", "mine")
    disk.execute("CREATE TABLE new_exchange (id)")
    disk.execute("CREATE TRIGGER note AFTER INSERT ON exchange BEGIN INSERT INTO new_exchange VALUES (new.id); END")

    await say("what is my name?", "mine")

    newest = "SELECT max(id) FROM exchange"
    assert disk.execute("SELECT DISTINCT id FROM new_exchange") == disk.execute(newest)


async def test_only_the_owner_of_home_assistant_can_read_the_files(entry, say: SayFn, disk: Disk) -> None:
    await say("my name is Ada", "mine")

    assert disk.files() == [f"{DOMAIN}.db", f"{DOMAIN}.db-shm", f"{DOMAIN}.db-wal"]
    assert disk(lambda path: {each.stat().st_mode & 0o777 for each in path.parent.iterdir()}) == {0o600}


async def test_persistence_that_is_switched_off_leaves_the_totals_only_at_once(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    entry = await set_up(**NOTHING_KEPT)
    await say("my name is Ada", "mine")
    assert "Ada" in disk.exchange_text

    form = await open_options(home, entry)
    await form(history_tokens=8000, trim_share=25, expiry_hours=24, persistence="off")
    await flush_store(home)

    assert (disk.conversation_ids, disk.exchange_text) == ([], "")
    assert totals(disk, entry) == [(1,)]
    assert disk(lambda path: [each.name for each in path.parent.iterdir() if b"is Ada" in each.read_bytes()]) == []
    assert "Ada" in get_speech(await say("what is my name?", "mine"))


def totals(disk: Disk, entry: MockConfigEntry) -> list[tuple[int]]:
    """Return the stored number of turns that the model of an account's only agent has answered."""
    (agent_id,) = entry.subentries
    query = "SELECT value ->> 'turns_model' FROM value WHERE owner = ? AND name = 'totals'"
    return disk.execute(query, agent_id)


async def test_persistence_that_is_switched_on_keeps_what_is_there(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn
) -> None:
    entry = await set_up(options=OFF)
    await say("my name is Ada", "mine")

    home.config_entries.async_update_entry(entry, options={CONF_PERSISTENCE: "own"})
    await home.async_block_till_done()
    await restart(home, entry)

    assert "Ada" in get_speech(await say("what is my name?", "mine"))


async def test_conversations_that_are_no_longer_wanted_go_at_the_next_start(
    home: HomeAssistant, entry, say: SayFn, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    await stop(home, entry)
    home.config_entries.async_update_entry(entry, options=OFF)

    await start(home, entry)
    await flush_store(home)

    assert (disk.conversation_ids, disk.exchange_text) == ([], "")
    assert totals(disk, entry) == [(1,)]


async def test_policy_in_force_applies_to_what_comes_back(
    home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn
) -> None:
    for _ in range(5):
        await say("tell me a story about the sea in 250 words", "mine")
    await stop(home, entry)
    home.config_entries.async_update_entry(entry, options={CONF_HISTORY_TOKENS: 1000})

    await start(home, entry)

    window = await get_agent(entry).windows.load("mine")
    assert window is not None
    assert window.stats().max_tokens == 1000
    assert window.stats().current_tokens <= 750


async def test_time_while_home_assistant_was_off_counts_as_idle(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent: GetAgentFn, disk: Disk
) -> None:
    entry = await set_up(options={CONF_EXPIRY_HOURS: 1})
    await say("my name is Ada", "old")
    await say("my name is Grace", "new")
    await stop(home, entry)
    disk.execute("UPDATE conversation SET used = ? WHERE key = 'old'", time.time() - 3700)

    await start(home, entry)
    await flush_store(home)

    assert ids(get_agent(entry)) == disk.conversation_ids == ["new"]
    assert "Grace" in disk.exchange_text
    assert "Ada" not in disk.exchange_text


@pytest.mark.parametrize("used", [0, 3600, time.time() + 10**6], ids=["1970", "an hour after", "in the future"])
async def test_conversation_of_a_clock_that_was_wrong_is_used_now(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent: GetAgentFn, disk: Disk, used: float
) -> None:
    entry = await set_up(options={CONF_EXPIRY_HOURS: 1})
    await say("my name is Ada", "mine")
    await stop(home, entry)
    disk.execute("UPDATE conversation SET used = ?", used)

    await start(home, entry)

    windows = get_agent(entry).windows
    assert windows.idle_seconds("mine") < 3600
    await say("what is my name?", "mine")
    ((used_at,),) = disk.execute("SELECT used FROM conversation")
    assert abs(used_at - time.time()) < 3600


@pytest.mark.parametrize(
    "content",
    [b"no database", b"no database at all" * 1000, b"SQLite format 3\0" + b"\xff" * 8176],
    ids=["short", "long", "no pages"],
)
async def test_damaged_file_is_set_aside_and_told(
    *, home: HomeAssistant, entry, say: SayFn, disk: Disk, content: bytes
) -> None:
    await say("my name is Ada", "mine")
    await stop(home, entry)
    disk(lambda path: path.write_bytes(content))

    await start(home, entry)

    assert "Ada" not in get_speech(await say("what is my name?", "mine"))
    aside = disk.path.with_name(f"{disk.path.name}.damaged")
    assert placeholders(home) == {"memory_damaged": {"path": str(aside)}}
    assert disk(lambda _: aside.read_bytes()) == content
    assert "what is my name?" in disk.exchange_text


async def test_what_can_be_read_of_a_damaged_file_comes_back(
    home: HomeAssistant, entry, say: SayFn, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    await stop(home, entry)
    ((page,),) = disk.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'turn_record'")
    ((size,),) = disk.execute("PRAGMA page_size")
    disk(lambda path: overwrite(path, (page - 1) * size))

    await start(home, entry)
    await until(lambda: issues(home) == {"memory_damaged"})
    await home.async_block_till_done(wait_background_tasks=True)

    assert "Ada" in get_speech(await say("what is my name?", "mine"))


def overwrite(path: Path, place: int) -> None:
    """Overwrite 100 bytes of the file at this position."""
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 100)


async def test_issue_goes_with_the_file_that_was_set_aside(home: HomeAssistant, entry, disk: Disk) -> None:
    await stop(home, entry)
    disk(lambda path: path.write_bytes(b"no database"))
    await start(home, entry)
    await restart(home, entry)
    await until(lambda: issues(home) == {"memory_damaged"})

    disk(lambda path: path.with_name(f"{path.name}.damaged").unlink())
    await restart(home, entry)

    await until(lambda: issues(home) == set())


async def test_file_of_a_later_version_is_left_alone_and_told(
    home: HomeAssistant, entry, say: SayFn, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    await stop(home, entry)
    disk.execute("PRAGMA user_version = 99")
    before = disk(Path.read_bytes)

    await start_without(home, entry)

    assert "Ada" not in get_speech(await say("what is my name?", "mine"))
    assert placeholders(home) == {"memory_newer": {"path": str(disk.path)}}
    assert disk(Path.read_bytes) == before


async def test_text_with_a_rotten_byte_costs_its_exchange_only_and_is_told(
    *, home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn, disk: Disk, model_server: ModelServer
) -> None:
    await say("consider that the cat is Tom", "one")
    await say("consider that the dog is Rex", "one")
    await say("consider that the bird is Kim", "two")
    await stop(home, entry)
    disk.corrupt("the dog is Rex")

    await start(home, entry)

    await say("hello there", "one")
    sent = str(model_server.requests[-1].body)
    assert ("Tom" in sent, "Rex" in sent) == (True, False)
    assert ids(get_agent(entry)) == ["one", "two"]
    assert issues(home) == {"texts_damaged"}


async def test_store_and_account_work_with_a_byte_that_has_rotten_meanwhile(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, disk: Disk
) -> None:
    await say("consider that the dog is Rex", "mine")
    await stop(home, entry)
    await start(home, entry)
    await until(lambda: memory_of(home).writer.state.statistics is not None)
    await home.async_add_executor_job(memory_of(home).writer.pause_writing, 60.0)
    disk.corrupt("the dog is Rex")
    memory_of(home).writer.resume_writing()

    answer = get_speech(await say("hello there", "mine"))

    assert (bool(answer), issues(home)) == (True, set())


async def test_old_conversation_that_was_imported_lives_on_after_a_restart(
    home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn
) -> None:
    await say("my name is Ada", "mine")
    data = await export(home, "mine")
    for message in data["exchanges"][0]["messages"]:
        message["created"] = time.time() - 30 * 24 * 60 * 60
    await act(home, "import_conversation", conversation_id="imported", export=data)
    await act(home, "import_conversation", conversation_id="again", export=await export(home, "imported"))

    await restart(home, entry)

    assert ids(get_agent(entry)) == ["again", "imported", "mine"]


@pytest.mark.parametrize("is_read", [True, False])
async def test_conversation_that_was_reset_does_not_come_back(
    *, home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn, disk: Disk, is_read: bool
) -> None:
    await say("my name is Ada", "mine")
    if not is_read:
        await restart(home, entry)

    await act(home, "delete_conversation", conversation_id="mine")
    await restart(home, entry)

    assert (ids(get_agent(entry)), disk.exchange_text) == ([], "")


@pytest.mark.long
async def test_write_that_failed_is_repeated_though_nobody_speaks(
    *, home: HomeAssistant, entry, figure, say: SayFn, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE_SECONDS", 0.01)
    # the store deletes an empty file that it cannot set up, and the lock would create one
    await flush_store(home)
    lock = disk.lock()
    await say("my name is Ada", "mine")
    assert figure("turns_model") == "0"

    disk(lambda path: lock.close())
    await until(lambda: figure("turns_model") == "1")

    assert "my name is Ada" in disk.exchange_text


async def block_store(home: HomeAssistant, entry: MockConfigEntry, disk: Disk) -> None:
    """Stop the account, replace the store's file by a folder, and start the account."""
    await stop(home, entry)
    disk(block)
    await start_without(home, entry)


async def start_without(home: HomeAssistant, entry: MockConfigEntry) -> None:
    """Set up an account whose store cannot be used, without waiting for the queue."""
    assert await home.config_entries.async_setup(entry.entry_id)
    await home.async_block_till_done()


def block(path: Path) -> None:
    """Move the file away and create a folder at its path."""
    path.rename(path.with_name("elsewhere"))
    path.mkdir()


def unblock(path: Path) -> None:
    """Remove the folder and move the file back."""
    path.rmdir()
    path.with_name("elsewhere").rename(path)


async def test_account_works_while_the_store_cannot_be_opened_and_an_issue_tells_it(
    home: HomeAssistant, entry, say: SayFn, disk: Disk
) -> None:
    await block_store(home, entry, disk)

    await say("my name is Ada", "mine")
    assert "Ada" in get_speech(await say("what is my name?", "mine"))
    assert placeholders(home) == {"memory_away": {"path": str(disk.path)}}
    assert disk(lambda path: list(path.iterdir())) == []


async def test_what_was_said_meanwhile_is_written_when_the_store_can_be_opened_again(
    home: HomeAssistant, entry, say: SayFn, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE_SECONDS", 0.01)
    await block_store(home, entry, disk)
    await say("my name is Ada", "mine")

    disk(unblock)
    await say("hello there", "mine")

    await until(lambda: "my name is Ada" in disk.exchange_text)
    assert issues(home) == set()


async def test_conversations_of_before_come_back_when_the_store_can_be_opened_again(
    *,
    home: HomeAssistant,
    entry,
    say: SayFn,
    get_agent: GetAgentFn,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    disk: Disk,
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE_SECONDS", 0.01)
    await say("my name is Ada", "earlier")
    await say("consider that the dog is Rex", "mine")
    await say("consider that the cat is Tom", "mine")
    await block_store(home, entry, disk)
    await say("consider that the bird is Kim", "mine")

    disk(unblock)
    await say("hello there", "other")
    await until(lambda: "earlier" in get_agent(entry).windows)

    assert "Ada" in get_speech(await say("what is my name?", "earlier"))
    await say("hello there", "mine")
    sent = str(model_server.requests[-1].body)
    assert [name for name in ("Rex", "Tom", "Kim") if name in sent] == ["Rex", "Tom", "Kim"]
    assert [name for name in ("Rex", "Tom", "Kim") if name in disk.exchange_text] == ["Rex", "Tom", "Kim"]


async def test_totals_of_before_go_on_when_the_store_can_be_opened_again(
    *, home: HomeAssistant, entry, say: SayFn, figure, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE_SECONDS", 0.01)
    await say("my name is Ada", "mine")
    await block_store(home, entry, disk)
    await say("my name is Ada", "mine")

    disk(unblock)
    await say("hello there", "mine")

    await until(lambda: figure("turns_model") == "3")
    assert totals(disk, entry) == [(3,)]


async def test_account_is_removed_though_its_store_cannot_be(home: HomeAssistant, entry, disk: Disk) -> None:
    await block_store(home, entry, disk)

    await home.config_entries.async_remove(entry.entry_id)

    assert home.config_entries.async_entries(DOMAIN) == []


async def test_what_is_no_text_costs_no_other_conversation(
    *, home: HomeAssistant, entry, say: SayFn, get_agent: GetAgentFn, caplog: pytest.LogCaptureFixture
) -> None:
    await say("my name is Ada", "mine")
    async with begin_turn(get_agent(entry).windows, "broken") as window:
        window.open("half a character: \ud800")
        window.close()

    await restart(home, entry)

    assert "mine" in ids(get_agent(entry))
    assert "half a character" not in caplog.text


def count_rows_of(disk: Disk, owner: str) -> list[int]:
    """Return the number of conversations, values, turn records and turns that belong to an agent or account."""
    counts = (
        "SELECT count(*) FROM conversation WHERE agent = ?",
        "SELECT count(*) FROM value WHERE owner = ?",
        "SELECT count(*) FROM turn_record WHERE figures ->> 'agent' = ?",
        "SELECT count(*) FROM turn WHERE agent = ?",
    )
    return [disk.execute(count, owner)[0][0] for count in counts]


async def test_removed_agent_takes_its_conversations_along(
    home: HomeAssistant, entry, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    await say("hello there", "mine")
    await restart(home, entry)
    await say("hello again", "mine")
    (agent_id,) = entry.subentries
    assert 0 not in count_rows_of(disk, agent_id)

    await remove_agent(home, entry, agent_id)
    await flush_store(home)

    assert count_rows_of(disk, agent_id) == [0, 0, 0, 0]
    assert disk.exchange_text == ""


async def test_removed_account_takes_everything_along(
    home: HomeAssistant, entry, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    other = await set_up(account={CONF_URL: f"{entry.data[CONF_URL]}/"})
    await say("my name is Ada", "mine")
    (agent_id,) = entry.subentries

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert count_rows_of(disk, agent_id) == count_rows_of(disk, entry.entry_id) == [0, 0, 0, 0]
    assert ("models",) in disk.execute("SELECT name FROM value WHERE owner = ?", other.entry_id)


@pytest.mark.parametrize("is_set_up", [True, False])
async def test_last_account_without_memory_takes_the_file_along_and_what_was_set_aside(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, *, is_set_up: bool
) -> None:
    await say("my name is Ada", "mine")
    disk(lambda path: path.with_name(f"{path.name}.damaged").write_text("what was said"))
    if not is_set_up:
        await stop(home, entry)

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert disk.files() == []


async def test_account_that_was_never_set_up_since_the_start_takes_its_conversations_along(
    *, home: HomeAssistant, entry, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    other = await set_up(account={CONF_URL: f"{entry.data[CONF_URL]}/"})
    await say("my name is Ada", "mine")
    (agent_id,) = entry.subentries
    await stop(home, entry, other)
    await start(home, other)

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert count_rows_of(disk, agent_id) == count_rows_of(disk, entry.entry_id) == [0, 0, 0, 0]
    assert disk.exchange_text == ""


async def test_account_that_was_removed_while_nothing_was_set_up_leaves_nothing_behind(
    *, home: HomeAssistant, entry, set_up: SetUpFn, say: SayFn, disk: Disk
) -> None:
    other = await set_up(account={CONF_URL: f"{entry.data[CONF_URL]}/"})
    await say("my name is Ada", "mine")
    (agent_id,) = entry.subentries
    await stop(home, entry, other)
    disk.execute("UPDATE conversation SET agent = 'removed'")
    disk.execute("UPDATE value SET owner = 'removed' WHERE owner = ?", agent_id)

    await start(home, entry)
    await flush_store(home)

    assert (count_rows_of(disk, "removed")[:2], disk.exchange_text) == ([0, 0], "")


async def test_conversations_of_other_accounts_stay(
    home: HomeAssistant, entry, set_up: SetUpFn, say: SayFn, get_agent: GetAgentFn
) -> None:
    other = await set_up(account={CONF_URL: f"{entry.data[CONF_URL]}/"})
    await say("my name is Ada", "mine")

    await home.config_entries.async_remove(other.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    await restart(home, entry)

    assert ids(get_agent(entry)) == ["mine"]
