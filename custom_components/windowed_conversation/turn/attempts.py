"""The requests to a model while they are being answered. Each request is recorded exactly once, however it ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
import math
import time
from typing import Self

from ..providers import (
    AnswerDone,
    AuthError,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    Effort,
    Event,
    Incomplete,
    ProviderError,
    QuotaError,
    RateLimited,
    ReasoningDelta,
    Request,
    Sources,
    TextDelta,
    ToolCallDone,
    Unavailable,
    Usage,
)
from ..window import ToolCall
from .limits import get_idle_timeout
from .model import BilledRequest, BilledRequestCallback, Model

# Errors that cost nothing if they occur before the first event. A timeout is not among them: a slow model may already
# have been generating tokens.
_UNBILLED_ERRORS = (AuthError, BadRequest, ContextOverflow, QuotaError, RateLimited, Unavailable)
_CANCELLATION_ERRORS = (asyncio.CancelledError, GeneratorExit)

# How long, in seconds, a server may take for its first token while a fallback agent is available, even if it keeps
# sending signs of life: llama.cpp sends a comment each second, also when it hangs.
MAX_FIRST_TOKEN_SECONDS = 60.0


class AttemptResult(StrEnum):
    """The result of a request or a turn."""

    ANSWERED = "answered"
    ERROR = "error"
    CANCELLED = "cancelled"


class Purpose(StrEnum):
    """The purpose of a request: an answer, a summary, a compaction, the search words of facts, or a task."""

    ANSWER = "answer"
    SUMMARY = "summary"
    COMPACTION = "compaction"
    SEARCH_WORDS = "search_words"
    TASK = "task"


class RequestState(Enum):
    """The use of a request's answer.

    A server that takes too long for its first token may be given up for another agent. Its request then waits: if
    nobody else has an answer, it is resumed, and else abandoned.
    """

    # Its answer is read. It is recorded at the end.
    OPEN = auto()
    # It stays open, and nobody reads its answer.
    WAITING = auto()
    # It waited, and its answer is read next.
    RESUMED = auto()
    # It is not recorded any more.
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that was sent, and its result. Times are on the monotonic clock."""

    model: Model
    request: Request
    purpose: Purpose
    result: AttemptResult
    started_at: float
    ended_at: float
    # Since the start.
    first_token_seconds: float | None = None
    # Since the start.
    first_byte_seconds: float | None = None
    # The usage, if the provider sent any.
    billed_request: BilledRequest | None = None
    # Whether the request may have cost something although no usage was sent.
    is_cost_unknown: bool = False
    # The finish reason as the provider names it.
    finish_reason: str | None = None
    # The tool calls that were passed to the reply.
    tool_calls: tuple[ToolCall, ...] = ()
    # The class of the error.
    error_name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A tool that was run. `name` is "unknown" if it was not offered; times are in seconds on the monotonic clock."""

    name: str
    started_at: float
    ended_at: float
    # The ids of the entities that it has reached.
    entity_ids: tuple[str, ...] = ()


type AttemptCallback = Callable[[Attempt], None]


@dataclass(slots=True)
class OpenAttempt:
    """A context manager for a request that is being answered; passes the `Attempt` to `on_end` when it exits."""

    model: Model
    request: Request
    purpose: Purpose
    on_end: AttemptCallback
    on_billed: BilledRequestCallback = lambda billed: None
    idle_timer: IdleTimer | None = None
    error: BaseException | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    state: RequestState = RequestState.OPEN
    _started_at: float = field(default_factory=time.monotonic)
    _first_event_at: float | None = None
    _usage: Usage | None = None
    _billed_request: BilledRequest | None = None
    _finish_reason: str | None = None
    _has_output: bool = False
    _has_reasoning: bool = False

    def __enter__(self) -> Self:
        self.state = RequestState.OPEN
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self.error = error
        if self.state is RequestState.OPEN:
            self.state = RequestState.ENDED
            ended = self.build_attempt()
            self._learn_reasoning()
            self.on_end(ended)
        # do not keep the error alive together with its stack frames
        self.error = None

    def on_event(self, event: Event) -> None:
        """Update the record with an event of the provider's stream."""
        if self._first_event_at is None:
            self._first_event_at = time.monotonic()
        match event:
            case Usage():
                self._usage = event
            case Sources():
                # the pages are a part of the billed input that is not in the request
                self.request = replace(self.request, has_search_results=True)
            case AnswerDone():
                self._finish_reason = event.native_reason
                if self._usage is not None:
                    self.record_usage(self._usage, event.server_identity, is_flexible=event.is_flexible)

    def record_usage(self, usage: Usage, server: str = "", *, is_flexible: bool = False) -> None:
        """Record the usage, and call `on_billed` at once. See `BilledRequest` for `server` and `is_flexible`."""
        self._usage = None
        self._billed_request = BilledRequest(
            self.model, self.request, usage, server_identity=server, is_flexible=is_flexible
        )
        self._has_reasoning = self._has_reasoning or usage.reasoning > 0
        self.on_billed(self._billed_request)

    def on_delta(self, delta: Event) -> None:
        """Update the record with a delta that the speech filter has produced from an event."""
        match delta:
            case ReasoningDelta(text):
                self._has_reasoning = self._has_reasoning or not text.isspace()
            case TextDelta() | ToolCallDone():
                self._has_output = True

    def discard(self) -> None:
        """Do not record the request, because its server does not support such requests."""
        self.state = RequestState.ENDED

    def abandon(self) -> None:
        """Record a request that waited, because its answer is not needed any more."""
        self.state, self.error = RequestState.ENDED, DeadlineExceeded("no first token in time")
        self.on_end(self.build_attempt())

    def build_attempt(self) -> Attempt:
        """Return the finished `Attempt`, with the current time as its end."""
        if self._usage is not None:
            self.record_usage(self._usage)
        # the answer was complete, only its tools or the next request were interrupted
        error = None if self._finish_reason is not None and isinstance(self.error, _CANCELLATION_ERRORS) else self.error
        first_byte_at = self.idle_timer.first_activity_at if self.idle_timer is not None else None
        costs_nothing = isinstance(error, _UNBILLED_ERRORS) and self._first_event_at is None
        return Attempt(
            model=self.model,
            request=self.request,
            purpose=self.purpose,
            result=get_attempt_result(error),
            started_at=self._started_at,
            ended_at=time.monotonic(),
            first_token_seconds=self._first_event_at and self._first_event_at - self._started_at,
            first_byte_seconds=first_byte_at and first_byte_at - self._started_at,
            billed_request=self._billed_request,
            is_cost_unknown=self._billed_request is None and not costs_nothing,
            finish_reason=self._finish_reason,
            tool_calls=tuple(self.tool_calls),
            error_name=None if error is None else type(error).__name__,
        )

    def _learn_reasoning(self) -> None:
        """Learn from the finished answer whether the model reasons.

        An answer that was cut off before its first text or tool call contained reasoning, shown or not. If reasoning
        was turned off in the request and the answer has none, that proves nothing about other requests.
        """
        is_cut = isinstance(self.error, Incomplete) and not self._has_output
        if is_cut or self._has_reasoning:
            self.model.reasoning_detector.on_answer(has_reasoning=True)
        elif self._finish_reason is not None and self.request.settings.effort is not Effort.NONE:
            self.model.reasoning_detector.on_answer(has_reasoning=False)


