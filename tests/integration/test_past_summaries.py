"""Tests for summaries in memory: their owners, their recall, and content that they must never contain."""

from collections.abc import Callable, Coroutine
import re
from typing import Any

from homeassistant.core import Context, HomeAssistant
import pytest

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_RECORD, DOMAIN, RecordLevel
from demo.model_server import ModelServer

from .actions import act
from .conftest import SayFn, SetUpFn, flush_store, until
from .remembered import memory_of
from .store_file import Disk
from .summarizing import SMALL, asked_for
from .test_recall import ada, asked, fill, grace, sent

__all__ = ["ada", "grace"]

BINS = "consider that the paper bin is behind the quokka"
MARK = "summary of an earlier conversation"

type TalkFn = Callable[..., Coroutine[Any, Any, None]]


@pytest.fixture
def talk(home: HomeAssistant, say: SayFn, get_agent: Callable[[Any], Agent], model_server: ModelServer) -> TalkFn:
    """Return a function that sends texts to the agent and continues the conversation until it is summarized."""

    async def talk(*texts: str, conversation_id: str = "first", **more: Any) -> None:
        before = len(asked_for(model_server))
        for text in texts:
            await say(text, conversation_id, **more)
        while len(asked_for(model_server)) == before:
            await fill(say, 1, conversation_id=conversation_id, **more)
        agents = [
            agent
            for entry in home.config_entries.async_loaded_entries(DOMAIN)
            for agent in entry.runtime_data.agents.values()
        ]
        await until(lambda: not any(agent.summarizing_windows for agent in agents))
        await flush_store(home)

    return talk


def summaries(disk: Disk) -> list[tuple[str, str | None]]:
    """Return the text and the owner of each stored summary."""
    return disk.execute("SELECT text, person FROM summary")


async def test_summary_is_recalled_after_its_conversation_has_ended(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    talk: TalkFn,
    disk: Disk,
    *,
    ada: Context,
    model_server: ModelServer,
) -> None:
    await set_up(options=SMALL)
    await talk("my name is Ada Lovelace", BINS, context=ada)
    await act(home, "delete_conversation", ada, conversation_id="first")
    await say("where is the paper bin, and what is the name?", "second", context=ada)

    ((_, whose),) = summaries(disk)
    assert whose == ada.user_id
    assert re.search(rf'\d{{4}}-\d\d-\d\d \d\d:\d\d Ada, {MARK}: "You told me[^"]* quokka', asked(model_server)[1])


async def test_summary_that_the_window_holds_is_not_recalled(
    set_up: SetUpFn, say: SayFn, talk: TalkFn, *, ada: Context, model_server: ModelServer
) -> None:
    await set_up(options=SMALL)
    await talk(BINS, context=ada)
    await say("where is the paper bin?", "first", context=ada)

    assert "You told me" in str(model_server.requests[-1].body)
    assert MARK not in asked(model_server)[1]


async def test_later_summary_takes_the_place_of_the_earlier_one(
    set_up: SetUpFn, talk: TalkFn, disk: Disk, ada: Context
) -> None:
    await set_up(options=SMALL)
    await talk(BINS, context=ada)
    assert len(summaries(disk)) == 1
    await talk("consider that the glass bin is behind the shed", context=ada)
    for _ in range(3):
        await talk(context=ada)

    ((text, _),) = summaries(disk)
    assert ("quokka" in text, "shed" in text) == (True, True)


async def test_summary_of_a_satellites_conversation_is_the_homes(
    set_up: SetUpFn, say: SayFn, talk: TalkFn, disk: Disk, *, grace: Context, model_server: ModelServer
) -> None:
    await set_up(options=SMALL)
    await talk(BINS, device_id="kitchen")
    await say("where is the paper bin?", "hers", context=grace)

    ((_, whose),) = summaries(disk)
    assert whose is None
    assert f" the home, {MARK}: " in asked(model_server)[1]


@pytest.mark.parametrize("personal", ["my name is Ada Lovelace", "remember that my name is Ada Lovelace"])
async def test_what_unknown_speakers_say_of_themselves_is_in_no_summary_that_is_kept(
    set_up: SetUpFn, say: SayFn, talk: TalkFn, disk: Disk, *, personal: str, model_server: ModelServer
) -> None:
    await set_up(options=SMALL)
    await talk(BINS, personal, device_id="kitchen")
    await talk(BINS, device_id="kitchen")
    assert "Lovelace" in sent(model_server)
    model_server.log.clear()
    await say("what is my name?", "other", device_id="hall")

    assert summaries(disk) == []
    assert "Lovelace" not in sent(model_server)


async def test_agent_without_memory_keeps_no_summary(
    home: HomeAssistant, set_up: SetUpFn, talk: TalkFn, disk: Disk, ada: Context
) -> None:
    await set_up(options=SMALL, **{CONF_MEMORY: "off", CONF_RECORD: RecordLevel.OFF})
    await talk(BINS, context=ada)

    assert (disk.said, disk.execute("SELECT text FROM summary")) == ([], [])


async def test_summary_goes_with_a_turn_that_it_stands_for(
    home: HomeAssistant, set_up: SetUpFn, talk: TalkFn, disk: Disk, ada: Context
) -> None:
    await set_up(options=SMALL)
    await talk(BINS, context=ada)
    ((row, text),) = disk.execute("SELECT id, text FROM summary")
    ((turn,),) = disk.execute("SELECT id FROM turn WHERE said LIKE '%quokka'")

    forgotten = await memory_of(home).async_change(lambda memory: memory.forget(ids=[("turn", turn)]))

    assert "quokka" in text
    assert (forgotten.turns, forgotten.summaries) == ((turn,), (row,))
    assert summaries(disk) == []
