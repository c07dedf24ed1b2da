"""Tool calls that a model writes as text: each that is whole, and fits the schema of a tool, is read as a call."""

from collections.abc import Iterable, Iterator, Mapping
import re
from typing import Any
from uuid import uuid4

from ..providers import ToolSchema, read_repaired_json
from ..window import ToolCall
from .tool_names import resolve_tool_name

# In characters.
_MAX_CALL_CHARS = 16 * 1024

_NAME_PATTERN = re.compile(r"[\w-]+")
# The closing brackets and marks that may follow the arguments.
_ENDING_PATTERN = re.compile(r"(?:[\s\])`;]|</?\w+>|<\|\w+\|>)*")
_ARGUMENTS_KEYS = ("arguments", "parameters")
_TYPE_NAMES = ("array", "boolean", "integer", "null", "number", "object", "string")
_TYPE_BY_NAME = dict(zip(_TYPE_NAMES, (list, bool, int, type(None), int | float, dict, str), strict=True))


def read_text_calls(texts: Iterable[str], tools: Iterable[ToolSchema]) -> Iterator[ToolCall]:
    """Yield the calls in texts that the speech filter has taken out, each of which may be one call of these tools."""
    schemas = {tool.name: tool.parameters for tool in tools}
    for text in texts:
        name, arguments = _split_call(text, schemas)
        if name in schemas and _fits(arguments, schemas[name]):
            yield ToolCall(f"call_{uuid4().hex}", name, arguments)


def _split_call(text: str, offered: Iterable[str]) -> tuple[str, Any]:
    """Return the offered name of the called tool, and the arguments. The name is empty if there is not exactly one."""
    begin, end = text.find("{"), text.rfind("}") + 1
    if begin < 0 or len(text) > _MAX_CALL_CHARS or not _ENDING_PATTERN.fullmatch(text, end):
        return "", None
    try:
        value = read_repaired_json(text[begin:end])
    except ValueError, RecursionError:
        return "", None
    given = [value[key] for key in _ARGUMENTS_KEYS if key in value] if isinstance(value, dict) else []
    if given and isinstance(value.get("name"), str):
        return (resolve_tool_name(value["name"], offered), given[0]) if len(given) == 1 else ("", None)
    # the name is before the arguments, as in `<function=HassTurnOn>{...}`
    offered = tuple(offered)
    names = {resolve_tool_name(each, offered) for each in _NAME_PATTERN.findall(text[:begin])}.intersection(offered)
    return (names.pop(), value) if len(names) == 1 else ("", None)


def _fits(value: Any, schema: Any) -> bool:
    """Return whether a value has a type and the members of a schema. Home Assistant checks the rest in each call."""
    kinds = schema.get("type", ()) if isinstance(schema, Mapping) else ()
    if not kinds:
        return True
    names = (kinds,) if isinstance(kinds, str) else kinds
    # in Python, a boolean is also a number
    names = {"boolean"}.intersection(names) if isinstance(value, bool) else names
    if not any(isinstance(value, _TYPE_BY_NAME.get(each, object)) for each in names):
        return False
    if isinstance(value, list):
        return all(_fits(each, schema.get("items")) for each in value)
    members = schema.get("properties")
    if not isinstance(value, dict) or members is None:
        return True
    is_complete = {*schema.get("required", ())} <= value.keys() <= members.keys()
    return is_complete and all(_fits(each, members[name]) for name, each in value.items())
