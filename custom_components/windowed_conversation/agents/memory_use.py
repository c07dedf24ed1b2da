"""What a turn may ask of memory, by words and by a model's tools, and what forgetting takes along."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import llm

from ..bridge.memory_answers import MemoryAnswers
from ..bridge.memory_tools import memory_tools
from ..memory import Forgotten
from ..turn.speaker import Speaker
from ..window.restore import Snapshot
from .agent import Agent
from .lookup import async_agents
from .memory import async_memory


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The answers and the tools that memory has for one input; none if the agent has no memory.

    `tools` makes the tools, which only a turn of the model needs. Only an agent that has other tools is given these, as
    not every model takes tools.
    """

    answers: MemoryAnswers | None = None
    tools: Callable[[], tuple[llm.Tool, ...]] = tuple


def memory_use(agent: Agent, speaker: Speaker, later: Callable[[Callable[[], None]], None]) -> MemoryUse:
    """Return what an input may ask of memory. `later` takes what is done when the turn has ended."""
    memory = async_memory(agent.hass)
    if not agent.config.memory or memory is None:
        return MemoryUse()

    def on_forgotten(_forgotten: Forgotten) -> None:
        later(partial(_begin_windows_anew, agent.hass))

    answers = MemoryAnswers(agent.hass, memory, speaker, on_forgotten)
    if not agent.config.llm_apis:
        return MemoryUse(answers)
    return MemoryUse(answers, partial(memory_tools, memory, speaker, on_forgotten))


def counted_tools(agent: Agent) -> tuple[llm.Tool, ...]:
    """Return the tools that memory has for the agent's turns, to be counted and not called."""
    memory = async_memory(agent.hass)
    if not agent.config.memory or memory is None or not agent.config.llm_apis:
        return ()
    return memory_tools(memory, Speaker("", agent.hass.config.language), lambda forgotten: None)


@callback
def _begin_windows_anew(hass: HomeAssistant) -> None:
    hass.async_create_background_task(_async_begin_windows_anew(hass), "Windowed Conversation: begin windows anew")


async def _async_begin_windows_anew(hass: HomeAssistant) -> None:
    """Empty the open conversations of all agents: any of them may repeat what was forgotten."""
    for agent in async_agents(hass):
        for window in agent.windows.newest_first():
            async with agent.windows.between_turns(window) as is_kept:
                if is_kept:
                    window.restore(Snapshot(window.conversation_id))
        agent.tell_soon()
