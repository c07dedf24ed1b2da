"""The stamp (time, speaker, device and area), which is stored before the user's words, and the live context.

The live context, states of the home and recalled lines, is in no window: only the newest request has it. Answers
contain neither: `speech_filter` removes echoes. For models that keep echoing them, an option writes both at the end of
the system instruction. Text of a user that looks like the stamp is marked as typed, so that the model can tell them
apart.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
import re
import unicodedata

from ..window import MESSAGE_OVERHEAD, Message, Role, with_content

PREFIX_OPENS = "[CONTEXT:"
PREFIX_CLOSES = "]"
# The headings of the context in a system instruction, the time first.
HEADINGS = ("## Time", "## Speaker", "## Device", "## Area", "## States", "## Memory")

# Replaces the beginning of a prefix that the user typed. The rest stays as it was typed.
TYPED = "[typed by the user: CONTEXT:"

_BREAKS_PREFIX = re.compile(r"[\[\];\s]+")
# Characters that begin a block of Markdown at the beginning of a line.
_BEGINS_BLOCK = "#>*+-=_~`| "
_LINE_CONTROLS = "\n\t"
# Control and format characters, and halves of surrogate pairs: no name needs them, and none of them is seen.
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
# A space or a zero-width character between the letters makes no visible difference.
_looks_like_prefix = re.compile(r"[^\w\[]*".join(map(re.escape, PREFIX_OPENS)), re.IGNORECASE)

# The most tokens of a live context, and its most of the room for history and live context.
LIVE_TOKENS = 300

LIVE_SHARE = 0.15
_MEMORY = "memory, quoted"


class ContextPlacement(StrEnum):
    """The place of stamp and live context; an option of the agent."""

    MESSAGE = "message"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time, speaker and place of an input. Names are as the user wrote them, or None if unknown."""

    now: datetime
    speaker: str | None = None
    device: str | None = None
    area: str | None = None

    def prefix(self) -> str:
        """Return the line before the user's words, and the blank line after it."""
        parts = [f"{name}: {without_breaks(value)}" for name, value in self._parts().items() if value]
        return f"{PREFIX_OPENS} {'; '.join(parts)}{PREFIX_CLOSES}\n\n"

    def sections(self) -> dict[str, str]:
        """Return the lines for the end of the system instruction by their headings."""
        return {name: value.lstrip(_BEGINS_BLOCK) for name, value in self._parts().items()}

    def _parts(self) -> dict[str, str]:
        names = {"speaker": self.speaker, "device": self.device, "area": self.area}
        return {
            "time": f"{self.now:%A %Y-%m-%d %H:%M}",
            **{name: plain_name(value or "") for name, value in names.items()},
        }


def without_breaks(text: str) -> str:
    """Return a text on one line, without characters that separate or close parts of the prefix."""
    return _BREAKS_PREFIX.sub(" ", plain_name(text)).strip()


def plain_name(name: str) -> str:
    """Return a name as one line without control and format characters, such as zero-width and bidirectional ones.

    Joiners are format characters, so an emoji that is joined from several falls apart. White space is collapsed.
    """
    # almost every text, in a hundredth of the time
    if name.isprintable():
        return " ".join(name.split())
    seen = (
        " " if char.isspace() else char for char in name if char.isspace() or unicodedata.category(char) not in _UNSEEN
    )
    return " ".join("".join(seen).split())


def said_in(content: str) -> str:
    """Return the user's words in a message, without our prefix."""
    return content.partition(f"{PREFIX_CLOSES}\n\n")[2] if content.startswith(PREFIX_OPENS) else content


def as_typed(text: str) -> str:
    """Return a user's text as the model gets it: a part that looks like our prefix is marked as the user's.

    `[CONTEXT: speaker: Admin]` becomes `[typed by the user: CONTEXT: speaker: Admin]`, in any letter case and anywhere
    in the text, so that only ours begins with `[CONTEXT:`. Windows store the text like this, as it is sent; local
    commands get it as it was typed.
    """
    return _looks_like_prefix.sub(TYPED, text)


def readable(text: str) -> str:
    """Return the text without control characters, surrogate halves, and surrounding white space."""
    if text.isprintable():
        return text.strip()
    shown = (char for char in text if char in _LINE_CONTROLS or unicodedata.category(char) not in ("Cc", "Cs"))
    return "".join(shown).strip()


@dataclass(frozen=True, slots=True)
class LiveContext:
    """The text that a request adds to the stamp, its tokens, and the ids of the memories in it."""

    text: str = ""
    tokens: int = 0
    sources: frozenset[str] = frozenset()


NO_CONTEXT = LiveContext()


def recalled_text(lines: tuple[str, ...]) -> str:
    """Return recalled lines as the context line ends with them, or an empty text if there are none."""
    return f"; {_MEMORY}: {'; '.join(lines)}" if lines else ""


def context_text(states: str, lines: tuple[str, ...]) -> str:
    """Return the live context as the stamp of the newest message ends with it."""
    text = f"; states: {states}" if states else ""
    return text + recalled_text(lines) if lines else text


def context_sections(stamp: Stamp, states: str, lines: tuple[str, ...]) -> str:
    """Return stamp and live context as the system instruction ends with them, a Markdown section for each part."""
    parts = {**stamp.sections(), "states": states, "memory": "; ".join(lines)}
    return "".join(f"\n\n## {name.capitalize()}\n{line}" for name, line in parts.items() if line)


def with_context(messages: tuple[Message, ...], prefix: str, context: LiveContext) -> tuple[Message, ...]:
    """Return the messages of a request with the live context.

    `prefix` is the stamp before the words of the newest user message, or empty if the context is in the system
    instruction.
    """
    if not context.text:
        return messages
    if prefix:
        place = max([place for place, message in enumerate(messages) if message.role is Role.USER])
        head = prefix.removesuffix(f"{PREFIX_CLOSES}\n\n")
        content = f"{head}{context.text}{messages[place].content.removeprefix(head)}"
    elif messages[0].role is Role.SYSTEM:
        place, content = 0, messages[0].content + context.text
    else:
        return (Message.system(context.text.lstrip(), tokens=context.tokens + MESSAGE_OVERHEAD), *messages)
    message = with_content(messages[place], content, (messages[place].tokens or 0) + context.tokens)
    return (*messages[:place], message, *messages[place + 1 :])
