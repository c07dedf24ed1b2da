"""Stored conversations: restored unchanged, never lost silently, and deleted with their agent."""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
import json
from pathlib import Path
import time
from typing import Any

from homeassistant.components import conversation
from homeassistant.const import CONF_URL, EVENT_HOMEASSISTANT_STOP
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_EXPIRY_HOURS,
    CONF_HISTORY_TOKENS,
    CONF_MEMORY,
    CONF_PERSISTENCE,
    CONF_SUMMARIZE,
    DOMAIN,
    Persistence,
)
from demo.model_server import ModelServer, call

from .account_forms import open_options
from .actions import act
from .conftest import AGENT, Say, SetUp, ShoppingList, speech, start, stop, until, written
from .more_agents import remove_agent
from .real_files import _never_blocks, hass_config_dir, hass_storage

__all__ = ["_never_blocks", "hass_config_dir", "hass_storage"]

STORED = {"version": 1, "minor_version": 1, "key": "windows", "data": {"conversations": []}}
BROKEN = [
    None,
    {"key": "mine"},
    {"window": {"format": DOMAIN, "version": 1}},
    {"key": "mine", "window": {"format": DOMAIN, "version": 1}},
    {"key": "mine", "window": {"format": DOMAIN, "version": 2}},
]


def elsewhere[T](call: Callable[[], T]) -> T:
    """Return what a call returns in a thread of its own: the detector has no eye for whose file it is."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


class Disk:
    """What is on the disk, and the ends and the starts of Home Assistant, as far as an account sees them."""

    def __init__(self, home: HomeAssistant, folder: Path) -> None:
        self._home = home
        self._folder = folder

    def file(self, entry: MockConfigEntry) -> Path:
        """Return where the conversations of an account's only agent are kept."""
        (agent_id,) = entry.subentries
        return self._folder / f"{DOMAIN}.windows.{agent_id}"

    def aside(self, entry: MockConfigEntry) -> Path:
        """Return where a damaged file goes."""
        return self.file(entry).with_name(f"{self.file(entry).name}.damaged")

    def write(self, entry: MockConfigEntry, content: str) -> None:
        """Put something else where the conversations are kept."""
        elsewhere(lambda: self._folder.mkdir(exist_ok=True))
        elsewhere(lambda: self.file(entry).write_text(content))

    def read(self, entry: MockConfigEntry) -> Any:
        """Return what is in the file."""
        return json.loads(self.read_text(self.file(entry)))

    def read_text(self, path: Path) -> str:
        """Return the text of a file."""
        return elsewhere(path.read_text)

    def files(self) -> list[str]:
        """Return the names of all files with conversations."""
        return sorted(path.name for path in elsewhere(lambda: list(self._folder.glob(f"{DOMAIN}.windows.*"))))

    def issues(self) -> list[ir.IssueEntry]:
        """Return our repair issues."""
        return [issue for (domain, _), issue in ir.async_get(self._home).issues.items() if domain == DOMAIN]

    async def stop(self, entry: MockConfigEntry) -> None:
        """Unload an account, have everything written, and forget everything that was in memory."""
        await stop(self._home, entry)

    async def start(self, entry: MockConfigEntry) -> None:
        """Set an account up as after a start."""
        await start(self._home, entry)

    async def restart(self, entry: MockConfigEntry) -> None:
        """Stop and start."""
        await self.stop(entry)
        await self.start(entry)

    async def restart_with(self, entry: MockConfigEntry, content: str) -> None:
        """Stop, put something else where the conversations are kept, and start."""
        await self.stop(entry)
        self.write(entry, content)
        await self.start(entry)

    async def restart_blocked(self, entry: MockConfigEntry) -> None:
        """Stop, have a folder where the conversations are kept, and start."""
        await self.stop(entry)
        elsewhere(lambda: self.file(entry).mkdir(parents=True))
        await self.start(entry)

    @asynccontextmanager
    async def changed(self, entry: MockConfigEntry) -> AsyncIterator[Any]:
        """Stop, have what is in the file changed, and start."""
        await self.stop(entry)
        content = self.read(entry)
        yield content
        self.write(entry, json.dumps(content))
        await self.start(entry)


