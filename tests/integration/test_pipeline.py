"""Tests for turns through the Assist pipeline: its own local turns, its events, and two turns at once."""

import asyncio
from typing import Any

from homeassistant.core import Context, HomeAssistant
import pytest

from demo.model_server import ModelServer

from .conftest import SayFn, get_speech
from .dashboard import PipelineClient, ending


def speech(events: list[dict[str, Any]]) -> str:
    """Return the answer that ends the intent stage."""
    return ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"]


@pytest.fixture
async def dashboard(home: HomeAssistant, entry, hass_ws_client) -> PipelineClient:
    return PipelineClient(await hass_ws_client(home))


async def test_turns_that_the_pipeline_answered_are_in_the_window_once(
    home: HomeAssistant, dashboard: PipelineClient, model_server: ModelServer
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=True)
    events = await dashboard.run(pipeline, "turn on kitchen light")
    assert ending(events)["processed_locally"]
    conversation_id = ending(events)["intent_output"]["conversation_id"]
    await dashboard.run(pipeline, "my name is Ada", conversation_id)
    await dashboard.run(pipeline, "turn off kitchen light", conversation_id)

    await dashboard.run(pipeline, "what is my name?", conversation_id)

    messages = model_server.requests[-1].body["messages"]
    assert [m["role"] for m in messages] == [
        *("system", "user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
        *("user", "assistant", "tool", "assistant"),
        "user",
    ]
    assert model_server.requests[-1].violations == []


async def test_question_after_a_sentence_that_the_pipeline_answered_is_about_no_earlier_fact(
    dashboard: PipelineClient,
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=True)
    events = await dashboard.run(pipeline, "remember that the bins go out on Friday")
    conversation_id = ending(events)["intent_output"]["conversation_id"]
    assert "bins" in speech(await dashboard.run(pipeline, "who else can hear that?", conversation_id))
    events = await dashboard.run(pipeline, "turn on kitchen light", conversation_id)
    assert ending(events)["processed_locally"]

    events = await dashboard.run(pipeline, "who else can hear that?", conversation_id)

    assert "bins" not in speech(events)


async def test_script_of_a_person_waits_for_the_pipeline(
    home: HomeAssistant, dashboard: PipelineClient, say: SayFn, model_server: ModelServer, hass_admin_user
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)
    model_server.change(delay=0.02)
    person = Context(user_id=hass_admin_user.id)

    events, _ = await asyncio.gather(
        dashboard.run(pipeline, "consider that the cat is Tom", "shared"),
        say("consider that the dog is Rex", "shared", context=person),
    )

    assert ending(events)["intent_output"]["response"]["response_type"] == "action_done"
    assert "Tom" in get_speech(await say("what is the cat?", "shared", context=person))
    assert "Rex" in get_speech(await say("what is the dog?", "shared", context=person))
