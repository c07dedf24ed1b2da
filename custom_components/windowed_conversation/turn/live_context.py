"""The live context: states of the home and recalled lines, which only the newest request has.

It is added to the stamp of the newest message, or to the end of the system instruction, and is in no window.
"""

from dataclasses import dataclass

from ..window import MESSAGE_OVERHEAD, Message, Role, with_content
from .context import PREFIX_CLOSES, Stamp

# The most tokens of a live context, and its most of the room for history and live context.
LIVE_TOKENS = 300
LIVE_SHARE = 0.15

_MEMORY = "memory, quoted"


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
    return f"{f'; states: {states}' if states else ''}{recalled_text(lines)}"


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
        place = next(place for place in reversed(range(len(messages))) if messages[place].role is Role.USER)
        head = prefix.removesuffix(f"{PREFIX_CLOSES}\n\n")
        content = f"{head}{context.text}{messages[place].content.removeprefix(head)}"
    elif messages[0].role is Role.SYSTEM:
        place, content = 0, messages[0].content + context.text
    else:
        return (Message.system(context.text.lstrip(), tokens=context.tokens + MESSAGE_OVERHEAD), *messages)
    message = with_content(messages[place], content, (messages[place].tokens or 0) + context.tokens)
    return (*messages[:place], message, *messages[place + 1 :])
