"""The steps after a turn, in one ordered tuple. Each takes the turn that ended.

A step that fails is logged and stops no other. They run in the order of the turns of a window, before anybody else
looks at that window.
"""

from functools import partial
import logging
import math
import time

from homeassistant.helpers import llm

from ..bridge.errors import faults_logged
from ..bridge.turn_report import async_fire_turn
from ..const import DOMAIN
from ..memory import PastTurn
from ..providers import CONNECTION_ERRORS, OLLAMA
from ..turn.context import said_in
from ..turn.limits import full_shortfall
from ..turn.model import BilledRequest
from ..turn.routing import Route, Scope
from ..turn.speaker import speaks_of_oneself
from ..window import QUESTION, Message
from .agent import Agent
from .conversation_turn import ConversationTurn
from .costs import async_price_turn, log_turn
from .issues import async_raise_or_clear_model, async_raise_or_clear_size, async_raise_or_clear_window
from .lookup import async_follow_servers
from .recording import async_record_cost, async_record_turn
from .store import async_store
from .summaries import Cause, Summarizer, is_due

_LOGGER = logging.getLogger(__name__)

# In characters: memory keeps less than that of each text.
_LONGEST = 16_000


def after_turn(agent: Agent, turn: ConversationTurn) -> None:
    """Run every step; raises nothing."""
    for step in STEPS_AFTER_INTERRUPTION if turn.state.interrupted else STEPS:
        with faults_logged(_LOGGER, f"Step {step.__name__} after a turn failed"):
            step(agent, turn)


def count(agent: Agent, turn: ConversationTurn) -> None:
    """Add the turn's usage and its evicted messages to the agent's statistics."""
    evicted = turn.after.evicted_messages - turn.before.evicted_messages
    agent.statistics.on_turn(turn.state, evicted, turn.attributes)


def count_interrupted(agent: Agent, turn: ConversationTurn) -> None:
    """Add the usage of an interrupted turn to the agent's statistics."""
    agent.statistics.on_interrupted(turn.state)


def judge_health(agent: Agent, turn: ConversationTurn) -> None:
    """Learn from the turn about its window and the provider's prompt cache."""
    agent.watch.on_turn(turn.window, turn.before, turn.after)
    if turn.prompt is not None:
        agent.watch.cache.on_turn(turn.window, _own_requests(agent, turn), turn.prompt, agent.counter)


def fire_events(agent: Agent, turn: ConversationTurn) -> None:
    """Fire the event of the turn, and of the trim if there was one."""
    who = {"entity_id": turn.entity_id, "conversation_id": turn.window.conversation_id}
    before_and_after, context = (turn.before, turn.after), turn.user_input.context
    async_fire_turn(agent.hass, who, turn.state, turn.attributes, before_and_after, context=context)


def raise_issues(agent: Agent, turn: ConversationTurn) -> None:
    """Raise or clear the issues on the sizes of window and model."""
    state, name = turn.state, agent.config.name
    if state.requests:
        async_raise_or_clear_model(agent.hass, agent.id, name, state.shortfall)
    if state.shortfall is None:
        async_raise_or_clear_window(agent.hass, agent.id, name, turn.after)
    if own := _own_requests(agent, turn):
        model, reads = own[-1].model, own[-1].model.size.reads
        little = None if reads is None else full_shortfall(model.budget, reads, turn.after.prefix_tokens)
        async_raise_or_clear_size(agent.hass, agent.id, name, little, is_ollama=own[-1].server.startswith(OLLAMA))


def _own_requests(agent: Agent, turn: ConversationTurn) -> list[BilledRequest]:
    """Return the requests to the agent's own model with a reported usage."""
    return [billed for billed in turn.state.billed if billed.model.agent == agent.id]


def follow_servers(agent: Agent, turn: ConversationTurn) -> None:
    """Log once that a server is away or back, ask for another key if one was refused, list models not listed yet."""
    async_follow_servers(agent.hass, turn.state)


