"""What the activity says of turns: who answered and how fast, or why the turn failed."""

from collections.abc import Callable
from typing import Any

from homeassistant.core import Context, Event, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import CONF_FALLBACK_AGENTS, CONF_ROUTING, DOMAIN
from custom_components.windowed_conversation.logbook import async_describe_events
from demo.model_server import ModelServer

from .conftest import AGENT, Say, SetUp, speech

type Told = Callable[[], str]


@pytest.fixture
def told(home: HomeAssistant) -> Told:
    """Return what reads the sentence of the last turn, as Home Assistant asks for it."""
    turns = async_capture_events(home, EVENT_TURN)
    described: dict[tuple[str, str], Callable[[Event[Any]], dict[str, str]]] = {}
    async_describe_events(home, lambda domain, kind, describe: described.update({(domain, kind): describe}))

    def told() -> str:
        row = described[DOMAIN, EVENT_TURN](turns[-1])
        assert (row["name"], row["entity_id"]) == ("Ada", AGENT)
        return row["message"]

    return told


async def test_local_turn_was_answered_locally(entry, say: Say, told: Told) -> None:
    await say("turn on kitchen light")

    assert told() == "answered locally"


async def test_model_s_turn_has_its_seconds_and_no_text(entry, say: Say, told: Told, agent_of) -> None:
    await say("my name is Grace")

    assert told() == f"answered by the model in {agent_of(entry).statistics.turn_duration:.1f} s"


async def test_turn_of_a_fallback_agent_names_it(
    set_up: SetUp, say: Say, told: Told, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.home_assistant"], CONF_ROUTING: "llm_only"})
    model_server.fault("500")

    await say("turn on the kitchen light")

    assert told().startswith("answered by Home Assistant in ")


async def test_turn_that_failed_has_the_reason_that_was_spoken(
    entry, say: Say, told: Told, model_server: ModelServer
) -> None:
    model_server.fault("quota")

    spoken = speech(await say("my name is Grace"))

    assert told() == f"failed: {spoken}"


async def test_reason_that_wants_figures_is_omitted(home: HomeAssistant, entry, say: Say, told: Told) -> None:
    await say("turn on kitchen light")
    home.bus.async_fire(EVENT_TURN, {"entity_id": AGENT, "error": "redirected", "route": "llm", "duration": 1.0})
    await home.async_block_till_done()

    assert told() == "failed"


async def test_turn_is_the_speaker_s(home: HomeAssistant, entry, say: Say, hass_admin_user) -> None:
    turns = async_capture_events(home, EVENT_TURN)

    await say("turn on kitchen light", context=Context(user_id=hass_admin_user.id))

    assert turns[-1].context.user_id == hass_admin_user.id
