"""Asking for an answer: choose whom to ask, wait out a pause, fit the request, stream the answer, and run its tools.

`ask_question` is the tool loop. It asks a `ModelChain`, which is a model made of models: an `AskedModel` for each.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from itertools import count

from ..providers import (
    BadRequest,
    ContextOverflow,
    Incomplete,
    ProviderError,
    RateLimited,
    TextDelta,
    Unavailable,
    Usage,
)
from ..window import Message
from .answer import Answer
from .attempts import AnswerStream, OpenAttempt, Purpose, RequestState
from .claims import may_claim_action, require_call
from .errors import EmptyAnswer
from .limits import MAX_TOOL_ROUNDS, Budget, apply_context_size, free_tokens, reduce_history_tokens
from .model import FallbackAgent, Model
from .request import build_request
from .routing import REASON_BY_ERROR_TYPE
from .speech.pictures import drop_pictures
from .speech.plain_text import clean_speech
from .state import AgentFailure, ModelRun, ReplyDelta, Turn

# The longest pause, in seconds, that a user has to wait for if no other agent can answer.
_MAX_WAIT_SECONDS = 10.0

# How often a smaller request is sent after a refusal: half of the history each time, unless the model's size is known
# better, then only the newest exchange.
_MAX_SMALLER_RETRIES = 6
_NEWEST_ONLY_RETRY = 3

# How long, in seconds, a model may take for its first token while a fallback agent is available.
_FALLBACK_TIMEOUT = 10.0


async def ask_question(run: ModelRun) -> None:
    """Get an answer for the open exchange from the first model or agent that gives one, and run the tools it calls.

    Raises `ProviderError` and `TurnError`. Earlier failures are in `Turn.failures`.
    """
    turn, chain = run.turn, ModelChain(run)
    for tool_round in count():
        may_call = tool_round < MAX_TOOL_ROUNDS and not run.repetition_detector.is_note_ignored
        if not await chain.answer(may_call=may_call):
            break
    turn.answered_by = run.last_agent_id
    turn.failures = [failure for failure in turn.failures if failure.agent != turn.answered_by]
    if may_claim_action(turn):
        await chain.check_claim()


class ModelChain:
    """The model of a question, its fallback agents and the default agent, asked like one model.

    The one that is asked stays in use until it fails. If all have failed, a model whose first token took too long is
    awaited again.
    """

    def __init__(self, run: ModelRun) -> None:
        self._run = run
        self._others = deque(run.question.fallback_agents)
        self._is_resuming = False
        model = run.question.model
        self._current: AskedModel | FallbackAgent = AskedModel(run, model, is_last=not self._others)

    async def answer(self, *, may_call: bool) -> bool:
        """Get the next answer and run its tools. Return whether there were any. Raises the error of the last agent."""
        while True:
            self._run.last_agent_id = self._current.agent_id
            try:
                if isinstance(self._current, AskedModel):
                    return await self._current.answer(may_call=may_call)
                await _ask_fallback_agent(self._run, self._current)
            except (ProviderError, EmptyAnswer) as err:
                reason = _get_fallback_error(err, self._run.turn)
                if self._choose_next(reason):
                    continue
                if reason is None or not await self._ask_default_agent(reason):
                    raise
            return False

    async def check_claim(self) -> None:
        """Let the model that has answered carry out the action that its answer claims."""
        if isinstance(self._current, AskedModel) and self._current.agent_id == self._run.last_agent_id:
            await self._current.check_claim()

    def _choose_next(self, reason: ProviderError | None) -> bool:
        """Choose whom to ask next, which needs a reason or a waiting request. Return whether there is anybody."""
        turn = self._run.turn
        streams = [] if turn.has_answer_begun else self._run.late_streams
        waiting = [each for each in streams if each.attempt.state is RequestState.WAITING]
        if reason is not None and not self._is_resuming and (waiting or self._others):
            turn.failures.append(AgentFailure(self._current.agent_id, reason))
        if reason is not None and self._others:
            agent, is_last = self._others.popleft(), len(self._others) == 0
            self._current = AskedModel(self._run, agent, is_last=is_last) if isinstance(agent, Model) else agent
        elif waiting:
            self._is_resuming = True
            self._others.clear()
            waiting[0].attempt.state = RequestState.RESUMED
            self._current = AskedModel(self._run, waiting[0].attempt.model, is_last=True, stream=waiting[0])
        else:
            return False
        return True

    async def _ask_default_agent(self, reason: ProviderError) -> bool:
        """Ask the default agent after the others have failed, the last for this reason. Return whether it answers."""
        run, agent = self._run, self._run.question.default_agent
        if agent is None:
            return False
        try:
            await _ask_fallback_agent(run, agent)
        except Unavailable:
            return False
        run.turn.failures.append(AgentFailure(run.last_agent_id, reason))
        run.last_agent_id = agent.agent_id
        return True


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


async def _ask_fallback_agent(run: ModelRun, agent: FallbackAgent) -> None:
    """Let another agent answer, unless tools have run: that agent would not know and run them again."""
    turn = run.turn
    if turn.tool_calls:
        raise Unavailable("tools have run, and another agent would run them again")
    answer = drop_pictures(await agent.answer())
    if run.question.is_spoken:
        answer = clean_speech(answer)
    async for message in turn.host.reply.add_deltas(_send_text(turn, answer)):
        turn.window.add(message)


async def _send_text(turn: Turn, text: str) -> AsyncGenerator[ReplyDelta]:
    turn.on_text(text, new_message=True)
    yield TextDelta(text)


class AskedModel:
    """A model that a turn asks. `stream` is a request that waits for its answer, which is used instead of a new one.

    The model `is_last` if nobody else can be asked: only then it is waited for.
    """

    def __init__(self, run: ModelRun, model: Model, *, is_last: bool, stream: AnswerStream | None = None) -> None:
        self.agent_id = model.agent_id
        self._run = run
        self._is_last = is_last
        self._stream = stream
        self._has_begun = stream is not None
        # Whether a pause that the model asks for may be waited out, which is done once.
        self._may_wait = stream is None
        self._patience = min(_MAX_WAIT_SECONDS, run.turn.turn_timeout)
        self._model = model
        self._retries = _Retries(run, model)

    async def answer(self, *, may_call: bool) -> bool:
        """Get the next answer and run its tools. Return whether there were any. Raises the model's last error."""
        if not self._has_begun and self._model.pause.remaining_seconds:
            await self._wait_out_pause(self._patience if self._is_last else 0.0)
        self._has_begun = True
        while True:
            try:
                return await self._get_answer(may_call=may_call)
            except RateLimited as err:
                await self._wait_after(err)
            except (ProviderError, EmptyAnswer) as err:
                if self._run.turn.first_token_seconds is not None:
                    raise
                self._retries.prepare_next(err)

    async def check_claim(self) -> None:
        """Require a call for the last answer. If it fails, a sentence is added; nothing else of it is heard.

        No error matters any more, as there is an answer. A model that refuses such a request does not get another one.
        """
        run, window, reply = self._run, self._run.turn.window, self._run.turn.host.reply
        claim, failed_before, learned = window.messages()[-1], run.failed_tool_calls, self._model.reasoning_detector
        if learned.refuses_required_calls:
            return
        try:
            answer = await self._send_request(may_call=True, requires_call=True)
        except RateLimited:
            return
        learned.refuses_required_calls = isinstance(answer.error, BadRequest)
        if run.failed_tool_calls > failed_before:
            async for message in reply.add_deltas(_send_text(run.turn, run.question.failure_phrase)):
                window.add(message)
        elif answer.calls:
            # a chat log and a window end with an answer
            reply.add_answer(claim.content)
            window.add(Message.assistant(claim.content))

    async def _wait_out_pause(self, patience: float) -> None:
        """Wait for a pause to end. Raises `RateLimited` if it is longer than `patience`, in seconds."""
        left = self._model.pause.remaining_seconds
        if left > patience:
            raise RateLimited("the server asked for a pause before", self._model.pause.requested_seconds)
        await asyncio.sleep(left)

    async def _wait_after(self, error: RateLimited) -> None:
        """Wait out a short pause that the model asks for, once. Raises the error if it is not waited for."""
        seconds = error.retry_after
        if not self._may_wait or seconds is None:
            raise error
        self._may_wait = False
        self._model.pause.begin(seconds)
        if not self._is_last or self._run.turn.first_token_seconds is not None or seconds > self._patience:
            raise error
        await self._wait_out_pause(self._patience)
        self._retries = _Retries(self._run, self._model)

    async def _get_answer(self, *, may_call: bool) -> bool:
        """Send the next request, a second time if reasoning used up its limit. Return whether tools were called."""
        run, answer = self._run, await self._send_request(may_call=may_call)
        if answer.error is not None and not run.has_raised_answer_limit and self._can_raise_answer_limit(answer):
            run.has_raised_answer_limit = True
            answer = await self._send_request(may_call=may_call)
        if answer.error is not None:
            raise answer.error
        self._retries.learn_from_answer()
        return bool(answer.calls)

    def _can_raise_answer_limit(self, answer: Answer) -> bool:
        """Return whether an answer without text or calls may succeed with the higher limit for models that reason."""
        if answer.has_text or answer.calls or not isinstance(answer.error, Incomplete):
            return False
        request, model = answer.request, self._retries.model
        again = self._run.question.build_request(request.messages, request.tools, model=model)
        return (again.answer_limit or 0) > (request.answer_limit or 0)

    async def _send_request(self, *, may_call: bool, requires_call: bool = False) -> Answer:
        """Send one request. Return its answer, which may contain an error, after its calls have run.

        One that `requires_call` is not waited for: the user has an answer.
        """
        run, turn, model = self._run, self._run.turn, self._retries.model
        had_to_wait = model.request_limiter.locked()
        async with AsyncExitStack() as permit:
            await permit.enter_async_context(model.request_limiter)
            if had_to_wait and (left := model.pause.requested_seconds):
                raise RateLimited("the server asked for a pause meanwhile", left)
            stream, self._stream = self._stream, None
            if stream is None:
                request = build_request(run, model, may_call=may_call)
                request = require_call(request) if requires_call else request
                attempt = OpenAttempt(model, request, Purpose.ANSWER, turn.attempts.append, turn.host.on_billed)
                stream = AnswerStream(attempt, turn.turn_timeout)
            answer, reply = Answer(run, stream, permit), turn.host.reply
            is_awaited = not requires_call and (self._is_last or turn.tool_calls > 0)
            fallback_timeout = None if is_awaited else _FALLBACK_TIMEOUT
            try:
                async with (
                    aclosing(stream.iter_events(fallback_timeout)) as events,
                    aclosing(answer.iter_deltas(events)) as deltas,
                    aclosing(reply.add_deltas(deltas)) as messages,
                ):
                    async for message in messages:
                        run.failed_tool_calls = reply.failed_call_count
                        turn.window.add(answer.to_stored_message(message))
                        run.begin_answer()
            finally:
                if stream.attempt.state is not RequestState.WAITING:
                    await stream.aclose()
        return answer