def log_error(agent: Agent, turn: ConversationTurn) -> None:
    """Log an error, without any text of the user; a server that is away is logged once, see `AccountServer`."""
    error = turn.state.error
    if error is not None:
        is_away = isinstance(error, CONNECTION_ERRORS) and not turn.state.has_begun
        level = logging.DEBUG if is_away else logging.INFO
        _LOGGER.log(level, "No answer from %s: %s (%s)", turn.entity_id, type(error).__name__, error)


def record(agent: Agent, turn: ConversationTurn) -> None:
    """Give the turn to the record, which is written in another thread. Its cost follows."""
    async_record_turn(agent, turn)


def price(agent: Agent, turn: ConversationTurn) -> None:
    """Look up the cost of the turn; the cost sensors follow when it is known."""
    if turn.state.requests or not turn.state.interrupted:
        async_price_turn(agent, turn.state, partial(async_record_cost, agent, turn.id))


def summarize(agent: Agent, turn: ConversationTurn) -> None:
    """Begin a summary in the background if the turn has evicted exchanges that are worth one."""
    if is_due(agent, turn.window, turn.state):
        context: llm.LLMContext = turn.user_input.as_llm_context(DOMAIN)
        cause = Cause(turn.id, turn.speaker.person)
        summarizer = Summarizer(agent.hass, agent, turn.window, context, turn.entity_id, cause)
        agent.entry.async_create_background_task(
            agent.hass, summarizer.async_summarize_evicted(), f"summary for {turn.entity_id}", eager_start=False
        )


def remember(agent: Agent, turn: ConversationTurn) -> None:
    """Give the turn to memory, which is written in another thread."""
    store = async_store(agent.hass)
    if not agent.config.memory or store is None:
        return
    past = _past_turn(agent, turn)
    # a model has answered, so the newest exchange is this turn
    if past is not None and not store.predates_forgetting(_newest(turn)[0].created or -math.inf):
        store.async_put(past)


def notify_listeners(agent: Agent, turn: ConversationTurn) -> None:
    """Schedule updates of the store, the sensors, and the health issues, once for turns that end together."""
    agent.schedule_notify()


STEPS = (
    count,
    judge_health,
    fire_events,
    raise_issues,
    follow_servers,
    log_error,
    log_turn,
    record,
    price,
    remember,
    summarize,
    notify_listeners,
)

STEPS_AFTER_INTERRUPTION = (count_interrupted, log_turn, record, price, notify_listeners)


def _past_turn(agent: Agent, turn: ConversationTurn) -> PastTurn | None:
    """Return the turn as memory stores it, or None unless a model has answered it.

    Unknown speakers' words about themselves are not stored, nor an answer that may repeat them: the next unknown
    speaker may be somebody else.
    """
    state, speaker = turn.state, turn.speaker
    if state.decision.route is Route.LOCAL or state.error is not None:
        return None
    if speaker.person is None and speaks_of_oneself(speaker.said, speaker.language):
        return None
    return PastTurn(
        conversation=turn.window.conversation_id,
        at=_newest(turn)[-1].created or time.time(),
        said=speaker.said[:_LONGEST],
        answer=state.speech[:_LONGEST] if speaker.person is not None or _is_for_all(agent, turn) else "",
        agent=agent.id,
        person=speaker.person,
        device=speaker.device,
        tools=tuple(dict.fromkeys([call.name for message in _newest(turn) for call in message.tool_calls])),
    )


def _is_for_all(agent: Agent, turn: ConversationTurn) -> bool:
    """Return whether an answer cannot repeat anything personal, because nobody spoke of themselves in the window.

    This is unknown, and so False, with a summary in the window, and in a window that everybody shares.
    """
    said = [said_in(each.messages[0].content) for each in turn.window.exchanges()]
    language = turn.speaker.language
    is_shared = agent.config.scope is Scope.AGENT
    return not is_shared and not any(each == QUESTION or speaks_of_oneself(each, language) for each in said)


def _newest(turn: ConversationTurn) -> tuple[Message, ...]:
    return turn.window.exchanges()[-1].messages
