"""The order of models in a turn: one that fails before its first token hands over to the fallback agents."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import count

from ..providers import (
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    TextDelta,
    Unavailable,
)
from ..window import Window
from .budget import less_history, limited, room
from .deadlines import Limits, Pause
from .model_turn import ask_model
from .ports import FallbackAgent, Model, Question, Reply, Spoken
from .progress import Failure, Progress

# Errors that another model may not have. A refusal or a wrong parameter would only be repeated elsewhere.
_HANDS_OVER = (
    AuthError,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    QuotaError,
    RateLimited,
    Unavailable,
)

# How much of the history each further try keeps after a request was too long, unless something shows the model's size.
# The last one sends the newest exchange alone.
_SHARES = (2 / 3, 1 / 2, 0.0)

# The one try after a refusal without a known reason has to show whether it was the length.
_ONLY_SHARE = (0.0,)


async def ask_in_order(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Get an answer for the open exchange from the first model or agent that has one.

    Raises `ProviderError` and `TurnError`. Those that failed before are in `progress.failures`.
    """
    chain: tuple[Model | FallbackAgent, ...] = (question.model, *question.fallback_agents)
    for place, asked in enumerate(chain):
        is_last = place == len(chain) - 1
        progress.asked = asked.agent
        try:
            if isinstance(asked, Model):
                await _ask(window, replace(question, model=asked), limits, reply, progress, wait=is_last)
            else:
                await _ask_fallback_agent(window, asked, reply, progress)
        except ProviderError as err:
            reason = _reason_to_hand_over(err, progress)
            if is_last or reason is None:
                raise
            progress.failures.append(Failure(asked.agent, reason))
        else:
            progress.answered_by = asked.agent
            return


def _reason_to_hand_over(error: ProviderError, progress: Progress) -> ProviderError | None:
    """Return why the next agent is asked, or None if none is.

    A refusal without a known reason may be due to the length, and another model may read more.
    """
    if progress.first_token is not None:
        return None
    if isinstance(error, BadRequest) and error.is_unexplained:
        return ContextOverflow(str(error))
    return error if isinstance(error, _HANDS_OVER) else None


async def _ask(
    window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress, *, wait: bool
) -> None:
    """Ask a model; once more if it asked for a short pause and there is no fallback agent."""
    model = question.model
    await _respect(model.pause, limits.idle_timeout if wait else 0.0)
    try:
        await _ask_for_less(window, question, limits, reply, progress)
    except RateLimited as err:
        if err.retry_after is None:
            raise
        model.pause.begin(err.retry_after)
        if not wait or progress.first_token is not None or err.retry_after > limits.idle_timeout:
            raise
        await _respect(model.pause, limits.idle_timeout)
        await _ask_for_less(window, question, limits, reply, progress)


async def _ask_for_less(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Ask a model, and again with less of the window while it refuses a request for its length.

    Each request is smaller than the one before. If the server gave no known reason and a smaller request does not help,
    raises the error of the first refusal.
    """
    progress.refused = None
    unexplained: ProviderError | None = None
    for tries in count():
        try:
            await ask_model(window, question, limits, reply, progress)
        except ProviderError as err:
            if progress.first_token is not None:
                raise
            if unexplained is not None and err.is_unexplained:
                question.model.size.doubt()
                raise unexplained from err
            shares = _shares(err, question.model, progress)
            if len(shares) <= tries:
                raise
            smaller = _smaller(window, question, progress, shares[tries], is_last=tries == len(_SHARES) - 1)
            if smaller is None:
                raise
            unexplained = err if err.is_unexplained else None
            question = smaller
        else:
            return


async def _respect(pause: Pause, patience: float) -> None:
    """Wait for a pause to end. Raises `RateLimited` if it lasts longer than the user should wait, in seconds."""
    left = pause.seconds_left
    if left > patience:
        raise RateLimited("the server asked for a pause before", pause.seconds_asked)
    if left:
        await asyncio.sleep(left)


def _shares(error: ProviderError, model: Model, progress: Progress) -> tuple[float, ...]:
    """Return the share of the history that each further try keeps; empty if the length was not the reason.

    Without a known reason the length was not it if the model has just served as much. Raises an explained `BadRequest`
    then.
    """
    if isinstance(error, ContextOverflow):
        if error.context_tokens is not None:
            model.size.on_named(error.context_tokens)
        return _SHARES
    if not error.is_unexplained:
        return ()
    if model.size.is_larger(progress.request_tokens):
        return _ONLY_SHARE
    if isinstance(error, BadRequest):
        raise BadRequest(str(error)) from error
    return ()


def _smaller(window: Window, question: Question, progress: Progress, share: float, *, is_last: bool) -> Question | None:
    """Return the question with less of the window after a refusal, or None if nothing can be removed."""
    model, refused, stats = question.model, progress.request_tokens, window.stats()
    newest = stats.current_tokens - sum(exchange.tokens for exchange in window.exchanges())
    others = stats.prefix_tokens + model.budget.schema_tokens + newest
    if window.has_tool_calls and newest > refused // 2:
        return _shorter_results(window, question, progress)
    if refused <= others:
        return None
    progress.refused = refused if progress.refused is None else min(refused, progress.refused)
    context = None if is_last else model.size.target(refused)
    kept = less_history(refused - others, others, context, share)
    return replace(question, model=replace(model, budget=replace(model.budget, sent_tokens=newest + kept)))


def _shorter_results(window: Window, question: Question, progress: Progress) -> Question | None:
    """Return the question with shorter tool results of this turn, or None if they cannot be shortened."""
    model, refused, stats = question.model, progress.request_tokens, window.stats()
    context = model.size.target(refused) or int(refused * _SHARES[0])
    budget = limited(model.budget, context)
    window.limit(room(budget, stats.prefix_tokens))
    if window.stats().current_tokens >= stats.current_tokens:
        return None
    progress.refused = refused if progress.refused is None else min(refused, progress.refused)
    return replace(question, model=replace(model, budget=budget))


async def _ask_fallback_agent(window: Window, agent: FallbackAgent, reply: Reply, progress: Progress) -> None:
    """Have another agent answer. It cannot know what tools have done in this turn."""
    if progress.tool_calls:
        raise Unavailable("tools have run, and another agent would run them again")
    answer = await agent.answer()

    async def delta() -> AsyncGenerator[Spoken]:
        progress.on_text(answer, new_message=True)
        yield TextDelta(answer)

    async for message in reply.add(delta()):
        window.add(message)
