"""The requests to a model while they are being answered. Each request is recorded exactly once, however it ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
import math
import time
from typing import Self

from ..providers import (
    AuthError,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    Effort,
    Event,
    Finished,
    Incomplete,
    ProviderError,
    QuotaError,
    RateLimited,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    Unavailable,
    Usage,
)
from ..window import ToolCall
from .limits import TurnLimits
from .model import BilledRequest, Model, OnBilled, Spoken

# Errors that cost nothing if they occur before the first event. A timeout is not among them: a slow model may already
# have been generating tokens.
_COST_NOTHING = (AuthError, BadRequest, ContextOverflow, QuotaError, RateLimited, Unavailable)
_CANCELLED = (asyncio.CancelledError, GeneratorExit)

# How long, in seconds, a server may take for its first token while a fallback agent is available, even if it keeps
# sending signs of life: llama.cpp sends a comment each second, also when it hangs.
LONGEST_FIRST_TOKEN = 60.0


class AttemptResult(StrEnum):
    """The result of a request or a turn."""

    ANSWERED = "answered"
    ERROR = "error"
    CANCELLED = "cancelled"


class Purpose(StrEnum):
    """The purpose of a request: an answer, a summary, or a compaction."""

    ANSWER = "answer"
    SUMMARY = "summary"
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that was sent, and its result.

    `began` and `ended` are in seconds on the monotonic clock, `first_token` is in seconds from `began`. `billed` holds
    the usage if the provider sent any; `is_unbilled` means that the request may have cost something although no usage
    was sent. `finish` is the finish reason as the provider names it, `calls` are the tool calls that were passed to the
    reply, and `error` is the class of the error.
    """

    model: Model
    request: Request
    purpose: Purpose
    result: AttemptResult
    began: float
    ended: float
    first_token: float | None = None
    billed: BilledRequest | None = None
    is_unbilled: bool = False
    finish: str | None = None
    calls: tuple[ToolCall, ...] = ()
    error: str | None = None


type OnAttempt = Callable[[Attempt], None]


@dataclass(slots=True)
class OpenAttempt:
    """A context manager for a request that is being answered; passes the `Attempt` to `on_end` when it exits."""

    model: Model
    request: Request
    purpose: Purpose
    on_end: OnAttempt
    on_billed: OnBilled = lambda billed: None
    error: BaseException | None = None
    calls: list[ToolCall] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _first_event: float | None = None
    _usage: Usage | None = None
    _billed: BilledRequest | None = None
    _finish: str | None = None
    _is_discarded: bool = False
    _is_heard: bool = False
    _has_reasoning: bool = False

    def __enter__(self) -> Self:
        self._is_discarded = False
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self.error = error
        if not self._is_discarded:
            ended = self.ended()
            self._learn()
            self.on_end(ended)
        # do not keep the error alive together with its stack frames
        self.error = None

    def on_event(self, event: Event) -> None:
        """Update the record with an event of the provider's stream."""
        if self._first_event is None:
            self._first_event = time.monotonic()
        match event:
            case Usage():
                self._usage = event
            case Finished(native=native, server=server):
                self._finish = native
                if self._usage is not None:
                    self.bill(self._usage, server)

    def bill(self, usage: Usage, server: str = "") -> None:
        """Record the usage and call `on_billed` at once. `server` is the server's name for the model that answered."""
        self._usage = None
        self._billed = BilledRequest(self.model, self.request, usage, server=server)
        self._has_reasoning = self._has_reasoning or usage.reasoning > 0
        self.on_billed(self._billed)

    def on_delta(self, delta: Spoken) -> None:
        """Update the record with a delta that the speech filter has produced from an event."""
        match delta:
            case ReasoningDelta(text):
                self._has_reasoning = self._has_reasoning or not text.isspace()
            case TextDelta() | ToolCallDone():
                self._is_heard = True

    def discard(self) -> None:
        """Do not record the request: its server does not support such requests, or it stays open for a later answer."""
        self._is_discarded = True

    def ended(self) -> Attempt:
        """Return the finished `Attempt`, with the current time as its end."""
        if self._usage is not None:
            self.bill(self._usage)
        # the answer was complete, only its tools or the next request were interrupted
        error = None if self._finish is not None and isinstance(self.error, _CANCELLED) else self.error
        costs_nothing = isinstance(error, _COST_NOTHING) and self._first_event is None
        return Attempt(
            model=self.model,
            request=self.request,
            purpose=self.purpose,
            result=result_of(error),
            began=self._began,
            ended=time.monotonic(),
            first_token=self._first_event and self._first_event - self._began,
            billed=self._billed,
            is_unbilled=self._billed is None and not costs_nothing,
            finish=self._finish,
            calls=tuple(self.calls),
            error=None if error is None else type(error).__name__,
        )

    def _learn(self) -> None:
        """Learn from the finished answer whether the model reasons.

        An answer that was cut off before its first text or tool call contained reasoning, shown or not. If reasoning
        was turned off in the request and the answer has none, that proves nothing about other requests.
        """
        is_cut = isinstance(self.error, Incomplete) and not self._is_heard
        if is_cut or self._has_reasoning:
            self.model.reasoning.on_answer(has_reasoning=True)
        elif self._finish is not None and self.request.settings.effort is not Effort.NONE:
            self.model.reasoning.on_answer(has_reasoning=False)


