"""The data that the scripted model extracts from a conversation that has ended: a summary, and quoted facts."""

import re
from typing import Any

from .conversation import Conversation

_REQUEST = "This conversation between a person and their voice assistant has ended."
_LINE_PATTERN = re.compile(r"^(?P<number>\d+)\. Person: (?P<said>.+)$", re.MULTILINE)
_FACT_PATTERN = re.compile(
    r"[^.,;!?]*\b(?:allergic|birthday|vegetarian|is called|are called|named|always|every|never|hangs|is kept|prefers?|"
    r"loves?|hates?|can(?:no|')t eat)\b[^.,;!?]*",
    re.IGNORECASE,
)
_PRONOUN_PATTERN = re.compile(r"(?:he|she|it|they)\b", re.IGNORECASE)
_SUBJECT_PATTERN = re.compile(r"\bmy \w+", re.IGNORECASE)
_MAX_FACTS = 5
_ROLES = ("system", "user")


def extract(conversation: Conversation) -> dict[str, Any] | None:
    """Return the data, or None if the request does not ask for it."""
    instructions, lines = ("".join([turn.text for turn in conversation.turns if turn.role == role]) for role in _ROLES)
    if _REQUEST not in instructions:
        return None
    said = [(int(found["number"]), found["said"]) for found in _LINE_PATTERN.finditer(lines)]
    summary = "Said: " + "; ".join([text for _, text in said[:2]])
    facts, subject = list[dict[str, Any]](), ""
    for number, text in said:
        for found in _FACT_PATTERN.finditer(text):
            subject = _find_subject(text[: found.start()]) or subject
            quote = found.group().strip()
            named = subject if _PRONOUN_PATTERN.match(quote) else ""
            facts.append({"number": number, "quote": quote, "subject": named, "words": "", "lasts": True})
        subject = _find_subject(text) or subject
    return {"summary": summary, "facts": facts[:_MAX_FACTS]}


def _find_subject(text: str) -> str:
    """Return the last person or thing that a text names with "my", or an empty text."""
    found = _SUBJECT_PATTERN.findall(text)
    return found[-1] if found else ""
