"""Tools for Anthropic's Messages API: their schemas, and arguments whose names the API accepts."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ..events import Request, ToolSchema
from ..names import replacement_names, sent_name
from ..schemas import without_choice

type ArgumentNames = Mapping[str, Mapping[str, str]]


def encode_tools(request: Request) -> list[dict[str, Any]]:
    """Return the tools; if none is offered, those that the history calls, without which the API refuses the request."""
    called = {call.name for message in request.messages for call in message.tool_calls}
    tools = request.tools or [ToolSchema(name, "", {}) for name in sorted(called, key=sent_name)]
    return [
        {"name": sent_name(tool.name), "description": tool.description, "input_schema": _schema(tool)[0]}
        for tool in tools
    ]


def argument_names(tools: Iterable[ToolSchema]) -> ArgumentNames:
    """Return, by tool, the names that are sent instead of arguments' own names, for tools that need any."""
    return {tool.name: names for tool in tools if (names := _schema(tool)[1])}


def rename_keys(members: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with some of its keys renamed."""
    return {names.get(name, name): value for name, value in members.items()}


# Requests of one agent offer the same tools again and again.
@lru_cache(maxsize=256)
def _schema(tool: ToolSchema) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the schema as it is sent, and the replaced names in it."""
    schema = without_choice(tool.parameters)
    names = replacement_names(schema["properties"])
    if names:
        schema["properties"] = rename_keys(schema["properties"], names)
        required = {"required": [names.get(name, name) for name in schema.get("required", ())]}
        schema |= required if "required" in schema else {}
    return schema, names
