"""What a turn may ask of memory, by words and by a model's tools."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm

from ..bridge.memory_answers import MemoryAnswers
from ..bridge.memory_tools import memory_tools
from ..memory import Memory
from ..turn.remembering import Remembering
from ..turn.speaker import Speaker
from .agent import Agent
from .forgetting import async_forget_by
from .memory import async_memory


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The answers and the tools that memory has for one input; none if the agent has no memory.

    `tools` makes the tools, which only a turn of the model needs. Only an agent that has other tools is given these, as
    not every model takes tools.
    """

    answers: MemoryAnswers | None = None
    tools: Callable[[], tuple[llm.Tool, ...]] = tuple


def memory_use(agent: Agent, speaker: Speaker) -> MemoryUse:
    """Return what an input may ask of memory."""
    memory = async_memory(agent.hass)
    if not agent.config.memory or memory is None:
        return MemoryUse()
    forget = partial(_async_forget, agent.hass)
    answers = MemoryAnswers(agent.hass, memory, speaker, forget)
    if not agent.config.llm_apis:
        return MemoryUse(answers)
    return MemoryUse(answers, partial(memory_tools, memory, speaker, forget))


def counted_tools(agent: Agent) -> tuple[llm.Tool, ...]:
    """Return the tools that memory has for the agent's turns, to be counted and not called."""
    memory = async_memory(agent.hass)
    if not agent.config.memory or memory is None or not agent.config.llm_apis:
        return ()
    return memory_tools(memory, Speaker("", agent.hass.config.language), partial(_async_forget, agent.hass))


async def _async_forget(hass: HomeAssistant, work: Callable[[Memory], Remembering]) -> Remembering:
    return await async_forget_by(hass, work, lambda done: done.forgotten)
