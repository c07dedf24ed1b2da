"""The context of a turn besides its window: the profile of facts, recalled lines, and states of the home."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
import logging
import time
from typing import Any, NamedTuple

from homeassistant.helpers import llm

from ..bridge.home_states import async_home_states
from ..bridge.home_tools import home_tools
from ..memory import Fact, Memory, Recalled
from ..turn.context import ContextPlacement, Stamp
from ..turn.home import NO_STATES, STATES_TOKENS, StatesText, build_states_text
from ..turn.live_context import LIVE_TOKENS, LiveContext, context_sections, context_text
from ..turn.narration import Narrator
from ..turn.profile import Profile, new_profile
from ..turn.recall import CANDIDATES, RECALLED_TOKENS, Addition, chosen_lines, in_turn, is_of_home, sent_in
from ..turn.speaker import Speaker
from ..turn.state_text import area_name
from ..window import Exchange, TextKind, Window
from .agent import Agent
from .store import async_store

_LOGGER = logging.getLogger(__name__)

# The most owners whose profiles are kept for their next turns.
_MOST_PROFILES = 16

# How long a turn waits for memory, in seconds.
DEADLINE = 0.05

NO_FIGURES: Mapping[str, Any] = {"recalled_tokens": None, "recall_ms": None}


class _Read(NamedTuple):
    """The facts of the window's owner, or None if unchanged, their revision, and the search results."""

    facts: list[Fact] | None
    revision: object
    facts_found: list[Recalled]
    others_found: list[Recalled]