def get_attempt_result(error: BaseException | None) -> AttemptResult:
    """Return the `AttemptResult` for the error that ended an attempt, or for an attempt without an error."""
    if error is None:
        return AttemptResult.ANSWERED
    return AttemptResult.CANCELLED if isinstance(error, _CANCELLATION_ERRORS) else AttemptResult.ERROR


@dataclass(slots=True)
class IdleTimer:
    """Tracks a server's signs of life: everything that it sends, even if it is not an event."""

    # In seconds.
    idle_timeout: float
    # The time of the first sign of life, on the monotonic clock.
    first_activity_at: float | None = None
    # The time of the latest sign of life, on the event loop's clock. None before the first one: the idle timeout begins
    # only when the server has begun to answer.
    last_activity_at: float | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _deadline: asyncio.Timeout | None = None

    def record_activity(self) -> None:
        """Record a sign of life."""
        self.last_activity_at = self._loop.time()
        if self.first_activity_at is None:
            self.first_activity_at = time.monotonic()
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(self.last_activity_at + self.idle_timeout)

    async def next_event[E](self, events: AsyncGenerator[E]) -> E | None:
        """Return the next event, or None at the end. Raises `DeadlineExceeded` after the idle timeout."""
        try:
            async with asyncio.timeout(None if self.last_activity_at is None else self.idle_timeout) as self._deadline:
                return await anext(events, None)
        except TimeoutError as err:
            if self._deadline is None or not self._deadline.expired():
                raise
            raise DeadlineExceeded(f"silent for {self.idle_timeout:g} seconds") from err
        finally:
            self._deadline = None


