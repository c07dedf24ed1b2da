"""Encoding Chat Completions requests: messages and tools. Pure.

The dialect tells what OpenAI itself accepts from what every compatible server accepts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from openai.types.chat import (
    ChatCompletionContentPartParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
)

from ...window import Attachment, Message, Role, ToolCall
from ..encoder import with_notes
from ..events import Request, ToolSchema
from ..names import sent_name, within
from .fields import (
    data_url,
    effort,
    file_name,
    is_image,
    sampling,
    sent_parameters,
    tool_choice,
    written_arguments,
)

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
    messages = _merged(_acceptable(message, request, dialect) for message in request.messages)
    asked = {
        **sampling(request),
        **(_asked_of_openai(request) if dialect is Dialect.OPENAI else {"max_tokens": request.answer_limit}),
    }
    return {
        "model": request.model,
        "messages": encode_messages(messages),
        **_encode_offer(request, dialect),
        **{name: value for name, value in asked.items() if value is not None},
        **caching,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def encode_messages(messages: Iterable[Message]) -> list[ChatCompletionMessageParam]:
    """Return the messages in this format, in the same order."""
    return [_encode_message(message) for message in messages]


def encode_tools(tools: Iterable[ToolSchema]) -> list[ChatCompletionFunctionToolParam]:
    """Return the tools in this format, in the same order."""
    return [
        {
            "type": "function",
            "function": {
                "name": sent_name(tool.name),
                "description": tool.description,
                "parameters": sent_parameters(tool),
            },
        }
        for tool in tools
    ]


def _encode_offer(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the tools, and `tool_choice` if they may not be called. Some compatible servers ignore it."""
    if not request.tools or not (request.may_call or dialect is Dialect.OPENAI):
        return {}
    return {"tools": encode_tools(request.tools), **tool_choice(request)}


def _asked_of_openai(request: Request) -> dict[str, Any]:
    return {"max_completion_tokens": request.answer_limit, "reasoning_effort": effort(request)}


def _acceptable(message: Message, request: Request, dialect: Dialect) -> Message:
    """Return the message with valid names and ids, and with a note for attachments that the model cannot see.

    Most messages need no change; copying each message of a long history would cost more than writing it.
    """
    if message.attachments:
        images = request.profile.images
        seen = tuple(each for each in message.attachments if images and _is_read(each, dialect))
        content = with_notes(message.content, len(message.attachments) - len(seen))
        return replace(message, content=content, attachments=seen)
    calls = tuple(_acceptable_call(call, dialect) for call in message.tool_calls)
    result_of = message.tool_call_id and _acceptable_id(message.tool_call_id, dialect)
    if calls == message.tool_calls and result_of == message.tool_call_id:
        return message
    return replace(message, tool_calls=calls, tool_call_id=result_of)


def _acceptable_call(call: ToolCall, dialect: Dialect) -> ToolCall:
    call_id, name = _acceptable_id(call.id, dialect), sent_name(call.name)
    if (call_id, name) == (call.id, call.name):
        return call
    return replace(call, id=call_id, name=name)


def _is_read(attachment: Attachment, dialect: Dialect) -> bool:
    return is_image(attachment) or dialect is Dialect.OPENAI


def _acceptable_id(call_id: str, dialect: Dialect) -> str:
    # a compatible server may have put something into its ids that it wants to see again
    return within(_CALL_ID_LENGTH, call_id) if dialect is Dialect.OPENAI else call_id


def _merged(messages: Iterable[Message]) -> Iterable[Message]:
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


def _encode_message(message: Message) -> ChatCompletionMessageParam:
    match message.role:
        case Role.SYSTEM:
            return {"role": "system", "content": message.content}
        case Role.USER:
            return {"role": "user", "content": _encode_parts(message) if message.attachments else message.content}
        case Role.TOOL:
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id or "",
                "content": message.content,
            }
        case Role.ASSISTANT:
            return _encode_assistant(message)


def _encode_parts(message: Message) -> list[ChatCompletionContentPartParam]:
    parts: list[ChatCompletionContentPartParam] = []
    if message.content:
        parts.append({"type": "text", "text": message.content})
    parts.extend(_encode_attachment(attachment) for attachment in message.attachments)
    return parts


def _encode_attachment(attachment: Attachment) -> ChatCompletionContentPartParam:
    if is_image(attachment):
        return {"type": "image_url", "image_url": {"url": data_url(attachment)}}
    return {"type": "file", "file": {"filename": file_name(attachment), "file_data": data_url(attachment)}}


def _encode_assistant(message: Message) -> ChatCompletionMessageParam:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content}
    return {
        "role": "assistant",
        "content": message.content if message.content.strip() else None,
        "tool_calls": [
            {
                "type": "function",
                "id": call.id,
                "function": {"name": call.name, "arguments": written_arguments(call.arguments)},
            }
            for call in message.tool_calls
        ],
    }
