"""Who is asked, and who next: a model that fails before its first word hands over to the agent's other choices.

How one model is asked is `model_turn`'s business, which agents there are is the bridge's.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from ..providers.errors import (
    AuthError,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from ..providers.events import TextDelta
from ..window import Window
from .deadlines import Limits, Pause
from .model_turn import Failure, Progress, ask_model
from .ports import Model, OtherAgent, Question, Reply, Spoken

# What another model may do better. A refusal or a wrong parameter would only be repeated elsewhere.
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

# How much of a request that was too long for its model is sent at most when the provider does not say what it reads.
_SHARE_AFTER_OVERFLOW = 0.7


async def ask_in_order(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Bring the open exchange to an answer by the first who has one; raises `ProviderError` and `TurnError`.

    Who failed before is in `progress.failures`.
    """
    chain: tuple[Model | OtherAgent, ...] = (question.model, *question.others)
    for place, asked in enumerate(chain):
        is_last = place == len(chain) - 1
        try:
            if isinstance(asked, Model):
                await _ask(window, replace(question, model=asked), limits, reply, progress, wait=is_last)
            else:
                await _ask_elsewhere(window, asked, reply, progress)
        except ProviderError as err:
            if is_last or not _hands_over(err, progress):
                raise
            progress.failures.append(Failure(asked.agent, err))
        else:
            progress.answered_by = asked.agent
            return


def _hands_over(error: ProviderError, progress: Progress) -> bool:
    return progress.first_word is None and isinstance(error, _HANDS_OVER)


async def _ask(
    window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress, *, wait: bool
) -> None:
    """Ask a model; once more when it asked for a short pause and nobody else is there, or was sent too much."""
    model = question.model
    await _respect(model.pause, limits.silence if wait else 0.0)
    try:
        await ask_model(window, question, limits, reply, progress)
    except RateLimited as err:
        if err.retry_after is None:
            raise
        model.pause.begin(err.retry_after)
        if not wait or progress.first_word is not None or err.retry_after > limits.silence:
            raise
        await _respect(model.pause, limits.silence)
        await ask_model(window, question, limits, reply, progress)
    except ContextOverflow as err:
        if progress.first_word is not None:
            raise
        smaller = _after_overflow(window, model, err)
        await ask_model(window, replace(question, model=smaller), limits, reply, progress)


async def _respect(pause: Pause, patience: float) -> None:
    """Wait for a pause to end; raises `RateLimited` when it lasts for longer than the user is to wait, in seconds."""
    left = pause.seconds_left
    if left > patience:
        raise RateLimited("the server asked for a pause before", left)
    if left:
        await asyncio.sleep(left)


def _after_overflow(window: Window, model: Model, error: ContextOverflow) -> Model:
    """Return the model with the context size that the provider's refusal shows it to have."""
    stats, budget = window.stats(), model.budget
    sent = stats.prefix_tokens + stats.current_tokens + budget.schema_tokens + budget.reply_tokens
    learned = error.context_tokens or int(sent * _SHARE_AFTER_OVERFLOW)
    if budget.context_tokens is not None:
        learned = min(learned, budget.context_tokens - 1)
    model.on_overflow(model.name, learned)
    return replace(model, budget=replace(budget, context_tokens=learned))


async def _ask_elsewhere(window: Window, other: OtherAgent, reply: Reply, progress: Progress) -> None:
    """Have an agent that is not ours answer; it cannot know what tools have done already in this turn."""
    if progress.tool_calls:
        raise Unavailable("tools have run, and another agent would run them again")
    answer = await other.answer()

    async def delta() -> AsyncGenerator[Spoken]:
        progress.on_text(answer, new_message=True)
        yield TextDelta(answer)

    async for message in reply.add(delta()):
        window.add(message)
