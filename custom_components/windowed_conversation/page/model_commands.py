"""Commands that a model carried out, with suggestions by which Home Assistant itself would understand them.

The sentences come from open conversations, the record of turns and memory, and only from those that the caller may
read with the actions.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
import json
import time
from typing import Any, NamedTuple

from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import intent
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ..agents.actions import access
from ..agents.actions.memory import open_usable_store
from ..agents.actions.turns import async_get_permissions
from ..agents.agent import Agent
from ..agents.store import AgentStore, async_get_store
from ..bridge.local_intents import QUESTION_INTENT_PARTS
from ..bridge.memory_tools import async_get_home_languages
from ..memory import MemoryListQuery, RecallHit, TurnListQuery, TurnRecord
from ..turn.context import clean_name, extract_user_text
from ..turn.routing import MAX_COMMAND_CHARS, Route, RouteReason, RoutingMode, WindowKey
from ..window import Exchange, Role
from .home_names import Command, HomeNames, Target, async_list_names
from .local_sentences import LocalSentences, async_load_local_sentences, build_input_template

_DAYS = 28
# The most sentences that are read from each source, and the most that one page of the record has.
_MAX_SENTENCES, _RECORD_PAGE_SIZE = 2_000, 1_000
_MAX_GROUPS = 50
# After this many seconds, the remaining groups get no suggestion.
_SUGGESTION_SECONDS = 4.0
_SENTENCES_PER_STEP = 100
# The most sentences of a group that Home Assistant is tried with.
_MAX_CHECKED = 10

_MODEL_TAGS = frozenset({f"route:{Route.MODEL}", f"route:{Route.FALLBACK}"})
# The beginning of the result of a tool that failed.
_ERROR_RESULT_START = '{"error"'


class _Spoken(NamedTuple):
    """A sentence that led to a command, with the time in seconds since the epoch."""

    said: str
    at: float
    conversation: str | None
    command: Command


class _ToolRun(NamedTuple):
    name: str
    arguments: Mapping[str, Any]
    result: str | None

    @property
    def is_failed(self) -> bool:
        return (self.result or "").startswith(_ERROR_RESULT_START)


@dataclass(slots=True)
class _Sentence:
    """A sentence, how often it was said, and the newest command that it led to."""

    said: str
    last: float
    command: Command
    target: Target | None = None
    count_by_conversation: dict[str | None, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(self.count_by_conversation.values())

    def add(self, spoken: _Spoken) -> None:
        """Take the sentence's last time and text, and its newest command with known arguments."""
        is_newer, is_known = spoken.at > self.last, spoken.command.arguments is not None
        if is_known and (is_newer or self.command.arguments is None):
            self.command = spoken.command
        if is_newer:
            self.said, self.last = spoken.said, spoken.at


async def async_read_model_commands(call: ServiceCall) -> ServiceResponse:
    """Return the commands of the last weeks that a model carried out, the most frequent ones first."""
    agents = {
        entity_id: agent
        for entity_id, agent in (await access.async_resolve_agents(call, POLICY_READ)).items()
        if agent.config.routing is not RoutingMode.MODEL_ONLY
    }
    reader = _Reader(call, _list_acting_intents(call.hass), time.time() - _DAYS * 24 * 60 * 60)
    sources = [await reader.async_read_windows(agents), await reader.async_read_record()]
    if agents:
        sources.append(await reader.async_read_memory())
    sentences = _count_sentences(sources)
    if not sentences:
        return {"groups": []}
    names = await async_list_names(call.hass)
    groups = await _async_group(sentences, names)
    store = async_get_store(call.hass)
    languages = async_get_home_languages(call.hass, store.spoken_languages if store else ())
    template = build_input_template(next(iter(agents), ""), call.context)
    return {"groups": await _async_format(groups, await async_load_local_sentences(names, template, languages))}