class AnswerStream:
    """The events of the answer to a request. Its creator closes it, unless the request is waiting.

    If a fallback agent is available, the first token must arrive in time. If it does not, the request stays open: its
    answer can still be used later if nobody else has one, and some servers start to load a model again when a client
    disconnects.
    """

    def __init__(self, attempt: OpenAttempt, turn_timeout: float) -> None:
        self.attempt = attempt
        self._loop = asyncio.get_running_loop()
        self.idle_timer = IdleTimer(get_idle_timeout(turn_timeout, at_home=attempt.model.is_at_home))
        attempt.idle_timer = self.idle_timer
        self._events = attempt.model.provider.stream(attempt.request, self.idle_timer.record_activity)
        self._event_task: asyncio.Task[Event | None] | None = None

    async def iter_events(self, fallback_timeout: float | None) -> AsyncGenerator[Event]:
        """Yield the events of the answer. Raises `ProviderError`.

        `fallback_timeout` is how long the server may take for its first token, in seconds, or None if no fallback agent
        is available.
        """
        began = self._loop.time()
        while True:
            if fallback_timeout is None and self._event_task is None:
                event = await self.idle_timer.next_event(self._events)
            else:
                event = await self._next_event(fallback_timeout, began)
            if event is None:
                return
            if isinstance(event, TextDelta | ToolCallDone):
                fallback_timeout = None
            yield event

    async def wait_for_loading(self, seconds: float) -> None:
        """Keep the request open until its first event, for at most `seconds`, so that the server can finish loading."""
        limit = self.attempt.model.request_limiter
        limit.is_loading = True
        try:
            async with aclosing(self):
                with suppress(ProviderError, TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._next_event(None, self._loop.time())
        finally:
            limit.is_loading = False

    async def aclose(self) -> None:
        """Close the request."""
        if self._event_task is not None:
            self._event_task.cancel()
            await asyncio.wait({self._event_task})
            # nobody waits for this request any more, so its error does not belong in the log
            with suppress(asyncio.CancelledError, Exception):
                self._event_task.result()
            self._event_task = None
        await self._events.aclose()

    async def _next_event(self, fallback_timeout: float | None, began: float) -> Event | None:
        """Return the next event of a request that may stay open, or None at its end. Raises `DeadlineExceeded`."""
        pending = self._event_task = self._event_task or self._loop.create_task(_read_next_event(self._events))
        try:
            while not pending.done():
                left = self._calculate_deadline(fallback_timeout, began) - self._loop.time()
                if left <= 0:
                    if fallback_timeout is not None:
                        self.attempt.state = RequestState.WAITING
                    raise DeadlineExceeded("no first token in time")
                await asyncio.wait({pending}, timeout=min(left, self.idle_timer.idle_timeout))
        finally:
            if pending.done():
                self._event_task = None
        return pending.result()

    def _calculate_deadline(self, fallback_timeout: float | None, began: float) -> float:
        """Return the time at which the wait for the next event ends, on the event loop's clock."""
        last = self.idle_timer.last_activity_at
        if fallback_timeout is None:
            return math.inf if last is None else last + self.idle_timer.idle_timeout
        return min(max(began, last or began) + fallback_timeout, began + max(MAX_FIRST_TOKEN_SECONDS, fallback_timeout))


async def _read_next_event(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)
