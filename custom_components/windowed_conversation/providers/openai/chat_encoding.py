"""Encoding Chat Completions requests: messages and tools. Pure.

The dialect tells what OpenAI itself accepts from what every compatible server accepts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from ...window import Attachment, Message, Role, ToolCall
from ..encoder import given, with_notes
from ..events import Request, ToolSchema
from ..names import sent_name, within
from .fields import data_url, effort, encoded_tool, file_name, is_image, sampling, tool_choice, written_arguments

# A longer one, of another provider, is refused: https://github.com/vercel/ai/issues/5171
_CALL_ID_LENGTH = 40


class Dialect(StrEnum):
    """The kind of server. OPENAI: OpenAI itself and Azure. COMPATIBLE: any other; it gets what all accept."""

    OPENAI = "openai"
    COMPATIBLE = "compatible"


def encode_request(request: Request, dialect: Dialect, caching: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request, without those that the model does not accept or that have no value.

    `caching` are the prompt cache parameters.
    """
    images, limit = request.profile.images, request.answer_limit
    asked = (
        {"max_completion_tokens": limit, "reasoning_effort": effort(request)}
        if dialect is Dialect.OPENAI
        else {"max_tokens": limit, "reasoning_effort": request.settings.effort}
    )
    return {
        "model": request.model,
        "messages": encode_messages(
            _merged(_shown(each, dialect, images=images) for each in request.messages), dialect
        ),
        **_encode_offer(request, dialect),
        **given(**sampling(request), **asked),
        **caching,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def encode_messages(messages: Iterable[Message], dialect: Dialect = Dialect.COMPATIBLE) -> list[dict[str, Any]]:
    """Return the messages in this format, in the same order."""
    return [_encode_message(message, dialect) for message in messages]


def encode_tools(tools: Iterable[ToolSchema]) -> list[dict[str, Any]]:
    """Return the tools in this format, in the same order."""
    return [{"type": "function", "function": encoded_tool(tool)} for tool in tools]


def _encode_offer(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the tools, and `tool_choice` if they may not be called. Some compatible servers ignore it."""
    if not request.tools or not (request.may_call or dialect is Dialect.OPENAI):
        return {}
    return {"tools": encode_tools(request.tools), **tool_choice(request)}


def _shown(message: Message, dialect: Dialect, *, images: bool) -> Message:
    """Return the message with a note for attachments that the model cannot see."""
    is_openai = dialect is Dialect.OPENAI
    seen = tuple(each for each in message.attachments if images and (is_image(each) or is_openai))
    if seen == message.attachments:
        return message
    content = with_notes(message.content, len(message.attachments) - len(seen))
    return replace(message, content=content, attachments=seen)


def _merged(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages with neighbors of the same role merged: llama.cpp's chat templates refuse those.

    An assistant message without text and calls is skipped.
    """
    last: Message | None = None
    for message in messages:
        if message.role is Role.ASSISTANT and not message.content.strip() and not message.tool_calls:
            continue
        if last and _go_together(last, message):
            last = _together(last, message)
            continue
        if last:
            yield last
        last = message
    if last:
        yield last


def _go_together(first: Message, second: Message) -> bool:
    return first.role is second.role is not Role.TOOL and not first.tool_calls


def _together(first: Message, second: Message) -> Message:
    return replace(
        first,
        content="\n\n".join(filter(None, (first.content, second.content))),
        tool_calls=second.tool_calls,
        attachments=(*first.attachments, *second.attachments),
    )


def _encode_message(message: Message, dialect: Dialect) -> dict[str, Any]:
    content: Any = message.content
    match message.role:
        case Role.TOOL:
            return {"role": "tool", "tool_call_id": _sent_id(message.tool_call_id or "", dialect), "content": content}
        case Role.ASSISTANT if message.tool_calls:
            calls = [_encode_call(call, dialect) for call in message.tool_calls]
            return {"role": "assistant", "content": content if content.strip() else None, "tool_calls": calls}
        case Role.USER if message.attachments:
            text = [{"type": "text", "text": content}] if content else []
            content = [*text, *map(_encode_attachment, message.attachments)]
    return {"role": message.role.value, "content": content}


def _encode_attachment(attachment: Attachment) -> dict[str, Any]:
    if is_image(attachment):
        return {"type": "image_url", "image_url": {"url": data_url(attachment)}}
    return {"type": "file", "file": {"filename": file_name(attachment), "file_data": data_url(attachment)}}


def _encode_call(call: ToolCall, dialect: Dialect) -> dict[str, Any]:
    function = {"name": sent_name(call.name), "arguments": written_arguments(call.arguments)}
    return {"type": "function", "id": _sent_id(call.id, dialect), "function": function}


def _sent_id(call_id: str, dialect: Dialect) -> str:
    # a compatible server may have put something into its ids that it wants to see again
    return within(_CALL_ID_LENGTH, call_id) if dialect is Dialect.OPENAI else call_id
