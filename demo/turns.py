"""A turn through the Assist pipeline as a browser takes it, and everything that a client can observe about it.

say.py prints turns.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
import time
from typing import Any

from demo.client import Client, Json

# Seconds to wait until the sensors reflect an answer.
_SETTLE_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. `failed` is None until its result has arrived."""

    name: str
    arguments: dict[str, Any]
    failed: bool | None = None


@dataclass(slots=True)
class Turn:
    """The outcome of an input.

    Times are seconds since the input was sent. `recognized` is the time when speech recognition ended, if there was
    any. `targets` are the entities that a local intent acted on; `error` is the error message, or empty.
    """

    text: str
    conversation_id: str | None = None
    pieces: list[tuple[float, str]] = field(default_factory=list)
    speech: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    processed_locally: bool = False
    continues: bool = False
    duration: float = 0.0
    recognized: float | None = None
    error: str = ""

    @property
    def first_token(self) -> float | None:
        """The time of the first visible text, streamed or with the complete answer; None if there was no text."""
        if self.pieces:
            return self.pieces[0][0]
        return self.duration if self.speech else None

    @property
    def streamed(self) -> str:
        """The streamed part of the text."""
        return "".join(text for _, text in self.pieces)


type Watcher = Callable[[str, Any], None]


async def take_turn(
    client: Client,
    text: str,
    *,
    conversation_id: str | None = None,
    pipeline: str | None = None,
    device_id: str | None = None,
    watch: Watcher = lambda _kind, _value: None,
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
    events = client.events("assist_pipeline/run", **fields)
    try:
        async for event in events:
            take_event(turn, event, time.perf_counter() - began, watch)
            if event["type"] == "run-end":
                break
    finally:
        await events.aclose()
    return turn


def take_event(turn: Turn, event: Json, elapsed: float, watch: Watcher) -> None:
    """Add a pipeline event to the turn, `elapsed` seconds after the turn began."""
    data = event["data"] or {}
    match event["type"]:
        case "run-start":
            turn.conversation_id = data["conversation_id"]
        case "stt-end":
            turn.recognized = elapsed
        case "intent-progress":
            _take_delta(turn, data.get("chat_log_delta") or {}, elapsed, watch)
        case "intent-end":
            turn.duration = elapsed
            _take_answer(turn, data)
        case "error":
            turn.duration = elapsed
            turn.error = data["message"]


def _take_delta(turn: Turn, delta: Json, elapsed: float, watch: Watcher) -> None:
    if delta.get("role") == "tool_result":
        call_id = delta["tool_call_id"]
        known = turn.calls.get(call_id, ToolCall(delta["tool_name"], {}))
        turn.calls[call_id] = ToolCall(known.name, known.arguments, _failed(delta))
        watch("result", turn.calls[call_id])
        return
    if content := delta.get("content"):
        turn.pieces.append((elapsed, content))
        watch("text", content)
    for call in delta.get("tool_calls") or ():
        turn.calls[call["id"]] = ToolCall(call["tool_name"], call["tool_args"])
        watch("call", turn.calls[call["id"]])


def _failed(delta: Json) -> bool:
    result = delta.get("result") or {}
    return bool(result.get("error"))


def _take_answer(turn: Turn, data: Json) -> None:
    output = data["intent_output"]
    response = output["response"]
    turn.processed_locally = data["processed_locally"]
    turn.continues = output["continue_conversation"]
    turn.targets = tuple(each["id"] for each in response["data"].get("success", ()) if each["type"] == "entity")
    turn.speech = response["speech"].get("plain", {}).get("speech") or ""
    if response["response_type"] == "error":
        turn.error = turn.speech or response["data"].get("code", "error")


_SHOWN_ATTRIBUTES = {"brightness": "brightness", "temperature": "set to"}


def shown(state: Json) -> str:
    """Return a description of the state and of its attributes that users would notice."""
    attributes = state["attributes"]
    details = [
        f"{word} {attributes[key]}" for key, word in _SHOWN_ATTRIBUTES.items() if attributes.get(key) is not None
    ]
    return ", ".join([state["state"], *details])


async def settled_states(client: Client, sensor: str, since: datetime) -> dict[str, Json]:
    """Return all states once `sensor` was updated after `since`, or the current states after a timeout."""

    def is_written(states: dict[str, Json]) -> bool:
        return sensor in states and datetime.fromisoformat(states[sensor]["last_reported"]) >= since

    return await states_when(client, is_written, _SETTLE_TIMEOUT)


async def states_when(client: Client, is_right: Callable[[dict[str, Json]], bool], patience: float) -> dict[str, Json]:
    """Return all states once `is_right` accepts them, or the current states after `patience` seconds."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        states = await client.states()
        if is_right(states) or asyncio.get_running_loop().time() > deadline:
            return states
        await asyncio.sleep(0.02)
