"""Conversion of a window to and from formats of other projects: LangGraph state and Chat Completions messages.

For programs that use the window without Home Assistant. It imports neither of these projects. See `docs/langgraph.md`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
import json
import time
from typing import Any

from window import (
    MAX_TOKENS,
    EvictionCounts,
    Exchange,
    Message,
    Role,
    Snapshot,
    TokenCounter,
    ToolCall,
    Window,
    WindowPolicy,
)
from window.codecs.fields import CharAllowance, Fields, MalformedData, decode_json
from window.codecs.snapshot import build_exchange, dump_metadata, load_eviction_counts, load_metadata, load_tags
from window.messages import NO_TAGS
from window.tool_results import prepare_message

# OpenAI's newer models use the name `developer` for the system role.
_ROLE_BY_NAME = {role.value: role for role in Role} | {"developer": Role.SYSTEM}

_METADATA_KEY = "windowed_conversation"
_SYSTEM_ID = "system"
_ROLES = {role.value: role for role in Role} | {"human": Role.USER, "ai": Role.ASSISTANT, "developer": Role.SYSTEM}
# The attributes to read from langchain_core's message objects, which are not mappings.
_MESSAGE_ATTRIBUTES = ("type", "id", "content", "tool_calls", "tool_call_id", "name", "additional_kwargs")


class _ForeignFields(Fields):
    """The fields of an object of another project, whose values may have other types than ours."""

    def get_raw(self, name: str) -> object:
        """Return the unchecked value of a field, or None if the field is missing."""
        return self._values.get(name)

    def read_mapping(self, name: str) -> Mapping[str, Any]:
        """Return a copy of a nested object of JSON values. Numbers that JSON does not define become None."""
        value = self._values.get(name)
        if not isinstance(value, Mapping):
            raise self.build_error(name, "is no object")
        try:
            text = self._check_encodable(name, json.dumps(dict(value), ensure_ascii=False))
            self._allowance.spend(len(text))
            copy: dict[str, Any] = decode_json(text)
        except (TypeError, ValueError, RecursionError) as err:
            raise self.build_error(name, "is no JSON") from err
        return copy

    def children_of(self, name: str, convert: Callable[[object], object]) -> Iterator[_ForeignFields]:
        """Yield the fields of each value in a list, which `convert` makes an object."""
        converted = {name: [convert(value) for value in self._read_list(name)]}
        yield from _ForeignFields(converted, self.path, self._allowance).children(name)


def to_chat_completions(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages in the Chat Completions format, in the same order. It has no fields for window metadata."""
    return [_dump_chat_message(message) for message in messages]


def from_chat_completions(data: object) -> tuple[Message, ...]:
    """Return the messages from a Chat Completions list, not yet counted or tagged. Raises `CodecError`.

    A tool result gets its tool's name from the call. Content must be a text or a list of texts; images and audio raise
    `MalformedData`. Whether the messages form complete exchanges is checked later, by the window.
    """
    if not isinstance(data, list):
        raise MalformedData("the conversation is no list")
    fields = _ForeignFields({"messages": data}, "conversation", CharAllowance())
    tools: dict[str, str] = {}
    messages = []
    for each in fields.children("messages"):
        message = _load_chat_message(each, tools)
        tools.update((call.id, call.name) for call in message.tool_calls)
        messages.append(message)
    return tuple(messages)


def _load_content(fields: _ForeignFields) -> str:
    """Return the text of a message, which is empty if the message has none."""
    content = fields.get_raw("content")
    if content is None or isinstance(content, str):
        return fields.read_optional_text("content") or ""
    parts = fields.children_of(
        "content", lambda part: {"type": "text", "text": part} if isinstance(part, str) else part
    )
    return "".join(map(_load_text_part, parts))


def _load_text_part(fields: _ForeignFields) -> str:
    if fields.read_text("type") != "text":
        raise fields.build_error("type", "is no text")
    text: str = fields.read_text("text")
    return text


def _dump_chat_message(message: Message) -> dict[str, Any]:
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


def _load_chat_message(fields: _ForeignFields, tools: dict[str, str]) -> Message:
    role = _ROLE_BY_NAME.get(fields.read_text("role"))
    if role is None:
        raise fields.build_error("role", "is none")
    tool_call_id = fields.read_optional_text("tool_call_id")
    name = fields.read_optional_text("name")
    return Message(
        role=role,
        content=_load_content(fields),
        tool_calls=tuple(_load_chat_call(call) for call in fields.children("tool_calls")),
        tool_call_id=tool_call_id,
        name=name if tool_call_id is None else tools.get(tool_call_id, name),
    )


def _load_chat_call(fields: _ForeignFields) -> ToolCall:
    function = fields.read_child("function")
    # Some servers send an empty text for a call without arguments.
    arguments = function.read_json_object("arguments") if function.get_raw("arguments") else {}
    return ToolCall(fields.read_text("id"), function.read_text("name"), arguments)


def to_langgraph_state(window: Window) -> dict[str, Any]:
    """Return the window as `{"messages": [...], "window": {...}}`, without an open exchange.

    A message is a dictionary that `langchain_core.messages.convert_to_messages` accepts. Fields that only a window has
    are in `additional_kwargs`, which LangGraph keeps, and in the key "window" next to the messages.

    The id of a message is its position in the conversation, so that `langgraph.graph.message.add_messages` replaces it
    in place. "window" lists the ids of the messages in the window. When the state is read, older messages that
    LangGraph has kept are ignored.
    """
    snapshot = window.snapshot()
    messages = [] if snapshot.system is None else [_dump(snapshot.system, f"{snapshot.conversation_id}:{_SYSTEM_ID}")]
    number = snapshot.evicted.messages
    for exchange in snapshot.exchanges:
        for place, message in enumerate(exchange.messages):
            begun = None if place else exchange
            messages.append(_dump(message, f"{snapshot.conversation_id}:{number}", begun))
            number += 1
    beside = {
        "conversation_id": snapshot.conversation_id,
        "evicted": snapshot.evicted._asdict(),
        "ids": [message["id"] for message in messages],
    }
    return {"messages": messages, "window": beside}


