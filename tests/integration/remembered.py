"""Helpers that add facts to a home's memory and read facts and recorded turns from it."""

from typing import Any

from homeassistant.core import HomeAssistant

from custom_components.windowed_conversation.agents.store import AgentStore, async_get_store
from custom_components.windowed_conversation.memory.core import (
    Fact,
    FactStatement,
    Memory,
    PastTurn,
    add_suggestion as store_suggestion,
)
from custom_components.windowed_conversation.record import RecordedTurns, TurnListQuery, TurnRecord


def memory_of(home: HomeAssistant) -> AgentStore:
    memory = async_get_store(home)
    assert memory is not None
    return memory


async def add_fact(home: HomeAssistant, text: str, **more: Any) -> int:
    """Write a fact to disk and return its id; see `Memory.add_fact`."""
    return await memory_of(home).async_change(lambda memory: memory.add_fact(text, **more))


async def add_suggestion(home: HomeAssistant, person: str | None, text: str, at: float, said: str = "") -> int:
    """Store a turn of a person, in which they say the text if nothing else, and its suggestion. Return its id."""

    def store(memory: Memory) -> int:
        turn = memory.add_turn(PastTurn("earlier", at, said or text, "I see.", "a1", person))
        statement = FactStatement(
            text, person, private=True, source="learned", quote=said or text, at=at, confirmed=at, turn=turn
        )
        store_suggestion(memory, statement, "earlier")
        return next(fact.id for fact in memory.get_facts(person) if fact.turn == turn)

    return await memory_of(home).async_change(store)


async def list_facts(home: HomeAssistant, person: str | None = None) -> list[Fact]:
    """Return the facts that a person may see."""
    return await memory_of(home).async_read(lambda memory: memory.get_facts(person), [])


async def recorded_turns(home: HomeAssistant) -> list[TurnRecord]:
    """Return the turns in the record including their texts, oldest first."""

    def read(memory: Memory) -> list[TurnRecord]:
        turns = RecordedTurns(memory.database)
        found = [turns.get_turn(each["turn_id"]) for each in turns.list_newest(TurnListQuery())]
        return [each for each in found if each is not None][::-1]

    return await memory_of(home).async_read(read, [])
