"""A small model of the world around a turn: a home with tools, an `Ear` as the reply, and local answers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
import json
from typing import Any

from custom_components.windowed_conversation.providers.events import ReasoningDelta, TextDelta, ToolCallDone, ToolSchema
from custom_components.windowed_conversation.turn.limits import DEFAULT_TURN_TIMEOUT
from custom_components.windowed_conversation.turn.model import BilledRequest, Question
from custom_components.windowed_conversation.turn.routing import RouteReason, RoutingMode, Situation, decide_first_route
from custom_components.windowed_conversation.turn.state import Reply, ReplyDelta, Turn
from custom_components.windowed_conversation.turn.turn import run_turn
from custom_components.windowed_conversation.window import Message, ToolCall, Window

type Tool = Callable[..., Awaitable[Any]]

TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {"name": {"type": "string"}}}, read_only="__Get" in name)
    for name in ("homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn", "llm__GetDateTime")
)


@dataclass
class Home:
    """Devices that are on or off, and the tools that control them.

    `ran` has the calls in the order in which they began.
    """

    things: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    @property
    def tools(self) -> Mapping[str, Tool]:
        return {
            "homeassistant__GetLiveContext": self._look,
            "intent__HassTurnOff": self._turn_off,
            "intent__HassTurnOn": self._turn_on,
        }

    async def _look(self, name: str | None = None) -> dict[str, str]:
        self.ran.append("look")
        lines = [
            f"- names: {thing}\n  state: '{state}'" for thing, state in self.things.items() if name in (thing, None)
        ]
        return {"result": "\n".join(lines)}

    async def _turn_on(self, name: str) -> dict[str, str]:
        self.ran.append(f"on {name}")
        self.things[name] = "on"
        return {"response_type": "action_done"}

    async def _turn_off(self, name: str) -> dict[str, str]:
        self.ran.append(f"off {name}")
        self.things[name] = "off"
        return {"response_type": "action_done"}


@dataclass
class Ear:
    """The `Reply` of a turn: collects the answer as it arrives, and starts each tool call at once."""

    tools: Mapping[str, Tool]
    heard: list[ReplyDelta] = field(default_factory=list)
    spoke: asyncio.Event = field(default_factory=asyncio.Event)
    failed_call_count: int = 0
    # The answers that were recorded without being heard again.
    recorded: list[str] = field(default_factory=list)

    def add_answer(self, text: str) -> None:
        """See `Reply.add_answer`."""
        self.recorded.append(text)

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.heard if isinstance(delta, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(delta.text for delta in self.heard if isinstance(delta, ReasoningDelta))

    async def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        """See `Reply.add_deltas`."""
        text, running = "", dict[str, tuple[ToolCall, asyncio.Task[str]]]()
        try:
            async for delta in deltas:
                self.heard.append(delta)
                match delta:
                    case TextDelta(piece):
                        text += piece
                        self.spoke.set()
                    case ToolCallDone(call):
                        running[call.id] = call, asyncio.create_task(self._run(call))
            if text or running:
                yield Message.assistant(text, tool_calls=tuple(call for call, _ in running.values()))
            for call, task in running.values():
                yield Message.tool(call.id, call.name, await task)
        finally:
            for _, task in running.values():
                task.cancel()

    async def _run(self, call: ToolCall) -> str:
        tool = self.tools.get(call.name)
        self.failed_call_count += tool is None
        return json.dumps(await tool(**call.arguments) if tool else {"error": "no such tool"})


@dataclass
class Local:
    """A source of local answers: returns an answer or a reason, or raises an error; `asked` are the situations."""

    outcome: tuple[Message, ...] | Exception | RouteReason = RouteReason.NO_LOCAL_MATCH
    asked: list[Situation] = field(default_factory=list)

    async def answer(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | RouteReason:
        """See `TurnHost.answer_locally`."""
        self.asked.append(situation)
        match self.outcome:
            case RouteReason():
                return self.outcome
            case Exception():
                raise self.outcome
            case messages:
                return lambda: messages


@dataclass
class Host:
    """The host of a turn. If `question` is an exception, building the question raises it."""

    window: Window
    reply: Reply
    local: Local
    question: Question | Exception
    billed: Callable[[BilledRequest], None] = lambda billed: None
    background: Callable[[Coroutine[Any, Any, None]], None] = lambda work: work.close()

    async def answer_locally(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | RouteReason:
        """See `TurnHost.answer_locally`."""
        return await self.local.answer(situation)

    async def build_question(self) -> Question:
        """See `TurnHost.build_question`."""
        if isinstance(self.question, Exception):
            raise self.question
        return self.question

    def defer(self, work: Callable[[], None]) -> None:
        """See `TurnHost.defer`. Runs the work at once."""
        work()

    def get_window(self) -> Window:
        """See `TurnHost.get_window`."""
        return self.window

    async def enter_window(self) -> Window:
        """See `TurnHost.enter_window`."""
        return self.window

    def on_billed(self, billed: BilledRequest) -> None:
        """See `TurnHost.on_billed`."""
        self.billed(billed)

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """See `TurnHost.run_in_background`."""
        self.background(work)


def make_turn(
    window: Window,
    text: str,
    question: Question | Exception,
    reply: Reply,
    *,
    routing: RoutingMode = RoutingMode.MODEL_ONLY,
    local: Local | None = None,
    turn_timeout: float = DEFAULT_TURN_TIMEOUT,
    **handlers: Any,
) -> Turn:
    """Return a turn for `run_turn`, with a `Host` that has the other arguments."""
    host = Host(window, reply, local or Local(), question, **handlers)
    return Turn(window, text, decide_first_route(routing, text), turn_timeout, host)


async def take_turn(window: Window, text: str, question: Question | Exception, reply: Reply, **more: Any) -> Turn:
    """Run a turn, and return it with its outcome."""
    turn = make_turn(window, text, question, reply, **more)
    await run_turn(turn)
    return turn
