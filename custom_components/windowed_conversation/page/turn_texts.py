"""The texts of turns that a caller may read: of the record, of working memory, of open conversations, and of memory."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
import time
from typing import Any, NamedTuple

from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.core import ServiceCall
from homeassistant.exceptions import HomeAssistantError

from ..agents.actions import access
from ..agents.actions.memory import open_usable_store
from ..memory.core import Memory, RecallHit
from ..record import TurnRecord
from ..turn.context import extract_user_text
from ..turn.routing import Route, WindowKey
from ..window import Role

_MAX_TEXTS = 2_000
# In seconds, the longest time from an input to the beginning of its turn, and the difference of two clocks.
_MAX_WAIT, _TOLERANCE = 5.0, 0.5

type _Texts = dict[str | None, list[TurnWords]]


class TurnWords(NamedTuple):
    """The sentence of a turn and its answer, its time in seconds since the epoch, and its tool calls where known."""

    at: float
    said: str
    answer: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """The texts that a caller may read, by conversation: those of windows by their start, of memory by their end."""

    opened: _Texts = field(default_factory=dict)
    past: _Texts = field(default_factory=dict)

    def find(self, turns: Iterable[TurnRecord]) -> dict[str, TurnWords]:
        """Return the known texts of turns, by their ids. The caller must have the right to read them.

        A text belongs to one turn only, the nearest one, so that no turn gets the text of another one.
        """
        found: dict[str, TurnWords] = {}
        by_conversation: dict[str | None, list[TurnRecord]] = {}
        for turn in turns:
            by_conversation.setdefault(turn["conversation_id"], []).append(turn)
            if turn["has_text"]:
                # arguments that were too long are stored as a text that is cut
                calls = tuple(
                    (each["name"], each["arguments"] if isinstance(each["arguments"], dict) else {})
                    for each in turn["tool_calls"]
                )
                found[turn["turn_id"]] = TurnWords(turn["time"], turn["said"], turn["answer"], calls)
        for conversation, those in by_conversation.items():
            for texts, is_end in ((self.opened, False), (self.past, True)):
                for text in texts.get(conversation, ()):
                    fitting = [turn for turn in those if _may_belong(text, turn, is_end=is_end)]
                    if fitting:
                        _, nearest = min((_measure_distance(text, turn, is_end), turn["turn_id"]) for turn in fitting)
                        found.setdefault(nearest, text)
        return found


def _may_belong(text: TurnWords, turn: TurnRecord, *, is_end: bool) -> bool:
    """Return whether a text may belong to a turn. `is_end`: whether its time is the end of the turn, not the start."""
    since, until = 0.0 if is_end else -_MAX_WAIT, turn["duration"] + _TOLERANCE
    return since <= text.at - turn["time"] <= until and text.is_local == (turn["route"] == Route.LOCAL)


def _measure_distance(text: TurnWords, turn: TurnRecord, is_end: bool) -> float:
    """Return the seconds between a text and the end of a turn, or else between it and the time that the turn took."""
    end = turn["time"] + turn["duration"]
    return abs(end - text.at) if is_end else max(turn["time"] - text.at, text.at - end, 0.0)


async def async_read_windows(
    call: ServiceCall, since: float, *, conversations: Collection[str | None] | None = None
) -> _Texts:
    """Return the texts in the open conversations that the caller may read. Only these conversations, if given."""
    texts: _Texts = {}
    agents = await access.async_resolve_agents(call, POLICY_READ)
    for visible in access.list_visible_windows(agents, call):
        name = WindowKey.parse(visible.key).conversation
        if time.time() - visible.idle < since:
            break
        if conversations is not None and name not in conversations:
            continue
        window = await visible.agent.windows.load(visible.key)
        for exchange in reversed(window.exchanges() if window else ()):
            first = exchange.messages[0]
            calls = tuple((each.name, each.arguments) for message in exchange.messages for each in message.tool_calls)
            answer = next((each.content for each in reversed(exchange.messages) if each.role is Role.ASSISTANT), "")
            is_local = f"route:{Route.LOCAL}" in exchange.tags
            text = TurnWords(first.created or 0.0, extract_user_text(first.content), answer, calls, is_local)
            texts.setdefault(name, []).append(text)
        await asyncio.sleep(0)
    return texts


async def async_read_memory(call: ServiceCall, since: float) -> _Texts:
    """Return the texts in memory that the caller may read."""
    target = await access.async_resolve_person(call, POLICY_READ)
    person, private = target.person, target.can_see_private
    find = partial(Memory.recall, person=person, private=private, kinds=("turn",), since=since, limit=_MAX_TEXTS)
    found: list[RecallHit] = []
    with suppress(HomeAssistantError):
        async with open_usable_store(call.hass) as store:
            found = await store.async_read(find, found)
    texts: _Texts = {}
    for past in found:
        said, _, answer = past.text.partition("\n")
        texts.setdefault(past.conversation, []).append(TurnWords(past.time, said, answer))
    return texts
