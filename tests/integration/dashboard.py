"""A websocket client that runs Assist pipelines with the agent, as a dashboard does."""

from typing import Any

from homeassistant.components.assist_pipeline.pipeline import PipelineEventType

from .conftest import AGENT

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
    """A websocket client that runs an Assist pipeline, as a dashboard does."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def create(self, *, prefer_local_intents: bool) -> str:
        pipeline = {**_PIPELINE, "prefer_local_intents": prefer_local_intents}
        await self._socket.send_json_auto_id({"type": "assist_pipeline/pipeline/create", **pipeline})
        return (await self._socket.receive_json())["result"]["id"]

    async def run(self, pipeline_id: str, text: str, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """Run a pipeline with this text and return its events."""
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
    """Return the data of the event that ends the intent stage."""
    (data,) = [event["data"] for event in events if event["type"] == PipelineEventType.INTENT_END]
    return data


def streamed(events: list[dict[str, Any]]) -> list[str]:
    """Return the text chunks that were streamed."""
    deltas = [e["data"].get("chat_log_delta", {}) for e in events if e["type"] == PipelineEventType.INTENT_PROGRESS]
    return [delta["content"] for delta in deltas if delta.get("content")]