def _list_acting_intents(hass: HomeAssistant) -> frozenset[str]:
    """Return the names of the intents that change something in the home."""
    names = (handler.intent_type for handler in intent.async_get(hass))
    return frozenset(name for name in names if not any(part in name for part in QUESTION_INTENT_PARTS))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the sentences of one caller since a time. `intents` are the names of those that act on the home."""

    call: ServiceCall
    intents: frozenset[str]
    since: float

    async def async_read_windows(self, agents: dict[str, Agent]) -> list[_Spoken]:
        """Return the commands in the conversations that the caller may see, those of the newest conversation first."""
        found: list[_Spoken] = []
        for visible in access.list_visible_windows(agents, self.call):
            if time.time() - visible.idle < self.since or len(found) >= _MAX_SENTENCES:
                break
            window = await visible.agent.windows.load(visible.key)
            conversation = WindowKey.parse(visible.key).conversation
            newest = reversed(window.exchanges() if window else ())
            found += [spoken for each in newest if (spoken := self._parse_exchange(each, conversation)) is not None]
            await asyncio.sleep(0)
        return found[:_MAX_SENTENCES]

    async def async_read_record(self) -> list[_Spoken]:
        """Return the commands in the record of turns whose text the caller may read, newest first."""
        rights = await async_get_permissions(self.call)
        query = TurnListQuery(
            since=self.since,
            people=rights.readable_people,
            agents=rights.visible_agent_ids,
            route=Route.MODEL,
            limit=_RECORD_PAGE_SIZE,
        )
        found: list[TurnRecord] = []
        with suppress(HomeAssistantError):
            async with open_usable_store(self.call.hass) as store:
                for _ in range(_MAX_SENTENCES // _RECORD_PAGE_SIZE):
                    page = await _async_read_page(store, query)
                    found += page
                    if not page:
                        break
                    query = query._replace(after=page[-1].id)
        return [spoken for turn in found if (spoken := self._parse_turn(turn)) is not None]

    async def async_read_memory(self) -> list[_Spoken]:
        """Return the commands among the past turns in memory, which keeps no arguments, newest first."""
        target = await access.async_resolve_person(self.call, POLICY_READ)
        query = MemoryListQuery(target.person, target.can_see_private, ("turn",), self.since, limit=_MAX_SENTENCES)
        found: list[RecallHit] = []
        with suppress(HomeAssistantError):
            async with open_usable_store(self.call.hass) as store:
                found = await store.async_read(lambda memory: memory.list_newest(query), found)
        return [spoken for turn in found if (spoken := self._parse_past_turn(turn)) is not None]

    def _parse_exchange(self, exchange: Exchange, conversation: str) -> _Spoken | None:
        created = exchange.messages[0].created
        if created is None or created < self.since or _MODEL_TAGS.isdisjoint(exchange.tags):
            return None
        results = {each.tool_call_id: each.content for each in exchange.messages if each.role is Role.TOOL}
        runs = (
            _ToolRun(each.name, each.arguments, results.get(each.id))
            for message in exchange.messages
            for each in message.tool_calls
        )
        said = extract_user_text(exchange.messages[0].content)
        return self._build_spoken(said, created, conversation, runs)

    def _parse_turn(self, turn: TurnRecord) -> _Spoken | None:
        if turn.words is None or turn.reason == RouteReason.MODEL_ONLY:
            return None
        runs = (_ToolRun(each.name, _decode_arguments(each.arguments), each.result) for each in turn.words.calls)
        return self._build_spoken(turn.words.said, turn.at, turn.conversation, runs)

    def _parse_past_turn(self, turn: RecallHit) -> _Spoken | None:
        tools = [tool for each in turn.tool_names if (tool := _remove_namespace(each)) in self.intents]
        said = _clean_sentence(turn.text.partition("\n")[0])
        return _Spoken(said, turn.time, turn.conversation, Command(tools[0])) if tools and said else None

    def _build_spoken(self, said: str, at: float, conversation: str | None, runs: Iterable[_ToolRun]) -> _Spoken | None:
        acting = [(tool, each) for each in runs if (tool := _remove_namespace(each.name)) in self.intents]
        said = _clean_sentence(said)
        if not acting or not said:
            return None
        done = [Command(tool, dict(each.arguments)) for tool, each in acting if not each.is_failed]
        # no sentence of Home Assistant's own does several things
        is_single = bool(done) and all(each == done[0] for each in done)
        command = done[0] if is_single else Command(acting[0][0])
        return _Spoken(said, at, conversation, command)


async def _async_read_page(store: AgentStore, query: TurnListQuery) -> list[TurnRecord]:
    return await store.async_read(lambda memory: memory.turn_records.list_newest_texts(query), [])


def _remove_namespace(tool: str) -> str:
    return tool.rpartition("__")[2]


def _decode_arguments(text: str) -> Mapping[str, Any]:
    with suppress(ValueError, RecursionError):
        decoded = json.loads(text)
        if isinstance(decoded, dict):
            return decoded
    return {}


def _clean_sentence(text: str) -> str:
    """Return the text on one line and of limited length, or an empty text if it has no words."""
    clean = clean_name(text[:MAX_COMMAND_CHARS])
    return clean if any(char.isalnum() for char in clean) else ""


def _normalize_sentence(said: str) -> str:
    words = "".join(char if char.isalnum() else " " for char in said.casefold())
    return " ".join(words.split())


def _count_sentences(sources: Iterable[list[_Spoken]]) -> dict[str, _Sentence]:
    """Return the sentences by their words. A turn is in several sources, so the largest count of them is right."""
    found: dict[str, _Sentence] = {}
    for source in sources:
        counts = Counter[tuple[str, str | None]]()
        for spoken in source:
            key = _normalize_sentence(spoken.said)
            found.setdefault(key, _Sentence(spoken.said, spoken.at, spoken.command)).add(spoken)
            counts[key, spoken.conversation] += 1
        for (key, conversation), count in counts.items():
            by_conversation = found[key].count_by_conversation
            by_conversation[conversation] = max(count, by_conversation.get(conversation, 0))
    return found


async def _async_group(sentences: Mapping[str, _Sentence], names: HomeNames) -> list[list[_Sentence]]:
    """Return the sentences of each group, most frequent first: those with the same tool and target belong together."""
    groups: dict[tuple[str, ...], list[_Sentence]] = {}
    for number, (key, sentence) in enumerate(sentences.items(), 1):
        sentence.target = target = names.find_target(sentence.command)
        place = target and (target.entity_id or f"area {target.area_id}")
        groups.setdefault((sentence.command.tool, place) if place else (key,), []).append(sentence)
        if number % _SENTENCES_PER_STEP == 0:
            await asyncio.sleep(0)
    by_count = [sorted(each, key=lambda one: (one.count, one.last), reverse=True) for each in groups.values()]
    return sorted(by_count, key=lambda each: (_sum_counts(each), _find_last(each)), reverse=True)


def _sum_counts(group: Iterable[_Sentence]) -> int:
    return sum(each.count for each in group)


def _find_last(group: Iterable[_Sentence]) -> float:
    return max(each.last for each in group)


async def _async_format(groups: Iterable[list[_Sentence]], local: LocalSentences) -> list[JsonValueType]:
    """Return the response for the groups, without those that Home Assistant understands by now."""
    shown: list[JsonValueType] = []
    end = time.monotonic() + _SUGGESTION_SECONDS
    for group in groups:
        if len(shown) >= _MAX_GROUPS:
            break
        likely, rest = group[:_MAX_CHECKED], group[_MAX_CHECKED:]
        waiting = [each for each in likely if not await _is_solved(each, local, end)] + rest
        if waiting:
            shown.append(await _async_format_group(waiting, local, end))
    return shown


async def _is_solved(sentence: _Sentence, local: LocalSentences, end: float) -> bool:
    return time.monotonic() < end and await local.is_local(sentence.said, sentence.command, sentence.target)


async def _async_format_group(group: list[_Sentence], local: LocalSentences, end: float) -> JsonObjectType:
    first, suggestion = group[0], None
    if first.target is not None and time.monotonic() < end:
        suggestion = await local.suggest(first.said, first.command, first.target)
    return {
        "said": first.said,
        "count": _sum_counts(group),
        "last": access.format_iso_time(_find_last(group)),
        "tool": first.command.tool,
        "target": None if first.target is None else _format_target(first.target),
        "suggestion": suggestion,
    }


def _format_target(target: Target) -> JsonObjectType:
    return {"entity_id": target.entity_id, "area_id": target.area_id, "name": target.name}


COMMANDS = (("model_commands", async_read_model_commands, probatio.Schema({})),)
