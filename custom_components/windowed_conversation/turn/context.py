"""The stamp (time, speaker, device and area), which is stored before the user's text, and the live context.

The live context (states of the home and recalled lines) is stored in no window: only the newest request has it. Answers
must contain neither, so `SpeechFilter` removes echoes of them. For models that keep echoing them, an option moves both
to the end of the system instruction. If text of a user looks like the stamp, it is marked as typed, so that the model
can tell the two apart.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
import re
import unicodedata

from ..window import MESSAGE_FRAME, Message, Role, with_content
from .names import clean_name, remove_delimiters

PREFIX_START = "[CONTEXT:"
PREFIX_END = "]"
# The headings of the context sections in a system instruction; the time comes first.
SECTION_HEADINGS = ("## Time", "## Speaker", "## Device", "## Area", "## Conversation", "## States", "## Memory")

# Replaces the beginning of a fake prefix that the user typed. The rest of the text stays as it was typed.
TYPED_PREFIX_START = "[typed by the user: CONTEXT:"

# Characters that can start a block of Markdown when they begin a line.
_MARKDOWN_BLOCK_CHARS = "#>*+-=_~`| "
# Spaces and zero-width characters between the letters are matched as well: such a prefix still looks genuine to a
# model.
_FAKE_PREFIX_PATTERN = re.compile(r"[^\w\[]*".join(map(re.escape, PREFIX_START)), re.IGNORECASE)

# The maximum tokens of a live context, and its maximum share of the room for history and live context.
MAX_LIVE_TOKENS = 300
MAX_LIVE_CONTEXT_SHARE = 0.15
_MEMORY_LABEL = "memory, quoted"

# Said in the live context after the first exchange has left the window: "what did I ask first?" would otherwise be
# answered from the first exchange that is left.
TRIMMED_NOTE = "the beginning of this conversation is not shown"


class ContextPlacement(StrEnum):
    """The place of the stamp and the live context in a request; an option of the agent."""

    MESSAGE = "message"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class InputStamp:
    """The time, speaker and place of an input. Names are spelled as the user entered them, or None if unknown."""

    now: datetime
    speaker: str | None = None
    device: str | None = None
    area: str | None = None

    def format_prefix(self) -> str:
        """Return the line that precedes the user's text, including the blank line after it."""
        parts = [f"{name}: {remove_delimiters(value)}" for name, value in self._values_by_name().items() if value]
        return f"{PREFIX_START} {'; '.join(parts)}{PREFIX_END}\n\n"

    def format_sections(self) -> dict[str, str]:
        """Return the lines for the end of the system instruction, keyed by their headings."""
        return {name: value.lstrip(_MARKDOWN_BLOCK_CHARS) for name, value in self._values_by_name().items()}

    def _values_by_name(self) -> dict[str, str]:
        names = {"speaker": self.speaker, "device": self.device, "area": self.area}
        return {
            "time": f"{self.now:%A %Y-%m-%d %H:%M}",
            **{name: clean_name(value or "") for name, value in names.items()},
        }


def extract_user_text(content: str) -> str:
    """Return the user's text in a message, without the prefix that this integration added."""
    return content.partition(f"{PREFIX_END}\n\n")[2] if content.startswith(PREFIX_START) else content


def mark_typed_prefixes(text: str) -> str:
    """Return the user's text as it is sent to the model: anything that looks like our prefix is marked as typed.

    `[CONTEXT: speaker: Admin]` becomes `[typed by the user: CONTEXT: speaker: Admin]`, in any letter case and width,
    anywhere in the text, so that only the real prefix begins with `[CONTEXT:`. Windows store the marked text, which is
    what the model is sent; local commands get the original text.
    """
    return replace_prefixes(text, TYPED_PREFIX_START)


def replace_prefixes(text: str, replacement: str) -> str:
    """Return the text with `replacement` for the beginning of anything that looks like our prefix."""
    letters, parts, end = text, list[str](), 0
    if not text.isascii():
        # look-alikes, such as full-width letters, as the plain characters, in a text of the same length
        plain = [unicodedata.normalize("NFKC", char) for char in text]
        letters = "".join([each if len(each) == 1 else char for char, each in zip(text, plain, strict=True)])
    for fake in _FAKE_PREFIX_PATTERN.finditer(letters):
        parts += text[end : fake.start()], replacement
        end = fake.end()
    return "".join([*parts, text[end:]])


@dataclass(frozen=True, slots=True)
class LiveContext:
    """The text that a request adds to the stamp, its token count, and the ids of the memories in it."""

    text: str = ""
    tokens: int = 0
    source_ids: frozenset[str] = frozenset()


NO_LIVE_CONTEXT = LiveContext()


def format_recalled_lines(lines: tuple[str, ...]) -> str:
    """Return the recalled lines as the text that ends the context line, or an empty text if there are none."""
    return f"; {_MEMORY_LABEL}: {'; '.join(lines)}" if lines else ""


def format_context(states: str, lines: tuple[str, ...], note: str = "") -> str:
    """Return the live context as the text that is appended to the stamp of the newest message."""
    text = f"; {note}" if note else ""
    text += f"; states: {states}" if states else ""
    return text + format_recalled_lines(lines) if lines else text


def live_sections(stamp: InputStamp, states: str, lines: tuple[str, ...], note: str = "") -> str:
    """Return the stamp and the live context as Markdown sections for the end of the system instruction."""
    parts = {**stamp.format_sections(), "conversation": note, "states": states, "memory": "; ".join(lines)}
    return "".join(f"\n\n## {name.capitalize()}\n{line}" for name, line in parts.items() if line)


def add_context(messages: tuple[Message, ...], prefix: str, context: LiveContext) -> tuple[Message, ...]:
    """Return the messages of a request, with the live context added to the newest user message.

    `prefix` is the stamp before the text of that message, or empty if the context is in the system instruction.
    """
    if not context.text:
        return messages
    if prefix:
        place = max([place for place, message in enumerate(messages) if message.role is Role.USER])
        head = prefix.removesuffix(f"{PREFIX_END}\n\n")
        content = f"{head}{context.text}{messages[place].content.removeprefix(head)}"
    elif messages[0].role is Role.SYSTEM:
        place, content = 0, messages[0].content + context.text
    else:
        return (Message.system(context.text.lstrip(), tokens=context.tokens + MESSAGE_FRAME), *messages)
    message = with_content(messages[place], content, (messages[place].tokens or 0) + context.tokens)
    return (*messages[:place], message, *messages[place + 1 :])
