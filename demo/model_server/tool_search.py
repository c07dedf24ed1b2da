"""The scripted model's use of tools that it has to find first: it knows their schemas only from the result."""

from dataclasses import replace
import json
import re

from .conversation import Answer, Call, Conversation, ToolResult, Turn
from .form_filling import fill_form
from .rules import Rule, compile_pattern


def _find_newest_result(conversation: Conversation) -> ToolResult | None:
    return next((result for called in reversed(conversation.tool_rounds) for result in called), None)


def _use_tool(match: re.Match[str], conversation: Conversation) -> Answer:
    """Find a tool, call the first one that was found with values from the message, and answer with its result."""
    find, carry_out = conversation.find_tool("find_tools"), conversation.find_tool("call_tool")
    result = _find_newest_result(conversation)
    if find is None:
        return _use_offered_tool(match["task"], conversation, result)
    if result is None:
        return Answer(calls=(Call(find, {"words": match["task"]}),))
    if result.call.name != find:
        return Answer(text=f"The tool says: {result.text}")
    tools = json.loads(result.text).get("tools", [])
    if not tools:
        return Answer(text="I have found no tool.")
    # the context before the message may quote other numbers
    said = replace(conversation, turns=(Turn("user", conversation.newest_user_turn.plain_text),))
    arguments = fill_form(tools[0]["parameters"], said)
    if carry_out is None:
        return Answer(calls=(Call(tools[0]["name"], arguments),))
    return Answer(calls=(Call(carry_out, {"name": tools[0]["name"], "arguments": arguments}),))


def _use_offered_tool(task: str, conversation: Conversation, result: ToolResult | None) -> Answer:
    """Call the tool whose name is in the message, if all tools are offered."""
    if result is not None:
        return Answer(text=f"The tool says: {result.text}")
    words, amount = set(re.findall(r"\w+", task.lower())), re.search(r"\d+$", task)
    names = [name for name in conversation.tool_names if words.issuperset(name.rpartition("__")[2].lower().split("_"))]
    if not names:
        return Answer(text="I have no more tools.")
    return Answer(calls=(Call(names[0], {"amount": int(amount[0]) if amount else 1}),))


TOOL_SEARCH_RULES: tuple[Rule, ...] = (Rule(compile_pattern(r"use a tool to (?P<task>.+)"), _use_tool),)
