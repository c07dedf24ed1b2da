"""Conversion of a window to and from formats of other projects: LangGraph state and Chat Completions messages.

For programs that use the window without Home Assistant. It imports neither of these projects. See `docs/langgraph.md`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
    Window,
    WindowPolicy,
)
from window.codecs.fields import CodecError, check_data, is_text_list
from window.codecs.snapshot import METADATA_FIELDS, build_exchange, dump_message, load_eviction_counts, load_message
from window.tool_results import prepare_message

# OpenAI's newer models use the name `developer` for the system role.
_ROLE_BY_NAME = {role.value: role for role in Role} | {"developer": Role.SYSTEM}

_METADATA_KEY = "windowed_conversation"
_SYSTEM_ID = "system"
_ROLES = {role.value: role for role in Role} | {"human": Role.USER, "ai": Role.ASSISTANT, "developer": Role.SYSTEM}
# The attributes to read from langchain_core's message objects, which are not mappings.
_MESSAGE_ATTRIBUTES = ("type", "id", "content", "tool_calls", "tool_call_id", "name", "additional_kwargs")


type _Fields = Mapping[str, Any]


@contextmanager
def _raise_codec_errors() -> Iterator[None]:
    """Raise the errors of reading a value of another type than expected as `CodecError`."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as err:
        raise CodecError(f"the data has another form: {type(err).__name__}") from err


def to_chat_completions(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages in the Chat Completions format, in the same order. It has no fields for window metadata."""
    return [_dump_chat_message(message) for message in messages]


def from_chat_completions(data: object) -> tuple[Message, ...]:
    """Return the messages from a Chat Completions list, not yet counted or tagged. Raises `CodecError`.

    A tool result gets its tool's name from the call. Content must be a text or a list of texts, not images or audio.
    Whether the messages form complete exchanges is checked later, by the window.
    """
    check_data(data)
    if not isinstance(data, list):
        raise CodecError("the conversation is no list")
    tools: dict[str, str] = {}
    messages = []
    for place, each in enumerate(data):
        message = _load_chat_message(each, f"message {place}", tools)
        tools.update((call.id, call.name) for call in message.tool_calls)
        messages.append(message)
    return tuple(messages)


def _load_content(content: Any) -> str:
    """Return the text of a message, which is empty if the message has none."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([part if isinstance(part, str) else _load_text_part(part) for part in content])


def _load_text_part(part: Mapping[str, Any]) -> str:
    if part["type"] != "text":
        raise CodecError("a part of the content is no text")
    text: str = part["text"]
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


def _load_chat_message(data: Any, path: str, tools: Mapping[str, str]) -> Message:
    with _raise_codec_errors():
        fields = {
            "role": _ROLE_BY_NAME[data["role"]],
            "content": _load_content(data.get("content")),
            "tool_calls": [_convert_chat_call(call) for call in data.get("tool_calls") or ()],
            "tool_call_id": data.get("tool_call_id"),
            "name": tools.get(data.get("tool_call_id"), data.get("name")),
        }
    return load_message(_without_empty_fields(fields), path)


def _convert_chat_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    # Some servers send an empty text for a call without arguments.
    return {"id": call["id"], "name": function["name"], "arguments": function["arguments"] or "{}"}


def _without_empty_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


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
    with _raise_codec_errors():
        messages = [_convert_to_mapping(message) for message in state["messages"]]
        beside = state.get("window") or {}
        if conversation_id is None and not beside:
            raise CodecError("the state has no window, and the conversation no id")
        written_as = beside.get("conversation_id", "")
        check_data([messages, beside])
        if beside:
            messages = _filter_messages(messages, f"{written_as}:", frozenset(beside["ids"]))
    system, exchanges = _load_messages(messages, counter, clock())
    evicted = load_eviction_counts(beside.get("evicted")) if beside else EvictionCounts()
    window = Window(conversation_id or written_as, policy, counter, clock=clock)
    window.restore(Snapshot(window.conversation_id, system, exchanges, evicted))
    return window


def _filter_messages(messages: Iterable[_Fields], ours: str, ids: frozenset[str]) -> list[_Fields]:
    """Return the messages that are still in the window, and those that the graph has added.

    The window's system message is moved to the front, because LangGraph appends it if there was none before.
    """
    system, others = [], []
    for message in messages:
        message_id = message.get("id")
        if message_id == f"{ours}{_SYSTEM_ID}" and message_id in ids:
            system.append(message)
        elif not isinstance(message_id, str) or not message_id.startswith(ours) or message_id in ids:
            others.append(message)
    return [*system, *others]


def _load_messages(
    messages: Iterable[_Fields], counter: TokenCounter, now: float
) -> tuple[Message | None, tuple[Exchange, ...]]:
    """Return the system message and the exchanges. Raises `CodecError` if these do not begin with a user message."""
    system: Message | None = None
    exchanges: list[tuple[list[Message], list[str], list[str]]] = []
    for place, fields in enumerate(messages):
        read, tags, sources = _load_message(fields, f"message {place}")
        counted = prepare_message(read, MAX_TOKENS, counter, now) if read.tokens is None else read
        if read.role == Role.SYSTEM:
            if exchanges or system:
                raise CodecError(f"message {place} is a system message behind others")
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


def _convert_to_mapping(message: object) -> _Fields:
    """Return the fields of a message that are read, without empty ones."""
    if isinstance(message, Mapping):
        data = message.get("data")
        fields = {"type": message.get("type"), **data} if isinstance(data, Mapping) else message
    else:
        fields = {name: getattr(message, name, None) for name in _MESSAGE_ATTRIBUTES}
    return _without_empty_fields({name: fields.get(name) for name in ("role", *_MESSAGE_ATTRIBUTES)})


def _dump(message: Message, message_id: str, begun: Exchange | None = None) -> dict[str, Any]:
    """Return a message as a dictionary. The first message of an exchange also has the exchange's metadata."""
    ours = {name: value for name, value in dump_message(message).items() if name in METADATA_FIELDS}
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


def _load_message(fields: _Fields, path: str) -> tuple[Message, list[str], list[str]]:
    """Return a message. If it begins an exchange, also return the tags and the sources of the exchange."""
    with _raise_codec_errors():
        ours = dict(fields.get("additional_kwargs", {}).get(_METADATA_KEY) or {})
        tags, sources = ours.pop("exchange_tags", []), ours.pop("exchange_sources", [])
        if not is_text_list(tags) or not is_text_list(sources):
            raise CodecError(f"{path} has tags or sources that are no texts")
        form = {
            **ours,
            "role": _ROLES[fields.get("role") or fields["type"]],
            "content": _load_content(fields.get("content")),
            "tool_calls": [_convert_call(call) for call in fields.get("tool_calls", ())],
            **{name: fields[name] for name in ("tool_call_id", "name") if name in fields},
        }
    return load_message(form, path), tags, sources


def _convert_call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": call["id"], "name": call["name"], "arguments": json.dumps(dict(call["args"]), ensure_ascii=False)}
