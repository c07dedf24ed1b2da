"""What the scripted model does with to-do lists: add to them, and say from the history whether it has done so."""

from collections.abc import Iterator
import re

from .conversation import Answer, Call, Conversation
from .rules import Rule, pattern

_ADD_TOOL = "HassListAddItem"
_WORKED = '"action_done"'


def _added(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Yield what was to be added to a list in this conversation and the result of that, newest first."""
    results = {turn.call_id: turn.text for turn in conversation.turns if turn.role == "tool"}
    for turn in reversed(conversation.turns):
        for call in turn.calls:
            if call.name.endswith(_ADD_TOOL):
                yield str(call.arguments.get("item", "")), results.get(call.id, "")


def _add(match: re.Match[str], conversation: Conversation) -> Answer:
    item, name = match["item"], match["list"]
    before = next((result for added, result in _added(conversation) if added == item), None)
    if before is not None and not conversation.rounds:
        return Answer(text=f"I have dealt with {item} before: {_state(before)}.")
    if before is not None:
        return Answer(text=f"Done, {item} is on the {name}." if _WORKED in before else f"I could not add {item}.")
    tool = conversation.tool(_ADD_TOOL)
    return Answer(calls=(Call(tool, {"item": item, "name": name}),)) if tool else Answer(text="I have no list.")


def _say_whether(_match: re.Match[str], conversation: Conversation) -> Answer:
    item, result = next(_added(conversation), ("", ""))
    return Answer(text=f"I was asked to add {item}: {_state(result)}." if item else "I have added nothing.")


def _state(result: str) -> str:
    return "it is on the list" if _WORKED in result else "I do not know whether it is on the list"


LISTS: tuple[Rule, ...] = (
    Rule(pattern(r"i(?: would|'d) like (?P<item>.+?) on (?:the|my) (?P<list>.+? list)"), _add),
    Rule(pattern(r"(?:have|did) you (?:really )?add(?:ed)? (?:it|that)"), _say_whether),
)
