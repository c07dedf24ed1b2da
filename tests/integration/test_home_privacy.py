"""Tests that entity states sent to a model appear nowhere except in the conversation."""

import logging
from pathlib import Path

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.components.diagnostics import get_diagnostics_for_config_entry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from custom_components.windowed_conversation.const import CONF_STATES
from demo.model_server import ModelServer, call, words

from .conftest import SayFn, SetUpFn

TV = "media_player.tv"
SECRETS = ("capercaillie", "osprey")


def found(seen: object) -> list[str]:
    """Return the secrets that occur in the text form of a value."""
    return [secret for secret in SECRETS if secret in str(seen).casefold()]


async def test_states_are_in_no_file_of_memory_no_log_no_sensor_and_no_diagnostics(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    store_path: Path,
    caplog: pytest.LogCaptureFixture,
    hass_client: ClientSessionGenerator,
) -> None:
    caplog.set_level(logging.DEBUG, "custom_components.windowed_conversation")
    entry = await set_up(**{CONF_STATES: True})
    home.states.async_set(TV, "playing", {"friendly_name": "Osprey", "media_title": "Capercaillie"})
    async_expose_entity(home, "conversation", TV, should_expose=True)
    model_server.script(call("get_states", domains=["media_player"]), words("Done."))
    await say("please look it up")
    await say("hello there")

    def read() -> list[str]:
        paths = store_path.parent.glob(f"{store_path.name}*")
        return [path.read_bytes().decode(errors="replace") for path in paths]

    assert "Capercaillie" in str(model_server.requests[-1].body)
    files = await home.async_add_executor_job(read)
    assert "please look it up" in str(files)
    assert found(files) == []
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("custom_components")]
    assert found(ours) == []
    assert found([state.as_dict() for state in home.states.async_all() if state.entity_id != TV]) == []
    assert found(await get_diagnostics_for_config_entry(home, hass_client, entry)) == []
