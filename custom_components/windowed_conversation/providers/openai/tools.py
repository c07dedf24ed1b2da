"""Tools in both OpenAI formats: the schemas and the arguments that are sent."""

from collections.abc import Mapping
from functools import lru_cache
import json
from typing import Any

from ..events import Request, ToolSchema
from ..schemas import with_items, without_choice


# Requests of one agent offer the same tools again and again.
@lru_cache(maxsize=256)
def sent_parameters(tool: ToolSchema) -> dict[str, Any]:
    """Return the schema of a tool's parameters without what the formats refuse in it."""
    schema: dict[str, Any] = with_items(without_choice(tool.parameters))
    return schema


def tool_choice(request: Request) -> dict[str, Any]:
    """Return the parameter by which tools that are sent may not be called; empty where they may."""
    return {} if request.may_call or not request.tools else {"tool_choice": "none"}


def written_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as both formats write them, as JSON in a text."""
    return json.dumps(dict(arguments), ensure_ascii=False)