class _Retries:
    """The retries with one model, with less of the window each time that it refuses a request because of its length.

    `model` has the budget of the next request.
    """

    def __init__(self, run: ModelRun, model: Model) -> None:
        self.model = model
        self._run = run
        # The size of the smallest request that was refused, perhaps as too long, since the last one that was answered.
        self._refused_tokens: int | None = None
        # The number of retries with a smaller request.
        self._smaller_count = 0
        # The first refusal without a known reason.
        self._unexplained_error: ProviderError | None = None

    def prepare_next(self, error: ProviderError | EmptyAnswer) -> None:
        """Prepare the request after a refusal.

        If there is nothing left to try, raises the first refusal without a known reason, or else this error.
        """
        run, model = self._run, self.model
        is_empty, is_accepted = isinstance(error, EmptyAnswer), model.size.has_accepted(run.request_tokens)
        if isinstance(error, ContextOverflow):
            if error.context_tokens is not None:
                model.size.on_size_named(error.context_tokens)
        elif not error.is_unexplained or (is_empty and (is_accepted or self._smaller_count)):
            raise error
        elif isinstance(error, ProviderError):
            self._unexplained_error = self._unexplained_error or error
        newest_only = is_empty or self._smaller_count >= _NEWEST_ONLY_RETRY
        self._smaller_count += 1
        # an unexplained refusal of a size that was answered before may have another reason, so it evicts nothing
        may_evict = self._unexplained_error is None or not is_accepted
        budget = _reduce_budget(run, model, newest_only=newest_only, may_evict=may_evict)
        if budget is None or self._smaller_count > _MAX_SMALLER_RETRIES:
            raise self._unexplained_error or error
        self.model = replace(model, budget=budget)
        if not is_empty:
            self._refused_tokens = min(run.request_tokens, self._refused_tokens or run.request_tokens)

    def learn_from_answer(self) -> None:
        """Learn from the newest request, which was answered."""
        run, newest = self._run, self._run.turn.attempts[-1]
        usage = newest.billed_request.usage if newest.billed_request else Usage()
        # the size of a request with pictures is only a guess, and so is that with results of a search
        if newest.request.has_own_size(usage):
            self.model.size.on_answered(run.request_tokens, billed=usage.input, refused=self._refused_tokens)
        self._refused_tokens = None


def _reduce_budget(run: ModelRun, model: Model, *, newest_only: bool, may_evict: bool) -> Budget | None:
    """Return a budget that sends less after a refusal, or None if nothing can be removed.

    With `may_evict`, this turn's tool results are shortened if they are most of the request or if no history is left;
    that evicts history. The live context is the last thing to remove.
    """
    window, budget, refused = run.turn.window, model.budget, run.request_tokens
    newest, live = window.open_tokens, run.context.tokens if run.context else 0
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


async def close_late_streams(run: ModelRun, seconds: float) -> None:
    """Close the requests that are open although their answers are not used.

    If another agent has answered, a server at home may continue to load its model for up to `seconds`.
    """
    turn = run.turn
    for stream in run.late_streams:
        if stream.attempt.state is RequestState.ENDED:
            continue
        stream.attempt.abandon()
        model = stream.attempt.model
        if turn.answered_by and model.is_at_home and not model.request_limiter.is_loading:
            turn.host.run_in_background(stream.wait_for_loading(seconds))
        else:
            await stream.aclose()
