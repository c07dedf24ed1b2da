"""The scripted model's use of the memory tools for phrases that no local sentence matches: remember, recall, forget.

It also tries to store text that the user has not written, which memory must refuse.
"""

from collections.abc import Callable
import json
import re

from .conversation import Answer, Call, Conversation, ToolResult
from .outcome import parse_outcome
from .quotes import find_quotes
from .rules import Rule, compile_pattern

_LOOK_UP_TOOL = "GetLiveContext"
# An answer that is longer than a fact would be refused for its length.
_MAX_LOOK_UP_QUOTE = 60


def _call_tool(conversation: Conversation, tool: str, **arguments: str) -> Answer:
    name = conversation.find_tool(tool)
    return Answer(calls=(Call(name, arguments),)) if name else Answer(text="I have no memory that I could use.")


def _find_newest_result(conversation: Conversation, tool: str) -> ToolResult | None:
    """Return the newest result of the tool in the current exchange, or None."""
    results = (result for called in reversed(conversation.tool_rounds) for result in called)
    return next((result for result in results if result.call.name.split("__")[-1] == tool), None)


def _remember_text(conversation: Conversation, text: str) -> Answer:
    result = _find_newest_result(conversation, "remember")
    if result is None:
        return _call_tool(conversation, "remember", text=text, quote=text)
    failure = parse_outcome(result).error
    return Answer(text=f"I could not remember that: {failure}" if failure else "I have put it into my memory.")


def _keep_quote(match: re.Match[str], conversation: Conversation) -> Answer:
    return _remember_text(conversation, match["text"])


def _get_first_user_text(conversation: Conversation) -> str | None:
    return next((turn.plain_text for turn in conversation.earlier_turns if turn.role == "user"), None)


def _get_newest_quote(conversation: Conversation) -> str | None:
    return next((quote.text for quote in find_quotes(conversation)), None)


def _get_look_up_result(conversation: Conversation) -> str | None:
    result = _find_newest_result(conversation, _LOOK_UP_TOOL)
    return result.text[:_MAX_LOOK_UP_QUOTE] if result else None


_TEXT_GETTER_BY_SOURCE: dict[str, Callable[[Conversation], str | None]] = {
    "i said first": _get_first_user_text,
    "memory says": _get_newest_quote,
    "the home says": _get_look_up_result,
    "you think of me": lambda _conversation: "I am afraid of the dark",
}


def _keep_from_source(match: re.Match[str], conversation: Conversation) -> Answer:
    """Call the memory tool with text that does not come from the user's newest message."""
    source = match["source"].lower()
    if source == "the home says" and not conversation.tool_rounds:
        return _call_tool(conversation, _LOOK_UP_TOOL)
    text = _TEXT_GETTER_BY_SOURCE[source](conversation)
    return _remember_text(conversation, text) if text else Answer(text="There is nothing to remember.")


def _search_memory(match: re.Match[str], conversation: Conversation) -> Answer:
    result = _find_newest_result(conversation, "recall")
    if result is None:
        return _call_tool(conversation, "recall", query=match["query"])
    found = parse_outcome(result)
    if found.error:
        return Answer(text=f"I could not look: {found.error}")
    lines = json.loads(found.text).get("recalled") or ()
    return Answer(text=f"My memory has this: {'; '.join(lines)}." if lines else "My memory has nothing about that.")


def _delete_memory(match: re.Match[str], conversation: Conversation) -> Answer:
    result = _find_newest_result(conversation, "forget")
    if result is None:
        return _call_tool(conversation, "forget", query=match["query"])
    failure = parse_outcome(result).error
    return Answer(text=f"I could not delete that: {failure}" if failure else "It is deleted from my memory.")


MEMORY_RULES: tuple[Rule, ...] = (
    Rule(
        compile_pattern(rf"(?:please )?let (?:your )?memory hold what (?P<source>{'|'.join(_TEXT_GETTER_BY_SOURCE)})"),
        _keep_from_source,
    ),
    Rule(compile_pattern(r"(?:please )?let (?:your )?memory hold that (?P<text>.+?)"), _keep_quote),
    Rule(compile_pattern(r"(?:please )?(?:look|search) in your memory for (?P<query>.+?)"), _search_memory),
    Rule(compile_pattern(r"(?:please )?let (?:your )?memory part with (?P<query>.+?)"), _delete_memory),
)
