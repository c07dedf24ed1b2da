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
    if find is None or carry_out is None:
        return Answer(text="I have no more tools.")
    result = _find_newest_result(conversation)
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
    return Answer(calls=(Call(carry_out, {"name": tools[0]["name"], "arguments": arguments}),))


TOOL_SEARCH_RULES: tuple[Rule, ...] = (Rule(compile_pattern(r"use a tool to (?P<task>.+)"), _use_tool),)
