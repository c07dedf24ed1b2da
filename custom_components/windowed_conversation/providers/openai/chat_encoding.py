"""Encoding Chat Completions requests: messages and tools. Pure.

The dialect separates the parameters of OpenAI from those that every compatible server accepts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from ...window import Attachment, Message, Role, ToolCall
from ..encoder import with_notes, without_none
from ..events import Request, ToolSchema
from ..names import is_short, sent_name, short_id, shortened
from .chat_residue import Echo, echo_fields, own_residue
from .fields import (
    data_url,
    encode_arguments,
    encoded_tool,
    file_name,
    is_image,
    reasoning_effort,
    sampling_parameters,
    tool_choice,
)

# A longer one, of another provider, is refused: https://github.com/vercel/ai/issues/5171
_CALL_ID_LENGTH = 40


class Dialect(StrEnum):
    """The kind of server. OPENAI: OpenAI itself and Azure. COMPATIBLE: any other, with parameters that all accept."""

    OPENAI = "openai"
    COMPATIBLE = "compatible"


def encode_request(
    request: Request, dialect: Dialect, provider: str, echo: Echo, caching: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of a request, without those that the model does not accept or that have no value.

    Residue that `provider` and the request's model made is sent as `echo` says. `caching` are the prompt cache
    parameters.
    """
    images, limit = request.profile.images, request.answer_limit
    shown = (_shown(each, dialect, images=images) for each in request.messages)
    asked = (
        {"max_completion_tokens": limit, "reasoning_effort": reasoning_effort(request)}
        if dialect is Dialect.OPENAI
        else {"max_tokens": limit, "reasoning_effort": request.settings.effort}
    )
    return {
        "model": request.model,
        "messages": encode_messages(_merged(shown, provider, request.model), dialect, provider, request.model, echo),
        **_encode_offer(request, dialect),
        **without_none(**sampling_parameters(request), **asked),
        **caching,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def encode_messages(
    messages: Iterable[Message],
    dialect: Dialect = Dialect.COMPATIBLE,
    provider: str = "",
    model: str = "",
    echo: Echo = Echo.WRITTEN,
) -> list[dict[str, Any]]:
    """Return the messages in this format, in the same order, with the residue that `provider` and `model` made."""
    encoded: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for message in messages:
        if message.role is Role.ASSISTANT:
            residue = own_residue(message, provider, model)
            ids = {call.id: _sent_id(call.id, dialect, is_own=residue is not None) for call in message.tool_calls}
            calls = residue.calls if residue and echo is not Echo.NOTHING else {}
            encoded.append({**_encode_assistant(message, ids, calls), **echo_fields(residue, echo)})
        elif message.role is Role.TOOL:
            call_id = message.tool_call_id or ""
            sent = ids.get(call_id) or _sent_id(call_id, dialect)
            encoded.append({"role": "tool", "tool_call_id": sent, "content": message.content})
        else:
            encoded.append({"role": message.role.value, "content": _encode_content(message)})
    return encoded


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


def _merged(messages: Iterable[Message], provider: str, model: str) -> Iterator[Message]:
    """Yield the messages with neighbors of the same role merged: llama.cpp's chat templates refuse those.

    An assistant message without text and calls is skipped. One with residue of this provider's model stays as it is.
    """
    last: Message | None = None
    for message in messages:
        if message.role is Role.ASSISTANT and not message.content.strip() and not message.tool_calls:
            continue
        goes_together = last and last.role is message.role is not Role.TOOL and not last.tool_calls
        if last and goes_together and not own_residue(last, provider, model):
            last = _together(last, message)
            continue
        if last:
            yield last
        last = message
    if last:
        yield last


def _together(first: Message, second: Message) -> Message:
    return replace(
        first,
        content="\n\n".join(filter(None, (first.content, second.content))),
        tool_calls=second.tool_calls,
        native=second.native,
        attachments=(*first.attachments, *second.attachments),
    )


def _encode_content(message: Message) -> Any:
    if not message.attachments:
        return message.content
    text = [{"type": "text", "text": message.content}] if message.content else []
    return [*text, *map(_encode_attachment, message.attachments)]


def _encode_assistant(message: Message, ids: Mapping[str, str], extras: Mapping[str, Any]) -> dict[str, Any]:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content}
    calls = [_encode_call(call, ids[call.id], extras.get(call.id)) for call in message.tool_calls]
    content = message.content if message.content.strip() else None
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _encode_attachment(attachment: Attachment) -> dict[str, Any]:
    if is_image(attachment):
        return {"type": "image_url", "image_url": {"url": data_url(attachment)}}
    return {"type": "file", "file": {"filename": file_name(attachment), "file_data": data_url(attachment)}}


def _encode_call(call: ToolCall, sent_id: str, extra: Any) -> dict[str, Any]:
    function = {"name": sent_name(call.name), "arguments": encode_arguments(call.arguments)}
    return {"type": "function", "id": sent_id, "function": function, **without_none(extra_content=extra)}


def _sent_id(call_id: str, dialect: Dialect, *, is_own: bool = False) -> str:
    if dialect is Dialect.OPENAI:
        return shortened(_CALL_ID_LENGTH, call_id)
    # a server may have put something into its ids that it wants to see again
    return call_id if is_own or is_short(call_id) else short_id(call_id)