def from_langgraph_state(
    state: Mapping[str, Any],
    policy: WindowPolicy,
    counter: TokenCounter,
    *,
    conversation_id: str | None = None,
    clock: Callable[[], float] = time.time,
) -> Window:
    """Return the window from a graph's state, trimmed to the policy. Raises `CodecError`.

    Messages can be langchain_core objects or dictionaries in either of langchain_core's forms. Messages that the graph
    has added are counted and tagged now. If the state has no key "window", `conversation_id` is required, and the
    eviction counts start at 0.
    """
    fields = _ForeignFields(state, "state", CharAllowance())
    if not fields.has("messages"):
        raise fields.build_error("messages", "is missing")
    beside = fields.read_child("window") if fields.has("window") else None
    if conversation_id is None and beside is None:
        raise fields.build_error("window", "is missing, and so is the conversation's id")
    written_as = beside.read_text("conversation_id") if beside else ""
    messages = fields.children_of("messages", _convert_to_mapping)
    if beside:
        messages = _filter_messages(messages, f"{written_as}:", frozenset(beside.read_texts("ids")))
    system, exchanges = _load_messages(messages, counter, clock())
    evicted = load_eviction_counts(beside.read_child("evicted")) if beside else EvictionCounts()
    window = Window(conversation_id or written_as, policy, counter, clock=clock)
    window.restore(Snapshot(window.conversation_id, system, exchanges, evicted))
    return window


def _filter_messages(messages: Iterable[_ForeignFields], ours: str, ids: frozenset[str]) -> Iterator[_ForeignFields]:
    """Return the messages that are still in the window, and those that the graph has added.

    The window's system message is moved to the front, because LangGraph appends it if there was none before.
    """
    system, others = [], []
    for message in messages:
        message_id = message.get_raw("id")
        if message_id == f"{ours}{_SYSTEM_ID}" and message_id in ids:
            system.append(message)
        elif not isinstance(message_id, str) or not message_id.startswith(ours) or message_id in ids:
            others.append(message)
    return iter((*system, *others))


def _load_messages(
    fields: Iterable[_ForeignFields], counter: TokenCounter, now: float
) -> tuple[Message | None, tuple[Exchange, ...]]:
    """Return the system message and the exchanges. Raises `MalformedData` if these do not begin with a user message."""
    system: Message | None = None
    exchanges: list[tuple[list[Message], frozenset[str], frozenset[str]]] = []
    for message in fields:
        read, tags, sources = _load_message(message)
        counted = prepare_message(read, MAX_TOKENS, counter, now) if read.tokens is None else read
        if read.role == Role.SYSTEM:
            if exchanges or system:
                raise MalformedData(f"{message.path} is a system message behind others")
            system = counted
            continue
        if read.role == Role.USER or not exchanges:
            exchanges.append(([], tags, sources))
        exchanges[-1][0].append(counted)
    closed = (
        build_exchange(messages, tags, f"exchange {number}", sources)
        for number, (messages, tags, sources) in enumerate(exchanges)
    )
    return system, tuple(closed)


def _convert_to_mapping(message: object) -> object:
    if not isinstance(message, Mapping):
        return {name: getattr(message, name, None) for name in _MESSAGE_ATTRIBUTES}
    data = message.get("data")
    return {"type": message.get("type"), **data} if isinstance(data, Mapping) else message


def _dump(message: Message, message_id: str, begun: Exchange | None = None) -> dict[str, Any]:
    """Return a message as a dictionary. The first message of an exchange also has the exchange's metadata."""
    ours = dump_metadata(message)
    if begun is not None:
        ours |= {"exchange_tags": sorted(begun.tags), "exchange_sources": sorted(begun.sources)}
    form: dict[str, Any] = {"role": str(message.role), "content": message.content, "id": message_id}
    if message.tool_calls:
        form["tool_calls"] = [
            {"type": "tool_call", "id": call.id, "name": call.name, "args": dict(call.arguments)}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        form["name"] = message.name
    return form | {"additional_kwargs": {_METADATA_KEY: ours}}


def _load_message(fields: _ForeignFields) -> tuple[Message, frozenset[str], frozenset[str]]:
    """Return a message. If it begins an exchange, also return the tags and the sources of the exchange."""
    role = _ROLES.get(fields.read_text("role" if fields.has("role") else "type"))
    if role is None:
        raise fields.build_error("role", "is none")
    message = Message(
        role=role,
        content=_load_content(fields),
        tool_calls=tuple(_load_call(call) for call in fields.children("tool_calls")),
        tool_call_id=fields.read_optional_text("tool_call_id"),
        name=fields.read_optional_text("name"),
    )
    more = fields.read_child("additional_kwargs") if fields.has("additional_kwargs") else None
    if more is None or not more.has(_METADATA_KEY):
        return message, NO_TAGS, NO_TAGS
    ours = more.read_child(_METADATA_KEY)
    tags, sources = load_tags(ours, "exchange_tags"), frozenset(ours.read_texts("exchange_sources"))
    return replace(message, **load_metadata(ours)), tags, sources


def _load_call(fields: _ForeignFields) -> ToolCall:
    return ToolCall(fields.read_text("id"), fields.read_text("name"), fields.read_mapping("args"))
