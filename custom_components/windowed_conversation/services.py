"""The actions, registered once; here are those on conversations: list, look, forget, export, import, fork, tag, count.

An action finds the agent by its entity. What a window is made of is decided in `window`.
"""

import asyncio
from itertools import islice
from operator import itemgetter

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import llm
from homeassistant.util.json import JsonValueType

from .agents.access import (
    action_error,
    async_controlled_agent,
    async_controlled_conversation,
    async_readable_agents,
    async_readable_conversation,
    checked_id,
    visible_windows,
)
from .agents.agent import Agent
from .agents.forgetting import async_without_forgotten
from .agents.memory_actions import (
    async_export_memories,
    async_forget_memories,
    async_import_memories,
    async_list_memories,
    async_recall,
    async_remember,
)
from .agents.question import async_question_without_input
from .agents.summaries import ConversationDropped, Summarizer, older_than
from .agents.turn_actions import async_export_turns, async_get_turn, async_list_turns
from .bridge.action_schemas import (
    ATTR_ADD,
    ATTR_CONTENT,
    ATTR_CONVERSATION,
    ATTR_CONVERSATION_ID,
    ATTR_EXCHANGE,
    ATTR_EXCLUDE,
    ATTR_KEEP,
    ATTR_LIMIT,
    ATTR_MATCH,
    ATTR_NEW_CONVERSATION_ID,
    ATTR_REMOVE,
    ATTR_TAGS,
    ATTR_TEXT,
    CONVERSATION_SCHEMA,
    COUNT_SCHEMA,
    FORK_SCHEMA,
    GET_WINDOW_SCHEMA,
    IMPORT_SCHEMA,
    LIST_SCHEMA,
    SERVICE_COUNT_TOKENS,
    SERVICE_EXPORT_CONVERSATION,
    SERVICE_FORK_CONVERSATION,
    SERVICE_GET_WINDOW,
    SERVICE_IMPORT_CONVERSATION,
    SERVICE_LIST_CONVERSATIONS,
    SERVICE_RESET_WINDOW,
    SERVICE_SUMMARIZE_WINDOW,
    SERVICE_TAG_EXCHANGE,
    SUMMARIZE_SCHEMA,
    TAG_SCHEMA,
    WindowContent,
)
from .bridge.errors import error_text_of
from .bridge.memory_action_schemas import (
    EXPORT_MEMORIES_SCHEMA,
    FORGET_SCHEMA,
    IMPORT_MEMORIES_SCHEMA,
    LIST_MEMORIES_SCHEMA,
    RECALL_SCHEMA,
    REMEMBER_SCHEMA,
    SERVICE_EXPORT_MEMORIES,
    SERVICE_FORGET,
    SERVICE_IMPORT_MEMORIES,
    SERVICE_LIST_MEMORIES,
    SERVICE_RECALL,
    SERVICE_REMEMBER,
)
from .bridge.turn_action_schemas import (
    EXPORT_TURNS_SCHEMA,
    GET_TURN_SCHEMA,
    LIST_TURNS_SCHEMA,
    SERVICE_EXPORT_TURNS,
    SERVICE_GET_TURN,
    SERVICE_LIST_TURNS,
)
from .bridge.window_response import conversation_response, messages_response, statistics_response
from .const import DOMAIN
from .memory import MemoryUnavailable
from .providers import ProviderError
from .turn.errors import TurnError
from .turn.routing import Routing
from .turn.scope import WindowKey
from .turn.token_count import count_request
from .window import (
    Exchange,
    ExchangeStillOpen,
    InvalidTag,
    Message,
    Snapshot,
    TokenCounter,
    WindowBusy,
    recount_exchange,
    recount_message,
)
from .window.codecs import CodecError, Malformed, NewerVersion, NotOurs, TooLarge, dump_snapshot, load_snapshot

_CODEC_ERRORS: dict[type[CodecError], str] = {
    Malformed: "import_malformed",
    NewerVersion: "import_from_newer_version",
    NotOurs: "import_not_ours",
    TooLarge: "import_too_large",
}

# In seconds: nothing is written for a count.
_COUNT_DEADLINE = 10.0


