"""What memory adds to a turn: the profile at the end of the system prompt, and recalled lines in its context."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from homeassistant.util import dt as dt_util

from ..memory import Fact, Memory, Recalled
from ..turn.narration import Narrator, keys_of
from ..turn.profile import HEADING, Profile, SystemPrompt, kept_profile, new_profile, profile_in_force, with_profile
from ..turn.recall import CANDIDATES, RECALLED_TOKENS, chosen_lines, held, in_turn, room_for_lines
from ..turn.sources import Addition, Fetched
from ..turn.speaker import Speaker
from ..window import TextKind, Window
from .agent import Agent
from .memory import AgentMemory, async_memory
from .profiles import MadeProfile

_NAME = "memory"
# What a question costs in a window besides its words and what is recalled, at most, in tokens.
CONTEXT_TOKENS = 100

NO_FIGURES: Mapping[str, Any] = {"recalled_tokens": None, "recall_ms": None}


@dataclass(frozen=True, slots=True)
class Recollection:
    """What memory adds to a turn. `profile` is in force, `new` is that of now, None if it could not be made in time."""

    profile: Profile | None = None
    new: Profile | None = None
    recalled: Addition | None = None
    figures: Mapping[str, Any] = field(default_factory=lambda: NO_FIGURES)

    @property
    def lines(self) -> tuple[str, ...]:
        """The recalled lines."""
        return self.recalled.lines if self.recalled else ()

    def prompt(self, system: str) -> SystemPrompt:
        """Return a system prompt with the profile in force."""
        return with_profile(system, self.profile)

    def prompt_after_eviction(self, system: str) -> SystemPrompt | None:
        """Return a system prompt with the profile of now, or None if it is no other."""
        return None if self.new is None or self.new == self.profile else with_profile(system, self.new)


class _Read(NamedTuple):
    """What was read: the facts of the window's owner, or None if unchanged, and the search results."""

    facts: list[Fact] | None
    revision: object
    found: list[Recalled]
    others: list[Recalled]


class MemorySource:
    """The memory as a source of one turn; `profile` and `new` are those of a `Recollection`."""

    name = _NAME

    def __init__(self, agent: Agent, memory: AgentMemory, window: Window, speaker: Speaker) -> None:
        self._counter = agent.counter
        self._profiles = agent.profiles
        self._memory = memory
        self._window = window
        self._speaker = speaker
        self._narrator = Narrator(speaker.name, dt_util.get_default_time_zone())
        # everybody who uses the window gets the prompt
        self._owner = speaker.person if speaker.is_alone else None
        # an empty window starts with the current profile
        sent = window.messages()[:1] if window.stats().exchange_count else ()
        self._kept = kept_profile(next(iter(sent), None))
        self.profile = self._kept
        self.new: Profile | None = None

    async def fetch(self) -> Addition | None:
        """Read the facts, search for what was said, and choose; raises MemoryUnavailable."""
        window, speaker, owner = self._window, self._speaker, self._owner
        # a new calibration may leave room for other facts
        key = (owner, speaker.is_alone, self._narrator, self._count_fixed(HEADING))
        made = self._profiles.get(key)

        def read(memory: Memory) -> _Read:
            # read before the facts, so that the next turn notices a change in between
            revision = memory.facts_revision()
            is_known = made is not None and made.revision == revision
            facts = None if is_known else memory.facts(owner, private=speaker.is_alone)
            found, others = memory.recall_apart(
                speaker.said,
                ("fact",),
                ("episode", "turn"),
                person=speaker.person,
                speaker=speaker.name if speaker.person else None,
                limit=CANDIDATES,
                private=speaker.is_alone,
            )
            return _Read(facts, revision, found, others)

        facts, revision, found, others = await self._memory.async_read(read, _Read([], None, [], []))
        if facts is not None or made is None:
            made = self._make_profile(facts or [], revision)
        self._profiles.put(key, made)
        told = self._choose_profile(made)
        tokens = self._counter.count(speaker.said) + RECALLED_TOKENS + CONTEXT_TOKENS
        staying = window.would_stay(tokens)
        known = held(staying, told, speaker.said)
        most = room_for_lines(staying, window.policy.history_tokens)
        return chosen_lines(in_turn(found, others), known, self._narrator, self._counter.count, most)

    def _make_profile(self, facts: list[Fact], revision: object) -> MadeProfile:
        return MadeProfile(new_profile(facts, self._narrator, self._count_fixed), keys_of(facts), revision)

    def _choose_profile(self, made: MadeProfile) -> set[str]:
        """Choose the profile, and return the facts that are in it whether or not the turn evicts anything."""
        self.new = made.profile
        self.profile = profile_in_force(self._kept, self.new, made.facts) or self.new
        return set(self.profile.sources) & set(self.new.sources)

    def _count_fixed(self, text: str) -> int:
        return self._counter.count_as(TextKind.FIXED, text)


def memory_source(agent: Agent, window: Window, speaker: Speaker) -> MemorySource | None:
    """Return the memory as a source of a turn, or None if the agent has none."""
    memory = async_memory(agent.hass)
    return MemorySource(agent, memory, window, speaker) if agent.config.memory and memory is not None else None


def recollection(source: MemorySource | None, fetched: Fetched) -> Recollection:
    """Return what memory adds to a turn: nothing if the agent has no memory, the last profile if it is off or late."""
    if source is None:
        return Recollection()
    recalled = fetched.additions.get(_NAME)
    figures = {
        "recalled_tokens": recalled.tokens if recalled else 0,
        "recall_ms": round(1000 * fetched.seconds, 1),
    }
    return Recollection(source.profile, source.new, recalled, figures)
