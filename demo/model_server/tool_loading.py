"""Tools that the result of a search gives to the model: requests that have them, in the form of those without.

OpenAI: https://developers.openai.com/api/docs/guides/tools-tool-search (executed by the client); Anthropic:
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool (with a search of one's own).
"""

from collections.abc import Iterator
import json
from typing import Any

from .violations import Violation
from .wire import get_objects

# A name for OpenAI's search, which has none: it takes the place of a tool with this name.
SEARCH_NAME = "windowed_conversation__find_tools"


def has_tool_search(body: dict[str, Any]) -> bool:
    """Return whether a request of the Responses offers a search of tools."""
    return any(tool.get("type") == "tool_search" for tool in get_objects(body.get("tools")))


def expand_responses(body: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a request of the Responses with the search as a function and its results as text, and the loaded tools."""
    if not isinstance(body, dict) or not isinstance(body.get("input"), list) or not has_tool_search(body):
        return body, []
    items, loaded = list[Any](), list[dict[str, Any]]()
    for item in body["input"]:
        match item:
            case {"type": "tool_search_call", "call_id": call_id}:
                plain = {"type": "function_call", "call_id": call_id, "name": SEARCH_NAME}
                items.append({**plain, "arguments": json.dumps(item.get("arguments"))})
            case {"type": "tool_search_output", "call_id": call_id}:
                found = get_objects(item.get("tools"))
                loaded += found
                plain = {"type": "function_call_output", "call_id": call_id}
                items.append({**plain, "output": json.dumps({"tools": found})})
            case _:
                items.append(item)
    tools = [
        {**tool, "type": "function", "name": SEARCH_NAME} if tool.get("type") == "tool_search" else tool
        for tool in body["tools"]
    ]
    return {**body, "input": items, "tools": tools}, loaded


def find_search_violations(body: Any) -> Iterator[Violation]:
    """Yield the violations in the search of a request of the Responses."""
    items = get_objects(body.get("input")) if isinstance(body, dict) else []
    searched = [item for item in items if item.get("type") in ("tool_search_call", "tool_search_output")]
    if searched and not has_tool_search(body):
        yield Violation("tool_search_missing", "tools", "there are results of a search that is not offered")
    for item in searched:
        if item.get("execution") != "client" or not isinstance(item.get("call_id"), str):
            yield Violation("tool_search_shape", "input", "no search that the client runs")
        elif item["type"] == "tool_search_call" and not isinstance(item.get("arguments"), dict):
            yield Violation("tool_search_shape", "input", "the arguments are no object")


def expand_messages(body: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return an Anthropic request with the tools that are referred to as the text of a result, and these tools."""
    tools = get_objects(body.get("tools")) if isinstance(body, dict) else []
    deferred = {str(tool.get("name")): tool for tool in tools if tool.get("defer_loading")}
    if not deferred or not isinstance(body.get("messages"), list):
        return body, []
    loaded = list[dict[str, Any]]()

    def expand(block: Any) -> Any:
        parts = block.get("content") if isinstance(block, dict) else None
        if not isinstance(parts, list) or not any(part.get("type") == "tool_reference" for part in get_objects(parts)):
            return block
        names = [str(part.get("tool_name")) for part in get_objects(parts)]
        found = [deferred[name] for name in names if name in deferred]
        loaded.extend(found)
        described = [{"name": tool["name"], "parameters": tool.get("input_schema")} for tool in found]
        return {**block, "content": json.dumps({"tools": described})}

    messages = [
        {**message, "content": [expand(block) for block in message["content"]]}
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
    shown = [tool for tool in tools if not tool.get("defer_loading")]
    return {**body, "messages": messages, "tools": shown}, loaded


def find_loading_violations(body: Any) -> Iterator[Violation]:
    """Yield the violations in the deferred tools of an Anthropic request."""
    tools = get_objects(body.get("tools")) if isinstance(body, dict) else []
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    if deferred and len(deferred) == len(tools):
        yield Violation("tools_deferred", "tools", "at least one tool must not be deferred")
    if any("cache_control" in tool for tool in deferred):
        yield Violation("tools_deferred", "tools", "tools with defer_loading cannot use prompt caching")
    names = {tool.get("name") for tool in deferred}
    messages = get_objects(body.get("messages")) if tools else []
    blocks = [block for message in messages for block in get_objects(message.get("content"))]
    parts = [part for block in blocks for part in get_objects(block.get("content"))]
    referred = [part.get("tool_name") for part in parts if part.get("type") == "tool_reference"]
    if not names.issuperset(referred):
        yield Violation("tool_reference", "messages", "a tool reference is not found in available tools")
