"""The next request of a turn: the exchanges that fit into it, the files of the input, and the live context."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from ..providers import UNSEEN_NOTE, Request, count_messages_tokens
from ..window import Exchange, Message, Role, Window, count_attachment_tokens
from .context import LiveContext, add_context
from .limits import Budget, calculate_max_live_tokens, choose_evictions, find_shortfall, free_tokens
from .model import Model, Question
from .state import ModelRun
from .tool_names import name_as_offered


def build_request(run: ModelRun, model: Model, *, may_call: bool) -> Request:
    """Return the next request to a model: select the exchanges that fit, then add the live context in the other room.

    Only part of the window is sent, and nothing is evicted, to another model or after a refusal.
    """
    window, question, budget = run.turn.window, run.question, model.planned_budget
    has_files = bool(question.files or question.pictures)
    if has_files:
        tokens = sum([count_attachment_tokens(each) for each in (*question.files, *question.pictures.values()) if each])
        budget = replace(budget, schema_tokens=budget.schema_tokens + tokens)
    sends_part = bool(run.turn.failures) or budget.max_sent_tokens is not None
    sent = _select_fitting_exchanges(window, budget) if sends_part else _trim_history(run, budget)
    live = _get_live_context(run, budget, sent)
    all_messages, closed = window.messages(), window.exchanges()
    system = all_messages[:1] if all_messages[0].role is Role.SYSTEM else ()
    newest = all_messages[len(system) + sum([len(exchange.messages) for exchange in closed]) :]
    if residue := run.search_residue:
        # the residue of a message with calls also has the results of its searches
        newest = tuple(
            [
                replace(each, native=residue.get(each.tool_calls[0].id, each.native)) if each.tool_calls else each
                for each in newest
            ]
        )
    shown = [_attach_files(each, question) for each in newest] if has_files else newest
    messages = (*system, *chain.from_iterable([exchange.messages for exchange in sent]), *shown)
    messages = name_as_offered(messages, [tool.name for tool in question.tools])
    messages = add_context(messages, question.stamp_prefix, live)
    run.request_tokens = count_messages_tokens(messages) + model.budget.schema_tokens
    request = question.build_request(messages, question.tools, may_call=may_call, model=model)
    return replace(request, has_search_results=True) if residue else request


def _attach_files(message: Message, question: Question) -> Message:
    """Return a message of the open exchange: the input with its files, and the result of a look with its picture.

    A note stands for a file that cannot be sent.
    """
    files = question.files if message.role is Role.USER else (question.pictures.get(message.tool_call_id or ""),)
    attached = tuple([each for each in files if each])
    notes = [UNSEEN_NOTE] * (len(files) - len(attached)) if message.role is Role.USER else []
    tokens = (message.tokens or 0) + sum([count_attachment_tokens(each) for each in attached])
    return replace(message, content="\n\n".join([message.content, *notes]), attachments=attached, tokens=tokens)


def _get_live_context(run: ModelRun, budget: Budget, sent: Sequence[Exchange]) -> LiveContext:
    """Return the turn's live context; it is rebuilt if a request has less room or sends fewer exchanges."""
    window, numbers = run.turn.window, frozenset([exchange.number for exchange in sent])
    tokens = window.open_tokens + sum([exchange.tokens for exchange in sent])
    limit = calculate_max_live_tokens(budget, window.stats().prefix_tokens, tokens)
    if run.context is None or run.context.tokens > limit or not numbers >= run.live_exchange_numbers:
        run.context, run.live_exchange_numbers = run.question.build_live_context(sent, limit), numbers
        window.add_sources(run.context.source_ids)
    return run.context


def _trim_history(run: ModelRun, budget: Budget) -> Sequence[Exchange]:
    """Evict history for which the model has no room. If that is not enough, record the shortfall and send the rest."""
    window = run.turn.window
    window.set_turn_limit(free_tokens(budget, window.stats().prefix_tokens))
    stats = window.stats()
    run.shortfall = find_shortfall(budget, stats.prefix_tokens, stats.current_tokens) or run.shortfall
    return window.exchanges()


def _select_fitting_exchanges(window: Window, budget: Budget) -> Sequence[Exchange]:
    """Return the closed exchanges that fit, without evicting any.

    The window belongs to the agent's own model, so another model or a single refusal must not remove history from it.
    """
    closed = window.exchanges()
    limits = (budget.policy.history_tokens, free_tokens(budget, window.stats().prefix_tokens), budget.max_sent_tokens)
    allowed = min(limit for limit in limits if limit is not None)
    evicted = choose_evictions(closed, allowed - window.open_tokens - sum(each.tokens for each in closed))
    return [each for each in closed if each.number not in evicted]
