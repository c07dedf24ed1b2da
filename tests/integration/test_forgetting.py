"""Tests that forgetting reaches memory, windows, files, states, logs and the next request."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
import json
from pathlib import Path
import re
import sqlite3
from typing import Any

from homeassistant.core import Context, Event, HomeAssistant, callback
from homeassistant.exceptions import ServiceValidationError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.agents.account import async_agent_states
from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.const import CONF_MEMORY, DOMAIN
from custom_components.windowed_conversation.diagnostics import async_get_config_entry_diagnostics
from custom_components.windowed_conversation.memory.core import KINDS
from demo.model_server import ModelServer, skills
from demo.model_server.conversation import Answer, Call, Conversation
from demo.model_server.delivery import AnswerHold
from demo.model_server.rules import Rule, compile_pattern

from .actions import act, export
from .conftest import SayFn, SetUpFn, flush_store, get_speech, start, stop, until
from .dashboard import PipelineClient, ending
from .real_files import _never_blocks, hass_config_dir, hass_storage
from .remembered import memory_of
from .store_file import Disk
from .summarizing import SMALL, STORY, asked_for

__all__ = ["_never_blocks", "hass_config_dir", "hass_storage"]

SECRET = "swordfish"
TOLD = f"the wifi password is {SECRET}"

type End = Callable[[HomeAssistant, MockConfigEntry], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def _forgetful_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the model call the `forget` tool when a user asks for it in words that match none of our sentences."""

    def unlearn(found: re.Match[str], conversation: Conversation) -> Answer:
        done = Answer(text=f"You need not worry about {found['what']} any more.")
        call = Call("forget", {"query": found["what"]})
        return done if conversation.tool_rounds else Answer(calls=(call,))

    rule = Rule(compile_pattern(r"please unlearn (?P<what>.+)"), unlearn)
    monkeypatch.setattr(skills, "_RULES", (rule, *skills._RULES))


