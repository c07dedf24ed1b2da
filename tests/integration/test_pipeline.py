"""Turns through the Assist pipeline: its own local turns, its events, its way of running two turns at once."""

import asyncio
from typing import Any

from homeassistant.components.assist_pipeline.pipeline import PipelineEventType
from homeassistant.core import Context, HomeAssistant
import pytest

from demo.model_server import ModelServer

from .conftest import AGENT, Say, speech

_PIPELINE = {
    "name": "Ada",
    "language": "en",
    "conversation_engine": AGENT,
    "conversation_language": "*",
    "stt_engine": None,
    "stt_language": None,
    "tts_engine": None,
    "tts_language": None,
    "tts_voice": None,
    "wake_word_entity": None,
    "wake_word_id": None,
}


class PipelineClient:
    """A dashboard that talks to a pipeline over the websocket."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def create(self, *, prefer_local_intents: bool) -> str:
        pipeline = {**_PIPELINE, "prefer_local_intents": prefer_local_intents}
        await self._socket.send_json_auto_id({"type": "assist_pipeline/pipeline/create", **pipeline})
        return (await self._socket.receive_json())["result"]["id"]

    async def run(self, pipeline_id: str, text: str, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """Return the events of a run."""
        await self._socket.send_json_auto_id(
            {
                "type": "assist_pipeline/run",
                "start_stage": "intent",
                "end_stage": "intent",
                "input": {"text": text},
                "pipeline": pipeline_id,
                "conversation_id": conversation_id,
            }
        )
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] != PipelineEventType.RUN_END:
            message = await self._socket.receive_json()
            events += [message["event"]] if message["type"] == "event" else []
        return events


def ending(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the data of the event that ended the intent stage."""
    (data,) = [event["data"] for event in events if event["type"] == PipelineEventType.INTENT_END]
    return data


def streamed(events: list[dict[str, Any]]) -> list[str]:
    """Return the pieces of text that were streamed."""
    deltas = [e["data"].get("chat_log_delta", {}) for e in events if e["type"] == PipelineEventType.INTENT_PROGRESS]
    return [delta["content"] for delta in deltas if delta.get("content")]


@pytest.fixture
async def dashboard(home: HomeAssistant, entry, hass_ws_client) -> PipelineClient:
    return PipelineClient(await hass_ws_client(home))


async def test_answer_is_streamed_as_it_is_written(dashboard: PipelineClient) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)

    events = await dashboard.run(pipeline, "tell me a story about the sea")

    assert len(streamed(events)) > 20
    assert "".join(streamed(events)) == ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"]


async def test_agent_routes_by_itself_in_a_pipeline(
    home: HomeAssistant, dashboard: PipelineClient, model_server: ModelServer
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)

    await dashboard.run(pipeline, "turn on kitchen light")

    assert home.states.get("input_boolean.kitchen").state == "on"
    assert model_server.requests == []


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


async def test_broken_answer_ends_with_a_spoken_error(dashboard: PipelineClient, model_server: ModelServer) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)
    model_server.fault("cut_mid_stream", after_words=20)

    events = await dashboard.run(pipeline, "tell me a story about the sea")

    assert streamed(events)[-1] == "The model's server cannot be reached right now."
    assert ending(events)["intent_output"]["response"]["response_type"] == "error"


async def test_script_of_a_person_waits_for_the_pipeline(
    home: HomeAssistant, dashboard: PipelineClient, say: Say, model_server: ModelServer, hass_admin_user
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)
    model_server.change(delay=0.02)
    person = Context(user_id=hass_admin_user.id)

    events, _ = await asyncio.gather(
        dashboard.run(pipeline, "remember that the cat is Tom", "shared"),
        say("remember that the dog is Rex", "shared", context=person),
    )

    assert ending(events)["intent_output"]["response"]["response_type"] == "action_done"
    assert "Tom" in speech(await say("what is the cat?", "shared", context=person))
    assert "Rex" in speech(await say("what is the dog?", "shared", context=person))
