"""The scripted model's use of the memory tools for phrases that no local sentence matches: remember, recall, forget.

It also tries to store text that the user has not written, which memory must refuse.
"""

from collections.abc import Callable
import json
import re

from .conversation import Answer, Call, Conversation, Result
from .outcome import outcome
from .quotes import quotes
from .rules import Rule, pattern

_CLOCK_TOOL = "GetDateTime"


def _asked(conversation: Conversation, tool: str, **arguments: str) -> Answer:
    name = conversation.tool(tool)
    return Answer(calls=(Call(name, arguments),)) if name else Answer(text="I have no memory that I could use.")


def _newest_result(conversation: Conversation, tool: str) -> Result | None:
    """Return the newest result of the tool in the current exchange, or None."""
    results = (result for called in reversed(conversation.rounds) for result in called)
    return next((result for result in results if result.call.name.split("__")[-1] == tool), None)


def _remember(conversation: Conversation, text: str) -> Answer:
    result = _newest_result(conversation, "remember")
    if result is None:
        return _asked(conversation, "remember", text=text, quote=text)
    failure = outcome(result).error
    return Answer(text=f"I could not remember that: {failure}" if failure else "I have put it into my memory.")


def _keep(match: re.Match[str], conversation: Conversation) -> Answer:
    return _remember(conversation, match["text"])


def _first_said(conversation: Conversation) -> str | None:
    return next((turn.said for turn in conversation.earlier if turn.role == "user"), None)


def _quoted(conversation: Conversation) -> str | None:
    return next((quote.text for quote in quotes(conversation)), None)


def _clock(conversation: Conversation) -> str | None:
    result = _newest_result(conversation, _CLOCK_TOOL)
    return result.text if result else None


_SOURCES: dict[str, Callable[[Conversation], str | None]] = {
    "i said first": _first_said,
    "memory says": _quoted,
    "the clock says": _clock,
    "you think of me": lambda _conversation: "I am afraid of the dark",
}


def _keep_what(match: re.Match[str], conversation: Conversation) -> Answer:
    """Call the memory tool with text that does not come from the user's newest message."""
    source = match["source"].lower()
    if source == "the clock says" and not conversation.rounds:
        return _asked(conversation, _CLOCK_TOOL)
    text = _SOURCES[source](conversation)
    return _remember(conversation, text) if text else Answer(text="There is nothing to remember.")


def _look_up(match: re.Match[str], conversation: Conversation) -> Answer:
    result = _newest_result(conversation, "recall")
    if result is None:
        return _asked(conversation, "recall", query=match["query"])
    found = outcome(result)
    if found.error:
        return Answer(text=f"I could not look: {found.error}")
    lines = json.loads(found.text).get("recalled") or ()
    return Answer(text=f"My memory has this: {'; '.join(lines)}." if lines else "My memory has nothing about that.")


def _delete(match: re.Match[str], conversation: Conversation) -> Answer:
    result = _newest_result(conversation, "forget")
    if result is None:
        return _asked(conversation, "forget", query=match["query"])
    failure = outcome(result).error
    return Answer(text=f"I could not delete that: {failure}" if failure else "It is deleted from my memory.")


MEMORY: tuple[Rule, ...] = (
    Rule(pattern(rf"(?:please )?keep in (?:your )?memory what (?P<source>{'|'.join(_SOURCES)})"), _keep_what),
    Rule(pattern(r"(?:please )?keep in (?:your )?memory that (?P<text>.+?)"), _keep),
    Rule(pattern(r"(?:please )?(?:look|search) in your memory for (?P<query>.+?)"), _look_up),
    Rule(pattern(r"(?:please )?(?:delete|remove) (?P<query>.+?) from your memory"), _delete),
)