class TurnContext:
    """The profile and the live context of one turn. `profile` is None if the agent has no memory, or it was late."""

    def __init__(self, agent: Agent, window: Window, speaker: Speaker, stamp: Stamp, language: str) -> None:
        config = agent.config
        self.profile: Profile | None = None
        self._agent = agent
        self._window = window
        self._speaker = speaker
        self._stamp = stamp
        self._language = language
        self._memory = async_store(agent.hass) if config.memory else None
        self._home = async_home_states(agent.hass) if config.states is not None else None
        self._narrator = Narrator(speaker.name, stamp.now)
        self._found: Sequence[Recalled] = ()
        self._seconds = 0.0
        self._recalled: Addition | None = None
        self._states: StatesText | None = None
        self._listed_before = agent.listed.get(window, NO_STATES)
        self._is_in_system = config.context_placement is ContextPlacement.SYSTEM
        self._stamp_tokens = self._count(context_sections(stamp, "", ())) if self._is_in_system else 0

    @property
    def tokens(self) -> int:
        """The most tokens that the live context may have, with a stamp that is beside it in the system instruction."""
        memory = RECALLED_TOKENS if self._memory is not None else 0
        home = STATES_TOKENS if self._home is not None else 0
        return min(LIVE_TOKENS, memory + home + self._stamp_tokens)

    @property
    def figures(self) -> Mapping[str, Any]:
        """How much was added, for the trace and the last turn's attributes."""
        recalled = self._recalled.tokens if self._recalled else 0
        figures = {"recalled_tokens": recalled, "recall_ms": round(1000 * self._seconds, 1)}
        if self._home is None:
            return figures if self._memory is not None else NO_FIGURES
        states = self._states or NO_STATES
        listed = {"states_listed": len(states.listed), "states_tokens": states.tokens}
        return {**(figures if self._memory is not None else NO_FIGURES), **listed}

    async def async_read(self) -> None:
        """Read the facts and search for what was said; without memory, or if it is late, the turn goes on without."""
        if self._memory is None:
            return
        agent, speaker, at, began = self._agent, self._speaker, time.time(), time.monotonic()
        # everybody who uses the window gets the prompt
        owner = speaker.person if speaker.is_alone else None
        key = (owner, speaker.is_alone, self._narrator.owner)
        made, made_profile = agent.profiles.get(key, (None, None))

        def read(memory: Memory) -> _Read:
            # read before the facts, so that the next turn notices a change in between
            revision = memory.facts_revision()
            is_known = made_profile is not None and made == revision
            facts = None if is_known else memory.facts(owner, private=speaker.is_alone)
            facts_found, others_found = memory.recall_apart(
                speaker.said,
                ("fact",),
                ("episode", "turn"),
                person=speaker.person,
                speaker=speaker.name if speaker.person else None,
                limit=CANDIDATES,
                private=speaker.is_alone,
            )
            return _Read(facts, revision, facts_found, others_found)

        found: _Read | None = None
        try:
            async with asyncio.timeout(DEADLINE):
                found = await self._memory.async_read(read, _Read([], None, [], []))
        except Exception as err:  # noqa: BLE001 - whatever it is, a turn goes on without memory
            _LOGGER.debug("A turn continues without memory: %s", type(err).__name__)
        self._seconds = time.monotonic() - began
        # what is known may have been forgotten meanwhile
        if not self._memory.is_from_before(at):
            self.profile = made_profile if found is None else self._made(key, found, made_profile)

    def _made(self, key: Hashable, found: _Read, made: Profile | None) -> Profile:
        """Take in what was read, and return the profile, a new one if the facts have changed."""
        self._found = tuple(in_turn(found.facts_found, found.others_found))
        if made is None or found.facts is not None:
            made = new_profile(found.facts or (), self._narrator, self._count_fixed)
        profiles = self._agent.profiles
        profiles.pop(key, None)
        profiles[key] = found.revision, made
        if len(profiles) > _MOST_PROFILES:
            del profiles[next(iter(profiles))]
        return made

    def live(self, exchanges: Sequence[Exchange], limit: int) -> LiveContext:
        """Return the live context of a request that sends these closed exchanges, within this number of tokens."""
        limit -= self._stamp_tokens
        self._recalled = self._lines(exchanges, min(RECALLED_TOKENS, limit // 2 if self._home else limit))
        recalled = self._recalled or Addition((), 0)
        states = self._states_within(min(STATES_TOKENS, limit - recalled.tokens)).text
        if self._is_in_system:
            text = context_sections(self._stamp, states, recalled.lines)
        else:
            text = context_text(states, recalled.lines)
        return LiveContext(text, self._count(text), frozenset(recalled.sources))

    def _names_home(self, said: str) -> bool:
        """Return whether a sentence names an entity or a kind of things of the home."""
        if self._home is None:
            return False
        named = self._home.home(self._language).named(said)
        return bool(named.entities or named.kinds)

    def _lines(self, exchanges: Sequence[Exchange], most: int) -> Addition | None:
        if not self._found:
            return None
        profile = self.profile.sources if self.profile else ()
        sent = sent_in(exchanges, profile, self._speaker.said)
        # few of them are looked at before there is no room left
        found = (each for each in self._found if not is_of_home(each, self._names_home))
        return chosen_lines(found, sent, self._narrator, self._count, most)

    def _states_within(self, limit: int) -> StatesText:
        """Return the states of the home: the same in all requests of the turn, unless one has less room for them."""
        domains = self._agent.config.states
        if self._home is None or domains is None:
            return NO_STATES
        if self._states is None or self._states.tokens > limit:
            home = self._home.home(self._language)
            self._states = build_states_text(
                home.entities,
                home.named(self._speaker.said),
                area_name(self._stamp.area or ""),
                self._listed_before,
                limit=limit,
                count=self._count,
                domains=domains,
                now=time.time(),
            )
            self._agent.listed[self._window] = self._states
        return self._states

    def _count(self, text: str) -> int:
        return self._agent.counter.count(text)

    def _count_fixed(self, text: str) -> int:
        return self._agent.counter.count_as(TextKind.FIXED, text)


def tools_of_home(agent: Agent) -> tuple[llm.Tool, ...]:
    """Return the tools that look up what the home was and is, none for an agent that does not know it."""
    domains = agent.config.states
    return () if domains is None else home_tools(agent.counter.count, domains)
