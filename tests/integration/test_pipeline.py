"""Tests for turns through the Assist pipeline: its own local turns, its events, turns at once, a clock set back."""

import asyncio
from datetime import timedelta
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from homeassistant.core import Context, HomeAssistant
import pytest

from demo.model_server import ModelServer

from .actions import act
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


ONE_HOUR = timedelta(hours=1)
ONE_SECOND = timedelta(seconds=1)


def asked(model_server: ModelServer) -> list[str]:
    """Return the user messages in the last request, oldest first, without the time and place before the text."""
    messages = model_server.requests[-1].body["messages"]
    return [message["content"].rpartition("\n\n")[2] for message in messages if message["role"] == "user"]


async def test_what_the_pipeline_answered_after_the_clock_was_set_back_is_in_the_window_once(
    dashboard: PipelineClient, model_server: ModelServer, freezer: FrozenDateTimeFactory
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=True)
    events = await dashboard.run(pipeline, "my name is Ada")
    conversation_id = ending(events)["intent_output"]["conversation_id"]
    freezer.tick(-ONE_HOUR)
    for text in ("turn on kitchen light", "consider that the cat is Tom", "turn off kitchen light"):
        freezer.tick(ONE_SECOND)
        await dashboard.run(pipeline, text, conversation_id)
    freezer.tick(ONE_SECOND)

    await dashboard.run(pipeline, "what is my name?", conversation_id)

    assert asked(model_server) == [
        "my name is Ada",
        "turn on kitchen light",
        "consider that the cat is Tom",
        "turn off kitchen light",
        "what is my name?",
    ]


async def test_what_was_taken_over_is_not_taken_over_again_after_a_failure(
    dashboard: PipelineClient, model_server: ModelServer
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=True)
    events = await dashboard.run(pipeline, "turn on kitchen light")
    conversation_id = ending(events)["intent_output"]["conversation_id"]
    model_server.fault("503", 1)
    await dashboard.run(pipeline, "my name is Ada", conversation_id)

    await dashboard.run(pipeline, "what is my name?", conversation_id)

    assert asked(model_server) == ["turn on kitchen light", "what is my name?"]


async def test_conversation_that_was_reset_does_not_get_back_what_the_pipeline_answered(
    home: HomeAssistant, dashboard: PipelineClient, model_server: ModelServer
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=True)
    events = await dashboard.run(pipeline, "turn on kitchen light")
    conversation_id = ending(events)["intent_output"]["conversation_id"]
    await dashboard.run(pipeline, "my name is Ada", conversation_id)
    await act(home, "delete_conversation", conversation_id=conversation_id)

    await dashboard.run(pipeline, "what is my name?", conversation_id)

    assert asked(model_server) == ["what is my name?"]


async def test_question_from_the_future_does_not_keep_a_command_from_home_assistant(
    entry, say: SayFn, freezer: FrozenDateTimeFactory, figure
) -> None:
    await say("I would like to order a pizza")
    freezer.tick(-ONE_HOUR)

    await say("turn on kitchen light")

    assert figure("last_route") == "local"
