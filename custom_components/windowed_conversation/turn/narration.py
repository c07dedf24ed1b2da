"""Facts, earlier turns and summaries as lines of data: one line each, with person and date, without separators."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
import json
from pathlib import Path
import re

from ..memory import Fact, Recalled
from .context import without_breaks

HOME = "the home"
_SOMEONE = "someone"
SUMMARY_OF = "summary of an earlier conversation"

# Semicolons cut a sentence in two, because the context separates its parts by them.
_SEPARATES = re.compile(r"[\s\[\]]*;[\s;]*")

# Words that mean another day each day, by language; read at import, which Home Assistant does outside the event loop.
_RELATIVE = re.compile(
    "|".join(json.loads(Path(__file__).with_name("relative_dates.json").read_text(encoding="utf-8")).values()),
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Narrator:
    """Writes lines for a person, whose name may be unknown, at a time."""

    name: str | None
    now: datetime

    @property
    def owner(self) -> str:
        """The name of the person in lines of memory."""
        return without_breaks(self.name or "the user")

    def fact(self, fact: Fact) -> str:
        """Return a fact as a sentence, with the day on which it was told if that matters."""
        text = one_sentence(fact.text)
        day = self._date(fact.at, "%a %Y-%m-%d") if _RELATIVE.search(text) else ""
        return f"{text} (told {day})" if day else text

    def recalled(self, found: Recalled) -> Sequence[str]:
        """Return possible lines for a search result, the most complete first."""
        if found.kind == "fact":
            return (f"{self._head(found, HOME)}: {_quoted(found.text)}",)
        if found.kind == "episode":
            return (f"{self._head(found, HOME)}, {SUMMARY_OF}: {_quoted(found.excerpt)}",)
        said, _, answer = found.text.partition("\n")
        line = f"{self._head(found, _SOMEONE)}: {_quoted(said)}"
        return (f"{line}, answered: {_quoted(answer)}", line) if answer else (line,)

    def _head(self, found: Recalled, nobody: str) -> str:
        """Return date and person; of today and yesterday with the hour."""
        since = (self.now - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        form = "%Y-%m-%d %H:%M" if found.at >= since.timestamp() else "%Y-%m-%d"
        return " ".join(filter(None, (self._date(found.at, form), self.owner if found.person else nobody)))

    def _date(self, at: float, form: str) -> str:
        """Return a date, empty for a time that an import has and no calendar."""
        try:
            return datetime.fromtimestamp(at, self.now.tzinfo).strftime(form)
        except OSError, OverflowError, ValueError:
            return ""


def key_of(kind: str, row: int) -> str:
    """Return the name of a fact, turn or episode among the sources of a line."""
    return f"{kind}:{row}"


def one_sentence(text: str) -> str:
    """Return a text on one line that closes and separates nothing."""
    return without_breaks(_SEPARATES.sub(", ", text))


def _quoted(text: str) -> str:
    return f'"{one_sentence(text).replace('"', "'")}"'
