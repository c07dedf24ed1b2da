"""A turn's answer on its way into Home Assistant: our deltas as the chat log's, its contents as our messages.

The chat log hands each delta to the pipeline at once, and starts a tool as soon as its call arrives.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from homeassistant.components.conversation import (
    AssistantContent,
    AssistantContentDeltaDict,
    ChatLog,
)
from homeassistant.helpers import llm

from ..providers.events import ReasoningDelta, TextDelta, ToolCallDone
from ..turn.ports import Spoken
from ..window import Message
from .chat_log import messages_of


class ChatLogReply:
    """The `Reply` of one turn."""

    def __init__(self, chat_log: ChatLog, agent_id: str) -> None:
        self._chat_log = chat_log
        self._agent_id = agent_id

    async def add(self, deltas: AsyncIterator[Spoken]) -> AsyncGenerator[Message]:
        """See `Reply.add`."""
        contents = self._chat_log.async_add_delta_content_stream(self._agent_id, _chat_log_deltas(deltas))
        async with aclosing(contents):
            async for content in contents:
                for message in messages_of(self._chat_log.hass, (content,)):
                    yield message

    async def say(self, text: str) -> None:
        """Say a sentence of our own after what was streamed."""

        async def delta() -> AsyncGenerator[Spoken]:
            yield TextDelta(text)

        async for _ in self.add(delta()):
            pass

    def leave(self, text: str) -> None:
        """Leave an answer in the chat log that is not streamed."""
        self._chat_log.async_add_assistant_content_without_tools(
            AssistantContent(agent_id=self._agent_id, content=text)
        )


async def _chat_log_deltas(
    deltas: AsyncIterator[Spoken],
) -> AsyncGenerator[AssistantContentDeltaDict]:
    started = False
    async for delta in deltas:
        if not started:
            started = True
            yield {"role": "assistant"}
        match delta:
            case TextDelta(text):
                yield {"content": text}
            case ReasoningDelta(text):
                yield {"thinking_content": text}
            case ToolCallDone(call):
                tool_input = llm.ToolInput(id=call.id, tool_name=call.name, tool_args=dict(call.arguments))
                yield {"tool_calls": [tool_input]}
