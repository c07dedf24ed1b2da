"""Additions to a turn's requests besides its window: the profile of facts, recalled lines, and states of the home."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
import logging
import time
from typing import Any, NamedTuple

from ..bridge.home_states import async_home_states
from ..memory import Fact, Memory, Recalled, RecallQuery
from ..turn.context import LIVE_TOKENS, ContextPlacement, LiveContext, Stamp, context_sections, context_text
from ..turn.home import NO_STATES, STATES_TOKENS, StatesText, build_states_text
from ..turn.recall import (
    CANDIDATES,
    RECALLED_TOKENS,
    Narrator,
    PromptFacts,
    RecalledLines,
    alternate,
    build_prompt_facts,
    choose_lines,
    is_of_home,
    sent_context,
)
from ..turn.speaker import Speaker
from ..turn.state_text import area_name
from ..window import Exchange, TextKind, Window
from .agent import Agent
from .store import async_store

_LOGGER = logging.getLogger(__name__)

# The largest number of profiles that are cached for later turns.
_MOST_PROFILES = 16

# In seconds. A turn waits no longer for memory.
DEADLINE = 0.05

NO_SIZES: Mapping[str, Any] = {"recalled_tokens": None, "recall_ms": None}


class _Memories(NamedTuple):
    """The facts of the window's owner (None if unchanged) with their revision, and the search results."""

    facts: list[Fact] | None
    revision: object
    found_facts: list[Recalled]
    found_others: list[Recalled]


class TurnContext:
    """The profile and the live context of a turn. Without memory, or if memory is too slow, `profile` is None."""

    def __init__(self, agent: Agent, window: Window, speaker: Speaker, stamp: Stamp, language: str) -> None:
        config = agent.config
        self.profile: PromptFacts | None = None
        self._agent = agent
        self._count = agent.counter.count
        self._window = window
        self._speaker = speaker
        self._stamp = stamp
        self._language = language
        self._memory = async_store(agent.hass) if config.memory else None
        self._home = async_home_states(agent.hass) if config.states is not None else None
        self._narrator = Narrator(speaker.name, stamp.now)
        self._found: Sequence[Recalled] = ()
        self._seconds = 0.0
        self._recalled = RecalledLines()
        self._states: StatesText | None = None
        self._states_before = agent.listed.get(window, NO_STATES)
        self._is_in_system = config.context_placement is ContextPlacement.SYSTEM
        self._stamp_tokens = self._count(context_sections(stamp, "", ())) if self._is_in_system else 0

    @property
    def tokens(self) -> int:
        """The largest token count of the live context, including a stamp beside it in the system instruction."""
        memory = RECALLED_TOKENS if self._memory is not None else 0
        home = STATES_TOKENS if self._home is not None else 0
        return min(LIVE_TOKENS, memory + home + self._stamp_tokens)

    @property
    def sizes(self) -> Mapping[str, Any]:
        """The sizes of the added parts, for the trace and the last turn's attributes."""
        sizes = NO_SIZES
        if self._memory is not None:
            sizes = {"recalled_tokens": self._recalled.tokens, "recall_ms": round(1000 * self._seconds, 1)}
        if self._home is None:
            return sizes
        states = self._states or NO_STATES
        return {**sizes, "states_listed": len(states.listed), "states_tokens": states.tokens}

    async def async_read(self) -> None:
        """Read the facts and search memory. If memory is off or too slow, the turn continues without them."""
        if self._memory is None:
            return
        # everybody who uses the window gets this prompt, so a shared one has no facts of a person
        owner = self._speaker.person if self._speaker.is_alone else None
        key = (owner, self._speaker.is_alone, self._narrator.owner)
        revision, profile = self._agent.profiles.get(key, (None, None))
        read = partial(_read_memories, speaker=self._speaker, owner=owner, last_revision=revision if profile else None)
        memories: _Memories | None = None
        at, began = time.time(), time.monotonic()
        try:
            async with asyncio.timeout(DEADLINE):
                memories = await self._memory.async_read(read, _Memories([], None, [], []))
        except Exception as err:  # noqa: BLE001 - a turn goes on without memory after any error
            _LOGGER.debug("A turn continues without memory: %s", type(err).__name__)
        self._seconds = time.monotonic() - began
        # the facts in the last profile may have been forgotten in the meantime
        if not self._memory.predates_forgetting(at):
            self.profile = profile if memories is None else self._new_profile(key, memories, profile)

    def _new_profile(self, key: Hashable, memories: _Memories, profile: PromptFacts | None) -> PromptFacts:
        """Store the search results, and return the profile, which is a new one if the facts have changed."""
        self._found = tuple(alternate(memories.found_facts, memories.found_others))
        if profile is None or memories.facts is not None:
            count = partial(self._agent.counter.count_as, TextKind.FIXED)
            profile = build_prompt_facts(memories.facts or (), self._narrator, count)
        profiles = self._agent.profiles
        profiles.pop(key, None)
        profiles[key] = memories.revision, profile
        if len(profiles) > _MOST_PROFILES:
            del profiles[next(iter(profiles))]
        return profile

    def live(self, exchanges: Sequence[Exchange], limit: int) -> LiveContext:
        """Return the live context, limited to `limit` tokens, of a request that sends these closed exchanges."""
        limit -= self._stamp_tokens
        most = min(RECALLED_TOKENS, limit // 2 if self._home else limit)
        sent = sent_context(exchanges, self.profile.sources if self.profile else (), self._speaker.said)
        # lazy, because the first few lines usually fill the limit
        found = (each for each in self._found if not is_of_home(each, self._names_home))
        recalled = self._recalled = choose_lines(found, sent, self._narrator, self._count, most)
        states = self._states_within(min(STATES_TOKENS, limit - recalled.tokens)).text
        if self._is_in_system:
            text = context_sections(self._stamp, states, recalled.lines)
        else:
            text = context_text(states, recalled.lines)
        return LiveContext(text, self._count(text), frozenset(recalled.sources))

    def _names_home(self, sentence: str) -> bool:
        if self._home is None:
            return False
        named = self._home.home(self._language).named(sentence)
        return bool(named.entities or named.kinds)

    def _states_within(self, limit: int) -> StatesText:
        """Return the states of the home, the same for all requests of the turn unless one has less room for them."""
        domains = self._agent.config.states
        if self._home is None or domains is None:
            return NO_STATES
        if self._states is None or self._states.tokens > limit:
            home = self._home.home(self._language)
            self._states = self._agent.listed[self._window] = build_states_text(
                home.entities,
                home.named(self._speaker.said),
                area_name(self._stamp.area or ""),
                self._states_before,
                limit=limit,
                count=self._count,
                domains=domains,
                now=time.time(),
            )
        return self._states


def _read_memories(memory: Memory, speaker: Speaker, owner: str | None, last_revision: object) -> _Memories:
    """Search memory for the speaker's input, and read the owner's facts if their revision is not `last_revision`."""
    # read the revision before the facts, so that the next turn notices a change in between
    revision = memory.facts_revision()
    facts = None if revision == last_revision else memory.facts(owner, private=speaker.is_alone)
    name = speaker.name if speaker.person else None
    query = RecallQuery(speaker.said, speaker.person, name, CANDIDATES, private=speaker.is_alone)
    found_facts, found_others = memory.recall_groups(query, ("fact",), ("episode", "turn"))
    return _Memories(facts, revision, found_facts, found_others)