def result_of(error: BaseException | None) -> AttemptResult:
    """Return the `AttemptResult` for the error that ended an attempt, or for an attempt without an error."""
    if error is None:
        return AttemptResult.ANSWERED
    return AttemptResult.CANCELLED if isinstance(error, _CANCELLED) else AttemptResult.ERROR


@dataclass(slots=True)
class Pulse:
    """Tracks a server's signs of life: everything that it sends, even if it is not an event.

    `idle_timeout` is in seconds. `last` is the time of the latest sign of life on the event loop's clock, or None
    before the first one: the idle timeout begins only when the server has begun to answer.
    """

    idle_timeout: float
    last: float | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _deadline: asyncio.Timeout | None = None

    def beat(self) -> None:
        """Record a sign of life."""
        self.last = self._loop.time()
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(self.last + self.idle_timeout)

    async def next_event[E](self, events: AsyncGenerator[E]) -> E | None:
        """Return the next event, or None at the end. Raises `DeadlineExceeded` after the idle timeout."""
        try:
            async with asyncio.timeout(None if self.last is None else self.idle_timeout) as self._deadline:
                return await anext(events, None)
        except TimeoutError as err:
            if self._deadline is None or not self._deadline.expired():
                raise
            raise DeadlineExceeded(f"silent for {self.idle_timeout:g} seconds") from err
        finally:
            self._deadline = None


class AnswerStream:
    """A request and the events of its answer. Its creator closes it, unless it `is_waiting`.

    If a fallback agent is available, the first token must arrive in time. If it does not, the request stays open: its
    answer can still be used later if nobody else has one, and some servers start to load a model again when a client
    disconnects.
    """

    def __init__(self, model: Model, request: Request, limits: TurnLimits) -> None:
        self.model = model
        self.request = request
        # The record of the request, if the request stays open after the wait for its first token has ended.
        self.attempt: OpenAttempt | None = None
        # Whether the wait for the first token timed out while the request stays open.
        self.is_waiting = False
        self._loop = asyncio.get_running_loop()
        self._pulse = Pulse(limits.idle(at_home=model.is_at_home))
        self._events = model.provider.stream(request, self._pulse.beat)
        self._pending: asyncio.Task[Event | None] | None = None

    async def events(self, fallback_timeout: float | None) -> AsyncGenerator[Event]:
        """Yield the events of the answer. Raises `ProviderError`.

        `fallback_timeout` is how long the server may take for its first token, in seconds, or None if no fallback agent
        is available.
        """
        self.is_waiting = False
        began = self._loop.time()
        while True:
            if fallback_timeout is None and self._pending is None:
                event = await self._pulse.next_event(self._events)
            else:
                event = await self._next(fallback_timeout, began)
            if event is None:
                return
            if isinstance(event, TextDelta | ToolCallDone):
                fallback_timeout = None
            yield event

    async def load(self, seconds: float) -> None:
        """Keep the request open until its first event, for at most `seconds`, so that the server can finish loading."""
        limit, self.is_waiting = self.model.limit, False
        limit.is_loading = True
        try:
            async with aclosing(self):
                with suppress(ProviderError, TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._next(None, self._loop.time())
        finally:
            limit.is_loading = False

    async def aclose(self) -> None:
        """Close the request."""
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.wait({self._pending})
            # nobody waits for this request any more, so its error does not belong in the log
            with suppress(asyncio.CancelledError, Exception):
                self._pending.result()
            self._pending = None
        await self._events.aclose()

    async def _next(self, fallback_timeout: float | None, began: float) -> Event | None:
        """Return the next event of a request that may stay open, or None at its end. Raises `DeadlineExceeded`."""
        pending = self._pending = self._pending or self._loop.create_task(_next_of(self._events))
        try:
            while not pending.done():
                left = self._ends_at(fallback_timeout, began) - self._loop.time()
                if left <= 0:
                    self.is_waiting = fallback_timeout is not None
                    raise DeadlineExceeded("no first token in time")
                await asyncio.wait({pending}, timeout=min(left, self._pulse.idle_timeout))
        finally:
            if pending.done():
                self._pending = None
        return pending.result()

    def _ends_at(self, fallback_timeout: float | None, began: float) -> float:
        """Return the time at which the wait for the next event ends, on the event loop's clock."""
        last = self._pulse.last
        if fallback_timeout is None:
            return math.inf if last is None else last + self._pulse.idle_timeout
        return min(max(began, last or began) + fallback_timeout, began + max(LONGEST_FIRST_TOKEN, fallback_timeout))


async def _next_of(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)
