"""The steps after a turn, in one ordered tuple. Each step takes the agent and the turn that ended.

`Agent.defer_work` runs them once the answer is sent. A step that fails is logged and does not stop the others. The
steps run in the order of the turns of a window, before any other code uses that window.
"""

from collections.abc import Callable
import logging
import math
import time

from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm

from ..bridge.turn_report import async_fire_turn_event
from ..const import DOMAIN
from ..memory.bridge.tools import REMEMBER_TOOL_NAME
from ..memory.core import PastTurn
from ..memory.turn.speaker import is_about_speaker
from ..memory.turn.suggestions import QUIET_SECONDS
from ..providers import CONNECTION_ERRORS
from ..turn.context import extract_user_text
from ..turn.limits import find_window_shortfall
from ..turn.routing import Route, RouteReason, Scope
from ..window import QUESTION, Message
from .agent import AccountConfigEntry, Agent, async_agent_ids
from .background.search_words import schedule_search_words
from .background.summaries import Summarizer, is_summary_due
from .conversation_turn import ConversationTurn
from .costs import async_price
from .issues import Issue, async_update_shortfall_issue, async_update_window_issue
from .record import async_record_turn
from .server import AccountServer
from .store import async_get_store
from .turn_log import log_turn

_LOGGER = logging.getLogger(__name__)

# In characters, for each text. Memory stores less than that.
_MAX_CHARS = 16_000


def defer_steps(turn: ConversationTurn) -> None:
    """Defer the steps that apply to the turn until its answer is sent."""
    agent, state, steps = turn.current_agent, turn.state, STEPS
    if state.interruption is not None:
        steps = STEPS_AFTER_INTERRUPTION
    elif state.decision.reason is RouteReason.ECHO:
        steps = STEPS_AFTER_ECHO
    elif state.run is None and state.error is None:
        steps = tuple([step for step in STEPS if step not in _STEPS_IF_MODEL_ASKED])
    agent.defer_work(turn.window_key, steps, agent, turn)


def read_window(agent: Agent, turn: ConversationTurn) -> None:
    """Read the statistics of the window, which has the exchange of a local turn only now.

    A window that was not in memory is read, so that the exchange can be written.
    """
    turn.stats_after = turn.place.stats()
    if turn.place.is_unread:

        async def load_window() -> None:
            if await agent.windows.load(turn.window_key) is not None:
                agent.schedule_notify()

        agent.entry.async_create_background_task(agent.hass, load_window(), f"window of {turn.entity_id}")


def count_turn(agent: Agent, turn: ConversationTurn) -> None:
    """Add the turn and its usage to the agent's statistics."""
    agent.statistics.on_turn(turn.state, turn.attributes)


def update_health(agent: Agent, turn: ConversationTurn) -> None:
    """Update the findings on the health of the turn's window."""
    agent.state.notes_by_window.on_turn(turn.window, turn.stats_before, turn.stats_after)


def fire_events(agent: Agent, turn: ConversationTurn) -> None:
    """Fire the event of the turn, and the event of a trim if the turn caused one."""
    before_and_after, context = (turn.stats_before, turn.stats_after), turn.user_input.context
    async_fire_turn_event(agent.hass, turn.state, turn.record, turn.attributes, before_and_after, context=context)


def update_issues(agent: Agent, turn: ConversationTurn) -> None:
    """Raise or clear the issues about the sizes of the window and the model."""
    state, name = turn.state, agent.config.name
    shortfall = None if state.run is None else state.run.shortfall
    if shortfall is None:
        async_update_window_issue(agent.hass, agent.id, name, turn.stats_after)
    if not state.attempts:
        return
    async_update_shortfall_issue(agent.hass, Issue.MODEL_TOO_SMALL, agent.id, name, shortfall)
    if billed := [each for each in state.billed_requests if each.model.agent_id == agent.id]:
        model, reads = billed[-1].model, billed[-1].model.size.readable_tokens
        little = None if reads is None else find_window_shortfall(model.budget, reads, turn.stats_after.prefix_tokens)
        async_update_shortfall_issue(agent.hass, Issue.SERVER_CONTEXT_TOO_SMALL, agent.id, name, little)


def notify_servers(agent: Agent, turn: ConversationTurn) -> None:
    """Pass the turn's outcome to the servers: log a change, ask for a new key, and list models if still needed."""
    state = turn.state
    models = {each.model.agent_id: each.model for each in state.attempts}
    for failure in state.all_failures:
        has_begun = failure.error is state.error and state.has_answer_begun
        if (server := _find_server(agent.hass, failure.agent)) is not None:
            server.on_failed(failure.error, models.get(failure.agent), has_begun=has_begun)
    if state.answered_by is not None and (server := _find_server(agent.hass, state.answered_by)) is not None:
        server.on_answered(state.answered_by)
        if state.billed_requests:
            server.update_context_size(state.billed_requests[-1])


def _find_server(hass: HomeAssistant, agent_id: str) -> AccountServer | None:
    accounts: list[AccountConfigEntry] = hass.config_entries.async_loaded_entries(DOMAIN)
    return next((each.runtime_data.server for each in accounts if agent_id in each.subentries), None)


