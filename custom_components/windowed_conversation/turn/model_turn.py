"""The model's part of a turn: ask, pass the answer on, run the tool loop, until there is an answer.

The window is open from start to end. The caller closes or aborts it and keeps the deadline of the whole turn.
"""

from collections.abc import Sequence
from contextlib import aclosing
from itertools import chain, count

from ..providers import RateLimited, Request, Usage, messages_tokens
from ..window import Exchange, Message, Role, Window
from .answer import Answer
from .answer_stream import AnswerStream
from .budget import live_room, room, shortfall, to_evict
from .context import said_in
from .deadlines import Limits
from .live_context import LiveContext, with_context
from .ports import Question, Reply
from .progress import Progress


async def ask_model(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Get an answer for the open exchange from the question's model. Raises `ProviderError` and `TurnError`."""
    for iteration in count():
        may_call = iteration < limits.tool_iterations and not progress.repetition.goes_on
        answer = await _ask(window, question, limits, reply, progress, may_call=may_call)
        if answer.is_cut_reasoning and not progress.has_asked_again and _has_more_room(question, answer.request):
            progress.has_asked_again = True
            answer = await _ask(window, question, limits, reply, progress, may_call=may_call)
        answer.raise_error()
        _on_served(window, question, progress)
        if not answer.calls:
            return


async def _ask(
    window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress, *, may_call: bool
) -> Answer:
    """Send one request. Return its answer, which may end in an error, after its calls have run."""
    model = question.model
    async with model.limit.permit() as permit:
        if permit.waited and (left := model.pause.seconds_asked):
            raise RateLimited("the server asked for a pause meanwhile", left)
        stream, progress.resumed = progress.resumed, None
        if stream is None:
            stream = AnswerStream(model, _request(window, question, progress, may_call=may_call), limits)
        answer = Answer(stream, question, progress, permit)
        await _answer(window, answer, limits, reply)
    return answer


def _has_more_room(question: Question, request: Request) -> bool:
    """Return whether the answer may be longer now, because the model was found to reason."""
    again = question.request(request.messages, request.tools)
    return (again.answer_limit or 0) > (request.answer_limit or 0)


async def _answer(window: Window, answer: Answer, limits: Limits, reply: Reply) -> None:
    """Have one request answered and its calls run."""
    progress = answer.progress
    async with (
        answer.stream as stream,
        aclosing(stream.events(None if progress.tool_calls else limits.fallback_timeout)) as events,
        aclosing(answer.deltas(events)) as deltas,
        aclosing(reply.add(deltas)) as messages,
    ):
        async for message in messages:
            progress.failed_tool_calls = reply.failed_calls
            window.add(answer.kept(message))
            progress.begin_answer()


def _request(window: Window, question: Question, progress: Progress, *, may_call: bool) -> Request:
    """Return the next request: plan which exchanges it sends, then add what memory and the home say beside them."""
    model, budget = question.model, question.model.planned
    sent = _fitting(window, question) if _is_view(question, progress) else _trimmed(window, question, progress)
    live = _live_context(window, question, progress, sent)
    messages = with_context(_messages(window, sent), question.prefix, live)
    messages = model.plain_form.written(window, messages)
    progress.request_tokens = messages_tokens(messages) + budget.schema_tokens
    return question.request(messages, question.tools, may_call=may_call)


def _messages(window: Window, sent: Sequence[Exchange]) -> tuple[Message, ...]:
    """Return the system message, those of the closed exchanges that are sent, and those of the open one."""
    messages, closed = window.messages(), window.exchanges()
    system = messages[:1] if messages[0].role is Role.SYSTEM else ()
    newest = messages[len(system) + sum(len(exchange.messages) for exchange in closed) :]
    return (*system, *chain.from_iterable(exchange.messages for exchange in sent), *newest)


def _live_context(window: Window, question: Question, progress: Progress, sent: Sequence[Exchange]) -> LiveContext:
    """Return the live context of the turn, another one for a request that has less room or sends fewer exchanges."""
    numbers, prefix = frozenset(exchange.number for exchange in sent), window.stats().prefix_tokens
    tokens = window.open_tokens + sum(exchange.tokens for exchange in sent)
    limit = live_room(question.model.planned, prefix, tokens)
    if progress.live is None or progress.live.tokens > limit or not numbers >= progress.live_for:
        progress.live, progress.live_for = question.live(sent, limit), numbers
        window.add_sources(progress.live.sources)
    return progress.live


def _on_served(window: Window, question: Question, progress: Progress) -> None:
    """Learn from the newest request, which was served, and evict what the model no longer reads."""
    model, newest = question.model, progress.attempts[-1]
    usage = newest.billed.usage if newest.billed else Usage()
    model.size.on_served(progress.request_tokens, usage.output, usage.input + usage.output)
    model.plain_form.on_served(window, newest.request.messages)
    if progress.refused is not None:
        _learn_refusal(question, newest.request, progress, progress.refused)
        progress.refused = None
    if progress.is_cut and not _is_view(question, progress):
        window.limit(room(model.planned, window.stats().prefix_tokens))


def _learn_refusal(question: Question, served: Request, progress: Progress, refused: int) -> None:
    if progress.is_unexplained:
        said = next(each.content for each in reversed(served.messages) if each.role is Role.USER)
        newest = hash(said_in(said))
        question.model.size.on_unexplained(refused, progress.request_tokens, newest)
    else:
        question.model.size.on_refused(refused, progress.request_tokens)


def _is_view(question: Question, progress: Progress) -> bool:
    """Return whether less than the window is sent without evicting anything."""
    return bool(progress.failures) or question.model.budget.sent_tokens is not None


def _trimmed(window: Window, question: Question, progress: Progress) -> Sequence[Exchange]:
    """Evict history for which the model has no room. A request that is still too large is recorded, and sent."""
    budget = question.model.planned
    window.limit(room(budget, window.stats().prefix_tokens))
    stats = window.stats()
    progress.shortfall = shortfall(budget, stats.prefix_tokens, stats.current_tokens) or progress.shortfall
    return _shown(window, question)


def _fitting(window: Window, question: Question) -> Sequence[Exchange]:
    """Return the closed exchanges that fit, without evicting any.

    The window belongs to the agent's own model. Another model, or a single refusal, costs it no history.
    """
    shown, budget = _shown(window, question), question.model.planned
    limits = (budget.policy.history_tokens, room(budget, window.stats().prefix_tokens), budget.sent_tokens)
    allowed = min(limit for limit in limits if limit is not None)
    evicted = to_evict(shown, allowed - window.open_tokens - sum(each.tokens for each in shown))
    return [each for each in shown if each.number not in evicted]


def _shown(window: Window, question: Question) -> list[Exchange]:
    excluded = question.excluded_tags
    return [each for each in window.exchanges() if excluded.isdisjoint(each.tags)]
