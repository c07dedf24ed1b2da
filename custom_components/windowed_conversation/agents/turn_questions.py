"""Questions about the agent's own turns, answered from the record without a model: why, how long, and for how much."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache
import re
import time
from typing import NamedTuple
import unicodedata

from homeassistant.core import HomeAssistant
from homeassistant.util import dt as dt_util

from ..bridge.errors import async_get_spoken_text, format_count, format_decimal
from ..memory.core import MemoryUnavailable, Words, base_language
from ..memory.turn.speaker import Speaker, get_word_boundary, is_supported_by, load_language
from ..record import RecordedTurns, TurnListQuery, TurnRecord
from ..reminders.bridge.schedule import format_time
from ..turn.names import APOSTROPHE_TABLE
from ..turn.routing import Route, RouteReason
from .account import async_find_recent_turns
from .store import async_get_store

_MARKS = " .,!?¿¡。！？、"  # noqa: RUF001 - of several scripts

# A longer sentence is no such question.
_MAX_QUESTION_CHARS = 120
# The turns that are read to find the last one of a speaker, and those of an absence.
_MAX_LAST_TURNS, _MAX_TURNS = 20, 1_000
_ABSENCE = timedelta(days=1)

# Turns that nobody asks about.
_OWN_REASONS = frozenset({RouteReason.ECHO, RouteReason.TURN_QUESTION})
_FOREGROUND = frozenset(map(str, Route))


class TurnQuestion(StrEnum):
    """The kinds of questions, named like their patterns."""

    WHY = "why"
    SLOW = "slow"
    COST_TODAY = "cost_today"
    COST_MONTH = "cost_month"
    AWAY = "away"


def match_turn_question(text: str, language: str, find_before: Callable[[], str] = str) -> TurnQuestion | None:
    """Return the kind of question that a text is, or None. The first call in each language blocks on disk I/O.

    A question about a thing ("why did you turn off the light?") is one only if the last sentence of the speaker named
    it, which `find_before` returns. Otherwise, an automation may have done it.
    """
    said = unicodedata.normalize("NFKC", text).translate(APOSTROPHE_TABLE)
    if len(said) > _MAX_QUESTION_CHARS:
        return None
    patterns = load_patterns(language)
    gap = " " if get_word_boundary(language) else ""
    said = gap.join(patterns.fillers.sub(gap, said).split())
    if (found := patterns.question.fullmatch(said)) and found.lastgroup:
        return TurnQuestion(found.lastgroup)
    things = [found["thing"] for each in patterns.why_thing if (found := each.fullmatch(said))]
    if not things or not (before := find_before()):
        return None
    is_named = any(each in before or is_supported_by(each, before, None, Words((language, "en"))) for each in things)
    return TurnQuestion.WHY if is_named else None


class _Patterns(NamedTuple):
    # Matches marks, and words without which a question is the same: "just", "please".
    fillers: re.Pattern[str]
    # Each kind is a group.
    question: re.Pattern[str]
    # Each has the group "thing".
    why_thing: tuple[re.Pattern[str], ...]


def load_patterns(language: str) -> _Patterns:
    """Return the patterns of a language. The first call in each language blocks for some milliseconds."""
    return _compile_patterns(base_language(language))


@cache
def _compile_patterns(base: str) -> _Patterns:
    data, edge = load_language(base).get("turns", {}), get_word_boundary(base)
    rules: dict[str, str] = data.get("rules", {})

    def expand(pattern: str) -> str:
        return re.sub(r"\{([a-z]+)\}", lambda name: f"(?:{expand(rules[name[1]])})", pattern)

    fillers = data.get("fillers", "(?!)")
    kinds = [f"(?P<{kind}>{expand('|'.join(data[kind]))})" for kind in TurnQuestion if kind in data]
    return _Patterns(
        re.compile(rf"[{re.escape(_MARKS)}]+|{edge}(?:{fillers}){edge}", re.IGNORECASE),
        re.compile("|".join(kinds) or "(?!)", re.IGNORECASE),
        tuple(re.compile(expand(each), re.IGNORECASE) for each in data.get("why_thing", ())),
    )


@dataclass(frozen=True, slots=True)
class TurnQuestionAnswerer:
    """Answers one input if it is a question about the turns of this agent."""

    hass: HomeAssistant
    agent_id: str
    speaker: Speaker
    conversation: str

    async def answer_input(self) -> str | None:
        """Return the answer, or None if the input is no such question."""
        match kind := match_turn_question(self.speaker.text, self.speaker.language, self._find_last_text):
            case TurnQuestion.WHY:
                return await self._async_explain()
            case TurnQuestion.SLOW:
                return await self._async_explain_duration()
            case TurnQuestion.AWAY:
                return await self._async_describe_absence()
        return None if kind is None else await self._async_say_cost(kind)

    def _find_last_text(self) -> str:
        recent = async_find_recent_turns(self.hass)
        return next((each.speaker.text for each in recent if self._is_own(each.record)), "")

    async def _async_explain(self) -> str:
        turn = next(iter(await self._async_find_own(1)), None)
        if turn is None:
            return await self._async_say("turn_unknown")
        reason = await self._async_get_text("config_panel", f"reasons.{turn['reason']}")
        key = "turn_why_local" if turn["route"] == Route.LOCAL else "turn_why_model"
        return await self._async_say(key, reason=reason)

    async def _async_explain_duration(self) -> str:
        turn = next(iter(await self._async_find_own(1)), None)
        if turn is None:
            return await self._async_say("turn_unknown")
        steps = [(each["end"] - each["start"], each) for each in turn["waterfall"]]
        longest, step = max(steps, key=lambda each: each[0], default=(turn["duration"], {"step": "request"}))
        name = f"why.step_{step['step']}"
        language = self.speaker.language
        return await self._async_say(
            "turn_slow",
            seconds=format_decimal(turn["duration"], language, 1),
            part=format_decimal(longest, language, 1),
            step=await self._async_get_text("config_panel", name),
        )

    async def _async_say_cost(self, kind: TurnQuestion) -> str:
        """Return the cost of the agent for everybody, as its sensor shows it to them."""
        since = dt_util.start_of_local_day()
        if kind is TurnQuestion.COST_MONTH:
            since = since.replace(day=1)
        query = TurnListQuery(since=since.timestamp(), agents=frozenset({self.agent_id}))
        zone = dt_util.get_default_time_zone()
        usages = await self._async_read(lambda turns: turns.sum_usage(query, zone))
        cost, turns = sum(each.cost for each in usages), sum(each.turns for each in usages)
        if not usages or (not cost and any(each.without_price for each in usages)):
            return await self._async_say("turn_cost_unknown")
        language = self.speaker.language
        amount = format_decimal(cost, language, 2) if cost >= 1 else format_decimal(cost * 100, language, 1)
        spoken = await self._async_say("turn_dollars" if cost >= 1 else "turn_cents", amount=amount)
        return await self._async_say(f"turn_{kind}", cost=spoken, count=format_count(turns, language))

    async def _async_describe_absence(self) -> str:
        """Return the number of turns since the speaker last spoke, until they came home. Nobody else's are counted."""
        person, until = self.speaker.person, self._find_arrival()
        own = [turn for turn in await self._async_find_own(_MAX_LAST_TURNS) if turn["time"] < until]
        since = own[0]["time"] if own else until - _ABSENCE.total_seconds()
        turns = await self._async_list(frozenset({person, None}), _MAX_TURNS)
        absent = [turn for turn in turns if since < turn["time"] < until]
        if not absent:
            return await self._async_say("turn_away_none")
        counts = {
            "count": len(absent),
            "local": sum(turn["route"] == Route.LOCAL for turn in absent),
            "failed": sum(turn["outcome"] == "error" for turn in absent),
        }
        language = self.speaker.language
        spoken = {name: format_count(count, language) for name, count in counts.items()}
        at = format_time(language, since)
        return await self._async_say("turn_away", time=at, **spoken)

    def _find_arrival(self) -> float:
        person = self.speaker.person
        for each in self.hass.states.async_all("person") if person else ():
            if each.attributes.get("user_id") == person and each.state == "home":
                return each.last_changed.timestamp()
        return time.time()

    async def _async_find_own(self, limit: int) -> list[TurnRecord]:
        """Return the last turns of the speaker, newest first.

        An unknown speaker, or one whom others may hear, has those of the device or the conversation.
        """
        own = [each.record for each in async_find_recent_turns(self.hass) if self._is_own(each.record)]
        if len(own) < limit:
            ids = {turn["turn_id"] for turn in own}
            stored = await self._async_list(frozenset({self.speaker.person}), _MAX_LAST_TURNS)
            own += [turn for turn in stored if turn["turn_id"] not in ids and self._is_own(turn)]
        return own[:limit]

    def _is_own(self, turn: TurnRecord) -> bool:
        speaker = self.speaker
        if turn["person"] != speaker.person or turn["agent"] != self.agent_id or turn["reason"] in _OWN_REASONS:
            return False
        is_here = turn["device"] == speaker.device if speaker.device else turn["conversation_id"] == self.conversation
        return is_here or (speaker.person is not None and speaker.is_alone)

    async def _async_list(self, people: frozenset[str | None], limit: int) -> list[TurnRecord]:
        query = TurnListQuery(people=people, agents=frozenset({self.agent_id}), routes=_FOREGROUND, limit=limit)
        found = await self._async_read(lambda turns: turns.list_newest(query))
        return [turn for turn in found if turn["reason"] not in _OWN_REASONS]

    async def _async_read[Found](self, read: Callable[[RecordedTurns], list[Found]]) -> list[Found]:
        store = async_get_store(self.hass)
        try:
            return await store.async_read(lambda memory: read(RecordedTurns(memory.database)), []) if store else []
        except MemoryUnavailable:
            return []

    async def _async_say(self, key: str, **placeholders: str) -> str:
        return (await self._async_get_text("common", key)).format(**placeholders)

    async def _async_get_text(self, category: str, key: str) -> str:
        return await async_get_spoken_text(self.hass, self.speaker.language, category, key)
