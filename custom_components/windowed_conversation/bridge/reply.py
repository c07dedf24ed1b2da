"""A turn's answer on its way into Home Assistant: our deltas as the chat log's, its contents as our messages.

The chat log passes each delta to the pipeline at once, and starts a tool as soon as its call arrives.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from homeassistant.components.conversation import (
    AssistantContent,
    AssistantContentDeltaDict,
    ChatLog,
    ToolResultContent,
)
from homeassistant.helpers import llm

from ..providers import ReasoningDelta, TextDelta, ToolCallDone
from ..turn.ports import Spoken
from ..window import Message
from .chat_log import to_messages
from .errors import sentence_after


class ChatLogReply:
    """Implements `Reply` for one turn: it streams the answer into the chat log."""

    def __init__(self, chat_log: ChatLog, agent_id: str) -> None:
        self._chat_log = chat_log
        self._agent_id = agent_id
        self._pieces: list[str] = []
        self.failed_calls = 0

    @property
    def is_heard(self) -> bool:
        """Whether the answer is consumed while it is written, for example by the Assist pipeline."""
        return self._chat_log.delta_listener is not None

    @property
    def text(self) -> str:
        """The text so far of the message that is being streamed, or was streamed last."""
        return "".join(self._pieces)

    async def add(self, deltas: AsyncIterator[Spoken]) -> AsyncGenerator[Message]:
        """Stream deltas into the chat log, and yield each message when it is complete."""
        contents = self._chat_log.async_add_delta_content_stream(self._agent_id, self._chat_log_deltas(deltas))
        async with aclosing(contents):
            async for content in contents:
                if isinstance(content, ToolResultContent):
                    self._pieces.clear()
                    self.failed_calls += bool(content.result.error)
                for message in to_messages(self._chat_log.hass, (content,)):
                    yield message

    async def break_off(self, why: str) -> str:
        """Say why the answer ends here, after the text so far. Return the whole last message.

        A delta without a role continues the message that was streamed last. With a new message, Home Assistant would
        use only that as the answer if text-to-speech does not stream.
        """
        text = self.text
        ending: AssistantContentDeltaDict = {"content": sentence_after(text, why)}
        if not text.strip():
            text, ending = "", {"role": "assistant", "content": why}

        async def delta() -> AsyncGenerator[AssistantContentDeltaDict]:
            yield ending

        async for _ in self._chat_log.async_add_delta_content_stream(self._agent_id, delta()):
            pass
        return f"{text}{ending['content']}"

    def leave(self, text: str) -> None:
        """Add an answer to the chat log that is not streamed."""
        self._chat_log.async_add_assistant_content_without_tools(
            AssistantContent(agent_id=self._agent_id, content=text)
        )

    async def _chat_log_deltas(self, deltas: AsyncIterator[Spoken]) -> AsyncGenerator[AssistantContentDeltaDict]:
        started = False
        async for delta in deltas:
            if not started:
                started = True
                self._pieces.clear()
                yield {"role": "assistant"}
            match delta:
                case TextDelta(text):
                    self._pieces.append(text)
                    yield {"content": text}
                case ReasoningDelta(text):
                    yield {"thinking_content": text}
                case ToolCallDone(call):
                    tool_input = llm.ToolInput(id=call.id, tool_name=call.name, tool_args=dict(call.arguments))
                    yield {"tool_calls": [tool_input]}
