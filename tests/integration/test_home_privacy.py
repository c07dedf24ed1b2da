"""States that are sent stay between the conversation and its model."""

from collections.abc import Callable, Coroutine
import logging
from pathlib import Path

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry
from pytest_homeassistant_custom_component.components.diagnostics import get_diagnostics_for_config_entry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from custom_components.windowed_conversation.const import CONF_STATES
from demo.model_server import ModelServer, call, words

from .conftest import Say, SetUp

TV = "media_player.tv"
SECRETS = ("capercaillie", "osprey")

type Talk = Callable[[], Coroutine[None, None, MockConfigEntry]]


@pytest.fixture
def talk(home: HomeAssistant, set_up: SetUp, say: Say, model_server: ModelServer) -> Talk:
    """Talk with an agent that knows a television by its context and by a tool; returns its account."""

    async def talk() -> MockConfigEntry:
        entry = await set_up(**{CONF_STATES: True})
        home.states.async_set(TV, "playing", {"friendly_name": "Osprey", "media_title": "Capercaillie"})
        async_expose_entity(home, "conversation", TV, should_expose=True)
        model_server.script(call("get_states", domains=["media_player"]), words("Done."))
        await say("please look it up")
        await say("hello there")
        assert str(model_server.requests[-1].body).count("Capercaillie") > 0
        return entry

    return talk


def found(seen: object) -> list[str]:
    """Return the secrets that are in something."""
    return [secret for secret in SECRETS if secret in str(seen).casefold()]


async def test_states_are_in_no_file_of_memory(home: HomeAssistant, talk: Talk, memory_file: Path) -> None:
    await talk()

    def read() -> list[str]:
        paths = memory_file.parent.glob(f"{memory_file.name}*")
        return [path.read_bytes().decode(errors="replace") for path in paths]

    files = await home.async_add_executor_job(read)
    assert "please look it up" in str(files)
    assert found(files) == []


async def test_states_are_in_no_log_and_no_sensor(
    home: HomeAssistant, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "custom_components.windowed_conversation")
    await talk()

    ours = [record.getMessage() for record in caplog.records if record.name.startswith("custom_components")]
    assert found(ours) == []
    assert found([state.as_dict() for state in home.states.async_all() if state.entity_id != TV]) == []


async def test_states_are_in_no_diagnostics(
    home: HomeAssistant, talk: Talk, hass_client: ClientSessionGenerator
) -> None:
    assert found(await get_diagnostics_for_config_entry(home, hass_client, await talk())) == []
