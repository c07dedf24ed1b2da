"""The order of models in a turn: one that fails before its first token hands over to the fallback agents."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

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
from .deadlines import Limits, Pause
from .errors import EmptyAnswer
from .ports import FallbackAgent, Model, Question, Reply, Spoken
from .progress import Failure, Progress
from .refusals import ask_for_less

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

# How long a pause a person waits for if nobody else can answer, in seconds.
_SHORT_PAUSE = 10.0


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
                patience = replace(limits, fallback_timeout=None) if is_last else limits
                await _ask(window, replace(question, model=asked), patience, reply, progress, wait=is_last)
            else:
                await _ask_fallback_agent(window, asked, reply, progress)
        except (ProviderError, EmptyAnswer) as err:
            reason = _reason_to_hand_over(err, progress)
            may_go_on = progress.may_resume or not is_last
            if reason is not None and may_go_on:
                progress.failures.append(Failure(asked.agent, reason))
            if reason is not None and not is_last:
                continue
            if not progress.may_resume:
                raise
            await _hear_the_slow(window, question, limits, reply, progress)
        else:
            progress.answered_by = asked.agent
        return


async def _hear_the_slow(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Get the answer of a model whose first token took too long, now that nobody else has one.

    Raises the error of the last of them that fails.
    """
    patience = replace(limits, fallback_timeout=None)
    while progress.waiting:
        stream = progress.resumed = progress.waiting.pop(0)
        model = stream.model
        progress.asked = model.agent
        try:
            await ask_for_less(window, replace(question, model=model), patience, reply, progress)
        except ProviderError, EmptyAnswer:
            if not progress.may_resume:
                raise
        else:
            progress.answered_by = model.agent
            progress.failures = [failure for failure in progress.failures if failure.agent != model.agent]
            return


def _reason_to_hand_over(error: ProviderError | EmptyAnswer, progress: Progress) -> ProviderError | None:
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
    await _respect(model.pause, _SHORT_PAUSE if wait else 0.0)
    try:
        await ask_for_less(window, question, limits, reply, progress)
    except RateLimited as err:
        if err.retry_after is None:
            raise
        model.pause.begin(err.retry_after)
        if not wait or progress.first_token is not None or err.retry_after > _SHORT_PAUSE:
            raise
        await _respect(model.pause, _SHORT_PAUSE)
        await ask_for_less(window, question, limits, reply, progress)


async def _respect(pause: Pause, patience: float) -> None:
    """Wait for a pause to end. Raises `RateLimited` if it lasts longer than the user should wait, in seconds."""
    left = pause.seconds_left
    if left > patience:
        raise RateLimited("the server asked for a pause before", pause.seconds_asked)
    if left:
        await asyncio.sleep(left)


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
