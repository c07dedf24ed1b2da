"""Access to Home Assistant's chat sessions and chat logs: reads messages from a log and writes answers to it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from copy import copy
from dataclasses import asdict, replace
from inspect import signature
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import (
    HOME_ASSISTANT_AGENT,
    AssistantContent,
    AssistantContentDeltaDict,
    ChatLog,
    Content,
    ConversationInput,
    SystemContent,
    ToolResultContent,
    ToolResultContentDeltaDict,
    UserContent,
)
from homeassistant.components.conversation.chat_log import (
    DATA_CHAT_LOGS,
    async_subscribe_chat_logs,
    current_chat_log,
)
from homeassistant.components.conversation.const import ChatLogEventType
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback, split_entity_id, valid_domain, valid_entity_id
from homeassistant.helpers import area_registry as ar, entity_registry as er, llm
from homeassistant.helpers.chat_session import ChatSession, async_get_chat_session, current_session
from homeassistant.helpers.intent import IntentResponse
from homeassistant.helpers.json import json_dumps

from ..providers import UNSEEN_NOTE, ReasoningDelta, Source, TextDelta, ToolCallDone
from ..turn.context import mark_typed_prefixes
from ..turn.state import ReplyDelta
from ..window import MAX_TAG_LENGTH, Message, ToolCall
from .errors import format_next_sentence

# Agent ids of answers that a pipeline gives by itself, before it asks an agent, see
# `homeassistant.components.assist_pipeline.default_pipeline`.
_PIPELINE_AGENTS = (HOME_ASSISTANT_AGENT, "sentence_trigger")
# The name of the external tool call that shows the sources of an answer.
WEB_SEARCH_TOOL = "web_search"
# The most names of one slot that become tags, because a model may list any number of names.
_MAX_TAG_NAMES = 20

_SESSIONS_HAVE_OWNERS = "context" in signature(async_get_chat_session).parameters

# The error of opening a chat log that another turn uses. Home Assistant has it from 2026.11 on.
BUSY_ERRORS: tuple[type[Exception], ...] = tuple(
    error for error in [getattr(conversation, "ConversationBusyError", None)] if error
)


def convert_contents(hass: HomeAssistant, contents: Iterable[Content]) -> tuple[Message, ...]:
    """Return the contents of a chat log as messages. System prompts and empty answers are skipped."""
    return tuple([message for content in contents if (message := _convert_content(hass, content))])


def _convert_content(hass: HomeAssistant, content: Content) -> Message | None:
    if isinstance(content, SystemContent):
        return None
    created = content.created.timestamp()
    if isinstance(content, UserContent):
        text = mark_typed_prefixes(content.content)
        return Message.user(f"{text}\n\n{UNSEEN_NOTE}" if content.attachments else text, created=created)
    if isinstance(content, ToolResultContent):
        text, tags = format_tool_result(content.result), get_result_tags(hass, content.result)
        return Message.tool(content.tool_call_id, content.tool_name, text, tags=tags, created=created)
    calls = tuple([ToolCall(call.id, call.tool_name, call.tool_args) for call in content.tool_calls or ()])
    if not calls and not content.content:
        return None
    tags = frozenset[str]().union(*[get_call_tags(hass, call.arguments) for call in calls]) if calls else frozenset()
    return Message.assistant(content.content or "", tool_calls=calls, tags=tags, created=created)


def format_tool_result(result: llm.ToolResult) -> str:
    """Return the result of a tool as text. The word "error" in it is how the model learns that the tool failed."""
    return json_dumps({"error": result.data} if result.error and "error" not in result.data else result.data)


def find_pipeline_exchanges(chat_log: ChatLog, agent_id: str, seen: Collection[Message]) -> list[tuple[Message, ...]]:
    """Return the exchanges that the pipeline itself answered since the agent's last turn, oldest first.

    That turn is the newest exchange in the log that the agent answered or that contains one of the `seen` messages: the
    clock may have been set back. The input that is being answered now is not included.
    """
    handled: list[tuple[Message, ...]] = []
    contents = chat_log.content[:-1]
    end = len(contents)
    for begin in range(end - 1, -1, -1):
        if not isinstance(contents[begin], UserContent):
            continue
        exchange, end = contents[begin:end], begin
        # The log attributes those before the last one to the agent, even if the pipeline answered.
        answer = exchange[-1]
        if not isinstance(answer, AssistantContent | ToolResultContent):
            continue
        if answer.agent_id == agent_id and (answer.role == "assistant" or answer.tool_name == WEB_SEARCH_TOOL):
            break
        if answer.agent_id in _PIPELINE_AGENTS:
            messages = convert_contents(chat_log.hass, exchange)
            keys = {(message.created, message.content) for message in messages}
            if any((message.created, message.content) in keys for message in seen):
                break
            handled.append(messages)
    return handled[::-1]


@callback
def async_watch_pipeline_inputs(
    hass: HomeAssistant, conversation_id: str, on_input: Callable[[str], None]
) -> CALLBACK_TYPE:
    """Call `on_input` with each input of a conversation that the pipeline itself answers. Return a function to stop."""
    newest = ""

    @callback
    def on_event(changed_id: str, event_type: ChatLogEventType, data: dict[str, Any]) -> None:
        nonlocal newest
        if changed_id != conversation_id or event_type is not ChatLogEventType.CONTENT_ADDED:
            return
        content = data["content"]
        if content["role"] == "user":
            newest = content["content"]
        elif content.get("agent_id") in _PIPELINE_AGENTS and newest:
            on_input(newest)
            newest = ""

    return async_subscribe_chat_logs(hass, on_event)


def async_open_session(hass: HomeAssistant, user_input: ConversationInput) -> AbstractContextManager[ChatSession]:
    """Return the chat session of an input. Raises `Unauthorized` if sessions have owners and it is another user's."""
    owner: dict[str, Any] = {"context": user_input.context} if _SESSIONS_HAVE_OWNERS else {}
    return async_get_chat_session(hass, user_input.conversation_id, **owner)


