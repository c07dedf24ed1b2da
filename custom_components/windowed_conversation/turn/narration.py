"""What was said before, written as quoted data: on one line, with who and when, closed by nothing inside of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from ..memory import Fact, Recalled
from .context import without_breaks

_HOME, _SOMEONE = "home", "someone"
SUMMARY_OF = "summary of an earlier conversation"


@dataclass(frozen=True, slots=True)
class Narrator:
    """Writes quotes for a person, whose name may be unknown, with dates of a time zone."""

    name: str | None
    now: object

    @property
    def zone(self):
        return self.now.tzinfo

    @property
    def owner(self):
        return self.name

    def heading(self, fact: Fact) -> str:
        """Return the heading that the facts of one owner and month share."""
        return ", ".join(filter(None, (self._who(fact.person, _HOME), _date(fact.at, self.zone, "%Y-%m"))))

    def under_heading(self, fact: Fact) -> str:
        """Return the line of a fact under its heading, with the day of the month."""
        return ": ".join(filter(None, (_date(fact.at, self.zone, "%d"), _quoted(fact.text))))

    def recalled(self, found: Recalled) -> Sequence[str]:
        """Return possible lines for a search result, the most complete first."""
        if found.kind == "fact":
            return (f"{self._head(found.at, found.person, _HOME)}: {_quoted(found.text)}",)
        if found.kind == "episode":
            return (f"{self._head(found.at, found.person, _HOME)}, {SUMMARY_OF}: {_quoted(found.excerpt)}",)
        said, _, answer = found.text.partition("\n")
        line = f"{self._head(found.at, found.person, _SOMEONE)}: {_quoted(said)}"
        return (f"{line}, answered: {_quoted(answer)}", line) if answer else (line,)

    def _head(self, at: float, person: str | None, nobody: str) -> str:
        return " ".join(filter(None, (_date(at, self.zone, "%Y-%m-%d"), self._who(person, nobody))))

    def _who(self, person: str | None, nobody: str) -> str:
        return without_breaks(self.name or "user") if person else nobody


def key_of(kind: str, row: int) -> str:
    """Return the name of a fact, turn or episode among the sources of a line."""
    return f"{kind}:{row}"


def keys_of(facts: Iterable[Fact]) -> frozenset[str]:
    """Return the names of facts among the sources of a line."""
    return frozenset(key_of("fact", fact.id) for fact in facts)


def _quoted(text: str) -> str:
    return f'"{without_breaks(text).replace('"', "'")}"'


def _date(at: float, zone: tzinfo, form: str) -> str:
    """Return a date, empty for a time that an import has and no calendar."""
    try:
        return datetime.fromtimestamp(at, zone).strftime(form)
    except OSError, OverflowError, ValueError:
        return ""
