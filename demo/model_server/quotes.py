"""What a request quotes from memory: in the system prompt, and in the context of the user messages."""

from collections.abc import Iterator
from dataclasses import dataclass
import re

from .conversation import Conversation

# `- 2026-11-23 Ada: "my name is Ada", answered: "Nice to meet you, Ada."`
_QUOTE = re.compile(
    r'(?:(?P<date>\d{4}-\d\d-\d\d) )?(?P<who>[^\s,:;"-][^:;"\n]*): "(?P<text>[^"]*)"(?:, answered: "[^"]*")?'
)
_SECTION = re.compile(r"^## Memory\b.*", re.MULTILINE | re.DOTALL)
_SPEAKER = re.compile(r"^## Speaker\n(?P<name>.+)", re.MULTILINE)
_OF_ONESELF = re.compile(r"\b(?:i|me|my|mine)\b", re.IGNORECASE)
# Who speaks in the quotes of a person without a name.
_NAMELESS = "user"


@dataclass(frozen=True, slots=True)
class Quote:
    """What somebody has told, and when, as a date; empty where it does not say."""

    date: str
    who: str
    text: str


def quotes(conversation: Conversation) -> list[Quote]:
    """Return what is quoted from memory, newest first; what was recalled last before the rest."""
    recalled = (turn.memory for turn in reversed(conversation.turns) if turn.role == "user")
    sections = (_SECTION.search(turn.text) for turn in conversation.turns if turn.role == "system")
    parts = (*recalled, *(found[0] for found in sections if found))
    found = [Quote(each["date"] or "", each["who"], each["text"]) for part in parts for each in _QUOTE.finditer(part)]
    return sorted(found, key=lambda quote: quote.date, reverse=True)


def told_before(conversation: Conversation) -> Iterator[str]:
    """Yield the texts of the quotes, without those in which somebody else speaks of themselves."""
    speaker = speaker_name(conversation) or _NAMELESS
    return (quote.text for quote in quotes(conversation) if quote.who == speaker or not _OF_ONESELF.search(quote.text))


def speaker_name(conversation: Conversation) -> str | None:
    """Return who is asking, as the context of the newest message says it, or else the system prompt."""
    sections = (_SPEAKER.search(turn.text) for turn in conversation.turns if turn.role == "system")
    return conversation.newest.context.get("speaker") or next((found["name"] for found in sections if found), None)
