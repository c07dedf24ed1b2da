"""The conversations on the page: their owners, their figures, and their exchanges."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import islice
import time
from typing import Any

from homeassistant.auth.models import User
from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse
from homeassistant.helpers import entity_registry as er
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ..agents.account import async_find_recent_turns
from ..agents.actions import access
from ..agents.actions.conversations import build_llm_context, format_message, is_automatic_tag
from ..agents.actions.turns import find_automation_name, find_device_name
from ..agents.agent import AccountConfigEntry, Agent
from ..agents.conversation_turn import async_weigh_request
from ..agents.store import async_get_store
from ..bridge.persons import async_find_person
from ..bridge.turn_report import build_window_figures
from ..const import DOMAIN
from ..memory.core import Memory, MemoryUnavailable
from ..record import RecordedTurns
from ..turn.context import extract_user_text
from ..turn.errors import TurnError
from ..turn.routing import Route, WindowKey
from ..window import IMPORTANT, INCOMPLETE_TAG, Exchange, Role, is_summary
from ..window.codecs.snapshot import read_first_exchanges

_MAX_CONVERSATIONS = 200
# In characters, for the excerpts of an exchange. Its whole text is read when it is opened.
_MAX_EXCERPT_CHARS = 300
_MAX_TITLE_CHARS = 80
_DEVICE_PREFIX = "device:"

type _Speakers = Mapping[str, tuple[str | None, str | None]]


async def _async_read_overview(call: ServiceCall) -> ServiceResponse:
    """Return the user, the agents that they may see, and the titles of their accounts that are not set up."""
    user = await access.async_get_caller(call, POLICY_READ)
    registry, agents = er.async_get(call.hass), await access.async_resolve_agents(call, POLICY_READ)
    return {
        "user": {"is_admin": user is None or user.is_admin},
        "agents": [
            {
                "id": agent.id,
                "entity_id": entity_id,
                "device_id": None if entity is None else entity.device_id,
                "name": agent.config.name,
            }
            for entity_id, agent in agents.items()
            for entity in [registry.async_get(entity_id)]
        ],
        "closed_accounts": [
            entry.title
            for entry in list_visible_accounts(call.hass, user)
            if entry.state is not ConfigEntryState.LOADED
        ],
    }


def list_visible_accounts(hass: HomeAssistant, user: User | None) -> list[AccountConfigEntry]:
    """Return the accounts with an agent that the user may read; administrators and automations get all accounts."""
    entries: list[AccountConfigEntry] = hass.config_entries.async_entries(DOMAIN)
    return [
        entry
        for entry in entries
        if user is None
        or user.is_admin
        or any(access.find_permitted_entity(hass, user, each, POLICY_READ) for each in entry.subentries)
    ]


async def _async_read_conversations(call: ServiceCall) -> ServiceResponse:
    """Return the newest conversations that the user may see, with their figures but without text."""
    agents = await access.async_resolve_agents(call, POLICY_READ)
    visible = (each for each in access.list_visible_windows(agents, call) if each.stats.exchange_count)
    speakers, words = await _async_read_speakers(call), await _async_read_titles(agents.values())
    rows: list[JsonValueType] = [
        await _async_format_row(call.hass, each, speakers, words.get((each.agent.id, each.key), ""))
        for each in islice(visible, _MAX_CONVERSATIONS)
    ]
    return {"conversations": rows}


async def _async_read_conversation(call: ServiceCall) -> ServiceResponse:
    """Return a conversation with the parts of its requests, and its exchanges, oldest first.

    With `after`, return only the exchanges with a higher number, without the parts, which change rarely.
    """
    target = await access.async_resolve_conversation(call, POLICY_READ)
    agent, window = target.agent, target.window
    found = access.VisibleWindow(
        agent.windows.idle_seconds(target.window_key), target.entity_id, agent, target.window_key, window.stats()
    )
    weight, after = None, call.data.get("after")
    if after is None:
        # the conversation can be shown without it
        with suppress(TurnError):
            weight = await async_weigh_request(agent, build_llm_context(call))
    exchanges, speakers = window.exchanges(), await _async_read_speakers(call, window.conversation_id)
    title = next((_format_title(each) for each in exchanges if not is_summary(each)), "")
    return {
        **await _async_format_row(call.hass, found, speakers, title),
        "weight": None if weight is None else asdict(weight),
        "leaves_first": list(window.find_next_evictions()),
        "exchanges": [
            _format_exchange(exchange, len(exchanges) - place)
            for place, exchange in enumerate(exchanges)
            if after is None or exchange.number > after
        ],
    }


async def _async_read_exchange(call: ServiceCall) -> ServiceResponse:
    """Return the messages of an exchange with their whole text."""
    target = await access.async_resolve_conversation(call, POLICY_READ)
    for exchange in target.window.exchanges():
        if exchange.number == call.data["number"]:
            return {**target.ids, "messages": [format_message(message) for message in exchange.messages]}
    raise target.build_refusal("unknown_exchange")


async def _async_read_speakers(call: ServiceCall, conversation: str | None = None) -> _Speakers:
    """Return the device and the automation of the newest turn of each conversation, as far as they are known.

    Other people may have a conversation of the same name, so only turns of the user and of unknown speakers count. The
    record is not read if only one conversation is asked for, and working memory has a turn of it.
    """
    hass, people = call.hass, frozenset({call.context.user_id, None})
    recent = {
        each.record["conversation_id"]: (each.record["device"], each.record["automation"])
        for each in reversed(async_find_recent_turns(hass))
        if each.record["conversation_id"] is not None and each.record["person"] in people
    }
    stored: dict[str, tuple[str | None, str | None]] = {}
    if conversation not in recent and (store := async_get_store(hass)) is not None:
        with suppress(MemoryUnavailable):
            stored = await store.async_read(lambda memory: RecordedTurns(memory.database).list_speakers(people), stored)
    return {**stored, **recent}


async def _async_read_titles(agents: Iterable[Agent]) -> dict[tuple[str, str], str]:
    """Return the beginnings of conversations as titles, by the ids of these agents and the keys of the windows."""
    words: dict[tuple[str, str], str] = {}
    for agent in agents:
        store, read = async_get_store(agent.hass), partial(_read_first_exchanges, agent.id)
        first: dict[str, Exchange] = {}
        if store is not None:
            with suppress(MemoryUnavailable):
                first = await store.async_read(read, first)
        loaded = agent.windows.loaded_windows()
        first |= {key: window.exchanges()[0] for key, window in loaded.items() if window.exchanges()}
        words |= {(agent.id, key): _format_title(each) for key, each in first.items() if not is_summary(each)}
    return words


def _format_title(first: Exchange) -> str:
    return extract_user_text(first.messages[0].content)[:_MAX_TITLE_CHARS]


def _read_first_exchanges(agent: str, memory: Memory) -> dict[str, Exchange]:
    with memory.database.read_transaction() as connection:
        return read_first_exchanges(connection, agent)


async def _async_format_row(
    hass: HomeAssistant, found: access.VisibleWindow, speakers: _Speakers, title: str
) -> JsonObjectType:
    key = WindowKey.parse(found.key)
    person = await async_find_person(hass, key.user)
    device, automation = speakers.get(key.conversation, (None, None))
    if key.conversation.startswith(_DEVICE_PREFIX):
        device = key.conversation.removeprefix(_DEVICE_PREFIX)
    is_known = key.conversation in speakers
    source = "person" if key.user else "satellite" if device else "automation" if is_known else "unknown"
    return {
        **build_figures(found),
        "agent": found.agent.config.name,
        "person": person and person.name,
        "device": find_device_name(hass, device),
        "automation": find_automation_name(hass, automation),
        "title": title,
        "source": source,
    }


def build_figures(found: access.VisibleWindow) -> dict[str, Any]:
    """Return the identity of a conversation and its figures in tokens, without text."""
    agent, name = found.agent, WindowKey.parse(found.key).conversation
    window = agent.windows.get_loaded(found.key)
    exchanges = window.exchanges() if window is not None else ()
    recent = reversed(agent.state.recent_turns)
    return {
        "entity_id": found.entity_id,
        "conversation_id": name,
        "last_used": access.format_iso_time(time.time() - found.idle),
        "figures": {
            **build_window_figures(found.stats),
            "newest_tokens": exchanges[-1].tokens if exchanges else None,
            # of the newest turn, as far as it is known
            "live_tokens": next((each.context.live_tokens for each in recent if each.window_key == found.key), None),
            "low_water_tokens": int(agent.config.policy.low_water_tokens),
        },
    }


def _format_exchange(exchange: Exchange, back: int) -> JsonObjectType:
    """Return an exchange with excerpts of its text. `back` is its number, counted backwards from the newest one."""
    messages, has_summary = exchange.messages, is_summary(exchange)
    said = "" if has_summary else extract_user_text(messages[0].content)
    answer = next((each.content for each in reversed(messages) if each.role is Role.ASSISTANT), "")
    is_local = f"route:{Route.LOCAL}" in exchange.tags
    return {
        "exchange": back,
        "number": exchange.number,
        "time": None if messages[0].created is None else access.format_iso_time(messages[0].created),
        "said": said[:_MAX_EXCERPT_CHARS],
        "answer": answer[:_MAX_EXCERPT_CHARS],
        "is_cut": max(len(said), len(answer)) > _MAX_EXCERPT_CHARS,
        "route": None if has_summary else Route.LOCAL if is_local else Route.MODEL,
        "tools": [*dict.fromkeys(call.name for message in messages for call in message.tool_calls)],
        "tokens": exchange.tokens,
        "messages": len(messages),
        "tags": [*sorted(tag for tag in exchange.tags if not is_automatic_tag(tag))],
        "is_summary": has_summary,
        "is_incomplete": INCOMPLETE_TAG in exchange.tags,
        "is_pinned": IMPORTANT in exchange.tags,
    }


_NO_FIELDS = probatio.Schema({})
_AFTER_FIELD = {probatio.Optional("after"): access.validate_natural_number}
_NUMBER_FIELD = {probatio.Required("number"): access.validate_natural_number}

COMMANDS = (
    ("overview", _async_read_overview, _NO_FIELDS),
    ("conversations", _async_read_conversations, _NO_FIELDS),
    ("conversation", _async_read_conversation, probatio.Schema(access.CONVERSATION_FIELDS | _AFTER_FIELD)),
    ("exchange", _async_read_exchange, probatio.Schema(access.CONVERSATION_FIELDS | _NUMBER_FIELD)),
)
