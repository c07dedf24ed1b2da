"""The actions on conversations: list, read, delete, export, import, fork, tag, summarize, count.

The rules for the contents of a window are in `window`.
"""

import asyncio
from itertools import islice
from operator import itemgetter
import time
from typing import Any

from homeassistant.auth.permissions.const import POLICY_CONTROL, POLICY_READ
from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.conversation.const import ATTR_CONVERSATION_ID
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import config_validation as cv, llm
from homeassistant.util.json import JsonObjectType, JsonValueType
import probatio

from ...bridge.errors import build_translated_error, describe_error
from ...const import DOMAIN
from ...memory import MemoryUnavailable
from ...providers import ProviderError
from ...turn.errors import TurnError
from ...turn.routing import RoutingMode, WindowKey
from ...turn.summary import fetch_token_count
from ...window import (
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
from ...window.codecs import CodecError, MalformedData, TooLarge, TooNew, UnknownFormat, dump_snapshot, load_snapshot
from ..agent import Agent
from ..conversation_turn import async_build_inputless_question
from ..forgetting import async_remove_forgotten
from ..summaries import ConversationDropped, Summarizer, build_summary_input
from . import access

ATTR_CONTENT = "content"
ATTR_MATCH = "match"
WINDOW_CONTENTS = ("messages", "statistics")
TAG_MATCHES = ("any", "all")

_CODEC_ERROR_KEYS: dict[type[CodecError], str] = {
    MalformedData: "import_malformed",
    TooNew: "import_from_newer_version",
    UnknownFormat: "import_not_ours",
    TooLarge: "import_too_large",
}

# In seconds. This is short, because a model only counts tokens and writes nothing.
_COUNT_TIMEOUT = 10.0

_TAGS_VALIDATOR = probatio.All(cv.ensure_list, [cv.string])
_TEXT_VALIDATOR = probatio.All(cv.string, probatio.Length(min=1))
_LIST_SCHEMA = probatio.Schema({probatio.Optional(ATTR_ENTITY_ID): cv.entity_id, **access.build_limit_field(100, 20)})


async def _async_list_conversations(call: ServiceCall) -> ServiceResponse:
    """Return the statistics of the newest conversations of one agent, or of all agents that the caller may read."""
    limit = call.data[access.ATTR_LIMIT]
    found = [
        (agent.windows.idle_seconds(key), entity_id, key, stats)
        for entity_id, agent in (await access.async_find_readable_agents(call)).items()
        for key, stats in islice(access.iter_visible_windows(agent, call), limit)
        if stats.exchange_count
    ]
    found.sort(key=itemgetter(0))
    newest: list[JsonValueType] = [
        _format_conversation(entity_id, WindowKey.parse(key).conversation, stats, idle)
        for idle, entity_id, key, stats in found[:limit]
    ]
    return {"conversations": newest}


def _format_conversation(entity_id: str, conversation_id: str, stats: WindowStats, idle: float) -> JsonObjectType:
    """Return the list entry of a conversation, without its text. It was last used `idle` seconds ago."""
    return {
        "entity_id": entity_id,
        "conversation_id": conversation_id,
        "last_used": access.format_iso_time(time.time() - idle),
        "exchanges": stats.exchange_count,
        "tokens": stats.current_tokens,
        "utilization": round(stats.utilization, 1),
    }


async def _async_get_window(call: ServiceCall) -> ServiceResponse:
    """Return the messages of a conversation, oldest first and optionally filtered by tags, or its statistics."""
    window, data = (await access.async_resolve_conversation(call, POLICY_READ)).window, call.data
    try:
        messages = window.messages(tags=data["tags"], match=data[ATTR_MATCH], exclude=data["exclude"])
    except InvalidTag as err:
        raise access.build_agent_refusal("invalid_tag", call) from err
    response: JsonObjectType = {"conversation_id": window.conversation_id}
    if data[ATTR_CONTENT] == "messages":
        return {**response, "messages": [_format_message(message) for message in messages]}
    stats = window.stats()
    return {**response, **stats._asdict(), "tag_distribution": dict(stats.tag_distribution)}


def _format_message(message: Message) -> dict[str, Any]:
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


async def _async_reset_window(call: ServiceCall) -> None:
    conversation = await access.async_resolve_conversation(call, POLICY_CONTROL)
    try:
        conversation.agent.windows.drop(conversation.window_key)
    except WindowBusy as err:
        raise conversation.build_refusal("window_in_use") from err
    conversation.agent.notify_listeners()


async def _async_export_conversation(call: ServiceCall) -> ServiceResponse:
    """Return a conversation in the format that `import_conversation` reads."""
    snapshot = (await access.async_resolve_conversation(call, POLICY_READ)).window.snapshot()
    return {"conversation": await call.hass.async_add_executor_job(dump_snapshot, snapshot)}


async def _async_import_conversation(call: ServiceCall) -> None:
    """Create a conversation from exported data, with its original id unless another one is given."""
    agent = await access.async_resolve_agent(call, POLICY_CONTROL)
    wanted = call.data.get(ATTR_CONVERSATION_ID)
    if wanted is not None:
        access.validate_conversation_id(wanted)
    try:
        snapshot = await _async_load_snapshot(call.hass, call.data["conversation"], agent.counter)
    except CodecError as err:
        raise access.build_agent_refusal(_CODEC_ERROR_KEYS.get(type(err), "import_malformed"), call) from err
    name = access.validate_conversation_id(snapshot.conversation_id) if wanted is None else wanted
    try:
        rest = await async_remove_forgotten(call.hass, snapshot)
    except MemoryUnavailable as err:
        raise build_translated_error("memory_unavailable", HomeAssistantError) from err
    if snapshot.exchanges and not rest.exchanges:
        raise access.build_agent_refusal("import_forgotten", call)
    _create_conversation(agent, WindowKey(name, call.context.user_id), rest, call)


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


async def _async_fork_conversation(call: ServiceCall) -> None:
    """Copy a conversation to a new id. Both conversations then continue independently."""
    source = await access.async_resolve_conversation(call, POLICY_CONTROL)
    name = access.validate_conversation_id(call.data["new_conversation_id"])
    fork = WindowKey(name, WindowKey.parse(source.window_key).user)
    _create_conversation(source.agent, fork, source.window.snapshot(), call)


def _create_conversation(agent: Agent, key: WindowKey, snapshot: Snapshot, call: ServiceCall) -> None:
    """Create a conversation from a snapshot. Raises `ServiceValidationError` if its id is in use."""
    if str(key) in agent.windows:
        raise access.build_agent_refusal("conversation_exists", call, conversation=key.conversation)
    agent.windows.restore(str(key), snapshot._replace(conversation_id=key.conversation))
    agent.notify_listeners()


async def _async_tag_exchange(call: ServiceCall) -> None:
    """Change the tags of an exchange, which is numbered backwards from the newest one."""
    conversation = await access.async_resolve_conversation(call, POLICY_CONTROL)
    window = conversation.window
    exchanges, back = window.exchanges(), call.data["exchange"]
    if not 1 <= back <= len(exchanges):
        raise conversation.build_refusal("unknown_exchange")
    try:
        window.tag_exchange(exchanges[-back].number, add=call.data["add"], remove=call.data["remove"])
    except ExchangeStillOpen as err:
        raise conversation.build_refusal("window_in_use") from err
    except InvalidTag as err:
        raise access.build_agent_refusal("invalid_tag", call) from err
    conversation.agent.notify_listeners()


async def _async_summarize_window(call: ServiceCall) -> ServiceResponse:
    """Replace the older exchanges of a conversation with a summary. The newest exchange is always kept."""
    conversation = await access.async_resolve_conversation(call, POLICY_CONTROL)
    _require_usable_model(conversation)
    agent, window = conversation.agent, conversation.window
    summarizer = Summarizer(agent, window, _build_llm_context(call), call.data[ATTR_ENTITY_ID])
    if summarizer.is_running:
        raise conversation.build_refusal("summary_in_progress")
    passage = build_summary_input(window, max(1, call.data["keep"]), agent.config.excluded_tags)
    if passage is None:
        raise conversation.build_refusal("nothing_to_summarize")
    try:
        return await summarizer.async_summarize(passage)
    except ConversationDropped as err:
        raise conversation.build_refusal("unknown_conversation") from err
    except WindowBusy as err:
        raise conversation.build_refusal("window_in_use") from err
    except (ProviderError, TurnError) as err:
        raise _translate_model_error(err) from err


async def _async_count_tokens(call: ServiceCall) -> ServiceResponse:
    """Return the token count of a conversation's next request, as counted by its provider and by us."""
    conversation = await access.async_resolve_conversation(call, POLICY_READ)
    _require_usable_model(conversation)
    agent, window = conversation.agent, conversation.window
    messages = (*window.messages(exclude=agent.config.excluded_tags), Message.user(call.data["text"]))
    try:
        question = await async_build_inputless_question(agent, _build_llm_context(call))
        return await fetch_token_count(question, messages, agent.counter, _COUNT_TIMEOUT)
    except (ProviderError, TurnError) as err:
        raise _translate_model_error(err) from err


def _require_usable_model(target: access.ConversationTarget) -> None:
    """Raise `ServiceValidationError` if the agent uses no model, or if the conversation is in the middle of a turn."""
    agent = target.agent
    if agent.model is None or agent.config.routing is RoutingMode.LOCAL_ONLY:
        raise access.build_agent_refusal("no_model", target.call)
    if target.window.is_open:
        raise target.build_refusal("window_in_use")


def _build_llm_context(call: ServiceCall) -> llm.LLMContext:
    return llm.LLMContext(DOMAIN, call.context, call.hass.config.language, CONVERSATION_DOMAIN, None)


def _translate_model_error(error: ProviderError | TurnError) -> HomeAssistantError:
    failure = describe_error(error)
    return build_translated_error(failure.key, HomeAssistantError, **failure.placeholders or {})


def _build_schema(fields: dict[Any, Any]) -> probatio.Schema:
    return probatio.Schema({**access.CONVERSATION_FIELDS, **fields})


_GET_SCHEMA = _build_schema(
    {
        probatio.Optional(ATTR_CONTENT, default="messages"): probatio.In(WINDOW_CONTENTS),
        probatio.Optional("tags", default=list): _TAGS_VALIDATOR,
        probatio.Optional(ATTR_MATCH, default="any"): probatio.In(TAG_MATCHES),
        probatio.Optional("exclude", default=list): _TAGS_VALIDATOR,
    }
)
_IMPORT_SCHEMA = _build_schema({probatio.Required("conversation"): dict})
_FORK_SCHEMA = _build_schema({probatio.Required("new_conversation_id"): cv.string})
_TAG_SCHEMA = _build_schema(
    {
        probatio.Optional("exchange", default=1): access.validate_natural_number,
        probatio.Optional("add", default=list): _TAGS_VALIDATOR,
        probatio.Optional("remove", default=list): _TAGS_VALIDATOR,
    }
)
_SUMMARIZE_SCHEMA = _build_schema({probatio.Optional("keep", default=2): access.validate_natural_number})
# A request to count has to end with a user message, which needs a text.
_COUNT_SCHEMA = _build_schema({probatio.Optional("text", default="Hello"): _TEXT_VALIDATOR})

ACTIONS = (
    ("list_conversations", _async_list_conversations, _LIST_SCHEMA, SupportsResponse.ONLY),
    ("get_window", _async_get_window, _GET_SCHEMA, SupportsResponse.ONLY),
    ("reset_window", _async_reset_window, _build_schema({}), SupportsResponse.NONE),
    ("export_conversation", _async_export_conversation, _build_schema({}), SupportsResponse.ONLY),
    ("import_conversation", _async_import_conversation, _IMPORT_SCHEMA, SupportsResponse.NONE),
    ("fork_conversation", _async_fork_conversation, _FORK_SCHEMA, SupportsResponse.NONE),
    ("tag_exchange", _async_tag_exchange, _TAG_SCHEMA, SupportsResponse.NONE),
    ("summarize_window", _async_summarize_window, _SUMMARIZE_SCHEMA, SupportsResponse.OPTIONAL),
    ("count_tokens", _async_count_tokens, _COUNT_SCHEMA, SupportsResponse.ONLY),
)
