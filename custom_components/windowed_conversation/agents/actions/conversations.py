"""The actions on conversations: list, read, delete, import, tag, summarize.

The rules for the contents of a window are in `window/`.
"""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
import time
from typing import Any

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import config_validation as cv, llm
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ...bridge.errors import build_refusal, build_translated_error, describe_error
from ...bridge.turn_report import build_window_figures
from ...const import DOMAIN
from ...memory.core import MemoryUnavailable
from ...providers import ProviderError
from ...turn.errors import TurnError
from ...turn.limits import RequestWeight
from ...turn.routing import RoutingMode, WindowKey
from ...window import (
    AUTOMATIC_TAGS,
    INCOMPLETE_TAG,
    SUMMARY,
    Exchange,
    ExchangeStillOpen,
    InvalidTag,
    Message,
    Snapshot,
    TokenCounter,
    WindowBusy,
    WindowStats,
    recount_exchange,
    recount_message,
)
from ...window.codecs import CodecError, dump_snapshot, load_snapshot
from ..background.requests import fetch_token_count
from ..background.summaries import ConversationDropped, Summarizer, build_summary_input
from ..conversation_turn import async_build_inputless_question, async_weigh_request
from ..forgetting import async_remove_forgotten
from . import access

ATTR_CONTENT = "content"
_MAX_LISTED = 100

_FIXED_TAGS = AUTOMATIC_TAGS | {INCOMPLETE_TAG, SUMMARY}
# The beginnings of the automatic tags for the route of a turn, and for the domains and areas that it used.
_ROUTE_PREFIX, _CONTEXT_PREFIX = "route:", "context:"

# In seconds. This is short, because a model only counts tokens and writes nothing.
_COUNT_TIMEOUT = 10.0
# A request whose tokens are counted has to end with a user message.
_NEXT_TEXT = "Hello"

_TAGS_VALIDATOR = probatio.All(cv.ensure_list, [cv.string])
_LIST_SCHEMA = probatio.Schema(access.TARGET_FIELDS)


async def _async_list_conversations(call: ServiceCall) -> ServiceResponse:
    agents = await access.async_resolve_agents(call, POLICY_READ)
    found = (each for each in access.list_visible_windows(agents, call) if each.stats.exchange_count)
    newest: list[JsonValueType] = [
        {
            "entity_id": each.entity_id,
            "conversation_id": WindowKey.parse(each.key).conversation,
            "last_used": access.format_iso_time(time.time() - each.idle),
            **_count_content(each.stats),
            "utilization": round(each.stats.utilization, 1),
        }
        for each in islice(found, _MAX_LISTED)
    ]
    return {"conversations": newest}


async def _async_get_conversation(call: ServiceCall) -> ServiceResponse:
    target = await access.async_resolve_conversation(call, POLICY_READ)
    content = call.data[ATTR_CONTENT]
    return {**target.ids, content: await _READERS[content](target)}


async def _async_read_messages(target: access.ConversationTarget) -> JsonValueType:
    data = target.call.data
    try:
        messages = target.window.messages(tags=data["tags"], exclude=data["exclude_tags"])
    except InvalidTag as err:
        raise build_refusal("invalid_tag") from err
    return [format_message(message) for message in messages]


async def _async_read_statistics(target: access.ConversationTarget) -> JsonValueType:
    """Return the figures of a conversation, and the weight of its agent's requests, or None if that is unknown."""
    weight: RequestWeight | None = None
    # the figures of the window exist without it
    with suppress(TurnError):
        weight = await async_weigh_request(target.agent, build_llm_context(target.call))
    request = None if weight is None else {"total": weight.total, **asdict(weight)}
    return {**build_window_figures(target.window.stats()), "request": request}


async def _async_export(target: access.ConversationTarget) -> JsonValueType:
    return await target.call.hass.async_add_executor_job(dump_snapshot, target.window.snapshot())


async def _async_count_tokens(target: access.ConversationTarget) -> JsonValueType:
    """Return the token count of a conversation's next request, as counted by its provider and by us."""
    _require_usable_model(target)
    agent, context = target.agent, build_llm_context(target.call)
    messages = (*target.window.messages(), Message.user(_NEXT_TEXT))
    try:
        question = await async_build_inputless_question(agent, context)
        return await fetch_token_count(question, messages, agent.counter, _COUNT_TIMEOUT)
    except (ProviderError, TurnError) as err:
        raise _translate_model_error(err) from err


