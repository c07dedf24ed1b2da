"""Encode Responses requests, and requests to `/responses/compact`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ...window import Attachment, Message, Role, ToolCall
from ..answer_schemas import OPENAI_STRICT, place_answer_schema
from ..encoder import add_notes, drop_none, encode_name, join_system_prompt, native_value, shorten
from ..errors import BadStream
from ..events import Compacted, Request, ToolSchema, add_picture_messages
from ..json_values import as_text, drop_non_finite, get_member, get_objects
from ..models import Effort, ReasoningStyle
from .fields import (
    data_url,
    encode_arguments,
    encode_effort,
    encode_sampling,
    encode_tier,
    encode_tool,
    encode_tool_choice,
    encode_verbosity,
    get_file_name,
    is_image,
    read_usage,
)

# Our own tool search, declared as one that the client runs.
_SEARCH_STATUS = {"execution": "client", "status": "completed"}

_COMPACTED_FIELD = "compacted"

# Longer call ids are refused, even the server's own: https://github.com/openai/codex/issues/14355
_MAX_CALL_ID_CHARS = 64


def encode_compaction(prompt: Mapping[str, Any], caching: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request for a compaction. It offers no tools, because it asks for no answer."""
    given = {**prompt, **caching}
    return {name: given[name] for name in ("model", "instructions", "input", "prompt_cache_key") if name in given}


def read_compaction(answer: Any) -> Compacted:
    """Return the compaction from the server's answer. Raises `BadStream` if nothing was compacted."""
    try:
        items = drop_non_finite(answer["output"])
        compacted = [item for item in items if item["type"] == "compaction" and as_text(item["encrypted_content"])]
        parts = [part for item in items for part in item.get("content") or () if isinstance(part, dict)]
        texts = tuple(as_text(part.get("text")) for part in parts)
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise BadStream(f"the server does not compact ({type(err).__name__})") from err
    if not compacted:
        raise BadStream("the server does not compact")
    return Compacted({_COMPACTED_FIELD: items}, texts, read_usage(get_member(answer, "usage"), "input", "output"))


def get_compacted_items(message: Message | None, provider: str, model: str) -> list[Any]:
    """Return the items that replace a message and its question if this model compacted them, else an empty list."""
    return get_objects(get_member(native_value(message, provider, model), _COMPACTED_FIELD))


type _Item = dict[str, Any]