def find_pipeline_log(session: ChatSession) -> ChatLog | None:
    """Return the chat log of the Assist pipeline that waits for an answer in this session, or None if none does."""
    chat_log = current_chat_log.get()
    if chat_log is None or chat_log.delta_listener is None or chat_log.conversation_id != session.conversation_id:
        return None
    return chat_log


@contextmanager
def open_own_log(hass: HomeAssistant, user_input: ConversationInput) -> Iterator[ChatLog]:
    """Return a context manager with a separate chat log for an input, while another turn uses the real one.

    The log begins with the contents of the real one, and is discarded at the end.
    """
    chat_log = ChatLog(hass, user_input.conversation_id or "")
    if (current := hass.data.get(DATA_CHAT_LOGS, {}).get(chat_log.conversation_id)) is not None:
        chat_log.content = [*current.content]
    chat_log.async_add_user_content(UserContent(content=user_input.text))
    token = current_chat_log.set(chat_log)
    try:
        yield chat_log
    finally:
        current_chat_log.reset(token)


def replace_input_text(chat_log: ChatLog, text: str) -> None:
    """Replace the text of the input that is to be answered."""
    newest = chat_log.content[-1]
    if isinstance(newest, UserContent):
        chat_log.content[-1] = replace(newest, content=text)


def copy_chat_log(chat_log: ChatLog) -> ChatLog:
    """Return a copy of a chat log, which has a list of contents and tools of its own."""
    own = copy(chat_log)
    own.content = [*chat_log.content]
    return own


def add_copied_contents(chat_log: ChatLog, own: ChatLog) -> None:
    """Add the new contents of a copy to the chat log."""
    chat_log.content.extend(own.content[len(chat_log.content) :])
    chat_log.extra_system_prompt = own.extra_system_prompt


def leave_session(task: asyncio.Task[Any]) -> None:
    """Remove the session and the chat log from the context of a task that goes on after their turn has ended."""
    context = task.get_context()
    context.run(current_session.set, None)
    context.run(current_chat_log.set, None)


async def async_ask_agent(
    hass: HomeAssistant, user_input: ConversationInput, agent_id: str, conversation_id: str
) -> IntentResponse:
    """Return the response of another agent to an input."""
    result = await conversation.async_converse(
        hass,
        user_input.text,
        conversation_id,
        user_input.context,
        language=user_input.language,
        agent_id=agent_id,
        device_id=user_input.device_id,
        satellite_id=user_input.satellite_id,
        extra_system_prompt=user_input.extra_system_prompt,
    )
    return result.response


def get_call_tags(hass: HomeAssistant, arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the tags for the areas and domains in the arguments of a tool call."""
    areas = [ar.async_get(hass).async_get_area_by_name(name) for name in _parse_names(arguments.get("area"))]
    domains = filter(valid_domain, _parse_names(arguments.get("domain")))
    return _make_tags({area.id for area in areas if area}.union(domains))


def get_result_tags(hass: HomeAssistant, result: llm.ToolResult) -> frozenset[str]:
    """Return the tags for the targets of an intent's result (`IntentResponse.as_dict`); other results have none."""
    outcome = result.data.get("data")
    targets = outcome.get("success") if isinstance(outcome, dict) else None
    if not isinstance(targets, list):
        return frozenset()
    return _make_tags([name for target in targets if isinstance(target, dict) for name in _target_names(hass, target)])


def _make_tags(names: Iterable[str]) -> frozenset[str]:
    """Return the tags for names from a model or a tool. Names that do not form a valid tag are skipped."""
    tags = [f"context:{name}" for name in names if name.strip()]
    return frozenset([tag for tag in tags if len(tag) <= MAX_TAG_LENGTH])


def _target_names(hass: HomeAssistant, target: Mapping[str, Any]) -> Iterator[str]:
    kind, target_id = target.get("type"), target.get("id")
    if not isinstance(target_id, str):
        return
    if kind == "entity" and valid_entity_id(target_id):
        yield split_entity_id(target_id)[0]
        entry = er.async_get(hass).async_get(target_id)
        if entry and (area_id := er.async_get_effective_area_id(hass, entry)):
            yield area_id
    elif kind == "area" or (kind == "domain" and valid_domain(target_id)):
        yield target_id


def _parse_names(value: object) -> list[str]:
    """Return the names in a slot, which is a single name or a list. Only the first names of a long list are used."""
    names = value[:_MAX_TAG_NAMES] if isinstance(value, list) else [value]
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]


