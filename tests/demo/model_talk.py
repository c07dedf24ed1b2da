"""Messages, tools and heard answers, as a client of the scripted model server writes and reads them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
import json
from typing import Any

import aiohttp
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
    """The text of a stream; `calls` are the tool call deltas as they came."""

    chunks: list[ChatCompletionChunk] = field(default_factory=list)

    @property
    def deltas(self) -> list[Any]:
        return [choice.delta for chunk in self.chunks for choice in chunk.choices]

    @property
    def text(self) -> str:
        return "".join(delta.content or "" for delta in self.deltas)

    @property
    def refusal(self) -> str:
        return "".join(delta.refusal or "" for delta in self.deltas)

    def extra(self, name: str) -> str:
        return "".join((delta.model_extra or {}).get(name) or "" for delta in self.deltas)

    @property
    def calls(self) -> list[Any]:
        return [call for delta in self.deltas for call in delta.tool_calls or ()]

    @property
    def finish_reasons(self) -> list[str]:
        return [choice.finish_reason for chunk in self.chunks for choice in chunk.choices if choice.finish_reason]

    @property
    def usages(self) -> list[Any]:
        return [chunk.usage for chunk in self.chunks if chunk.usage]


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


def without_repeats(names: list[str]) -> list[str]:
    return [name for name, before in zip(names, [None, *names], strict=False) if name != before]


async def fetched(method: str, url: str, **request: Any) -> tuple[int, Any]:
    """Return the status and the body that a client without an SDK gets, which is read if it says that it is JSON."""
    async with aiohttp.ClientSession() as session, session.request(method, url, **request) as response:
        read = response.json if response.content_type == "application/json" else response.text
        return response.status, await read()


async def until(true: Callable[[], bool]) -> None:
    """Return when it is true; raises TimeoutError after five seconds."""
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError
