"""Recall: which lines of what was found enter the context of a turn."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from ..memory import Recalled
from ..window import Exchange, Role, is_summary
from .live_context import recalled_text
from .narration import Narrator, key_of

RECALLED_TOKENS = 150
# How many search results are considered: most are long, already in the window, or about the home.
CANDIDATES = 20

# Home Assistant's tools that ask or command the home, by their names without a namespace, and ours.
_COMMANDS = "Hass"
_LOOKS_UP = frozenset({"GetLiveContext", "get_states", "get_history"})
_SCRIPTS = "script"

_FACTS_FOR_EACH = 2
# There is no room left when this many search results in a row do not fit, or when fewer tokens are left than a date,
# "someone", and a few words in quotes take.
_MOST_MISSES = 4
_SHORTEST = 16
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Addition:
    """Recalled lines, oldest first, their tokens in total, and the ids of their sources."""

    lines: tuple[str, ...]
    tokens: int
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """The texts of users and summaries that the model is sent anyway, and the facts of the profile as sources."""

    texts: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()

    def has(self, found: Recalled) -> bool:
        """Return whether a search result is among them."""
        if key_of(found.kind, found.id) in self.sources:
            return True
        words = _words(found)
        if found.kind == "turn" and not words.endswith(_CUT):
            return any(text.endswith(words) for text in self.texts)
        return any(words.removesuffix(_CUT) in text for text in self.texts)


def _words(found: Recalled) -> str:
    """Return the words of a past turn, or the text of a fact or a summary."""
    return found.text.partition("\n")[0] if found.kind == "turn" else found.text


def sent_in(exchanges: Iterable[Exchange], sources: Iterable[str], asked: str = "") -> Sent:
    """Return the texts of these exchanges beside these sources.

    The current question is one of them: earlier answers to the same question may be wrong or out of date.
    """
    exchanges = tuple(exchanges)
    said = (
        " ".join(message.content.split())
        for exchange in exchanges
        for message in exchange.messages
        if message.role is Role.USER or is_summary(exchange)
    )
    return Sent((*said, " ".join(asked.split())), frozenset(sources))


def is_of_home(found: Recalled, names_home: Callable[[str], bool]) -> bool:
    """Return whether a turn asked or commanded the home: what it says of states was true only then.

    `names_home` returns whether a sentence names an entity or a kind of things of the home.
    """
    return found.kind == "turn" and (any(map(_is_of_home, found.tools)) or names_home(_words(found)))


def _is_of_home(tool: str) -> bool:
    namespace, _, name = tool.rpartition("__")
    return name.startswith(_COMMANDS) or name in _LOOKS_UP or namespace == _SCRIPTS


def in_turn(facts: Iterable[Recalled], others: Iterable[Recalled]) -> Iterator[Recalled]:
    """Yield two facts for each turn or summary, so that neither kind takes all the room."""
    facts, others = iter(facts), iter(others)
    while chunk := (*islice(facts, _FACTS_FOR_EACH), *islice(others, 1)):
        yield from chunk


def chosen_lines(
    found: Iterable[Recalled], sent: Sent, narrator: Narrator, count: Callable[[str], int], most: int
) -> Addition | None:
    """Return whole lines of what is not sent yet, best first, up to `most` tokens, or None if there are none."""
    chosen = _Chosen(narrator, count, most)
    chosen_before = set[str]()
    misses = 0
    for each in found:
        words = _words(each).casefold()
        if words in chosen_before or sent.has(each):
            continue
        if chosen.add(each):
            chosen_before.add(words)
            misses = 0
        else:
            misses += 1
        if (chosen.lines and misses >= _MOST_MISSES) or most - chosen.tokens < _SHORTEST:
            break
    return Addition(chosen.lines, chosen.tokens, tuple(chosen.sources)) if chosen.lines else None


class _Chosen:
    """The lines that were chosen, oldest first so that a correction comes last, and their tokens in the context."""

    def __init__(self, narrator: Narrator, count: Callable[[str], int], most: int) -> None:
        self.tokens = 0
        self.sources: list[str] = []
        self._dated: list[tuple[float, str]] = []
        self._narrator = narrator
        self._count = count
        self._most = most

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line for _, line in self._dated)

    def add(self, found: Recalled) -> bool:
        """Add the most complete line that fits, and return whether there is one."""
        for line in self._narrator.recalled(found):
            # the line alone is counted first: most do not fit
            if self.tokens + self._count(line) > self._most:
                continue
            dated = sorted((*self._dated, (found.at, line)))
            if (tokens := self._count(recalled_text(tuple(each for _, each in dated)))) <= self._most:
                self._dated, self.tokens = dated, tokens
                self.sources.append(key_of(found.kind, found.id))
                return True
        return False