def run_in_thread[T](call: Callable[[], T]) -> T:
    """Return the result of a call in another thread, because the detector reports blocking calls in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def holding(folders: Iterable[Path]) -> list[str]:
    """Return the names of the files that contain the secret."""
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return [path.name for path in files if SECRET.encode() in path.read_bytes().lower()]


def indexed(path: Path) -> set[str]:
    """Return the terms in the search index of the memory."""
    connection = sqlite3.connect(path)
    try:
        found = [connection.execute(f"SELECT term FROM {kind}_terms").fetchall() for kind in KINDS]
    finally:
        connection.close()
    return {term for rows in found for (term,) in rows}


@pytest.fixture
def files(hass_config_dir: str, store_path: Path) -> Callable[[], list[str]]:
    """Return a function that lists the names of the files that contain the secret."""
    return lambda: run_in_thread(lambda: holding((Path(hass_config_dir), store_path.parent)))


async def windows_of(home: HomeAssistant) -> str:
    """Return the content of all windows, including those not loaded yet."""
    kept = async_agent_states(home).values()
    windows = [await each.windows.load(key) for each in kept for key in each.windows.stats()]
    return str([window.messages() for window in windows if window is not None])


def asked(model_server: ModelServer) -> str:
    """Return the newest request as JSON."""
    return json.dumps(model_server.requests[-1].body)


async def unload(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await home.config_entries.async_unload(entry.entry_id)
    await flush_store(home)


async def forget(say: SayFn, **more: Any) -> None:
    assert "I've deleted" in get_speech(await say(f"forget that {TOLD}", "mine", **more))


async def test_what_was_forgotten_by_words_is_nowhere(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    say: SayFn,
    model_server: ModelServer,
    store_path: Path,
    files: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    await say(f"by the way, {TOLD}", "mine")
    await say(f"remember that {TOLD}", "mine")
    await say("what is the wifi password?", "other")
    assert SECRET in asked(model_server)
    assert SECRET in run_in_thread(lambda: str(indexed(store_path)))
    assert files() != []

    await forget(say)

    assert files() == []
    assert SECRET not in run_in_thread(lambda: str(indexed(store_path)))
    assert SECRET not in await windows_of(home)
    assert SECRET not in str([state.as_dict() for state in home.states.async_all()])
    assert SECRET not in str(await async_get_config_entry_diagnostics(home, entry))
    assert SECRET not in str([r.getMessage() for r in caplog.records if r.name.startswith("custom_components")])
    await say("hello there", "other")
    assert SECRET not in asked(model_server)


async def test_what_a_model_forgot_in_its_turn_is_nowhere_after_it(
    *, home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, files: Callable[[], list[str]]
) -> None:
    await say(f"remember that {TOLD}", "other")
    await say("hello there", "mine")

    answer = get_speech(await say(f"please unlearn {TOLD}", "mine"))

    assert answer == f"You need not worry about {TOLD} any more."
    assert (files(), SECRET in await windows_of(home)) == ([], False)
    await say("hello there", "mine")
    assert SECRET not in asked(model_server)


async def test_what_does_not_repeat_it_stays_in_a_window_without_an_owner(
    home: HomeAssistant, entry, say: SayFn
) -> None:
    await say("my name is Ada", "mine")
    await say(f"remember that {TOLD}", "other")
    await say("hello there", "mine")

    await forget(say)

    messages = (await act(home, "get_conversation", conversation_id="mine"))["messages"]
    said = [each["content"].partition("\n\n")[2] for each in messages if each["role"] == "user"]
    assert said == ["my name is Ada", "hello there"]


async def test_turn_in_progress_is_forgotten_when_it_ends(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, files: Callable[[], list[str]]
) -> None:
    await say(f"remember that {TOLD}", "other")
    hold = model_server.hold(after_words=3)
    turn = asyncio.create_task(say(f"by the way, {TOLD}", "slow"))
    await until(lambda: len(model_server.requests) > 0)

    await forget(say)

    hold.release()
    await turn
    assert (files(), SECRET in await windows_of(home)) == ([], False)


async def test_summary_that_is_on_its_way_is_cancelled(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, files: Callable[[], list[str]]
) -> None:
    await set_up(options=SMALL)
    await say(f"remember that {TOLD}", "test")
    holds = list[AnswerHold]()

    @callback
    def hold(_event: Event) -> None:
        """Make the server hold its answers from now on. The next request is the one for the summary."""
        holds.append(model_server.hold(after_words=0))

    home.bus.async_listen_once(f"{DOMAIN}_trimmed", hold)
    while not holds:
        await say(STORY)
    await until(lambda: len(asked_for(model_server)) == 1)
    assert SECRET in str(asked_for(model_server))

    await forget(say)
    holds[0].release()
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert (files(), SECRET in await windows_of(home)) == ([], False)


@pytest.mark.parametrize("end", [unload, stop], ids=["unloaded", "not set up since the start"])
async def test_conversations_of_an_account_that_is_not_set_up_are_reached(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, files: Callable[[], list[str]], end: End
) -> None:
    away = await set_up()
    await say("my name is Ada", "mine")
    await say(f"remember that {TOLD}", "mine")
    await end(home, away)
    await set_up()

    forgotten = await async_forget_everywhere(home, query="wifi password")

    assert (len(forgotten.facts), files()) == (1, [])
    assert await home.config_entries.async_setup(away.entry_id)
    assert "Ada" in await windows_of(home)


async def test_what_the_pipeline_answered_before_does_not_enter_a_window_any_more(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, hass_ws_client
) -> None:
    dashboard = PipelineClient(await hass_ws_client(home))
    pipeline = await dashboard.create(prefer_local_intents=True)
    answered = ending(await dashboard.run(pipeline, "turn on kitchen light"))
    await say(f"remember that {TOLD}", "mine")
    await forget(say)

    await dashboard.run(pipeline, "hello there", answered["intent_output"]["conversation_id"])

    assert "turn on kitchen light" not in asked(model_server)


async def test_what_was_set_aside_of_a_damaged_file_is_deleted(
    entry, say: SayFn, disk: Disk, files: Callable[[], list[str]]
) -> None:
    await say(f"remember that {TOLD}", "mine")
    disk(lambda path: path.with_name(f"{path.name}.damaged").write_text(f"half of it: {SECRET}"))

    await forget(say)

    assert files() == []


async def test_text_that_was_set_aside_because_it_is_damaged_is_deleted(
    *, home: HomeAssistant, entry, say: SayFn, disk: Disk, files: Callable[[], list[str]]
) -> None:
    await say(f"consider that {TOLD}", "mine")
    await stop(home, entry)
    disk.corrupt("the wifi password")
    await start(home, entry)
    assert disk.execute("SELECT count(*) > 0 FROM set_aside") == [(1,)]
    await say("remember that the bins go out on Friday", "mine")

    await say("forget that the bins go out on Friday", "mine")

    assert disk.execute("SELECT count(*) FROM set_aside") == [(0,)]
    assert files() == []


async def test_removed_person_takes_their_conversations_along(
    home: HomeAssistant, entry, say: SayFn, files: Callable[[], list[str]]
) -> None:
    anna = MockUser(name="Anna").add_to_hass(home)
    await say(f"consider that {TOLD}", "hers", context=Context(user_id=anna.id))
    await say("my name is Ada", "mine")

    await home.auth.async_remove_user(anna)
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert files() == []
    assert "Ada" in await windows_of(home)


async def test_import_brings_nothing_back(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, files: Callable[[], list[str]]
) -> None:
    await say(f"by the way, {TOLD}", "mine")
    await say(f"remember that {TOLD}", "mine")
    exported: list[str] = await memory_of(home).async_read(lambda memory: list(memory.export()), [])
    await forget(say)

    loaded = await memory_of(home).async_change(lambda memory: memory.load_lines(exported))

    assert (loaded.added_count, loaded.refused_count) == (0, 2)
    assert files() == []
    await say("what is the wifi password?", "new")
    assert SECRET not in asked(model_server)


async def test_import_of_a_conversation_brings_nothing_back(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, files: Callable[[], list[str]]
) -> None:
    await say("how are you?", "mine")
    await say(f"by the way, {TOLD}", "mine")
    exported = await export(home, "mine")
    await forget(say)

    await act(home, "import_conversation", conversation_id="again", export=exported)
    await say("what is the wifi password?", "again")

    assert "how are you?" in asked(model_server)
    assert SECRET not in asked(model_server)
    assert files() == []


async def test_import_of_a_conversation_of_which_nothing_may_stay_is_refused(
    home: HomeAssistant, entry, say: SayFn
) -> None:
    await say(f"by the way, {TOLD}", "mine")
    exported = await export(home, "mine")
    await forget(say)

    with pytest.raises(ServiceValidationError) as raised:
        await act(home, "import_conversation", conversation_id="again", export=exported)

    assert raised.value.translation_key == "import_forgotten"


@pytest.mark.parametrize("memory", ["on", "off"])
async def test_what_only_the_conversation_has_is_forgotten_by_words(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, files: Callable[[], list[str]], memory: str
) -> None:
    await set_up(**{CONF_MEMORY: memory})
    await say(f"my wifi password is {SECRET}", "mine")

    answer = get_speech(await say(f"forget that my wifi password is {SECRET}", "mine"))

    assert answer == "I've deleted what was said about that. I found no fact with these words."
    assert (files(), SECRET in await windows_of(home)) == ([], False)


@pytest.mark.parametrize("memory", ["on", "off"])
async def test_exchange_of_forgetting_keeps_no_words_of_what_was_not_found(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, files: Callable[[], list[str]], memory: str
) -> None:
    await set_up(**{CONF_MEMORY: memory})

    answer = get_speech(await say(f"forget that {TOLD}", "mine"))

    assert answer == "I found nothing with these words. Ask me what I know."
    assert (files(), SECRET in await windows_of(home)) == ([], False)


async def test_turn_in_which_a_model_forgets_keeps_no_words_of_what_was_not_found(
    home: HomeAssistant, entry, say: SayFn, files: Callable[[], list[str]]
) -> None:
    await say("my name is Ada", "mine")

    await say(f"please unlearn {TOLD}", "mine")

    assert (files(), SECRET in await windows_of(home), "Ada" in await windows_of(home)) == ([], False, True)
