"""Helpers to write messages and tools as a client of the scripted model server, and to read its streamed answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
import json
from typing import Any

from openai.types.chat import ChatCompletionChunk

SYSTEM = {"role": "system", "content": "You are a voice assistant."}
STORY = "tell me a story"
THINK_THEN_SWITCH = "think first, then switch on the kitchen light and the bedroom light"
LONG = "the quick brown fox jumps over the lazy dog. " * 200
TOOL_NAMES = ("homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn", "llm__GetDateTime")
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {"type": "object", "properties": {}}},
    }
    for name in TOOL_NAMES
]


@dataclass
class Heard:
    """The chunks of a streamed answer; `calls` are its tool call deltas as received."""

    chunks: list[ChatCompletionChunk] = field(default_factory=list)

    @property
    def deltas(self) -> list[Any]:
        return [choice.delta for chunk in self.chunks for choice in chunk.choices]

    @property
    def text(self) -> str:
        return "".join(delta.content or "" for delta in self.deltas)

    @property
    def calls(self) -> list[Any]:
        return [call for delta in self.deltas for call in delta.tool_calls or ()]


type Ask = Callable[..., Awaitable[Heard]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def called(call_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str, value: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": json.dumps(value)}