@pytest.fixture
def disk(home: HomeAssistant, hass_config_dir: str) -> Disk:
    """Return the disk of the home."""
    return Disk(home, Path(hass_config_dir) / ".storage")


def sent(model_server: ModelServer) -> list[str]:
    """Return the messages of the newest request, each as its bytes."""
    return [json.dumps(message) for message in model_server.requests[-1].body["messages"]]


async def test_conversation_goes_on_after_a_restart_with_the_same_bytes(
    home: HomeAssistant, entry, say: Say, model_server: ModelServer, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    await say("I would like the hall light switched on", "mine")
    answered = speech(await say("tell me a story about the sea", "mine"))
    before = sent(model_server)

    await disk.restart(entry)

    assert "Ada" in speech(await say("what is my name?", "mine"))
    after = sent(model_server)
    assert after[: len(before)] == before
    assert after[len(before) : -1] == [json.dumps({"role": "assistant", "content": answered})]


@pytest.mark.parametrize("server", ["deepseek", "openrouter", "google"])
async def test_server_gets_back_after_a_restart_what_it_wrote(
    server: str, entry, say: Say, model_server: ModelServer, disk: Disk
) -> None:
    model_server.change(shapes=(server,))
    await say("my name is Ada", "mine")
    await say("I would like the hall light switched on", "mine")

    await disk.restart(entry)

    assert "Ada" in speech(await say("what is my name?", "mine"))
    assert [record.status for record in model_server.requests] == [200] * 4


async def test_turn_of_the_last_moment_is_written(home: HomeAssistant, entry, disk: Disk) -> None:
    await conversation.async_converse(home, "turn on kitchen light", "mine", Context(), "en", AGENT)

    home.bus.async_fire(EVENT_HOMEASSISTANT_STOP)
    await written(home)

    assert "turn on kitchen light" in disk.read_text(disk.file(entry))


async def test_summary_is_sent_after_a_restart_as_before(
    *, set_up: SetUp, say: Say, model_server: ModelServer, disk: Disk, agent_of
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 600, CONF_SUMMARIZE: True}, **{CONF_MEMORY: False})
    await say("my name is Ada", "mine")
    (window,) = agent_of(entry).windows.newest_first()
    while not window.stats().trims:
        await say("tell me a story in 120 words", "mine")
    await until(lambda: "summary" in window.stats().tag_distribution)
    await say("who am I?", "mine")
    before = sent(model_server)

    await disk.restart(entry)

    assert "Ada" in speech(await say("what is my name?", "mine"))
    assert sent(model_server)[: len(before)] == before
    (restored,) = agent_of(entry).windows.newest_first()
    assert restored.stats().tag_distribution["summary"] == 1


async def test_figures_are_the_same_after_a_restart(entry, say: Say, agent_of, disk: Disk) -> None:
    await say("turn on kitchen light", "mine")
    await say("my name is Ada", "mine")
    (before,) = agent_of(entry).windows.newest_first()

    await disk.restart(entry)

    (after,) = agent_of(entry).windows.newest_first()
    assert after is not before
    assert after.snapshot() == before.snapshot()
    assert after.stats() == before.stats()


async def test_newest_conversation_is_still_the_newest(entry, say: Say, agent_of, disk: Disk) -> None:
    for conversation_id in ("one", "two", "one"):
        await say("my name is Ada", conversation_id)

    await disk.restart(entry)

    assert [window.conversation_id for window in agent_of(entry).windows.newest_first()] == ["one", "two"]


async def test_conversation_is_still_nobody_elses(entry, say: Say, disk: Disk) -> None:
    ada, grace = Context(user_id="ada"), Context(user_id="grace")
    await say("my name is Ada", "mine", context=ada)

    await disk.restart(entry)

    assert "Ada" not in speech(await say("what is my name?", "mine", context=grace))
    assert "Ada" not in speech(await say("what is my name?", "mine"))
    assert "Ada" in speech(await say("what is my name?", "mine", context=ada))