@callback
def async_setup_services(hass: HomeAssistant) -> None:
    """Register the integration's actions."""
    response, optional, none = SupportsResponse.ONLY, SupportsResponse.OPTIONAL, SupportsResponse.NONE
    for name, action, schema, answers in (
        (SERVICE_LIST_CONVERSATIONS, _async_list_conversations, LIST_SCHEMA, response),
        (SERVICE_GET_WINDOW, _async_get_window, GET_WINDOW_SCHEMA, response),
        (SERVICE_RESET_WINDOW, _async_reset_window, CONVERSATION_SCHEMA, none),
        (SERVICE_EXPORT_CONVERSATION, _async_export_conversation, CONVERSATION_SCHEMA, response),
        (SERVICE_IMPORT_CONVERSATION, _async_import_conversation, IMPORT_SCHEMA, none),
        (SERVICE_FORK_CONVERSATION, _async_fork_conversation, FORK_SCHEMA, none),
        (SERVICE_TAG_EXCHANGE, _async_tag_exchange, TAG_SCHEMA, none),
        (SERVICE_SUMMARIZE_WINDOW, _async_summarize_window, SUMMARIZE_SCHEMA, optional),
        (SERVICE_COUNT_TOKENS, _async_count_tokens, COUNT_SCHEMA, response),
        (SERVICE_REMEMBER, async_remember, REMEMBER_SCHEMA, optional),
        (SERVICE_RECALL, async_recall, RECALL_SCHEMA, response),
        (SERVICE_FORGET, async_forget_memories, FORGET_SCHEMA, optional),
        (SERVICE_LIST_MEMORIES, async_list_memories, LIST_MEMORIES_SCHEMA, response),
        (SERVICE_EXPORT_MEMORIES, async_export_memories, EXPORT_MEMORIES_SCHEMA, optional),
        (SERVICE_IMPORT_MEMORIES, async_import_memories, IMPORT_MEMORIES_SCHEMA, optional),
        (SERVICE_LIST_TURNS, async_list_turns, LIST_TURNS_SCHEMA, response),
        (SERVICE_GET_TURN, async_get_turn, GET_TURN_SCHEMA, response),
        (SERVICE_EXPORT_TURNS, async_export_turns, EXPORT_TURNS_SCHEMA, optional),
    ):
        hass.services.async_register(DOMAIN, name, action, schema, answers)


async def _async_list_conversations(call: ServiceCall) -> ServiceResponse:
    """Return the figures of the newest conversations, of one agent or of all."""
    limit = call.data[ATTR_LIMIT]
    found = [
        (agent.windows.idle_seconds(key), entity_id, key, stats)
        for entity_id, agent in (await async_readable_agents(call)).items()
        for key, stats in islice(visible_windows(agent, call), limit)
        if stats.exchange_count
    ]
    found.sort(key=itemgetter(0))
    newest: list[JsonValueType] = [
        conversation_response(entity_id, WindowKey.parse(key).conversation, stats, idle)
        for idle, entity_id, key, stats in found[:limit]
    ]
    return {"conversations": newest}


async def _async_get_window(call: ServiceCall) -> ServiceResponse:
    """Return the messages of a conversation, optionally filtered by tags, or its figures."""
    window = (await async_readable_conversation(call)).window
    asked = call.data
    try:
        shown = window.messages(tags=asked[ATTR_TAGS], match=asked[ATTR_MATCH].value, exclude=asked[ATTR_EXCLUDE])
    except InvalidTag as err:
        raise action_error("invalid_tag", call) from err
    if asked[ATTR_CONTENT] is WindowContent.STATISTICS:
        return statistics_response(window)
    return messages_response(window.conversation_id, shown)


async def _async_reset_window(call: ServiceCall) -> None:
    """Delete a conversation."""
    conversation = await async_controlled_conversation(call)
    try:
        conversation.agent.windows.drop(conversation.key)
    except WindowBusy as err:
        raise conversation.refusal("window_in_use") from err
    conversation.agent.notify_listeners()


async def _async_export_conversation(call: ServiceCall) -> ServiceResponse:
    """Return a conversation in the format that `import_conversation` reads."""
    snapshot = (await async_readable_conversation(call)).window.snapshot()
    return {ATTR_CONVERSATION: await call.hass.async_add_executor_job(dump_snapshot, snapshot)}


async def _async_import_conversation(call: ServiceCall) -> None:
    """Begin a conversation with what was exported, under its old id if no other is given."""
    agent = await async_controlled_agent(call)
    wanted = call.data.get(ATTR_CONVERSATION_ID)
    if wanted is not None:
        checked_id(wanted)
    try:
        snapshot = await _async_read(call.hass, call.data[ATTR_CONVERSATION], agent.counter)
    except CodecError as err:
        raise action_error(_CODEC_ERRORS.get(type(err), "import_malformed"), call) from err
    name = checked_id(snapshot.conversation_id) if wanted is None else wanted
    key = WindowKey(name, call.context.user_id)
    try:
        rest = await async_without_forgotten(call.hass, snapshot)
    except MemoryUnavailable as err:
        raise HomeAssistantError(translation_domain=DOMAIN, translation_key="memory_unavailable") from err
    if snapshot.exchanges and not rest.exchanges:
        raise action_error("import_forgotten", call)
    _begin(agent, key, rest, call)


