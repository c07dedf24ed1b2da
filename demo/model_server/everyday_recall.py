"""The scripted model's answers about the past: from quotes, from an entity's history, and from the search in memory."""

import json
import re

from .conversation import Answer, Call, Conversation, Tool
from .everyday_replies import choose, get_spoken_name
from .household import Household
from .outcome import parse_outcome
from .quotes import iter_quoted_texts
from .sentences import Sentence

_TALK_PATTERN = re.compile(
    r"\b(?:we|i|wir|ich)\b.*\b(?:talk|ask|say|tell|gesprochen|geredet|gefragt|gesagt)\b|"
    r"\b(?:talk|ask|say|tell)\b.*\b(?:yesterday|last week)\b"
)
# Words without a subject.
_EMPTY_PATTERN = re.compile(
    r"when|what|where|who|which|how|why|does|did|have|has|the|our|your|you|about|that|this|with|are|was|for|and|can|"
    r"wann|was|wer|welcher?|wie|hat|haben|ist|sind|der|die|das|den|dem|unsere?|meine?|mit|und|über|kannst|weißt|ich|"
    r"wir|müssen|muss|again|tell|know|remember|please|bitte|dran"
)


def look_back(sentence: Sentence, household: Household, conversation: Conversation) -> Answer | None:
    """Return the answer of a tool for histories or for earlier conversations; None for other questions."""
    if not sentence.is_question or not sentence.is_about_past:
        return None
    if _TALK_PATTERN.search(sentence.text):
        return _search_conversations(sentence, conversation)
    things = [thing for thing in household.find_meant(sentence, conversation) if thing.domain != "person"]
    tool = _find_tool(conversation, "name", "start")
    if not things or tool is None:
        return None
    if not conversation.tool_rounds:
        return Answer(calls=(Call(tool.name, {"name": things[0].name}),))
    found = parse_outcome(conversation.tool_rounds[-1][0])
    name = get_spoken_name(things[0], sentence)
    return Answer(text=found.error or f"{name}: {_read_changes(found.text)}")


def answer_from_quotes(sentence: Sentence, conversation: Conversation) -> Answer | None:
    """Return the quote from memory, or the earlier sentence, that has most of the question's words."""
    if not sentence.is_question:
        return None
    asked = _get_stems(sentence)
    said = [turn.plain_text for turn in reversed(conversation.earlier_turns) if turn.role == "user"]
    statements = [Sentence(text) for text in (*iter_quoted_texts(conversation), *said)]
    known = [each for each in statements if not each.is_question]
    best = max(known, key=lambda each: len(asked & _get_stems(each)), default=None)
    if best is None or 2 * len(asked & _get_stems(best)) <= len(asked) or not asked:
        return None
    text = re.sub(r"^(?:please )?(?:remember|merke? dir),? (?:that|dass) ", "", best.said, flags=re.IGNORECASE)
    return Answer(text=choose(sentence, f"You told me: {text.rstrip('.')}.", f"Du hast gesagt: {text.rstrip('.')}."))


def _get_stems(sentence: Sentence) -> set[str]:
    return {word[:5] for word in sentence.words if len(word) > 2 and not _EMPTY_PATTERN.fullmatch(word)}


def _search_conversations(sentence: Sentence, conversation: Conversation) -> Answer | None:
    tool = _find_tool(conversation, "query", "since")
    if tool is None:
        return None
    if not conversation.tool_rounds:
        return Answer(calls=(Call(tool.name, {"query": sentence.said}),))
    found = parse_outcome(conversation.tool_rounds[-1][0])
    lines = [] if found.error else json.loads(found.text).get("recalled") or []
    nothing = choose(sentence, "I find nothing about that.", "Dazu finde ich nichts.")
    return Answer(text=f"{choose(sentence, 'I find this', 'Ich finde')}: {'; '.join(lines)}." if lines else nothing)


def _find_tool(conversation: Conversation, *arguments: str) -> Tool | None:
    """Return the tool that takes these arguments, or None."""
    return next((tool for tool in conversation.tools if tool.properties.keys() >= set(arguments)), None)


def _read_changes(text: str) -> str:
    """Return the changes in the result of a history, or all of it if it has another form."""
    try:
        data = json.loads(text)
    except ValueError:
        return text
    changes = data.get("history") if isinstance(data, dict) else None
    return str(changes) if changes else text