class ChatLogReply:
    """Implements `Reply` for one turn by streaming the answer into the chat log."""

    def __init__(self, chat_log: ChatLog, agent_id: str) -> None:
        self.chat_log = chat_log
        self._agent_id = agent_id
        self._text_pieces: list[str] = []
        # whether any text of the answer was streamed
        self.has_begun = False
        # whether a satellite already speaks the stream
        self.is_being_spoken = False
        self.last_tool_name = ""
        # whether the turn waits for the turns before it
        self.waits_for_turn = False
        self.failed_call_count = 0

    @property
    def has_listener(self) -> bool:
        """Whether somebody receives the answer while it is written, for example the Assist pipeline."""
        return self.chat_log.delta_listener is not None

    @property
    def text(self) -> str:
        """The text so far of the message that is being streamed, or else of the last streamed message."""
        return "".join(self._text_pieces)

    async def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        """Stream deltas into the chat log. Yield each message when it is complete."""
        contents = self.chat_log.async_add_delta_content_stream(self._agent_id, self._convert_deltas(deltas))
        async with aclosing(contents):
            async for content in contents:
                if isinstance(content, ToolResultContent):
                    self._text_pieces.clear()
                    self.failed_call_count += bool(content.result.error)
                if (message := _convert_content(self.chat_log.hass, content)) is not None:
                    yield message

    def speak(self, text: str, *, is_new: bool = True) -> None:
        """Let the satellite speak a text that is in no chat log. From then on it speaks only the stream.

        With `is_new` False, the text continues the message that is being streamed.
        """
        if (listener := self.chat_log.delta_listener) is not None:
            listener(self.chat_log, {"role": "assistant", "content": text} if is_new else {"content": text})
            self.is_being_spoken = True

    def show_details(self, text: str) -> None:
        """Show a text with Markdown among the details of the answer in the chat dialog. Nobody hears it.

        It is in no chat log, because the dialog shows it among a model's thoughts, which agents may send again.
        """
        if (listener := self.chat_log.delta_listener) is not None:
            # in the dialog, a new message would repeat what is streamed already
            role = {} if self.has_begun else {"role": "assistant"}
            listener(self.chat_log, {**role, "thinking_content": text})

    def detach(self) -> None:
        """Stop streaming the answer to its listener."""
        self.chat_log.delta_listener = None
        self.is_being_spoken = False

    async def add_sentence(self, sentence: str) -> str:
        """Append a sentence of ours, such as why the answer ends early. Return the text of the last message.

        The delta without a role continues the message that was streamed last. If it began a new message, Home Assistant
        would use only that one as the answer when text-to-speech does not stream.
        """
        text = self.text
        ending: AssistantContentDeltaDict = {"content": format_next_sentence(text, sentence)}
        if not text.strip():
            text, ending = "", {"role": "assistant", "content": sentence}
        await self._add_deltas(ending)
        return f"{text}{ending['content']}"

    async def add_sources(self, sources: Iterable[Source]) -> None:
        """Show the sources of the answer as the result of an external tool call, which nobody hears.

        The call follows the complete text, so that text-to-speech has that already. Without a role, it begins no new
        message.
        """
        data: dict[str, Any] = {"sources": [asdict(source) for source in sources]}
        call = llm.ToolInput(tool_name=WEB_SEARCH_TOOL, tool_args={}, external=True)
        result: ToolResultContentDeltaDict = {
            "role": "tool_result",
            "tool_call_id": call.id,
            "tool_name": call.tool_name,
            "result": llm.ToolResult(data=data),
        }
        await self._add_deltas({"tool_calls": [call]}, result)

    async def _add_deltas(self, *deltas: AssistantContentDeltaDict | ToolResultContentDeltaDict) -> None:
        async def stream() -> AsyncGenerator[AssistantContentDeltaDict | ToolResultContentDeltaDict]:
            for delta in deltas:
                yield delta

        async for _ in self.chat_log.async_add_delta_content_stream(self._agent_id, stream()):
            pass

    def add_answer(self, text: str) -> None:
        """Add an answer to the chat log without streaming it."""
        self.chat_log.async_add_assistant_content_without_tools(AssistantContent(agent_id=self._agent_id, content=text))

    async def _convert_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[AssistantContentDeltaDict]:
        started = False
        async for delta in deltas:
            if not started:
                started = True
                self._text_pieces.clear()
                yield {"role": "assistant"}
            match delta:
                case TextDelta(text):
                    self._text_pieces.append(text)
                    self.has_begun = True
                    yield {"content": text}
                case ReasoningDelta(text):
                    yield {"thinking_content": text}
                case ToolCallDone(call):
                    tool_input = llm.ToolInput(id=call.id, tool_name=call.name, tool_args=dict(call.arguments))
                    self.last_tool_name = call.name
                    yield {"tool_calls": [tool_input]}
