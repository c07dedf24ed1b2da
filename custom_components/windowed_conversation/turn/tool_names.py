"""Names of tools in calls: without the namespace that Home Assistant puts before them, and those of deferred tools."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..window import Message, ToolCall

_SEPARATOR = "__"


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