def encode_request(request: Request, provider: str, caching: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request. Residue is sent if `provider` and the request's model produced it.

    `caching` contains the prompt cache parameters.
    """
    reasons = request.profile.reasoning is ReasoningStyle.EFFORT
    include = ["reasoning.encrypted_content"] if reasons else []
    include += ["web_search_call.action.sources"] if request.web_search else []
    return {
        **encode_prompt(request, provider),
        **({"include": include} if include else {}),
        **drop_none(max_output_tokens=request.answer_limit, **encode_sampling(request)),
        **(encode_tool_choice(request) if request.tools or request.web_search else {}),
        **caching,
        **encode_tier(request),
        "store": False,
        "stream": True,
    }


def encode_prompt(request: Request, provider: str) -> dict[str, Any]:
    """Return the parameters that cost input tokens, which are also the parameters of the counting endpoint."""
    request, wanted = place_answer_schema(request, OPENAI_STRICT)
    strict = {"type": "json_schema", "strict": True}
    answer = {**strict, "name": encode_name(wanted.name), "schema": wanted.schema} if wanted else None
    spoken = [message for message in add_picture_messages(request.messages) if message.role is not Role.SYSTEM]
    text = {**({"format": answer} if answer else {}), **encode_verbosity(request)}
    thinks = encode_effort(request)
    tools: list[_Item] = [_encode_tool(tool, request) for tool in request.tools]
    if request.web_search:
        tools.append({"type": "web_search", "user_location": request.web_search.location})
        # The server refuses a search with minimal effort.
        thinks = Effort.LOW if thinks == Effort.MINIMAL else thinks
    return {
        "model": request.model,
        **drop_none(instructions=join_system_prompt(request.messages) or None),
        "input": list(_encode_conversation(spoken, request, provider)),
        **({"tools": tools} if tools else {}),
        # With minimal effort, calls in parallel must not be requested:
        # https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning
        **({"parallel_tool_calls": True} if tools and thinks != Effort.MINIMAL else {}),
        **({"reasoning": {"effort": thinks}} if thinks else {}),
        **({"text": text} if text else {}),
    }


def _encode_tool(tool: ToolSchema, request: Request) -> _Item:
    encoded = encode_tool(tool)
    if tool.name != request.search_tool:
        return {"type": "function", **encoded, "strict": False}
    search = {name: encoded[name] for name in ("description", "parameters")}
    return {"type": "tool_search", "execution": "client", **search}


def _encode_conversation(messages: Sequence[Message], request: Request, provider: str) -> Iterator[_Item]:
    """Yield the items of a conversation. A compaction replaces its exchange, including the question."""
    for message, following in zip_longest(messages, messages[1:]):
        if items := get_compacted_items(message, provider, request.model):
            yield from items
        elif not get_compacted_items(following, provider, request.model):
            yield from _encode_message(message, request, provider)


def _encode_message(message: Message, request: Request, provider: str) -> Iterator[_Item]:
    match message.role:
        case Role.TOOL:
            result: _Item = {"call_id": shorten(_MAX_CALL_ID_CHARS, message.tool_call_id or "")}
            if (found := request.read_found_tools(message)) is None:
                yield {"type": "function_call_output", **result, "output": message.content}
            else:
                tools = [{**_encode_tool(tool, request), "defer_loading": True} for tool in found]
                yield {"type": "tool_search_output", **result, **_SEARCH_STATUS, "tools": tools}
        case Role.ASSISTANT:
            residue = get_objects(native_value(message, provider, request.model))
            yield from _encode_assistant(message, residue, request.search_tool)
        case _:
            yield _encode_user(message, images=request.profile.images)


def _encode_user(message: Message, *, images: bool) -> _Item:
    content: Any = message.content
    if message.attachments and images:
        text = [{"type": "input_text", "text": content}] if content else []
        content = [*text, *map(_encode_attachment, message.attachments)]
    elif message.attachments:
        content = add_notes(content, len(message.attachments))
    return {"type": "message", "role": "user", "content": content}


def _encode_attachment(attachment: Attachment) -> _Item:
    if is_image(attachment):
        return {"type": "input_image", "image_url": data_url(attachment), "detail": "auto"}
    return {"type": "input_file", "filename": get_file_name(attachment), "file_data": data_url(attachment)}


def _encode_call(call: ToolCall, search_tool: str) -> _Item:
    call_id = shorten(_MAX_CALL_ID_CHARS, call.id)
    if call.name == search_tool:
        given = drop_non_finite(dict(call.arguments))
        return {"type": "tool_search_call", "call_id": call_id, **_SEARCH_STATUS, "arguments": given}
    arguments = encode_arguments(call.arguments)
    return {"type": "function_call", "call_id": call_id, "name": encode_name(call.name), "arguments": arguments}


def _encode_assistant(message: Message, residue: Sequence[Mapping[str, Any]], search_tool: str) -> Iterator[_Item]:
    """Yield a message's items in the order of the residue, then the items that the residue does not mention.

    Reasoning is skipped if the item that followed it is missing, because the server would refuse it.
    """
    texts = _split_text(message.content, residue)
    calls = {call.id: _encode_call(call, search_tool) for call in message.tool_calls}
    reasoning: list[Any] = []
    for at, entry in enumerate(residue):
        follower: Any = None
        match entry:
            case {"type": "reasoning", "encrypted_content": _}:
                reasoning.append(entry)
                continue
            case {"type": "compaction", "encrypted_content": _}:
                # The compaction item includes the items before it.
                reasoning, follower = [], entry
            case {"type": "message"}:
                follower = _encode_text(texts.pop(at, ""), entry.get("phase"))
            case {"type": "function_call" | "tool_search_call", "call_id": call_id}:
                follower = calls.pop(call_id, None)
        if follower:
            yield from (*reasoning, follower)
        reasoning = []
    yield from filter(None, (_encode_text(text) for text in texts.values()))
    yield from calls.values()


def _split_text(content: str, residue: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the text of each message in the residue, by its index in the residue.

    If part of the answer was not spoken, the content is shorter than the residue says, and goes into the last message.
    """
    messages = {at: entry for at, entry in enumerate(residue) if entry["type"] == "message"}
    if not messages:
        return {-1: content}
    if max(entry["end"] for entry in messages.values()) != len(content):
        return {max(messages): content}
    return {at: content[entry["start"] : entry["end"]] for at, entry in messages.items()}


def _encode_text(text: str, phase: Any = None) -> _Item | None:
    if not text.strip():
        return None
    return {"type": "message", "role": "assistant", "content": text, **({"phase": phase} if phase else {})}
