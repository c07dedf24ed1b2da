"""The order of requests in a turn: less after a refusal, then the fallback agents, if there was no token yet."""

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
from .budget import less_history, limited, room
from .deadlines import Limits, Pause
from .errors import EmptyAnswer
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

# How long a pause a person waits for if nobody else can answer, in seconds.
_SHORT_PAUSE = 10.0

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
            await _ask_for_less(window, replace(question, model=model), patience, reply, progress)
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
    model, patience = question.model, min(_SHORT_PAUSE, limits.turn)
    await _respect(model.pause, patience if wait else 0.0)
    try:
        await _ask_for_less(window, question, limits, reply, progress)
    except RateLimited as err:
        if err.retry_after is None:
            raise
        model.pause.begin(err.retry_after)
        if not wait or progress.first_token is not None or err.retry_after > patience:
            raise
        await _respect(model.pause, patience)
        await _ask_for_less(window, question, limits, reply, progress)


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


async def _ask_for_less(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Ask a model, and again with less of the window while it refuses a request for its length.

    After a refusal without a known reason the same history is sent once with calls and results as text, then a smaller
    request once. If neither helps, raises the error of the first refusal.
    """
    progress.refused = None
    tries = _Tries(window, question, progress)
    while True:
        try:
            await ask_model(window, tries.question, limits, reply, progress)
        except (ProviderError, EmptyAnswer) as err:
            if progress.first_token is not None:
                raise
            tries.prepare_next(err)
        else:
            return


class _Tries:
    """The requests of one turn to one model; `question` is the next one."""

    def __init__(self, window: Window, question: Question, progress: Progress) -> None:
        self.question = question
        self._window = window
        self._model = question.model
        self._progress = progress
        # How many requests were made smaller.
        self._smaller = 0
        # The first refusal without a known reason, and the exchanges that were then sent as text.
        self._unexplained: ProviderError | EmptyAnswer | None = None
        self._as_text: frozenset[float | None] = frozenset()

    def prepare_next(self, error: ProviderError | EmptyAnswer) -> None:
        """Prepare what to send after a refusal. Raises an error if nothing else is sent."""
        if isinstance(error, ContextOverflow):
            self._undo_text()
            if error.context_tokens is not None:
                self._model.size.on_named(error.context_tokens)
            self._send_less(error, _SHARES)
        elif error.is_unexplained:
            self._prepare_after_unexplained(error)
        else:
            raise error

    def _prepare_after_unexplained(self, error: ProviderError | EmptyAnswer) -> None:
        if self._unexplained is None:
            self._unexplained = error
            if isinstance(error, ProviderError) and self._write_text():
                return
        self._undo_text()
        first = self._unexplained
        if self._smaller:
            raise first
        if not self._model.size.is_larger(self._progress.request_tokens):
            # the length was not the reason: as much has just been served
            raise BadRequest(str(first)) if isinstance(first, BadRequest) else first
        self._send_less(first, _ONLY_SHARE)

    def _write_text(self) -> bool:
        """Send calls and results of ended exchanges as text. Return whether there are any."""
        sent = self._progress.attempts[-1].request.messages
        self._as_text = self._model.plain_form.suspects(self._window, sent)
        self._model.plain_form.write(self._window, self._as_text)
        return bool(self._as_text)

    def _undo_text(self) -> None:
        """Send exchanges as they are again: their form was not the reason."""
        self._model.plain_form.unwrite(self._window, self._as_text)
        self._as_text = frozenset()

    def _send_less(self, error: ProviderError | EmptyAnswer, shares: tuple[float, ...]) -> None:
        """Have less sent, by the next share of the history. Raises the error if that is not possible."""
        place, progress = self._smaller, self._progress
        is_last = place == len(_SHARES) - 1
        smaller = None
        if place < len(shares):
            smaller = _smaller(self._window, self.question, progress, shares[place], is_last=is_last)
            if smaller is None and not error.is_unexplained:
                smaller = _without_live(self.question, progress)
        if smaller is None:
            raise error
        progress.is_unexplained = error.is_unexplained and (place == 0 or progress.is_unexplained)
        if isinstance(error, EmptyAnswer):
            progress.refused = None
        self.question, self._smaller = smaller, place + 1


def _smaller(window: Window, question: Question, progress: Progress, share: float, *, is_last: bool) -> Question | None:
    """Return the question with less of the window after a refusal, or None if nothing can be removed."""
    model, refused, stats = question.model, progress.request_tokens, window.stats()
    newest, live = window.open_tokens, progress.live.tokens if progress.live else 0
    others = stats.prefix_tokens + model.budget.schema_tokens + live + newest
    if window.has_tool_calls and newest > refused // 2:
        return _shorter_results(window, question, progress)
    if refused <= others:
        return None
    progress.on_refused()
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
    progress.on_refused()
    return replace(question, model=replace(model, budget=budget))


def _without_live(question: Question, progress: Progress) -> Question | None:
    """Return the question without a live context, which is all that can be removed, or None if it has none."""
    budget = question.model.budget
    if not budget.live_tokens or progress.live is None or not progress.live.tokens:
        return None
    progress.on_refused()
    return replace(question, model=replace(question.model, budget=replace(budget, live_tokens=0)))
