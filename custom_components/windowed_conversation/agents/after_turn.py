"""What follows an answer: one ordered tuple of steps, each of which takes the turn that ended.

A step that fails is logged and stops no other. They run in the order of the turns of a window, before anybody else
looks at that window.
"""

from functools import partial
import logging

from homeassistant.helpers import llm

from ..bridge.errors import faults_logged
from ..bridge.turn_report import async_fire_turn
from ..const import DOMAIN
from ..providers import AWAY, OLLAMA
from ..turn.budget import full_shortfall
from .agent import Agent
from .costs import async_price_turn
from .debug_log import log_figures
from .ended_turn import EndedTurn
from .issues import async_raise_or_clear_model, async_raise_or_clear_size, async_raise_or_clear_window
from .lookup import async_follow_servers
from .memory import async_memory
from .recording import async_record_cost, async_record_turn
from .remembering import began_at, past_turn
from .summaries import Cause, Summarizer, is_due

_LOGGER = logging.getLogger(__name__)


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
        agent.watch.on_requests(turn.window, own, turn.prompt, agent.counter)


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
        is_away = isinstance(error, AWAY) and not turn.outcome.has_begun
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
    """Give the turn to the memory, which writes it in another thread."""
    memory, kept = async_memory(agent.hass), past_turn(agent, turn)
    if agent.config.memory and memory is not None and kept is not None and not memory.is_from_before(began_at(turn)):
        memory.writer.put(kept)


def tell(agent: Agent, turn: EndedTurn) -> None:
    """Schedule updates of the store, the sensors, and the health issues, once for turns that end together."""
    agent.tell_soon()


STEPS = (
    count,
    judge_health,
    fire_events,
    raise_issues,
    follow_servers,
    log_error,
    log_figures,
    record,
    price,
    remember,
    summarize,
    tell,
)
