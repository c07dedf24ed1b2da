"""The quotes from memory in a request: in the system prompt, and in the context of the user messages."""

from collections.abc import Iterator
from dataclasses import dataclass
import re

from .conversation import Conversation

# A line recalled from memory: `2026-11-23 Ada: "my name is Ada", answered: "Nice to meet you, Ada."`
_QUOTE_PATTERN = re.compile(
    r'(?:(?P<date>\d{4}-\d\d-\d\d(?: \d\d:\d\d)?) )?(?P<who>[^\s,:;"-][^:;"\n]*): "(?P<text>[^"]*)"'
    r'(?:, answered: "[^"]*")?'
)
# A heading of the profile, with one sentence on each line below it.
_HEADING_PATTERN = re.compile(r"Known of (?P<who>.+):")
_SENTENCE_PATTERN = re.compile(r"(?P<text>.+?)(?: \(told \w+ (?P<date>[\d-]+)\))?")
_SECTION_PATTERN = re.compile(r"^## Memory\b.*", re.MULTILINE | re.DOTALL)
_SPEAKER_PATTERN = re.compile(r"^## Speaker\n(?P<name>.+)", re.MULTILINE)
_FIRST_PERSON_PATTERN = re.compile(r"\b(?:i|me|my|mine)\b", re.IGNORECASE)
# The speaker in quotes of a person without a known name.
_UNKNOWN_SPEAKER = "the user"


@dataclass(frozen=True, slots=True)
class Quote:
    """A quoted utterance, its speaker and its date; fields are empty if the quote does not contain them."""

    date: str
    speaker: str
    text: str


def find_quotes(conversation: Conversation) -> list[Quote]:
    """Return the quotes from memory, newest first; for equal dates, the latest recall comes first."""
    recalled = (turn.memory_quotes for turn in reversed(conversation.turns) if turn.role == "user")
    sections = (_SECTION_PATTERN.search(turn.text) for turn in conversation.turns if turn.role == "system")
    found = [quote for part in recalled for quote in _parse_quotes(part)]
    found.extend(quote for section in sections if section for quote in _parse_section(section[0]))
    return sorted(found, key=lambda quote: quote.date, reverse=True)


def _parse_quotes(text: str) -> Iterator[Quote]:
    return (Quote(each["date"] or "", each["who"], each["text"]) for each in _QUOTE_PATTERN.finditer(text))


def _parse_section(section: str) -> Iterator[Quote]:
    """Yield the quotes in a section of the system prompt: the profile below its headings, or recalled lines."""
    who = ""
    for line in section.splitlines():
        if heading := _HEADING_PATTERN.fullmatch(line):
            who = heading["who"]
        elif line.startswith("## "):
            who = ""
        elif who and (told := _SENTENCE_PATTERN.fullmatch(line)):
            yield Quote(told["date"] or "", who, told["text"])
        else:
            yield from _parse_quotes(line)


def iter_quoted_texts(conversation: Conversation) -> Iterator[str]:
    """Yield the texts of the quotes, except those in which another person talks about themselves."""
    speaker = find_speaker_name(conversation) or _UNKNOWN_SPEAKER
    return (
        quote.text
        for quote in find_quotes(conversation)
        if quote.speaker == speaker or not _FIRST_PERSON_PATTERN.search(quote.text)
    )


def find_speaker_name(conversation: Conversation) -> str | None:
    """Return the speaker's name from the context of the newest message, or else from the system prompt."""
    sections = (_SPEAKER_PATTERN.search(turn.text) for turn in conversation.turns if turn.role == "system")
    return conversation.newest_user_turn.context.get("speaker") or next(
        (found["name"] for found in sections if found), None
    )
