"""Recall: the choice of the search results that enter the context of a turn as lines."""

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
class RecalledLines:
    """Recalled lines with their times, oldest first, their tokens in total, and the ids of their sources."""

    dated: tuple[tuple[float, str], ...] = ()
    tokens: int = 0
    sources: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, oldest first so that a correction comes last."""
        return tuple(line for _, line in self.dated)


@dataclass(frozen=True, slots=True)
class SentContext:
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


def sent_context(exchanges: Iterable[Exchange], sources: Iterable[str], question: str = "") -> SentContext:
    """Return the texts of these exchanges beside these sources.

    The current question is one of them: earlier answers to the same question may be wrong or out of date.
    """
    texts = (
        " ".join(message.content.split())
        for exchange in exchanges
        for message in exchange.messages
        if message.role is Role.USER or is_summary(exchange)
    )
    return SentContext((*texts, " ".join(question.split())), frozenset(sources))


def _words(found: Recalled) -> str:
    """Return the words of a past turn, or the text of a fact or a summary."""
    return found.text.partition("\n")[0] if found.kind == "turn" else found.text


def is_of_home(found: Recalled, names_home: Callable[[str], bool]) -> bool:
    """Return whether a turn asked or commanded the home: its answer was true only then.

    `names_home` returns whether a sentence names an entity or a kind of things of the home.
    """
    return found.kind == "turn" and (any(map(_reads_or_sets_home, found.tools)) or names_home(_words(found)))


def _reads_or_sets_home(tool: str) -> bool:
    namespace, _, name = tool.rpartition("__")
    return name.startswith(_COMMANDS) or name in _LOOKS_UP or namespace == _SCRIPTS


def alternate(facts: Iterable[Recalled], others: Iterable[Recalled]) -> Iterator[Recalled]:
    """Yield two facts for each turn or summary, so that neither kind takes all the room."""
    facts, others = iter(facts), iter(others)
    while chunk := (*islice(facts, _FACTS_FOR_EACH), *islice(others, 1)):
        yield from chunk


def choose_lines(
    found: Iterable[Recalled], sent: SentContext, narrator: Narrator, count: Callable[[str], int], most: int
) -> RecalledLines:
    """Return whole lines of search results that the model is not sent yet, best first, up to `most` tokens."""
    chosen, misses = RecalledLines(), 0
    chosen_words: set[str] = set()
    for each in found:
        words = _words(each).casefold()
        if words in chosen_words or sent.has(each):
            continue
        longer = _with_line(chosen, each, narrator.recalled(each), count, most)
        if longer is None:
            misses += 1
        else:
            chosen, misses = longer, 0
            chosen_words.add(words)
        if (chosen.dated and misses >= _MOST_MISSES) or most - chosen.tokens < _SHORTEST:
            break
    return chosen


def _with_line(
    chosen: RecalledLines, found: Recalled, lines: Iterable[str], count: Callable[[str], int], most: int
) -> RecalledLines | None:
    """Return the lines with the first of these that fits, None if none does."""
    for line in lines:
        # the line alone is counted first: most do not fit
        if chosen.tokens + count(line) > most:
            continue
        dated = tuple(sorted((*chosen.dated, (found.at, line))))
        tokens = count(recalled_text(tuple(each for _, each in dated)))
        if tokens <= most:
            return RecalledLines(dated, tokens, (*chosen.sources, key_of(found.kind, found.id)))
    return None
