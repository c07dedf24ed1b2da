"""The use of memory in a turn, by words and by a model's tools."""

from collections.abc import Callable
from functools import partial

from homeassistant.helpers import llm

from ..bridge.memory_access import Forget
from ..bridge.memory_answers import MemoryAnswers
from ..bridge.memory_tools import memory_tools
from ..memory import Memory
from ..turn.forgetting import without_forgetting
from ..turn.memory_dialog import MemoryDialog
from ..turn.remember_requests import MemoryReply
from ..turn.speaker import Speaker
from .agent import Agent
from .conversation_turn import ConversationTurn
from .forgetting import async_forget_by
from .store import async_store


def memory_answers(turn: ConversationTurn) -> MemoryAnswers | None:
    """Return the answers of memory to a turn's input, None without a store. Forgetting needs no memory."""
    store = async_store(turn.agent.hass)
    if store is None:
        return None
    forget, has_memory = partial(async_forget_by, turn.agent.hass), turn.agent.config.memory
    return MemoryAnswers(turn.agent.hass, store, turn.speaker, forget, turn.dialog, has_memory=has_memory)


def turn_memory_tools(turn: ConversationTurn) -> tuple[llm.Tool, ...]:
    """Return the tools of memory for a turn, none if the agent has no memory."""

    async def forget(work: Callable[[Memory], MemoryReply]) -> MemoryReply:
        done: MemoryReply | None = None
        try:
            done = await async_forget_by(turn.agent.hass, work)
        finally:
            # the user's yes needs the question before it
            if done is None or done.then is None:
                turn.agent.windows.rewrite_after_turn(turn.key, without_forgetting)
        return done

    return _memory_tools(turn.agent, turn.speaker, forget, turn.dialog)


def counted_memory_tools(agent: Agent) -> tuple[llm.Tool, ...]:
    """Return the tools that memory has for the agent's turns, to be counted and not called."""
    nobody = Speaker("", agent.hass.config.language)
    return _memory_tools(agent, nobody, partial(async_forget_by, agent.hass), MemoryDialog({}, "", nobody))


def _memory_tools(agent: Agent, speaker: Speaker, forget: Forget, dialog: MemoryDialog) -> tuple[llm.Tool, ...]:
    """Return the tools of memory. Only an agent that has other tools is given these: not every model takes tools."""
    store = async_store(agent.hass)
    if not agent.config.memory or store is None or not agent.config.llm_apis:
        return ()
    return memory_tools(store, speaker, forget, dialog)
