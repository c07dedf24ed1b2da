"""Conversion of messages to and from the Chat Completions format, which has no fields for window metadata."""

from collections.abc import Iterable
import json
from typing import Any

from ..codecs.fields import CharAllowance, Fields, MalformedData
from ..messages import Message, Role, ToolCall

# OpenAI's newer models use the name `developer` for the system role.
_ROLE_BY_NAME = {role.value: role for role in Role} | {"developer": Role.SYSTEM}


def to_chat_completions(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages in the Chat Completions format, in the same order."""
    return [_dump_message(message) for message in messages]


def from_chat_completions(data: object) -> tuple[Message, ...]:
    """Return the messages from a Chat Completions list, not yet counted or tagged. Raises `CodecError`.

    A tool result gets its tool's name from the call. Content must be a text or a list of texts; images and audio raise
    `MalformedData`. Whether the messages form complete exchanges is checked later, by the window.
    """
    if not isinstance(data, list):
        raise MalformedData("the conversation is no list")
    fields = Fields({"messages": data}, "conversation", CharAllowance())
    tools: dict[str, str] = {}
    messages = []
    for each in fields.children("messages"):
        message = _load_message(each, tools)
        tools.update((call.id, call.name) for call in message.tool_calls)
        messages.append(message)
    return tuple(messages)


def load_content(fields: Fields) -> str:
    """Return the text of a message, which is empty if the message has none."""
    content = fields.get_raw("content")
    if content is None or isinstance(content, str):
        return fields.read_optional_text("content") or ""
    parts = fields.children("content", lambda part: {"type": "text", "text": part} if isinstance(part, str) else part)
    return "".join(map(_load_text_part, parts))


def _load_text_part(fields: Fields) -> str:
    if fields.read_text("type") != "text":
        raise fields.build_error("type", "is no text")
    return fields.read_text("text")


def _dump_message(message: Message) -> dict[str, Any]:
    form: dict[str, Any] = {"role": str(message.role), "content": message.content}
    if message.tool_calls:
        form["content"] = message.content or None
        form["tool_calls"] = [
            {
                "type": "function",
                "id": call.id,
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    elif message.name is not None:
        form["name"] = message.name
    return form


def _load_message(fields: Fields, tools: dict[str, str]) -> Message:
    role = _ROLE_BY_NAME.get(fields.read_text("role"))
    if role is None:
        raise fields.build_error("role", "is none")
    tool_call_id = fields.read_optional_text("tool_call_id")
    name = fields.read_optional_text("name")
    return Message(
        role=role,
        content=load_content(fields),
        tool_calls=tuple(_load_call(call) for call in fields.children("tool_calls")),
        tool_call_id=tool_call_id,
        name=name if tool_call_id is None else tools.get(tool_call_id, name),
    )


def _load_call(fields: Fields) -> ToolCall:
    function = fields.read_child("function")
    # Some servers send an empty text for a call without arguments.
    arguments = function.read_json_object("arguments") if function.get_raw("arguments") else {}
    return ToolCall(fields.read_text("id"), function.read_text("name"), arguments)
