"""Tests for conversations that continue while their stored part cannot be read: new messages are kept or forgotten."""

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.const import CONF_MEMORY, DOMAIN
from custom_components.windowed_conversation.store import writer
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, start, stop, until
from .remembered import memory_of
from .store_file import Disk, issues
from .test_persistence import block, unblock

SECRET = "swordfish"


async def say_unread(home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk) -> None:
    """Say a secret in a stored conversation that cannot be loaded, because the store is unavailable since a restart."""
    entry = await set_up(**{CONF_MEMORY: "off"})
    await say("hello there", "mine")
    await stop(home, entry)
    await start(home, entry)
    disk(block)
    await say("hello there", "other")
    await until(lambda: issues(home) == {"memory_away"})
    await say(f"consider that the wifi password is {SECRET}", "mine")


async def test_what_was_said_before_a_conversation_could_be_read_is_forgotten(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, disk: Disk
) -> None:
    await say_unread(home, set_up, say, disk)

    disk(unblock)
    done = await home.services.async_call(
        DOMAIN, "forget", {"query": "wifi password"}, blocking=True, return_response=True
    )

    assert done is not None
    assert done["exchanges"] == 1
    await say("what is the wifi password?", "mine")
    assert SECRET not in str(model_server.requests[-1].body)


async def test_what_was_said_before_a_conversation_could_be_read_is_written_though_nobody_goes_on(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE_SECONDS", 0.01)
    await say_unread(home, set_up, say, disk)

    disk(unblock)
    await until(lambda: memory_of(home).writer.state.reason is None)
    await until(lambda: SECRET in disk.exchange_text)

    assert disk.execute("SELECT count(*) FROM conversation WHERE key = 'mine'") == [(1,)]
