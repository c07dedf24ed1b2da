"""The states of the home that a turn sends, and what memory adds: sources that are fetched together."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeassistant.helpers import llm

from ..bridge.home_states import async_home_states
from ..bridge.home_tools import home_tools
from ..turn.context import ContextPlacement
from ..turn.home import NOTHING, Held, Telling, held, tell
from ..turn.recall import RECALLED_TOKENS
from ..turn.sources import Addition, fetch
from ..turn.speaker import Speaker
from ..turn.state_text import area_name
from ..window import Window, tells
from .agent import Agent
from .config import StatesConfig
from .recalling import CONTEXT_TOKENS, Recollection, memory_source, recollection

_NAME = "states"


@dataclass(frozen=True, slots=True)
class Added:
    """What is added to a turn: from memory, and about the home.

    `known` is what the window then says about the home, or None if the agent may not know the home.
    """

    memory: Recollection = field(default_factory=Recollection)
    home: Telling = NOTHING
    known: dict[str, str] | None = None

    @property
    def figures(self) -> Mapping[str, Any]:
        """How much was added, for the trace and the last turn's attributes."""
        told = {"states_told": len(self.home.states), "states_tokens": self.home.tokens}
        return self.memory.figures if self.known is None else {**self.memory.figures, **told}


class StateSource:
    """The states of the home as a source of one turn; `telling` is what to send, also if they cannot be fetched."""

    name = _NAME

    def __init__(self, agent: Agent, config: StatesConfig, window: Window, said: str, area: str) -> None:
        self._agent = agent
        self._config = config
        self._window = window
        self._said = said
        self._area = area_name(area)
        # what the window says about the home when the turn begins
        self.known: dict[str, str] = {}
        # without newer states, the older ones have to be removed
        self.telling = Telling(anew=_tells(window))

    async def fetch(self) -> Addition | None:
        """Choose what to send."""
        states = async_home_states(self._agent.hass)
        if states is not None:
            window, count = self._window, self._agent.counter.count
            limits = self._config.limits.within(window.policy.history_tokens)
            known = self._held(limits.changes)
            home = states.home(self._config.domains, {**known.states, **known.sent})
            telling = tell(home, known, self._area, limits, count, asked=home.asked(self._said))
            # the system prompt has the current states, so no message after it may contradict them
            self.telling = replace(telling, anew=self.telling.anew) if self._is_in_system else telling
            self.known = {**({} if telling.anew else known.states), **telling.states}
        return None

    @property
    def _is_in_system(self) -> bool:
        return self._agent.config.context_placement is ContextPlacement.SYSTEM

    def _held(self, changes: int) -> Held:
        """Return what the window still holds when the turn has begun; a system prompt holds nothing."""
        agent, window = self._agent, self._window
        if self._is_in_system:
            return Held()
        tokens = agent.counter.count(self._said) + RECALLED_TOKENS + CONTEXT_TOKENS + changes
        return held(window.exchanges(), window.would_stay(tokens), agent.config.excluded_tags)


def _tells(window: Window) -> bool:
    return any(map(tells, window.exchanges()))


async def async_add(agent: Agent, window: Window, speaker: Speaker, area: str | None) -> Added:
    """Return what is added to a turn; `area` is where the speaker is."""
    config = agent.config.states
    memory = memory_source(agent, window, speaker)
    states = StateSource(agent, config, window, speaker.said, area or "") if config else None
    fetched = await fetch(source for source in (states, memory) if source is not None)
    recalled = recollection(memory, fetched)
    if states is None:
        return Added(recalled, Telling(anew=_tells(window)))
    return Added(recalled, states.telling, states.known)


def tools_of_home(agent: Agent) -> tuple[llm.Tool, ...]:
    """Return the tools that look up what the home was and is, none for an agent that does not know it."""
    states = agent.config.states
    return () if states is None else home_tools(agent.counter.count, states.domains)
