"""Volatile context: what changes from turn to turn, written before the user's words and frozen with them.

So the system prompt stays the same from turn to turn, and a provider's cache serves it (facts: a time stamp in it
costs three to four times the tokens). The answer never holds the prefix: `speech_filter` takes echoes of it out. For
models that go on echoing it, it can be written into the system prompt instead.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
import re
import unicodedata

PREFIX_OPENS = "[CONTEXT:"
PREFIX_CLOSES = "]"
# What `VolatileContext.sections` writes above its lines, the time first.
HEADINGS = ("## Time", "## Speaker", "## Device", "## Area")

_BREAKS_PREFIX = re.compile(r"[\[\];\s]+")
# What ends a line somewhere, and what begins a block of Markdown at the beginning of one.
_BREAKS_LINE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_BEGINS_BLOCK = "#>*+-=_~`| "
_KEPT_CONTROLS = "\n\t"


class ContextPlacement(StrEnum):
    """Where the volatile context is written: an agent's option."""

    MESSAGE = "message"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class VolatileContext:
    """Who speaks, when and where; names are as the user wrote them, None where nothing is known."""

    now: datetime
    speaker: str | None = None
    device: str | None = None
    area: str | None = None

    def prefix(self) -> str:
        """Return the line that goes before the user's words, and the blank line after it."""
        facts = [f"time: {self._time}"]
        facts += [f"{name}: {_BREAKS_PREFIX.sub(' ', value).strip()}" for name, value in self._names.items() if value]
        return f"{PREFIX_OPENS} {'; '.join(facts)}{PREFIX_CLOSES}\n\n"

    def sections(self) -> str:
        """Return the sections of Markdown that go to the end of the system prompt: a heading and a line for each."""
        lines = {name: _BREAKS_LINE.sub(" ", value or "").lstrip(_BEGINS_BLOCK) for name, value in self._names.items()}
        facts = {"time": self._time, **lines}
        return "\n\n".join(f"## {name.capitalize()}\n{line.rstrip()}" for name, line in facts.items() if line)

    @property
    def _time(self) -> str:
        return f"{self.now:%A %Y-%m-%d %H:%M}"

    @property
    def _names(self) -> dict[str, str | None]:
        return {"speaker": self.speaker, "device": self.device, "area": self.area}


def readable(text: str) -> str:
    """Return the text without what no model can read: control characters, halves of surrogate pairs, outer space."""
    if text.isprintable():
        return text.strip()
    kept = (char for char in text if char in _KEPT_CONTROLS or unicodedata.category(char) not in ("Cc", "Cs"))
    return "".join(kept).strip()
