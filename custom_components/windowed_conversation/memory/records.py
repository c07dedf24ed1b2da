"""What memory holds and returns."""

from dataclasses import dataclass, field
import math
from typing import Literal

type Kind = Literal["fact", "episode", "turn"]

KINDS: tuple[Kind, ...] = ("fact", "episode", "turn")


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn that ended: what was said and answered, who, where and when. Without a person it is the home's."""

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
    """A summary of the turns of a conversation from `since` to `at`. It is forgotten with any of them."""

    conversation: str
    since: float
    at: float
    text: str
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of turns, to become their episode: what was said in each, and the summary that this one replaces.

    `since` is a time before the first of the turns. All of them are of one person, or of the home.
    """

    conversation: str
    since: float
    said: tuple[str, ...]
    text: str
    earlier: str = ""
    agent: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it stands now. `confirmed` is when it was last told, `told` how often."""

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
    """What was found. Private is a private fact, and every turn and episode of a person.

    `excerpt` is the part of an episode that the question is about.
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


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids of what was forgotten, or would be. Erased says that the file holds nothing of it any more.

    For those who may still hold it: `since` is when the oldest of it came to be, `people` who alone could see it, with
    None for everybody, `conversations` where it was said, and `told` what its facts and the query said.
    """

    facts: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    episodes: tuple[int, ...] = ()
    erased: bool = False
    since: float = field(default=math.inf, compare=False)
    people: frozenset[str | None] = field(default=frozenset(), compare=False)
    conversations: frozenset[str] = field(default=frozenset(), compare=False)
    told: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def has_any(self) -> bool:
        """Whether anything was forgotten."""
        return bool(self.facts or self.turns or self.episodes)

    @property
    def ids(self) -> dict[Kind, tuple[int, ...]]:
        """The ids by their kinds."""
        return {"fact": self.facts, "turn": self.turns, "episode": self.episodes}


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of the lines that were loaded: new, there already, or refused as forgotten."""

    added: int = 0
    known: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """How much memory holds: current facts, turns, episodes, bytes on disk, rows that the index has not got yet."""

    facts: int
    turns: int
    episodes: int
    size: int
    unindexed: int