def log_error(agent: Agent, turn: ConversationTurn) -> None:
    """Log an error without the user's text, at debug level if the server is away, which `AccountServer` logs once."""
    error = turn.state.error
    if error is not None:
        is_away = isinstance(error, CONNECTION_ERRORS) and not turn.state.has_answer_begun
        level = logging.DEBUG if is_away else logging.INFO
        _LOGGER.log(level, "No answer from %s: %s (%s)", turn.entity_id, type(error).__name__, error)


def look_up_cost(agent: Agent, turn: ConversationTurn) -> None:
    """Look up the cost of the turn. The cost sensors are updated as soon as it is known."""
    state = turn.state
    if agent.vendor is not None and (state.attempts or state.interruption is None):
        agents = {state.answered_by, *[failure.agent for failure in state.failures]} - {None}
        has_unbilled = any(attempt.is_cost_unknown for attempt in state.attempts)
        is_complete = not has_unbilled and agents <= async_agent_ids(agent.hass)
        async_price(agent, turn.id, state.billed_requests if is_complete else None, of_turn=True)


def start_summary(agent: Agent, turn: ConversationTurn) -> None:
    """Start a summary in the background if the turn evicted exchanges that are worth summarizing."""
    if turn.window.pending_summary is not None and is_summary_due(agent, turn.window, turn.state):
        context: llm.LLMContext = turn.user_input.as_llm_context(DOMAIN)
        summarizer = Summarizer(agent, turn.window, context, turn.entity_id, turn.speaker.person, turn)
        agent.entry.async_create_background_task(
            agent.hass, summarizer.async_summarize_evicted(), f"summary for {turn.entity_id}", eager_start=False
        )


def extend_privacy(agent: Agent, turn: ConversationTurn) -> None:
    """Keep nothing of a conversation that somebody marked as private, until it has ended."""
    now, ends = time.time(), agent.state.private_until
    for key in [key for key, end in ends.items() if end <= now]:
        del ends[key]
    if turn.dialog.is_private or turn.window_key in ends:
        ends[turn.window_key] = now + QUIET_SECONDS


def store_in_memory(agent: Agent, turn: ConversationTurn) -> None:
    """Pass the turn to memory, which the writer thread writes."""
    store = async_get_store(agent.hass)
    if not agent.config.memory or store is None:
        return
    if turn.state.decision.route is Route.LOCAL or turn.state.error is not None:
        return
    if turn.window_key in agent.state.private_until:
        return
    # Commands that were given meanwhile follow the exchange of this turn.
    answered = [each for each in turn.window.exchanges() if f"route:{Route.LOCAL}" not in each.tags]
    newest = answered[-1].messages
    past = _build_past_turn(agent, turn, newest)
    if past is not None and not store.predates_forgetting(newest[0].created or -math.inf):
        store.async_queue_record(past)


STEPS: tuple[Callable[[Agent, ConversationTurn], None], ...] = (
    read_window,
    count_turn,
    update_health,
    fire_events,
    update_issues,
    notify_servers,
    log_error,
    log_turn,
    # `look_up_cost`, the next step, adds the cost to this record
    async_record_turn,
    look_up_cost,
    extend_privacy,
    store_in_memory,
    start_summary,
    schedule_search_words,
)

# These steps are skipped after a turn in which no agent was asked.
_STEPS_IF_MODEL_ASKED = frozenset({notify_servers, log_error, store_in_memory, start_summary})

# Nobody has spoken, so an echo is not counted as a turn.
STEPS_AFTER_ECHO = (read_window, fire_events, log_turn, async_record_turn)

STEPS_AFTER_INTERRUPTION = (read_window, count_turn, log_turn, async_record_turn, look_up_cost)


def _build_past_turn(agent: Agent, turn: ConversationTurn, messages: tuple[Message, ...]) -> PastTurn | None:
    """Return the turn with these messages in the form that memory stores, or None if it must not be stored.

    What unknown speakers say about themselves is not stored, nor an answer that may repeat it, because the next unknown
    speaker may be a different person.
    """
    state, speaker = turn.state, turn.speaker
    tools = tuple(dict.fromkeys([call.name for message in messages for call in message.tool_calls]))
    # the model has already remembered what there was
    is_unread = agent.config.reads_ended and REMEMBER_TOOL_NAME not in tools
    if speaker.person is None and is_about_speaker(speaker.text, speaker.language):
        return None
    return PastTurn(
        conversation=turn.window.conversation_id,
        at=messages[-1].created or time.time(),
        said=speaker.text[:_MAX_CHARS],
        answer=state.sent_text[:_MAX_CHARS] if speaker.person is not None or _is_for_all(agent, turn) else "",
        agent=agent.id,
        person=speaker.person,
        device=speaker.device,
        tools=tools,
        unread_language=speaker.language if is_unread else None,
    )


def _is_for_all(agent: Agent, turn: ConversationTurn) -> bool:
    """Return whether an answer contains nothing personal, because no user spoke of themselves in the window.

    This cannot be known, and is False, if the window contains a summary or is shared by everybody.
    """
    said = [extract_user_text(each.messages[0].content) for each in turn.window.exchanges()]
    language = turn.speaker.language
    is_shared = agent.config.scope is Scope.AGENT
    return not is_shared and not any(each == QUESTION or is_about_speaker(each, language) for each in said)
