"""Three months of a family in a real home: sentences with their answers and figures, and facts about each person.

The files of a stopped home are written by the product's own code. This module uses no test framework.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

from custom_components.windowed_conversation.memory.core import Memory, PastTurn
from custom_components.windowed_conversation.record import EMPTY_TURN, RECORD, AttemptRecord, TurnRecord, store_turn
from custom_components.windowed_conversation.store import WriteJob

DAYS = 89
MORNING = (7, 10)

_STORE_FILE = ".storage/windowed_conversation.db"
_INPUT_TOKENS, _CACHED_TOKENS, _OUTPUT_TOKENS = 1_800, 1_400, 40
_COST = "0.00042"


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody of the family: the sentence that they say each morning, and the facts about them."""

    name: str
    morning: str
    answer: str
    facts: tuple[str, ...]


FAMILY = (
    Member("Demo", "why is the bathroom so cold?", "The window is open.", ("I am allergic to nuts", "My bike is blue")),
    Member("Ben", "open the blinds for my run", "I opened them.", ("I run on Tuesdays", "My locker code is 4711")),
    Member("Anna", "is my bus on time?", "It is four minutes late.", ("I play the cello", "My recital is in May")),
)
HOME_FACTS = ("The bins go out on Friday", "The boiler was serviced in March")


@dataclass(frozen=True, slots=True)
class _Moment:
    """A sentence at a time of day: its answer, route and reason, the tools, and the seconds of its steps."""

    at: tuple[int, int]
    said: str
    answer: str
    route: str
    reason: str
    tools: tuple[str, ...] = ()
    request_seconds: float = 0.9
    tool_seconds: float = 0.2
    error: str | None = None


# What an automation asks each morning, and the work in the background.
_AUTOMATED: tuple[tuple[_Moment, dict[str, Any]], ...] = (
    (
        _Moment((6, 0), "what is the weather today?", "It rains.", "model", "no_local_match"),
        {"automation": "automation.good_morning"},
    ),
    (_Moment((6, 1), "", "", "summary", "learning"), {}),
)


def _list_moments(member: Member, day: int) -> list[_Moment]:
    moments = [
        _Moment(MORNING, member.morning, member.answer, "model", "no_local_match", ("GetLiveContext",)),
        _Moment(
            (12, 30), "turn off the kitchen light", "Turned off the light", "local", "local_match", ("HassTurnOff",)
        ),
        _Moment((19, 45), "how warm is it outside?", "It is 11 degrees.", "local", "local_match", ("HassGetState",)),
        _Moment((21, 0), "tell me something about Saturn", "It has rings.", "model", "no_local_match"),
    ]
    if day % 6 == 0:
        moments.append(
            _Moment((18, 5), "play some jazz", "Playing jazz", "model", "no_local_match", ("Play",), 0.8, 6.5)
        )
    if day % 20 == 0:
        moments.append(_Moment((18, 20), "what is new?", "", "model", "no_local_match", error="unavailable"))
    return moments


def write_family(config: Path, agent_id: str, user_id_by_name: Mapping[str, str], until: datetime) -> None:
    """Write the three months before a day into the folder of a home that is stopped. Times are those of `until`."""
    memory = Memory(config / _STORE_FILE, ("en", "en"), rooms=(RECORD,))
    days = [(ago, until - timedelta(days=ago)) for ago in range(DAYS, 0, -1)]
    for (ago, day), member in product(days, FAMILY):
        for moment in _list_moments(member, ago):
            conversation = f"{member.name} {ago} {moment.at[0]}"
            whose = {"agent": agent_id, "person": user_id_by_name[member.name], "conversation_id": conversation}
            _write_moment(memory, moment, day, whose)
    for ago, day in days:
        for moment, more in _AUTOMATED:
            _write_moment(memory, moment, day, {"agent": agent_id, "conversation_id": f"morning {ago}", **more})
    stated = (until - timedelta(days=40)).timestamp()
    for member in FAMILY:
        for text in member.facts:
            memory.add_fact(text, person=user_id_by_name[member.name], private=True, quote=text, at=stated)
    for text in HOME_FACTS:
        memory.add_fact(text, at=stated)
    memory.close()


def _write_moment(memory: Memory, moment: _Moment, day: datetime, whose: Mapping[str, Any]) -> None:
    """Write the record of a turn, and its words as far as memory keeps them."""
    at = day.replace(hour=moment.at[0], minute=moment.at[1], second=0, microsecond=0).timestamp()
    turn = _build_turn(moment, at, whose)
    memory.add([WriteJob(partial(store_turn, build=turn.copy))])
    if moment.route == "model" and not moment.error and turn["person"]:
        words = (turn["conversation_id"] or "", at + turn["duration"], moment.said, moment.answer)
        memory.add_turn(PastTurn(*words, turn["agent"], turn["person"]))


def _build_turn(moment: _Moment, at: float, more: Mapping[str, Any]) -> TurnRecord:
    asks = moment.route != "local"
    steps: list[dict[str, Any]] = [{"step": "recognition", "start": 0.0, "end": 0.03}]
    end, requests = 0.03, 0
    for tool in (*moment.tools, None) if asks else ():
        steps.append({"step": "request", "start": end, "first_token": end + 0.4, "end": end + moment.request_seconds})
        end, requests = end + moment.request_seconds, requests + 1
        if tool is not None:
            steps.append({"step": "tool", "name": tool, "start": end, "end": end + moment.tool_seconds})
            end += moment.tool_seconds
    turn = {
        **EMPTY_TURN,
        "turn_id": f"{int(at * 1000):012x}-{more['conversation_id'].replace(' ', '-')}",
        "time": at,
        "known_by": "login" if more.get("person") else None,
        "route": moment.route,
        "reason": moment.reason,
        "outcome": "error" if moment.error else "answered",
        "error": moment.error,
        "answered_by": more["agent"] if asks and not moment.error else None,
        "tools": [*moment.tools],
        "requests": requests,
        "usage": _sum_usage(requests),
        "cost": str(requests * float(_COST)),
        "duration": end + 0.01,
        "waterfall": steps,
        "attempts": [_build_attempt(more["agent"], each) for each in range(requests)],
    }
    return cast("TurnRecord", {**turn, **more})


def _sum_usage(requests: int) -> dict[str, int]:
    usage = {"input": _INPUT_TOKENS, "cached": _CACHED_TOKENS, "output": _OUTPUT_TOKENS, "reasoning": 0}
    return {name: requests * tokens for name, tokens in usage.items()}


def _build_attempt(agent_id: str, number: int) -> AttemptRecord:
    return {
        "purpose": "answer",
        "agent": agent_id,
        "provider": "openai_responses",
        "model": "gpt-5-mini",
        "outcome": "answered",
        "error": None,
        "finish": "stop",
        "began": float(number),
        "time_to_first_byte": 0.3,
        "time_to_first_token": 0.4,
        "duration": 0.9,
        "parameters": {},
        "prompt": None,
        "tool_list": None,
        "tools": [],
        "usage": _sum_usage(1),
    }
