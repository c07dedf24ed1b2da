"""The model's part of a turn: ask, pass the answer on, run the tools, until there is an answer without calls.

The window is open from start to end. The caller closes or aborts it and keeps the deadline of the whole turn.
"""

from collections.abc import Sequence
from contextlib import aclosing
from itertools import chain, count

from ..providers import RateLimited, Request, Usage, messages_tokens
from ..window import Exchange, Message, Role, Window
from .answer import Answer
from .answer_stream import AnswerStream
from .budget import exchanges_to_evict, live_room, room, shortfall
from .context import said_in
from .live_context import LiveContext, with_context
from .ports import Question
from .progress import Turn


async def ask_model(turn: Turn, question: Question) -> None:
    """Get an answer for the open exchange from the question's model. Raises `ProviderError` and `TurnError`."""
    for iteration in count():
        may_call = iteration < turn.limits.tool_iterations and not turn.repetition.goes_on
        answer = await _send(turn, question, may_call=may_call)
        if answer.is_cut_reasoning and not turn.has_asked_again and _has_more_room(question, answer.request):
            turn.has_asked_again = True
            answer = await _send(turn, question, may_call=may_call)
        if answer.error is not None:
            raise answer.error
        _on_served(turn, question)
        if not answer.calls:
            return


async def _send(turn: Turn, question: Question, *, may_call: bool) -> Answer:
    """Send one request. Return its answer, which may end in an error, after its calls have run."""
    model = question.model
    async with model.limit.permit() as permit:
        if permit.waited and (left := model.pause.seconds_asked):
            raise RateLimited("the server asked for a pause meanwhile", left)
        stream, turn.resumed = turn.resumed, None
        if stream is None:
            stream = AnswerStream(model, _request(turn, question, may_call=may_call), turn.limits)
        answer = Answer(turn, question, stream, permit)
        async with (
            stream,
            aclosing(stream.events(None if turn.tool_calls else turn.fallback_timeout)) as events,
            aclosing(answer.deltas(events)) as deltas,
            aclosing(turn.reply.add(deltas)) as messages,
        ):
            async for message in messages:
                turn.failed_tool_calls = turn.reply.failed_calls
                turn.window.add(answer.for_window(message))
                turn.begin_answer()
    return answer


def _has_more_room(question: Question, request: Request) -> bool:
    """Return whether the answer may be longer now, because the model was found to reason."""
    again = question.request(request.messages, request.tools)
    return (again.answer_limit or 0) > (request.answer_limit or 0)


def _request(turn: Turn, question: Question, *, may_call: bool) -> Request:
    """Return the next request: plan the exchanges that it sends, then add the live context beside them."""
    window, model = turn.window, question.model
    sent = _fitting(window, question) if _is_view(turn, question) else _trimmed(turn, question)
    live = _live_context(turn, question, sent)
    messages = with_context(_messages(window, sent), question.prefix, live)
    messages = model.plain_form.apply(window, messages)
    turn.request_tokens = messages_tokens(messages) + model.budget.schema_tokens
    return question.request(messages, question.tools, may_call=may_call)


def _messages(window: Window, sent: Sequence[Exchange]) -> tuple[Message, ...]:
    """Return the system message, those of the closed exchanges that are sent, and those of the open one."""
    messages, closed = window.messages(), window.exchanges()
    system = messages[:1] if messages[0].role is Role.SYSTEM else ()
    newest = messages[len(system) + sum([len(exchange.messages) for exchange in closed]) :]
    return (*system, *chain.from_iterable([exchange.messages for exchange in sent]), *newest)


def _live_context(turn: Turn, question: Question, sent: Sequence[Exchange]) -> LiveContext:
    """Return the live context of the turn, another one for a request that has less room or sends fewer exchanges."""
    window, numbers = turn.window, frozenset([exchange.number for exchange in sent])
    tokens = window.open_tokens + sum([exchange.tokens for exchange in sent])
    limit = live_room(question.model.planned_budget, window.stats().prefix_tokens, tokens)
    if turn.live is None or turn.live.tokens > limit or not numbers >= turn.live_for:
        turn.live, turn.live_for = question.live(sent, limit), numbers
        window.add_sources(turn.live.sources)
    return turn.live


def _on_served(turn: Turn, question: Question) -> None:
    """Learn from the newest request, which was served, and evict the history that the model no longer reads."""
    window, model, newest = turn.window, question.model, turn.attempts[-1]
    usage = newest.billed.usage if newest.billed else Usage()
    model.size.on_served(turn.request_tokens, usage.output, usage.input + usage.output)
    model.plain_form.on_served(window, newest.request.messages)
    if turn.refused_tokens is not None:
        _learn_refusal(turn, newest.request, turn.refused_tokens, question)
        turn.refused_tokens = None
    if turn.is_cut and not _is_view(turn, question):
        window.limit(room(model.planned_budget, window.stats().prefix_tokens))


def _learn_refusal(turn: Turn, served: Request, refused: int, question: Question) -> None:
    size = question.model.size
    if turn.is_unexplained:
        content = next(each.content for each in reversed(served.messages) if each.role is Role.USER)
        size.on_unexplained(refused, turn.request_tokens, hash(said_in(content)))
    else:
        size.on_refused(refused, turn.request_tokens)


def _is_view(turn: Turn, question: Question) -> bool:
    """Return whether less than the window is sent without evicting anything."""
    return bool(turn.failures) or question.model.budget.sent_tokens is not None


def _trimmed(turn: Turn, question: Question) -> Sequence[Exchange]:
    """Evict history for which the model has no room. A request that is still too large is recorded, and sent."""
    window, budget = turn.window, question.model.planned_budget
    window.limit(room(budget, window.stats().prefix_tokens))
    stats = window.stats()
    turn.shortfall = shortfall(budget, stats.prefix_tokens, stats.current_tokens) or turn.shortfall
    return question.sent_exchanges(window)


def _fitting(window: Window, question: Question) -> Sequence[Exchange]:
    """Return the closed exchanges that fit, without evicting any.

    The window belongs to the agent's own model. Another model, or a single refusal, costs it no history.
    """
    shown, budget = question.sent_exchanges(window), question.model.planned_budget
    limits = (budget.policy.history_tokens, room(budget, window.stats().prefix_tokens), budget.sent_tokens)
    allowed = min(limit for limit in limits if limit is not None)
    evicted = exchanges_to_evict(shown, allowed - window.open_tokens - sum(each.tokens for each in shown))
    return [each for each in shown if each.number not in evicted]
