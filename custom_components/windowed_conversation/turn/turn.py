"""One input from start to end: route it, answer it, fall back if a model fails, and leave the window complete."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
import sys
import time

from ..providers import (
    AnswerRefused,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    ProviderError,
    RateLimited,
    TextDelta,
    Unavailable,
)
from ..window import Message
from .attempts import get_attempt_result
from .context import mark_typed_prefixes
from .errors import EmptyAnswer, EmptyInput, LocalAnswerFailed, TurnError
from .limits import Budget, Pause, apply_context_size, free_tokens, reduce_history_tokens
from .model import FallbackAgent, Model, Question
from .model_turn import ask_model
from .reply import ReplyDelta
from .routing import REASON_BY_ERROR_TYPE, Route, RouteDecision, RouteReason, build_situation, decide_fallback_route
from .speech.pictures import drop_pictures
from .speech.plain_text import clean_speech
from .state import AgentFailure, LocalMessagesBuilder, Turn

# The longest pause, in seconds, that a user has to wait for if no other agent can answer.
_MAX_WAIT_SECONDS = 10.0

# How often a smaller request is sent after a refusal: half of the history each time, unless the model's size is known
# better, then only the newest exchange.
_MAX_SMALLER_RETRIES = 6
_NEWEST_ONLY_RETRY = 3

# How long, in seconds, a model may take for its first token while a fallback agent is available.
_FALLBACK_TIMEOUT = 10.0


async def try_models(turn: Turn, question: Question) -> None:
    """Get an answer for the open exchange from the first model or agent that gives one.

    Raises `ProviderError` and `TurnError`. Earlier failures are in `turn.failures`.
    """
    try:
        await _try_chain(turn, question)
    except (ProviderError, EmptyAnswer) as err:
        if not await _try_default_agent(turn, question, err):
            raise


async def _try_default_agent(turn: Turn, question: Question, error: ProviderError | EmptyAnswer) -> bool:
    """Ask the default agent after all others have failed, the last one with `error`. Return whether it has answered."""
    agent, reason = question.default_agent, _get_fallback_error(error, turn)
    if agent is None or reason is None:
        return False
    failed_id = turn.last_agent_id or ""
    try:
        await _ask_fallback_agent(turn, agent)
    except Unavailable:
        return False
    turn.failures.append(AgentFailure(failed_id, reason))
    turn.answered_by = turn.last_agent_id = agent.agent_id
    return True


async def _try_chain(turn: Turn, question: Question) -> None:
    """Get an answer from the model or one of the fallback agents. Raises the error of the last one."""
    chain: tuple[Model | FallbackAgent, ...] = (question.model, *question.fallback_agents)
    for place, candidate in enumerate(chain):
        is_last = place == len(chain) - 1
        turn.last_agent_id = candidate.agent_id
        try:
            if isinstance(candidate, Model):
                await _ask_after_pause(turn, replace(question, model=candidate), is_last=is_last)
            else:
                await _ask_fallback_agent(turn, candidate)
        except (ProviderError, EmptyAnswer) as err:
            reason = _get_fallback_error(err, turn)
            if reason is not None and (turn.can_resume or not is_last):
                turn.failures.append(AgentFailure(candidate.agent_id, reason))
            if reason is not None and not is_last:
                continue
            if not turn.can_resume:
                raise
            await _resume_waiting_streams(turn, question)
        else:
            turn.answered_by = candidate.agent_id
        return


async def _resume_waiting_streams(turn: Turn, question: Question) -> None:
    """Get the answer of a model whose first token took too long, because no other agent has answered.

    If all of these models fail, raises the error of the last one.
    """
    turn.fallback_timeout = None
    while turn.waiting_streams:
        stream = turn.resumed_stream = turn.waiting_streams.pop(0)
        agent = turn.last_agent_id = stream.model.agent_id
        try:
            await _ask_with_less_history(turn, replace(question, model=stream.model))
        except ProviderError, EmptyAnswer:
            if not turn.can_resume:
                raise
        else:
            turn.answered_by = agent
            turn.failures = [failure for failure in turn.failures if failure.agent != agent]
            return


def _get_fallback_error(error: ProviderError | EmptyAnswer, turn: Turn) -> ProviderError | None:
    """Return the error that lets the next agent be tried, or None if the turn must end with this error.

    A refusal without a known reason may be due to the length, and another model may read more. A refusal of the content
    or of a parameter would only happen again with another model.
    """
    if turn.first_token_seconds is not None:
        return None
    if isinstance(error, BadRequest) and error.is_unexplained:
        return ContextOverflow(str(error))
    return error if isinstance(error, ProviderError) and isinstance(error, tuple(REASON_BY_ERROR_TYPE)) else None


async def _ask_after_pause(turn: Turn, question: Question, *, is_last: bool) -> None:
    """Send requests to a model; if it asks for a short pause and no fallback agent is available, try a second time."""
    pause, patience = question.model.pause, min(_MAX_WAIT_SECONDS, turn.limits.turn_timeout)
    turn.fallback_timeout = None if is_last else _FALLBACK_TIMEOUT
    if pause.remaining_seconds:
        await _wait_for_pause(pause, patience if is_last else 0.0)
    try:
        await _ask_with_less_history(turn, question)
    except RateLimited as err:
        if err.retry_after is None:
            raise
        pause.begin(err.retry_after)
        if not is_last or turn.first_token_seconds is not None or err.retry_after > patience:
            raise
        await _wait_for_pause(pause, patience)
        await _ask_with_less_history(turn, question)


async def _wait_for_pause(pause: Pause, patience: float) -> None:
    """Wait for a pause to end. Raises `RateLimited` if it is longer than `patience`, in seconds."""
    left = pause.remaining_seconds
    if left > patience:
        raise RateLimited("the server asked for a pause before", pause.requested_seconds)
    if left:
        await asyncio.sleep(left)


async def _ask_fallback_agent(turn: Turn, agent: FallbackAgent) -> None:
    """Let another agent answer, unless tools have run: that agent would not know and run them again."""
    if turn.tool_calls:
        raise Unavailable("tools have run, and another agent would run them again")
    answer = drop_pictures(await agent.answer())
    if turn.is_spoken:
        answer = clean_speech(answer)

    async def iter_deltas() -> AsyncGenerator[ReplyDelta]:
        turn.on_text(answer, new_message=True)
        yield TextDelta(answer)

    async for message in turn.reply.add_deltas(iter_deltas()):
        turn.window.add(message)


async def _ask_with_less_history(turn: Turn, question: Question) -> None:
    """Send requests to a model, with less of the window each time that it refuses one because of its length.

    After the first refusal without a known reason, the same history is sent with calls and results as text. If no
    request is accepted, raises the error of that refusal, or else the last error.
    """
    turn.refused_tokens, retries = None, _Retries(turn, question)
    while True:
        try:
            await ask_model(turn, retries.question)
        except (ProviderError, EmptyAnswer) as err:
            if turn.first_token_seconds is not None:
                raise
            retries.prepare_next(err)
        else:
            return


class _Retries:
    """The retries of one turn with one model; `question` is the question for the next request."""

    def __init__(self, turn: Turn, question: Question) -> None:
        self.question = question
        self._turn = turn
        # The number of retries with a smaller request.
        self._smaller_count = 0
        # The first refusal without a known reason, and the exchanges that were sent as text because of it.
        self._unexplained_error: ProviderError | None = None
        self._plain_exchange_keys: frozenset[float | None] = frozenset()

    def prepare_next(self, error: ProviderError | EmptyAnswer) -> None:
        """Prepare the request after a refusal. Raises an error if there is nothing left to try."""
        turn, model = self._turn, self.question.model
        is_empty, is_accepted = isinstance(error, EmptyAnswer), model.size.has_accepted(turn.request_tokens)
        if isinstance(error, ContextOverflow):
            if error.context_tokens is not None:
                model.size.on_size_named(error.context_tokens)
        elif not error.is_unexplained or (is_empty and (is_accepted or self._smaller_count)):
            raise error
        elif isinstance(error, ProviderError) and self._send_as_text(error):
            return
        model.plain_exchanges.unmark_plain(turn.window, self._plain_exchange_keys)
        newest_only = is_empty or self._smaller_count >= _NEWEST_ONLY_RETRY
        self._smaller_count += 1
        # an unexplained refusal of a size that was answered before may have another reason, so it evicts nothing
        may_evict = self._unexplained_error is None or not is_accepted
        budget = _reduce_budget(turn, model, newest_only=newest_only, may_evict=may_evict)
        if budget is None or self._smaller_count > _MAX_SMALLER_RETRIES:
            raise self._unexplained_error or error
        self.question = replace(self.question, model=replace(model, budget=budget))
        if not is_empty:
            turn.on_request_refused()

    def _send_as_text(self, error: ProviderError) -> bool:
        """After the first unexplained refusal, send the calls of ended exchanges as text. Return whether any are.

        If such a refusal was due to the length before, it is assumed that this one is, too.
        """
        model, is_first = self.question.model, self._unexplained_error is None
        self._unexplained_error = self._unexplained_error or error
        if is_first and not model.size.has_refused:
            messages = self._turn.attempts[-1].request.messages
            self._plain_exchange_keys = model.plain_exchanges.mark_suspects(self._turn.window, messages)
        return is_first and bool(self._plain_exchange_keys)


def _reduce_budget(turn: Turn, model: Model, *, newest_only: bool, may_evict: bool) -> Budget | None:
    """Return a budget that sends less after a refusal, or None if nothing can be removed.

    With `may_evict`, this turn's tool results are shortened if they are most of the request or if no history is left;
    that evicts history. The live context is the last thing to remove.
    """
    window, budget, refused = turn.window, model.budget, turn.request_tokens
    newest, live = window.open_tokens, turn.context.tokens if turn.context else 0
    history = refused - window.stats().prefix_tokens - budget.schema_tokens - live - newest
    if may_evict and window.has_tool_calls and (newest > refused // 2 or history <= 0):
        shorter = apply_context_size(budget, model.size.get_retry_tokens(refused, refused // 2) or refused // 2)
        window.set_turn_limit(free_tokens(shorter, window.stats().prefix_tokens))
        if window.open_tokens < newest:
            return shorter
    if history > 0:
        context = model.size.get_retry_tokens(refused, refused - history // 2)
        sent = 0 if newest_only else reduce_history_tokens(history, refused - history, context)
        return replace(budget, max_sent_tokens=newest + sent)
    return replace(budget, live_tokens=0) if budget.live_tokens and live else None


async def run_turn(turn: Turn) -> None:
    """Answer one input.

    A known error is stored in `turn.error`; any other exception is stored in `turn.interruption` and raised again.
    """
    try:
        await _answer_turn(turn)
    except (ProviderError, TurnError) as err:
        turn.error, turn.result = err, get_attempt_result(err)
    except BaseException as fault:
        turn.interruption, turn.result = fault, get_attempt_result(fault)
        raise
    finally:
        turn.duration_seconds = time.monotonic() - turn.started_at


async def _answer_turn(turn: Turn) -> None:
    if not turn.text:
        raise EmptyInput("the input is blank")
    if turn.decision.reason is RouteReason.ECHO:
        return
    if turn.decision.route is Route.LOCAL:
        now = time.time()
        answer = await turn.callbacks.answer_locally(build_situation(turn.window, now))
        turn.recognition_seconds = time.monotonic() - turn.started_at
        if not isinstance(answer, RouteReason):
            turn.callbacks.defer(partial(_record_local_exchange, turn, now, answer))
            return
        if turn.decision.reason is RouteReason.LOCAL_ONLY:
            raise LocalAnswerFailed("nothing local understood it")
        turn.decision = RouteDecision(Route.MODEL, answer)
    await _answer_with_model(turn)


def _record_local_exchange(turn: Turn, created: float, answer: LocalMessagesBuilder) -> None:
    if messages := answer():
        question = Message.user(mark_typed_prefixes(turn.text), created=created)
        turn.window.add_exchange((question, *messages), tags={f"route:{Route.LOCAL}"})


async def _answer_with_model(turn: Turn) -> None:
    window, deadline = turn.window, asyncio.timeout(turn.limits.turn_timeout)
    try:
        async with deadline:
            turn.deadline = deadline
            question = await turn.callbacks.build_question()
            window.open(question.stamp_prefix + mark_typed_prefixes(turn.text))
            window.set_system_prompt(question.system_prompt)
            window.add_tags(f"route:{Route.MODEL}")
            await try_models(turn, question)
            if turn.answered_by != question.model.agent_id:
                turn.decision = decide_fallback_route(turn.failures[0].error)
                window.add_tags(f"route:{Route.FALLBACK}")
            window.close()
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole answer in {turn.limits.turn_timeout:g} seconds") from err
    finally:
        turn.deadline = None
        if window.is_open:
            _end_incomplete_exchange(turn)
        if turn.waiting_streams or turn.resumed_stream:
            await _close_waiting_streams(turn, (deadline.when() or 0.0) - asyncio.get_running_loop().time())


def _end_incomplete_exchange(turn: Turn) -> None:
    """End an exchange whose answer is incomplete.

    It stays in the window only if tools may have run, if the user has received text, or if the turn was interrupted
    after the user was promised an answer. Refused text does not stay: a provider may refuse each request that has it.
    """
    error = sys.exception()
    is_broken_promise = turn.is_in_background and isinstance(error, asyncio.CancelledError)
    has_heard_text = not isinstance(error, AnswerRefused) and bool(turn.sent_text.strip())
    if turn.tool_calls or has_heard_text or is_broken_promise:
        turn.window.close_incomplete(turn.unstored_text, turn.unstored_calls)
    else:
        turn.window.abort()


async def _close_waiting_streams(turn: Turn, seconds: float) -> None:
    """Close the open requests whose answers are not used.

    If another agent has answered, a server at home may continue to load its model for up to `seconds`.
    """
    background = turn.callbacks.run_in_background
    for stream in filter(None, (*turn.waiting_streams, turn.resumed_stream)):
        turn.abandon_stream(stream)
        model = stream.model
        if background and turn.answered_by and model.is_at_home and not model.request_limiter.is_loading:
            background(stream.wait_for_loading(seconds))
        else:
            await stream.aclose()
