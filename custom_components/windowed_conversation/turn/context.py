"""Volatile context: what changes from turn to turn, written before the user's words and frozen with them.

The system prompt stays the same from turn to turn, so that a provider's cache serves it (facts: a time stamp in it
costs three to four times the tokens). The answer never holds the prefix: `speech_filter` takes echoes of it out.
"""

from dataclasses import dataclass
from datetime import datetime
import re
import unicodedata

PREFIX_OPENS = "[CONTEXT:"
PREFIX_CLOSES = "]"

_BREAKS_PREFIX = re.compile(r"[\[\];\s]+")
_KEPT_CONTROLS = "\n\t"


@dataclass(frozen=True, slots=True)
class VolatileContext:
    """Who speaks, when and where; names are as the user wrote them, None where nothing is known."""

    now: datetime
    speaker: str | None = None
    device: str | None = None
    area: str | None = None

    def prefix(self) -> str:
        """Return the line that goes before the user's words, and the blank line after it."""
        known = {"speaker": self.speaker, "device": self.device, "area": self.area}
        facts = [f"time: {self.now:%A %Y-%m-%d %H:%M}"]
        facts += [f"{name}: {_BREAKS_PREFIX.sub(' ', value).strip()}" for name, value in known.items() if value]
        return f"{PREFIX_OPENS} {'; '.join(facts)}{PREFIX_CLOSES}\n\n"


def readable(text: str) -> str:
    """Return the text without what no model can read: control characters, halves of surrogate pairs, outer space."""
    if text.isprintable():
        return text.strip()
    kept = (char for char in text if char in _KEPT_CONTROLS or unicodedata.category(char) not in ("Cc", "Cs"))
    return "".join(kept).strip()
