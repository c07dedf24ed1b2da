"""A turn's use of memory, by words and by a model's tools."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from homeassistant.helpers import llm

from ..bridge.memory_answers import MemoryAnswers
from ..bridge.memory_tools import memory_tools
from ..memory import Memory
from ..turn.forgetting import without_forgetting
from ..turn.memory_dialog import MemoryDialog
from ..turn.remember_requests import MemoryReply
from ..turn.speaker import Speaker
from .agent import Agent
from .forgetting import async_forget_by
from .store import async_store


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The answers and the tools that memory has for one input; none if the agent has no memory.

    `tools` makes the tools, which only a turn of the model needs. Only an agent that has other tools is given these, as
    not every model takes tools.
    """

    answers: MemoryAnswers | None = None
    tools: Callable[[], tuple[llm.Tool, ...]] = tuple


def memory_use(agent: Agent, speaker: Speaker, key: str) -> MemoryUse:
    """Return the `MemoryUse` of an input in the window of this key. Forgetting needs no memory."""
    store = async_store(agent.hass)
    if store is None:
        return MemoryUse()
    forget, dialog = partial(async_forget_by, agent.hass), MemoryDialog(agent.last_answers, key, speaker)
    answers = MemoryAnswers(agent.hass, store, speaker, forget, dialog, has_memory=agent.config.memory)
    if not agent.config.memory or not agent.config.llm_apis:
        return MemoryUse(answers)

    async def forget_by_tool(work: Callable[[Memory], MemoryReply]) -> MemoryReply:
        done: MemoryReply | None = None
        try:
            done = await forget(work)
        finally:
            # the user's yes needs the question before it
            if done is None or done.then is None:
                agent.windows.rewrite_after_turn(key, without_forgetting)
        return done

    return MemoryUse(answers, partial(memory_tools, store, speaker, forget_by_tool, dialog))


def counted_tools(agent: Agent) -> tuple[llm.Tool, ...]:
    """Return the tools that memory has for the agent's turns, to be counted and not called."""
    store = async_store(agent.hass)
    if not agent.config.memory or store is None or not agent.config.llm_apis:
        return ()
    nobody = Speaker("", agent.hass.config.language)
    return memory_tools(store, nobody, partial(async_forget_by, agent.hass), MemoryDialog({}, "", nobody))