_READERS = {
    "messages": _async_read_messages,
    "statistics": _async_read_statistics,
    "token_count": _async_count_tokens,
    "export": _async_export,
}
CONVERSATION_CONTENTS = tuple(_READERS)


def format_message(message: Message) -> dict[str, Any]:
    """Return the response for a message."""
    fields: dict[str, Any] = {
        "role": str(message.role),
        "content": message.content,
        "tags": sorted(message.tags),
        "created": None if message.created is None else access.format_iso_time(message.created),
        "tokens": message.tokens,
    }
    if message.tool_calls:
        calls = [{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in message.tool_calls]
        fields["tool_calls"] = calls
    if message.tool_call_id is not None:
        fields |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return fields


async def _async_delete_conversation(call: ServiceCall) -> ServiceResponse:
    conversation = await access.async_resolve_conversation(call, POLICY_CONTROL)
    stats = conversation.window.stats()
    try:
        conversation.agent.windows.drop(conversation.window_key)
    except WindowBusy as err:
        raise conversation.build_refusal("window_in_use") from err
    conversation.agent.state.drop_recent_turns(conversation.window_key)
    conversation.agent.notify_listeners()
    return {**conversation.ids, **_count_content(stats)}


async def _async_import_conversation(call: ServiceCall) -> ServiceResponse:
    agents = await access.async_resolve_agents(call, POLICY_CONTROL)
    if len(agents) != 1:
        raise build_refusal("agent_needed")
    ((entity_id, agent),) = agents.items()
    wanted = call.data.get(ATTR_CONVERSATION_ID)
    if wanted is not None:
        access.validate_conversation_id(wanted)
    try:
        snapshot = await _async_load_snapshot(call.hass, call.data["export"], agent.counter)
    except CodecError as err:
        raise build_refusal("import_malformed") from err
    name = access.validate_conversation_id(snapshot.conversation_id) if wanted is None else wanted
    try:
        rest = await async_remove_forgotten(call.hass, snapshot)
    except MemoryUnavailable as err:
        raise build_translated_error("memory_unavailable", HomeAssistantError) from err
    if snapshot.exchanges and not rest.exchanges:
        raise build_refusal("import_forgotten")
    key = str(WindowKey(name, call.context.user_id))
    if key in agent.windows:
        raise build_refusal("conversation_exists", agent=entity_id, conversation=name)
    agent.windows.restore(key, rest._replace(conversation_id=name))
    agent.notify_listeners()
    return {"entity_id": entity_id, "conversation_id": name, **_count_content(agent.windows.stats()[key])}


def _count_content(stats: WindowStats) -> JsonObjectType:
    return {"messages": stats.message_count, "exchanges": stats.exchange_count, "tokens": stats.current_tokens}


async def _async_load_snapshot(hass: HomeAssistant, data: object, counter: TokenCounter) -> Snapshot:
    """Return the snapshot in data from `dump_snapshot`, with all tokens counted again. Raises `CodecError`."""
    snapshot = await hass.async_add_executor_job(load_snapshot, data)
    exchanges = list[Exchange]()
    for exchange in snapshot.exchanges:
        exchanges.append(recount_exchange(exchange, counter))
        # The counter is not thread-safe, and a long conversation must not block the event loop.
        await asyncio.sleep(0)
    system = snapshot.system and recount_message(snapshot.system, counter)
    return snapshot._replace(system=system, exchanges=tuple(exchanges))


async def _async_tag_exchange(call: ServiceCall) -> ServiceResponse:
    """Change the tags of an exchange, which is numbered backwards from the newest one, and return its tags."""
    conversation = await access.async_resolve_conversation(call, POLICY_CONTROL)
    window, back = conversation.window, call.data["exchange"]
    added, removed = call.data["add"], call.data["remove"]
    if not added and not removed:
        raise build_refusal("no_tags")
    if any(_is_fixed_tag(tag) for tag in (*added, *removed)):
        raise build_refusal("automatic_tag")
    exchanges = window.exchanges()
    if not 1 <= back <= len(exchanges):
        raise conversation.build_refusal("unknown_exchange")
    try:
        window.tag_exchange(exchanges[-back].number, add=added, remove=removed)
    except ExchangeStillOpen as err:
        raise conversation.build_refusal("window_in_use") from err
    except InvalidTag as err:
        raise build_refusal("invalid_tag") from err
    conversation.agent.notify_listeners()
    return {**conversation.ids, "exchange": back, "tags": sorted(window.exchanges()[-back].tags)}


def is_automatic_tag(tag: str) -> bool:
    """Return whether a tag is of a kind that the integration sets by itself."""
    return _is_fixed_tag(tag) or tag.startswith(_CONTEXT_PREFIX)


def _is_fixed_tag(tag: str) -> bool:
    """Return whether a tag describes its exchange or its route, so that nobody adds or removes it."""
    return tag in _FIXED_TAGS or tag.startswith(_ROUTE_PREFIX)


async def _async_summarize_conversation(call: ServiceCall) -> ServiceResponse:
    conversation = await access.async_resolve_conversation(call, POLICY_CONTROL)
    _require_usable_model(conversation)
    agent, window = conversation.agent, conversation.window
    person = WindowKey.parse(conversation.window_key).user
    summarizer = Summarizer(agent, window, build_llm_context(call), conversation.entity_id, person)
    if summarizer.is_running:
        raise conversation.build_refusal("window_in_use")
    passage = build_summary_input(window, max(1, call.data["keep"]))
    if passage is None:
        raise conversation.build_refusal("nothing_to_summarize")
    try:
        return await summarizer.async_summarize(passage)
    except ConversationDropped as err:
        raise build_refusal("unknown_conversation", conversation=window.conversation_id) from err
    except WindowBusy as err:
        raise conversation.build_refusal("window_in_use") from err
    except (ProviderError, TurnError) as err:
        raise _translate_model_error(err) from err


def _require_usable_model(target: access.ConversationTarget) -> None:
    """Raise `ServiceValidationError` if the agent uses no model, or if the conversation is in the middle of a turn."""
    agent = target.agent
    if agent.model is None or agent.config.routing is RoutingMode.LOCAL_ONLY:
        raise target.build_refusal("no_model")
    if target.window.is_open:
        raise target.build_refusal("window_in_use")


def build_llm_context(call: ServiceCall) -> llm.LLMContext:
    """Return the context of requests that an action needs."""
    return llm.LLMContext(DOMAIN, call.context, call.hass.config.language, CONVERSATION_DOMAIN, None)


def _translate_model_error(error: ProviderError | TurnError) -> HomeAssistantError:
    failure = describe_error(error)
    return build_translated_error(failure.key, HomeAssistantError, **failure.placeholders)


def _build_schema(fields: dict[Any, Any]) -> probatio.Schema:
    return probatio.Schema({**access.CONVERSATION_FIELDS, **fields})


_GET_SCHEMA = _build_schema(
    {
        probatio.Optional(ATTR_CONTENT, default="messages"): probatio.In(CONVERSATION_CONTENTS),
        probatio.Optional("tags", default=list): _TAGS_VALIDATOR,
        probatio.Optional("exclude_tags", default=list): _TAGS_VALIDATOR,
    }
)
_IMPORT_SCHEMA = _build_schema({probatio.Required("export"): dict})
_TAG_SCHEMA = _build_schema(
    {
        probatio.Optional("exchange", default=1): access.validate_natural_number,
        probatio.Optional("add", default=list): _TAGS_VALIDATOR,
        probatio.Optional("remove", default=list): _TAGS_VALIDATOR,
    }
)
_SUMMARIZE_SCHEMA = _build_schema({probatio.Optional("keep", default=2): access.validate_natural_number})

ACTIONS = (
    ("list_conversations", _async_list_conversations, _LIST_SCHEMA, SupportsResponse.ONLY),
    ("get_conversation", _async_get_conversation, _GET_SCHEMA, SupportsResponse.ONLY),
    ("delete_conversation", _async_delete_conversation, _build_schema({}), SupportsResponse.OPTIONAL),
    ("import_conversation", _async_import_conversation, _IMPORT_SCHEMA, SupportsResponse.OPTIONAL),
    ("tag_exchange", _async_tag_exchange, _TAG_SCHEMA, SupportsResponse.OPTIONAL),
    ("summarize_conversation", _async_summarize_conversation, _SUMMARIZE_SCHEMA, SupportsResponse.OPTIONAL),
)
