"""The values that memory stores and returns. Times are seconds since the epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

type Kind = Literal["fact", "episode", "turn"]

KINDS: tuple[Kind, ...] = ("fact", "episode", "turn")


@dataclass(frozen=True, slots=True)
class PastTurn:
    """An ended turn: what was said and answered, by whom, where and when. With `person=None` it is the home's."""

    conversation: str
    at: float
    said: str
    answer: str
    agent: str | None = None
    person: str | None = None
    device: str | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """A summary of a conversation's turns from `since` to `at`. Forgetting one of the turns forgets it, too."""

    conversation: str
    since: float
    at: float
    text: str
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A new summary of turns, to be stored as their episode.

    `said` has the user's words in each turn, and `earlier` is the text of the summary that this one replaces. From
    `since` to `until` was said what it summarizes, beside the turns what memory does not keep. All turns belong to one
    person, or to the home.
    """

    conversation: str
    since: float
    until: float
    said: tuple[str, ...]
    text: str
    earlier: str = ""
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A current fact. `confirmed` is when it was last stated, `told` how often."""

    id: int
    text: str
    at: float
    person: str | None
    private: bool
    source: str
    quote: str
    confirmed: float
    told: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """A search result. `private` is True for a private fact, and for every turn and episode of a person.

    `excerpt` is the part of an episode that matches the question. `tools` are the names of those that ran in a turn.
    """

    kind: Kind
    id: int
    text: str
    at: float
    person: str | None
    score: float
    conversation: str | None = None
    private: bool = False
    excerpt: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids of what was forgotten, or would be. `erased` is True if no byte of it is left in the file.

    `records` are rows of the record of turns, and `wordless` those of which only the figures stay; `recorded` counts
    those of them that had the words of the query. `exchanges` counts what the windows on conversations have lost. The
    rest helps others to find their own copies:

    - `since`: by person, since when they may have repeated what they told or said themselves
    - `people`: who alone could see it, None for everybody
    - `conversations`: where it was said, and `moments` when, in order, by conversation
    - `told`: the texts that others may repeat
    - `texts`: what is forgotten, by kind and id
    """

    facts: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    episodes: tuple[int, ...] = ()
    records: tuple[int, ...] = ()
    wordless: tuple[int, ...] = ()
    recorded: int = 0
    exchanges: int = 0
    erased: bool = False
    since: Mapping[str, float] = field(default_factory=dict, compare=False)
    people: frozenset[str | None] = field(default=frozenset(), compare=False)
    conversations: frozenset[str] = field(default=frozenset(), compare=False)
    moments: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False)
    told: tuple[str, ...] = field(default=(), compare=False, repr=False)
    texts: Mapping[tuple[Kind, int], str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_any(self) -> bool:
        """Whether memory had anything."""
        return bool(self.facts or self.turns or self.episodes)

    @property
    def has_words(self) -> bool:
        """Whether the words of the query were found anywhere."""
        return bool(self.has_any or self.exchanges or self.recorded)

    @property
    def ids(self) -> dict[Kind, tuple[int, ...]]:
        """The ids by kind."""
        return {"fact": self.facts, "turn": self.turns, "episode": self.episodes}


@dataclass(frozen=True, slots=True)
class Loaded:
    """The number of loaded lines that were added, already known, or refused because they were forgotten."""

    added: int = 0
    known: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of current facts, turns, episodes, bytes on disk, and rows that are not indexed yet.

    `unerased`: whether bytes of deleted rows may be in the file.
    """

    facts: int
    turns: int
    episodes: int
    size: int
    unindexed: int
    unerased: bool = False


class Tombstone(NamedTuple):
    """The trace of a forgotten fact, turn or episode: the time at which it came to be, and no words."""

    kind: Kind
    id: int
    at: float
