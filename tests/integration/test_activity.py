"""Tests for Home Assistant's real activity log: exactly one row per turn, in the database and in the live stream."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationResult
from homeassistant.core import Context, HomeAssistant
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.components.recorder.common import async_wait_recording_done

from custom_components.windowed_conversation.const import CONF_FALLBACK_AGENTS, CONF_PROVIDER, DOMAIN, PROVIDER_NONE
from demo.model_server import ModelServer

from .conftest import AGENT, SayFn, SetUpFn, get_speech

# The lights, and Home Assistant's own agent, which our agents ask.
_OTHERS = ("input_boolean.", "conversation.home_assistant")

type Activity = Callable[[], Awaitable[list[dict[str, Any]]]]


@pytest.fixture
async def mock_recorder_before_hass(async_test_recorder: Any) -> None:
    """Prepare the recorder's database, which must exist before Home Assistant is set up."""


@pytest.fixture(autouse=True)
async def _recorder(hass: HomeAssistant, async_test_recorder: Any) -> AsyncIterator[None]:
    """Run a recorder, which must be set up before the first recorded state."""
    async with async_test_recorder(hass):
        yield


@pytest.fixture
def speak(home: HomeAssistant) -> SayFn:
    """Return a function that says something to the agent.

    Unlike `SayFn` elsewhere, it writes nothing as if Home Assistant stopped, because that would stop the recorder.
    """

    async def speak(text: str, context: Context | None = None) -> ConversationResult:
        result = await conversation.async_converse(home, text, "mine", context or Context(), "en", AGENT)
        for entry in home.config_entries.async_loaded_entries(DOMAIN):
            for agent in entry.runtime_data.agents.values():
                agent.notify_listeners()
        await home.async_block_till_done()
        return result

    return speak


@pytest.fixture
async def activity(home: HomeAssistant, hass_ws_client: Any) -> Activity:
    """Return a function that returns the rows of the activity log, except for those of other integrations' entities."""
    # the pages themselves are not installed, and the log does not need them
    home.config.components.add("frontend")
    assert await async_setup_component(home, "logbook", {})
    home.config.components.remove("frontend")
    client = await hass_ws_client(home)
    began = dt_util.utcnow()

    async def activity() -> list[dict[str, Any]]:
        await home.async_block_till_done()
        await async_wait_recording_done(home)
        await client.send_json_auto_id({"type": "logbook/get_events", "start_time": began.isoformat()})
        rows: list[dict[str, Any]] = (await client.receive_json())["result"]
        return [row for row in rows if not str(row.get("entity_id")).startswith(_OTHERS)]

    return activity


async def test_turns_have_one_row_each_whoever_answers(
    activity: Activity, set_up: SetUpFn, speak: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.home_assistant"]})
    await speak("turn on kitchen light")
    await speak("my name is Grace")
    model_server.fault("500")
    await speak("turn on the hall light")
    await speak("please turn on hall light")
    await speak("why is the sky blue?")

    rows = await activity()
    assert [row["entity_id"] for row in rows] == [AGENT] * 5


async def test_row_says_which_route_and_a_failure_says_why(
    activity: Activity, entry, speak: SayFn, model_server: ModelServer
) -> None:
    await speak("turn on kitchen light")
    await speak("my name is Grace")
    model_server.fault("quota")
    spoken = get_speech(await speak("what is my name?"))

    local, model, failed = [row["message"] for row in await activity()]
    assert local.startswith("answered locally")
    assert model.startswith("answered by the model")
    assert failed == f"failed: {spoken}"


async def test_row_without_a_model_says_why_the_turn_failed(activity: Activity, set_up: SetUpFn, speak: SayFn) -> None:
    await set_up(account={CONF_PROVIDER: PROVIDER_NONE})

    await speak("why is the sky blue?")

    (row,) = await activity()
    assert row["message"] == "failed: Home Assistant did not understand it, or could not do it"


async def test_row_names_who_spoke(activity: Activity, entry, speak: SayFn, hass_admin_user: Any) -> None:
    await speak("turn on kitchen light", context=Context(user_id=hass_admin_user.id))

    (row,) = await activity()
    assert (row["name"], row["context_user_id"]) == ("Ada", hass_admin_user.id)


async def test_live_stream_has_one_row_for_each_turn(
    activity: Activity, home: HomeAssistant, entry, speak: SayFn, hass_ws_client: Any
) -> None:
    client = await hass_ws_client(home)
    await client.send_json_auto_id({"type": "logbook/event_stream", "start_time": dt_util.utcnow().isoformat()})
    assert (await client.receive_json())["success"]
    await client.receive_json()

    await speak("turn on kitchen light")
    await speak("my name is Grace")
    await speak("turn on kitchen light")
    await activity()

    rows: list[dict[str, Any]] = []
    while len([row for row in rows if row.get("entity_id") == AGENT]) < 3:
        rows += (await client.receive_json())["event"]["events"]
    assert [row["entity_id"] for row in rows if not row["entity_id"].startswith(_OTHERS)] == [AGENT] * 3