async def test_conversation_of_a_device_goes_on(set_up: SetUp, say: Say, disk: Disk) -> None:
    entry = await set_up(scope="device")
    await say("my name is Ada", None, device_id="satellite")

    await disk.restart(entry)

    assert "Ada" in speech(await say("what is my name?", None, device_id="satellite"))


async def test_sensors_show_what_came_back(entry, say: Say, figure, disk: Disk) -> None:
    await say("my name is Ada", "mine")

    await disk.restart(entry)

    assert figure("active_conversations") == "1"
    assert figure("window_messages") == "2"


@pytest.mark.parametrize("persistence", Persistence)
async def test_only_what_was_chosen_is_kept(
    set_up: SetUp, say: Say, agent_of, disk: Disk, persistence: Persistence
) -> None:
    entry = await set_up(options={CONF_PERSISTENCE: persistence})
    await say("my name is Ada", "mine")
    session = str((await say("my name is Grace", None)).conversation_id)

    await disk.restart(entry)

    kept = {Persistence.OFF: set(), Persistence.OWN: {"mine"}, Persistence.ALL: {"mine", session}}
    assert {window.conversation_id for window in agent_of(entry).windows.newest_first()} == kept[persistence]


async def test_turn_after_a_quiet_time_is_written_by_itself(home: HomeAssistant, entry, disk: Disk) -> None:
    await conversation.async_converse(home, "turn on kitchen light", "mine", Context(), "en", AGENT)

    await until(lambda: disk.files() != [])

    assert "turn on kitchen light" in disk.read_text(disk.file(entry))


async def test_nothing_is_written_before_anything_is_said(home: HomeAssistant, entry, disk: Disk) -> None:
    agent = next(iter(entry.runtime_data.agents.values()))
    agent.expire()
    await written(home)

    assert disk.files() == []


async def test_file_is_left_alone_while_nothing_changes(home: HomeAssistant, entry, say: Say, disk: Disk) -> None:
    await say("my name is Ada", "mine")
    before = elsewhere(disk.file(entry).stat).st_ino
    await disk.restart(entry)

    for agent in entry.runtime_data.agents.values():
        agent.expire()
    await written(home)

    assert elsewhere(disk.file(entry).stat).st_ino == before


async def test_only_the_owner_of_home_assistant_can_read_the_file(entry, say: Say, disk: Disk) -> None:
    await say("my name is Ada", "mine")

    await disk.stop(entry)

    assert elsewhere(disk.file(entry).stat).st_mode & 0o077 == 0


