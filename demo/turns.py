"""A turn through the Assist pipeline as a browser takes it, and everything that a client can observe about it.

say.py prints turns.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
import time
from typing import Any
from uuid import UUID

from demo.client import Client, Json

# Seconds to wait until the sensors reflect an answer.
_SENSOR_UPDATE_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. `has_failed` is None until its result has arrived."""

    name: str
    arguments: dict[str, Any]
    has_failed: bool | None = None


@dataclass(slots=True)
class Turn:
    """The outcome of an input.

    Times are seconds since the input was sent. `recognized_after` is the time when speech recognition ended, if there
    was any. `target_entity_ids` are the entities that a local intent acted on; `error` is the error message, or empty.
    """

    text: str
    conversation_id: str | None = None
    pieces: list[tuple[float, str]] = field(default_factory=list)
    speech: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    target_entity_ids: tuple[str, ...] = ()
    is_processed_locally: bool = False
    expects_reply: bool = False
    duration: float = 0.0
    recognized_after: float | None = None
    error: str = ""

    @property
    def first_token(self) -> float | None:
        """The time of the first visible text, streamed or with the complete answer; None if there was no text."""
        if self.pieces:
            return self.pieces[0][0]
        return self.duration if self.speech else None

    @property
    def streamed_text(self) -> str:
        """The streamed part of the text."""
        return "".join(text for _, text in self.pieces)


type TurnEventCallback = Callable[[str, Any], None]


async def take_turn(
    client: Client,
    text: str,
    *,
    conversation_id: str | None = None,
    pipeline: str | None = None,
    device_id: str | None = None,
    watch: TurnEventCallback = lambda _kind, _value: None,
) -> Turn:
    """Send `text` to the pipeline, from a device if one is given, and return the Turn when the pipeline has finished.

    An error of the turn is part of the result and is not raised.

    `watch` is called with ("text", str), ("call", ToolCall) and ("result", ToolCall) as they arrive.
    """
    turn = Turn(text)
    fields: Json = {"start_stage": "intent", "end_stage": "intent", "input": {"text": text}}
    fields |= {"conversation_id": conversation_id} if conversation_id else {}
    fields |= {"pipeline": pipeline} if pipeline else {}
    fields |= {"device_id": device_id} if device_id else {}
    began = time.perf_counter()
    events = client.iter_events("assist_pipeline/run", **fields)
    try:
        async for event in events:
            apply_event(turn, event, time.perf_counter() - began, watch)
            if event["type"] == "run-end":
                break
    finally:
        await events.aclose()
    return turn


def apply_event(turn: Turn, event: Json, elapsed: float, watch: TurnEventCallback) -> None:
    """Add a pipeline event to the turn, `elapsed` seconds after the turn began."""
    data = event["data"] or {}
    match event["type"]:
        case "run-start":
            turn.conversation_id = data["conversation_id"]
        case "stt-end":
            turn.recognized_after = elapsed
        case "intent-progress":
            _apply_delta(turn, data.get("chat_log_delta") or {}, elapsed, watch)
        case "intent-end":
            turn.duration = elapsed
            _apply_answer(turn, data)
        case "error":
            turn.duration = elapsed
            turn.error = data["message"]


def _apply_delta(turn: Turn, delta: Json, elapsed: float, watch: TurnEventCallback) -> None:
    if delta.get("role") == "tool_result":
        call_id = delta["tool_call_id"]
        known = turn.calls.get(call_id, ToolCall(delta["tool_name"], {}))
        turn.calls[call_id] = ToolCall(known.name, known.arguments, _has_error(delta))
        watch("result", turn.calls[call_id])
        return
    if content := delta.get("content"):
        turn.pieces.append((elapsed, content))
        watch("text", content)
    for call in delta.get("tool_calls") or ():
        turn.calls[call["id"]] = ToolCall(call["tool_name"], call["tool_args"])
        watch("call", turn.calls[call["id"]])


def _has_error(delta: Json) -> bool:
    result = delta.get("result") or {}
    return bool(result.get("error"))


def _apply_answer(turn: Turn, data: Json) -> None:
    output = data["intent_output"]
    response = output["response"]
    turn.is_processed_locally = data["processed_locally"]
    turn.expects_reply = output["continue_conversation"]
    turn.target_entity_ids = tuple(
        each["id"] for each in response["data"].get("success", ()) if each["type"] == "entity"
    )
    turn.speech = response["speech"].get("plain", {}).get("speech") or ""
    if response["response_type"] == "error":
        turn.error = turn.speech or response["data"].get("code", "error")


_LABEL_BY_ATTRIBUTE = {"brightness": "brightness", "temperature": "set to"}


def describe_state(state: Json) -> str:
    """Return a description of the state and of its attributes that users would notice."""
    attributes = state["attributes"]
    details = [
        f"{word} {attributes[key]}" for key, word in _LABEL_BY_ATTRIBUTE.items() if attributes.get(key) is not None
    ]
    return ", ".join([state["state"], *details])


async def wait_for_turn(client: Client, sensor: str, since: datetime) -> dict[str, Json]:
    """Return all states once the last route sensor shows a turn that began after `since`, or after a timeout."""

    def is_shown(states: dict[str, Json]) -> bool:
        turn_id = states.get(sensor, {"attributes": {}})["attributes"].get("turn_id")
        # its first 48 bits are milliseconds: https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-7
        return turn_id is not None and UUID(turn_id).int >> 80 >= int(since.timestamp() * 1000)

    return await wait_for_states(client, is_shown, _SENSOR_UPDATE_TIMEOUT)


async def wait_for_states(
    client: Client, is_right: Callable[[dict[str, Json]], bool], patience: float
) -> dict[str, Json]:
    """Return all states once `is_right` accepts them, or the current states after `patience` seconds."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        states = await client.fetch_states()
        if is_right(states) or asyncio.get_running_loop().time() > deadline:
            return states
        await asyncio.sleep(0.02)
