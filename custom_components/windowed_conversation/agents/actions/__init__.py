"""The integration's actions, in one table. Each module defines some, with their schemas."""

from . import conversations, memory, turns

ACTIONS = (*conversations.ACTIONS, *memory.ACTIONS, *turns.ACTIONS)