async def test_persistence_that_is_switched_off_leaves_the_totals_only_at_once(
    home: HomeAssistant, entry, say: Say, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    assert "Ada" in disk.read_text(disk.file(entry))

    form = await open_options(home, entry)
    await form(history_tokens=8000, trim_share=25, expiry_hours=24, persistence="off")

    assert disk.read(entry)["data"]["conversations"] == []
    assert disk.read(entry)["data"]["totals"]["turns_model"] == 1
    assert "Ada" in speech(await say("what is my name?", "mine"))


async def test_persistence_that_is_switched_on_keeps_what_is_there(
    home: HomeAssistant, set_up: SetUp, say: Say, disk: Disk
) -> None:
    entry = await set_up(options={CONF_PERSISTENCE: "off"})
    await say("my name is Ada", "mine")

    home.config_entries.async_update_entry(entry, options={CONF_PERSISTENCE: "own"})
    await home.async_block_till_done()
    await disk.restart(entry)

    assert "Ada" in speech(await say("what is my name?", "mine"))


async def test_conversations_that_are_no_longer_wanted_go_at_the_next_start(
    home: HomeAssistant, entry, say: Say, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    await disk.stop(entry)
    home.config_entries.async_update_entry(entry, options={CONF_PERSISTENCE: "off"})

    await disk.start(entry)

    assert disk.read(entry)["data"]["conversations"] == []
    assert disk.read(entry)["data"]["totals"]["turns_model"] == 1


async def test_policy_in_force_applies_to_what_comes_back(
    home: HomeAssistant, entry, say: Say, agent_of, disk: Disk
) -> None:
    for _ in range(5):
        await say("tell me a story about the sea in 250 words", "mine")
    await disk.stop(entry)
    home.config_entries.async_update_entry(entry, options={CONF_HISTORY_TOKENS: 1000})

    await disk.start(entry)

    (window,) = agent_of(entry).windows.newest_first()
    assert window.stats().max_tokens == 1000
    assert window.stats().current_tokens <= 750


async def test_time_while_home_assistant_was_off_counts_as_idle(
    home: HomeAssistant, set_up: SetUp, say: Say, agent_of, disk: Disk
) -> None:
    entry = await set_up(options={CONF_EXPIRY_HOURS: 1})
    await say("my name is Ada", "old")
    await say("my name is Grace", "new")

    async with disk.changed(entry) as content:
        content["data"]["conversations"][0]["used"] = time.time() - 3700

    assert [window.conversation_id for window in agent_of(entry).windows.newest_first()] == ["new"]


NO_CONVERSATIONS = (
    "",
    "{",
    "null",
    "{}",
    "[]",
    json.dumps(STORED)[:-3],
    json.dumps(STORED | {"version": "1"}),
    json.dumps(STORED | {"version": 2}),
    json.dumps(STORED | {"version": 0}),
    json.dumps(STORED | {"data": None}),
    json.dumps(STORED | {"data": {}}),
    json.dumps(STORED | {"data": {"conversations": {}}}),
)
COUNTS = {"readable": "0", "unreadable": str(len(BROKEN))}


@pytest.mark.parametrize(
    ("content", "issue", "counts"),
    [
        *((content, "conversations_damaged", {}) for content in NO_CONVERSATIONS),
        (json.dumps(STORED | {"data": {"conversations": BROKEN}}), "some_conversations_damaged", COUNTS),
    ],
)
async def test_damaged_file_is_set_aside_and_told(
    *, entry, say: Say, disk: Disk, content: str, issue: str, counts: dict[str, str]
) -> None:
    await say("my name is Ada", "mine")

    await disk.restart_with(entry, content)

    aside = disk.aside(entry)
    assert aside.name in disk.files()
    assert disk.read_text(aside) == content
    assert [(each.translation_key, each.translation_placeholders) for each in disk.issues()] == [
        (issue, {"agent": "Ada", "path": str(aside), **counts})
    ]
    assert "Ada" not in speech(await say("what is my name?", "mine"))


async def test_unreadable_conversation_costs_only_itself(entry, say: Say, agent_of, disk: Disk) -> None:
    for conversation_id in ("one", "two", "three"):
        await say("my name is Ada", conversation_id)

    async with disk.changed(entry) as content:
        del content["data"]["conversations"][1]["window"]["exchanges"][0]["messages"][0]["content"]

    assert [window.conversation_id for window in agent_of(entry).windows.newest_first()] == ["three", "one"]
    assert json.loads(disk.read_text(disk.aside(entry))) == content
    assert [issue.translation_placeholders for issue in disk.issues()] == [
        {"agent": "Ada", "path": str(disk.aside(entry)), "readable": "2", "unreadable": "1"}
    ]
    assert [each["key"] for each in disk.read(entry)["data"]["conversations"]] == ["one", "three"]


async def test_what_was_restored_beside_an_unreadable_conversation_is_restored_again(
    entry, say: Say, agent_of, disk: Disk
) -> None:
    await say("my name is Ada", "one")
    async with disk.changed(entry) as content:
        content["data"]["conversations"].append(None)

    await disk.restart(entry)

    assert [window.conversation_id for window in agent_of(entry).windows.newest_first()] == ["one"]
    assert len(disk.files()) == 2
    assert len(disk.issues()) == 1


async def test_old_conversation_that_was_imported_lives_on_after_a_restart(
    home: HomeAssistant, entry, say: Say, agent_of, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    exported = await act(home, "export_conversation", conversation_id="mine")
    for message in exported["conversation"]["exchanges"][0]["messages"]:
        message["created"] = time.time() - 30 * 24 * 60 * 60
    await act(home, "import_conversation", conversation_id="imported", **exported)
    await act(home, "fork_conversation", conversation_id="imported", new_conversation_id="forked")

    await disk.restart(entry)

    kept = [window.conversation_id for window in agent_of(entry).windows.newest_first()]
    assert kept == ["forked", "imported", "mine"]


async def test_conversation_whose_id_has_a_separator_is_the_same_after_a_restart(
    entry, say: Say, agent_of, disk: Disk
) -> None:
    await say("my name is Ada", "a\x1fb")

    await disk.restart(entry)

    assert "Ada" in speech(await say("what is my name?", "a\x1fb"))


async def test_conversation_whose_id_is_longer_than_any_is_not_restored(
    home: HomeAssistant, entry, say: Say, agent_of, disk: Disk
) -> None:
    await say("my name is Ada", "mine")

    async with disk.changed(entry) as content:
        (mine,) = content["data"]["conversations"]
        content["data"]["conversations"].append(mine | {"key": "x" * 1_000_000})
    await written(home)

    assert [window.conversation_id for window in agent_of(entry).windows.newest_first()] == ["mine"]
    assert [each["key"] for each in disk.read(entry)["data"]["conversations"]] == ["mine"]


@pytest.mark.parametrize("used", [0, 3600, time.time() + 10**6], ids=["1970", "an hour after", "in the future"])
async def test_conversation_of_a_clock_that_was_wrong_is_used_now(
    *, home: HomeAssistant, set_up: SetUp, say: Say, agent_of, disk: Disk, used: float
) -> None:
    entry = await set_up(options={CONF_EXPIRY_HOURS: 1})
    await say("my name is Ada", "mine")

    async with disk.changed(entry) as content:
        content["data"]["conversations"][0]["used"] = used

    windows = agent_of(entry).windows
    assert windows.now() - windows.last_used("mine") < 3600
    await say("turn on kitchen light", "another")
    assert abs(disk.read(entry)["data"]["conversations"][0]["used"] - time.time()) < 3600


@pytest.mark.long
async def test_write_that_failed_is_repeated_though_nobody_speaks(
    *, home: HomeAssistant, entry, figure, say: Say, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    monkeypatch.setattr("custom_components.windowed_conversation.bridge.timely_store._FIRST_RETRY", 0.01)
    elsewhere(lambda: disk.file(entry).mkdir(parents=True))
    await say("my name is Ada", "mine")
    assert figure("turns_model") == "0"

    elsewhere(disk.file(entry).rmdir)
    await until(lambda: figure("turns_model") == "1")

    assert "my name is Ada" in disk.read_text(disk.file(entry))


async def test_store_that_cannot_be_opened_turns_keeping_off_and_the_account_works(
    entry, say: Say, figure, disk: Disk
) -> None:
    await disk.restart_blocked(entry)

    assert [(issue.translation_key, issue.translation_placeholders) for issue in disk.issues()] == [
        ("storage_unavailable", {"agent": "Ada", "path": str(disk.file(entry))})
    ]
    await say("my name is Ada", "mine")
    assert "Ada" in speech(await say("what is my name?", "mine"))
    assert figure("turns_model") == "2"
    assert elsewhere(lambda: list(disk.file(entry).iterdir())) == []


async def test_issue_goes_when_the_store_can_be_opened_again(entry, say: Say, disk: Disk) -> None:
    await disk.restart_blocked(entry)
    assert len(disk.issues()) == 1

    elsewhere(disk.file(entry).rmdir)
    await disk.restart(entry)

    assert disk.issues() == []
    await say("my name is Ada", "mine")
    assert "my name is Ada" in disk.read_text(disk.file(entry))


async def test_file_of_what_was_learned_that_cannot_be_opened_is_told_and_the_account_works(
    home: HomeAssistant, entry, say: Say, disk: Disk
) -> None:
    place = disk.file(entry).with_name(f"{DOMAIN}.calibration.{entry.entry_id}")
    await disk.stop(entry)
    elsewhere(lambda: place.unlink(missing_ok=True))
    elsewhere(lambda: place.mkdir(parents=True))

    await disk.start(entry)

    assert [(issue.translation_key, issue.translation_placeholders) for issue in disk.issues()] == [
        ("calibration_unavailable", {"account": "Server", "path": str(place)})
    ]
    await say("my name is Ada", "mine")
    assert "Ada" in speech(await say("what is my name?", "mine"))
    await home.config_entries.async_remove(entry.entry_id)
    assert disk.issues() == []


async def test_account_is_removed_though_its_store_cannot_be(home: HomeAssistant, entry, disk: Disk) -> None:
    await disk.restart_blocked(entry)

    await home.config_entries.async_remove(entry.entry_id)

    assert home.config_entries.async_entries(DOMAIN) == []


async def test_damaged_files_never_replace_each_other(entry, disk: Disk) -> None:
    for content in ("first", "second"):
        await disk.restart_with(entry, content)

    assert disk.files() == [disk.file(entry).name, disk.aside(entry).name, f"{disk.aside(entry).name}.2"]
    assert len(disk.issues()) == 1


async def test_issue_goes_with_the_file_that_was_set_aside(entry, disk: Disk) -> None:
    await disk.restart_with(entry, "damaged")
    await disk.restart(entry)
    assert len(disk.issues()) == 1

    elsewhere(disk.aside(entry).unlink)
    await disk.restart(entry)

    assert disk.issues() == []


async def test_file_of_a_later_minor_version_is_migrated(entry, say: Say, disk: Disk) -> None:
    await say("my name is Ada", "mine")

    async with disk.changed(entry) as content:
        content["minor_version"] = 7

    assert "Ada" in speech(await say("what is my name?", "mine"))
    assert disk.read(entry)["minor_version"] == 1


async def test_what_is_no_text_costs_its_conversation_only(
    entry, say: Say, agent_of, caplog: pytest.LogCaptureFixture, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    async with agent_of(entry).windows.turn("broken") as window:
        window.open("half a character: \ud800")
        window.close()

    await disk.restart(entry)

    assert [window.conversation_id for window in agent_of(entry).windows.newest_first()] == ["mine"]
    assert "half a character" not in caplog.text


async def test_removed_agent_takes_its_file_along(home: HomeAssistant, entry, say: Say, disk: Disk) -> None:
    await say("my name is Ada", "mine")
    await disk.restart(entry)
    await say("what is my name?", "mine")

    await remove_agent(home, entry, next(iter(entry.subentries)))
    await written(home)

    assert disk.files() == []


async def test_removed_account_takes_its_files_along(home: HomeAssistant, entry, say: Say, disk: Disk) -> None:
    await say("my name is Ada", "mine")
    await disk.restart(entry)
    elsewhere(lambda: disk.aside(entry).write_text("what was said"))

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert disk.files() == []


async def test_account_that_was_never_set_up_since_the_start_takes_its_files_along(
    home: HomeAssistant, entry, say: Say, disk: Disk
) -> None:
    await say("my name is Ada", "mine")
    await disk.stop(entry)
    assert len(disk.files()) == 1

    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done()

    assert disk.files() == []


async def test_files_of_other_accounts_stay(home: HomeAssistant, entry, set_up: SetUp, say: Say, disk: Disk) -> None:
    other = await set_up(account={CONF_URL: f"{entry.data[CONF_URL]}/"})
    await say("my name is Ada", "mine")
    await disk.restart(entry)

    await home.config_entries.async_remove(other.entry_id)
    await home.async_block_till_done()

    assert disk.files() == [disk.file(entry).name]


async def test_what_was_done_before_a_break_is_known_after_a_restart(
    *, disk: Disk, shopping: ShoppingList, set_up: SetUp, say: Say, model_server: ModelServer
) -> None:
    entry = await set_up()
    model_server.script(call("HassListAddItem", item="milk", name="shopping list"))
    shopping.on_added = lambda: model_server.fault("cut_mid_stream", 1)
    await say("we are out of milk")

    await disk.restart(entry)

    await say("did you add it?")

    *_, made, result, _, _ = model_server.requests[-1].body["messages"]
    assert '"item": "milk"' in made["tool_calls"][0]["function"]["arguments"]
    assert "action_done" in result["content"]
    assert shopping.summaries == ["Milk"]