async def _async_read(hass: HomeAssistant, data: object, counter: TokenCounter) -> Snapshot:
    """Return the snapshot that `dump_snapshot` wrote, with its messages counted anew. Raises `CodecError`."""
    snapshot = await hass.async_add_executor_job(load_snapshot, data)
    exchanges = list[Exchange]()
    for exchange in snapshot.exchanges:
        exchanges.append(recount_exchange(exchange, counter))
        # a counter is not thread-safe, and a long conversation must not block the event loop
        await asyncio.sleep(0)
    system = snapshot.system and recount_message(snapshot.system, counter)
    return snapshot._replace(system=system, exchanges=tuple(exchanges))


async def _async_fork_conversation(call: ServiceCall) -> None:
    """Copy a conversation under a new id. Both continue independently."""
    source = await async_controlled_conversation(call)
    name = checked_id(call.data[ATTR_NEW_CONVERSATION_ID])
    fork = WindowKey(name, WindowKey.parse(source.key).user)
    _begin(source.agent, fork, source.window.snapshot(), call)


async def _async_tag_exchange(call: ServiceCall) -> None:
    """Change the tags of an exchange, which is counted from the newest one."""
    conversation = await async_controlled_conversation(call)
    window = conversation.window
    exchanges, back = window.exchanges(), call.data[ATTR_EXCHANGE]
    if not 1 <= back <= len(exchanges):
        raise conversation.refusal("unknown_exchange")
    try:
        window.tag_exchange(exchanges[-back].number, add=call.data[ATTR_ADD], remove=call.data[ATTR_REMOVE])
    except ExchangeStillOpen as err:
        raise conversation.refusal("window_in_use") from err
    except InvalidTag as err:
        raise action_error("invalid_tag", call) from err
    conversation.agent.notify_listeners()


async def _async_summarize_window(call: ServiceCall) -> ServiceResponse:
    """Replace the older exchanges of a conversation with a summary. The newest exchange always stays."""
    conversation = await async_controlled_conversation(call)
    agent, window = conversation.agent, conversation.window
    if agent.model is None or agent.config.routing is Routing.LOCAL_ONLY:
        raise action_error("no_model", call)
    summarizer = Summarizer(call.hass, agent, window, _llm_context(call), call.data[ATTR_ENTITY_ID])
    if window.is_open:
        raise conversation.refusal("window_in_use")
    if summarizer.is_at_work:
        raise conversation.refusal("summary_in_progress")
    passage = older_than(window, max(1, call.data[ATTR_KEEP]), agent.config.excluded_tags)
    if passage is None:
        raise conversation.refusal("nothing_to_summarize")
    try:
        return await summarizer.async_summarize(passage)
    except ConversationDropped as err:
        raise conversation.refusal("unknown_conversation") from err
    except WindowBusy as err:
        raise conversation.refusal("window_in_use") from err
    except (ProviderError, TurnError) as err:
        raise _failed(err) from err


async def _async_count_tokens(call: ServiceCall) -> ServiceResponse:
    """Return the size of a conversation's next request, by its provider's count and by ours."""
    conversation = await async_readable_conversation(call)
    agent, window = conversation.agent, conversation.window
    if agent.model is None or agent.config.routing is Routing.LOCAL_ONLY:
        raise action_error("no_model", call)
    if window.is_open:
        raise conversation.refusal("window_in_use")
    messages = (*window.messages(exclude=agent.config.excluded_tags), Message.user(call.data[ATTR_TEXT]))
    try:
        question = await async_question_without_input(agent, _llm_context(call))
        return (await count_request(question, messages, agent.counter, _COUNT_DEADLINE)).as_dict()
    except (ProviderError, TurnError) as err:
        raise _failed(err) from err


def _llm_context(call: ServiceCall) -> llm.LLMContext:
    return llm.LLMContext(DOMAIN, call.context, call.hass.config.language, CONVERSATION_DOMAIN, None)


def _failed(error: ProviderError | TurnError) -> HomeAssistantError:
    failure = error_text_of(error)
    return HomeAssistantError(
        translation_domain=DOMAIN, translation_key=failure.key, translation_placeholders=failure.placeholders
    )


def _begin(agent: Agent, key: WindowKey, snapshot: Snapshot, call: ServiceCall) -> None:
    """Create a conversation from a snapshot. Raises `ServiceValidationError` if its id is in use."""
    if str(key) in agent.windows:
        raise action_error("conversation_exists", call, conversation=key.conversation)
    agent.windows.restore(str(key), snapshot._replace(conversation_id=key.conversation))
    agent.notify_listeners()
