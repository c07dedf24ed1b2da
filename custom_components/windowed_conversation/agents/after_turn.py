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
from ..turn.budget import full_shortfall
from ..turn.context import said_in
from ..turn.first_person import speaks_of_oneself
from ..turn.routing import Route
from ..turn.scope import Scope
from ..window import QUESTION, Message
from .agent import Agent
from .costs import async_price_turn
from .debug_log import log_turn
from .ended_turn import EndedTurn
from .issues import async_raise_or_clear_model, async_raise_or_clear_size, async_raise_or_clear_window
from .lookup import async_follow_servers
from .recording import async_record_cost, async_record_turn
from .store import async_store
from .summaries import Cause, Summarizer, is_due

_LOGGER = logging.getLogger(__name__)

# In characters: memory keeps less than that of each text.
_LONGEST = 16_000


def after_turn(agent: Agent, turn: EndedTurn) -> None:
    """Run every step; raises nothing."""
    for step in STEPS:
        with faults_logged(_LOGGER, f"Step {step.__name__} after a turn failed"):
            step(agent, turn)


def count(agent: Agent, turn: EndedTurn) -> None:
    """Add what the turn was billed, and what it evicted, to the agent's statistics."""
    if turn.outcome.interrupted:
        agent.statistics.on_interrupted(turn.outcome)
        return
    agent.statistics.on_turn(turn.outcome, turn.evicted_messages, turn.answer)


def judge_health(agent: Agent, turn: EndedTurn) -> None:
    """Take in what the turn shows of its window and of the provider's prompt cache."""
    if not turn.outcome.interrupted:
        own = [billed for billed in turn.outcome.billed if billed.model.agent == agent.id]
        agent.watch.on_turn(turn.window, turn.before, turn.after)
        if turn.prompt is not None:
            agent.watch.cache.on_turn(turn.window, own, turn.prompt, agent.counter)


def fire_events(agent: Agent, turn: EndedTurn) -> None:
    """Fire the event of the turn, and of the trim if there was one."""
    if not turn.outcome.interrupted:
        who = {"entity_id": turn.entity_id, "conversation_id": turn.window.conversation_id}
        before_and_after, context = (turn.before, turn.after), turn.asked.context
        async_fire_turn(agent.hass, who, turn.outcome, turn.answer, before_and_after, context=context)


def raise_issues(agent: Agent, turn: EndedTurn) -> None:
    """Raise or clear the issues on the sizes of window and model."""
    outcome, name = turn.outcome, agent.config.name
    if outcome.interrupted:
        return
    if outcome.requests:
        async_raise_or_clear_model(agent.hass, agent.id, name, outcome.shortfall)
    if outcome.shortfall is None:
        async_raise_or_clear_window(agent.hass, agent.id, name, turn.after)
    own = [billed for billed in outcome.billed if billed.model.agent == agent.id]
    if own:
        model, reads = own[-1].model, own[-1].model.size.reads
        little = None if reads is None else full_shortfall(model.budget, reads, turn.after.prefix_tokens)
        async_raise_or_clear_size(agent.hass, agent.id, name, little, is_ollama=own[-1].server.startswith(OLLAMA))


def follow_servers(agent: Agent, turn: EndedTurn) -> None:
    """Log once that a server is away or back, ask for another key if one was refused, list models not listed yet."""
    if not turn.outcome.interrupted:
        async_follow_servers(agent.hass, turn.outcome)


def log_error(agent: Agent, turn: EndedTurn) -> None:
    """Log why there was no answer, without what was said; a server that is away is logged once, see `AccountServer`."""
    error = turn.outcome.error
    if error is not None:
        is_away = isinstance(error, CONNECTION_ERRORS) and not turn.outcome.has_begun
        level = logging.DEBUG if is_away else logging.INFO
        _LOGGER.log(level, "No answer from %s: %s (%s)", turn.entity_id, type(error).__name__, error)


def record(agent: Agent, turn: EndedTurn) -> None:
    """Give the turn to the record, which is written in another thread. Its cost follows."""
    async_record_turn(agent, turn)


def price(agent: Agent, turn: EndedTurn) -> None:
    """Look up what the turn has cost; the cost sensors follow when that is known."""
    if turn.outcome.requests or not turn.outcome.interrupted:
        async_price_turn(agent, turn.outcome, partial(async_record_cost, agent, turn.id))


def summarize(agent: Agent, turn: EndedTurn) -> None:
    """Begin a summary in the background if the turn has evicted something that is worth one."""
    if is_due(agent, turn.window, turn.outcome):
        context: llm.LLMContext = turn.asked.as_llm_context(DOMAIN)
        cause = Cause(turn.id, turn.speaker.person)
        summarizer = Summarizer(agent.hass, agent, turn.window, context, turn.entity_id, cause)
        agent.entry.async_create_background_task(
            agent.hass, summarizer.async_summarize_evicted(), f"summary for {turn.entity_id}", eager_start=False
        )


def remember(agent: Agent, turn: EndedTurn) -> None:
    """Give the turn to memory, which is written in another thread."""
    store, kept = async_store(agent.hass), _past_turn(agent, turn)
    if agent.config.memory and store and kept and not store.predates_forgetting(_began_at(turn)):
        store.async_put(kept)


def tell(agent: Agent, turn: EndedTurn) -> None:
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
    tell,
)


def _past_turn(agent: Agent, turn: EndedTurn) -> PastTurn | None:
    """Return the turn as memory stores it, or None unless a model has answered it.

    Unknown speakers' words about themselves are not stored, nor an answer that may repeat them: the next unknown
    speaker may be somebody else.
    """
    outcome, speaker = turn.outcome, turn.speaker
    if outcome.decision.route is Route.LOCAL or outcome.error is not None or outcome.interrupted:
        return None
    if speaker.person is None and speaks_of_oneself(speaker.said, speaker.language):
        return None
    return PastTurn(
        conversation=turn.window.conversation_id,
        at=_newest(turn)[-1].created or time.time(),
        said=speaker.said[:_LONGEST],
        answer=outcome.spoken[:_LONGEST] if speaker.person is not None or _is_for_all(agent, turn) else "",
        agent=agent.id,
        person=speaker.person,
        device=speaker.device,
        tools=_tools(turn),
    )


def _began_at(turn: EndedTurn) -> float:
    """Return when the input of a turn came that a model has answered, in seconds since the epoch."""
    return _newest(turn)[0].created or -math.inf


def _is_for_all(agent: Agent, turn: EndedTurn) -> bool:
    """Return whether an answer cannot repeat anything personal, because nobody spoke of themselves in the window.

    This is unknown, and so False, with a summary in the window, and in a window that everybody shares.
    """
    said = [said_in(each.messages[0].content) for each in turn.window.exchanges()]
    language = turn.speaker.language
    is_shared = agent.config.scope is Scope.AGENT
    return not is_shared and not any(each == QUESTION or speaks_of_oneself(each, language) for each in said)


def _newest(turn: EndedTurn) -> tuple[Message, ...]:
    return turn.window.exchanges()[-1].messages


def _tools(turn: EndedTurn) -> tuple[str, ...]:
    """Return the names of the tools that the turn has called."""
    if not turn.outcome.tool_calls:
        return ()
    names = (call.name for message in _newest(turn) for call in message.tool_calls)
    return tuple(dict.fromkeys(names))
