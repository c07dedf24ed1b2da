"""The quotes from memory in a request: in the system prompt, and in the context of the user messages."""

from collections.abc import Iterator
from dataclasses import dataclass
import re

from .conversation import Conversation

# A line recalled from memory: `2026-11-23 Ada: "my name is Ada", answered: "Nice to meet you, Ada."`
_QUOTE = re.compile(
    r'(?:(?P<date>\d{4}-\d\d-\d\d(?: \d\d:\d\d)?) )?(?P<who>[^\s,:;"-][^:;"\n]*): "(?P<text>[^"]*)"'
    r'(?:, answered: "[^"]*")?'
)
# A heading of the profile, with one sentence on each line below it.
_HEADING = re.compile(r"Known of (?P<who>.+):")
_SENTENCE = re.compile(r"(?P<text>.+?)(?: \(told \w+ (?P<date>[\d-]+)\))?")
_SECTION = re.compile(r"^## Memory\b.*", re.MULTILINE | re.DOTALL)
_SPEAKER = re.compile(r"^## Speaker\n(?P<name>.+)", re.MULTILINE)
_OF_ONESELF = re.compile(r"\b(?:i|me|my|mine)\b", re.IGNORECASE)
# The speaker in quotes of a person without a known name.
_NAMELESS = "the user"


@dataclass(frozen=True, slots=True)
class Quote:
    """A quoted utterance, its speaker and its date; fields are empty if the quote does not contain them."""

    date: str
    who: str
    text: str


def quotes(conversation: Conversation) -> list[Quote]:
    """Return the quotes from memory, newest first; for equal dates, the latest recall comes first."""
    recalled = (turn.memory for turn in reversed(conversation.turns) if turn.role == "user")
    sections = (_SECTION.search(turn.text) for turn in conversation.turns if turn.role == "system")
    found = [quote for part in recalled for quote in _recalled(part)]
    found.extend(quote for section in sections if section for quote in _in_section(section[0]))
    return sorted(found, key=lambda quote: quote.date, reverse=True)


def _recalled(text: str) -> Iterator[Quote]:
    return (Quote(each["date"] or "", each["who"], each["text"]) for each in _QUOTE.finditer(text))


def _in_section(section: str) -> Iterator[Quote]:
    """Yield the quotes in a section of the system prompt: the profile below its headings, or recalled lines."""
    who = ""
    for line in section.splitlines():
        if heading := _HEADING.fullmatch(line):
            who = heading["who"]
        elif line.startswith("## "):
            who = ""
        elif who and (told := _SENTENCE.fullmatch(line)):
            yield Quote(told["date"] or "", who, told["text"])
        else:
            yield from _recalled(line)


def told_before(conversation: Conversation) -> Iterator[str]:
    """Yield the texts of the quotes, except those in which another person talks about themselves."""
    speaker = speaker_name(conversation) or _NAMELESS
    return (quote.text for quote in quotes(conversation) if quote.who == speaker or not _OF_ONESELF.search(quote.text))


def speaker_name(conversation: Conversation) -> str | None:
    """Return the speaker's name from the context of the newest message, or else from the system prompt."""
    sections = (_SPEAKER.search(turn.text) for turn in conversation.turns if turn.role == "system")
    return conversation.newest.context.get("speaker") or next((found["name"] for found in sections if found), None)
