"""Names of tools in calls: without the namespace that Home Assistant puts before them, and those of deferred tools."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from ..const import DOMAIN
from ..providers import ToolSchema, read_repaired_json
from ..window import Message, ToolCall

_SEPARATOR = "__"

# Our tools that find a deferred tool and call it.
FIND_TOOLS, CALL_TOOL = f"{DOMAIN}__find_tools", f"{DOMAIN}__call_tool"


def resolve_tool_name(name: str, offered: Iterable[str]) -> str:
    """Return the offered name of a tool whose namespace is missing in `name`, or `name` if there is not exactly one."""
    names = frozenset(offered)
    found = [each for each in names if each.rpartition(_SEPARATOR)[2] == name]
    return found[0] if name not in names and len(found) == 1 else name


def name_as_offered(messages: tuple[Message, ...], offered: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages of a request, whose calls and results have the offered names of their tools.

    Home Assistant's own agent records its commands under names without a namespace, and a model imitates its history.
    A message with native data stays as it is, because the data repeats the name.
    """
    called = {call.name for message in messages if message.native is None for call in message.tool_calls}
    names = {name: resolve_tool_name(name, offered) for name in called}
    if all(name == offered_name for name, offered_name in names.items()):
        return messages
    renamed: dict[str, str] = {}
    return tuple([_rename(message, names, renamed) for message in messages])


def _rename(message: Message, names: dict[str, str], renamed: dict[str, str]) -> Message:
    """Return a message with the offered names. `renamed` has the names of the calls so far by their ids."""
    if message.tool_call_id in renamed:
        return replace(message, name=renamed[message.tool_call_id])
    if not message.tool_calls or message.native is not None:
        return message
    calls = tuple([ToolCall(call.id, names[call.name], call.arguments) for call in message.tool_calls])
    renamed.update((call.id, call.name) for call in calls)
    return replace(message, tool_calls=calls)


def unwrap_call(call: ToolCall, deferred: Sequence[ToolSchema]) -> ToolCall:
    """Return the call of a deferred tool that a call of `CALL_TOOL` stands for, or another call as it is."""
    if resolve_tool_name(call.name, (CALL_TOOL,)) != CALL_TOOL:
        return call
    names, arguments = [tool.name for tool in deferred], call.arguments.get("arguments", {})
    name = resolve_tool_name(str(call.arguments.get("name")), names)
    if isinstance(arguments, str):
        # small models write nested arguments as text
        with suppress(ValueError, RecursionError):
            arguments = read_repaired_json(arguments)
    return replace(call, name=name, arguments=arguments) if name in names and isinstance(arguments, dict) else call


def wrap_calls(messages: tuple[Message, ...], deferred: Sequence[ToolSchema]) -> tuple[Message, ...]:
    """Return the messages of a request, in which `CALL_TOOL` calls the deferred tools, as the model has called them."""
    names = {tool.name for tool in deferred}

    def wrap(call: ToolCall) -> ToolCall:
        arguments = {"name": call.name, "arguments": dict(call.arguments)}
        return replace(call, name=CALL_TOOL, arguments=arguments) if call.name in names else call

    calls = [tuple(map(wrap, message.tool_calls)) for message in messages]
    return tuple([replace(each, tool_calls=found) for each, found in zip(messages, calls, strict=True)])
