"""The requests to a model while they are answered: each is recorded once, however it ends."""

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

# Errors that cost nothing before the first event. A model that was too slow may have been working.
_COST_NOTHING = (AuthError, BadRequest, ContextOverflow, QuotaError, RateLimited, Unavailable)
_CANCELLED = (asyncio.CancelledError, GeneratorExit)

# How long a server that sends signs of life may take for its first token while a fallback agent stands by, in seconds.
# llama.cpp sends a comment each second, also when it is stuck.
LONGEST_FIRST_TOKEN = 60.0


class AttemptResult(StrEnum):
    """The result of a request or a turn."""

    ANSWERED = "answered"
    ERROR = "error"
    CANCELLED = "cancelled"


class Purpose(StrEnum):
    """The purpose of a request."""

    ANSWER = "answer"
    SUMMARY = "summary"
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that was sent, and its result.

    `began` and `ended` are in seconds on the monotonic clock, `first_token` in seconds from `began`. `billed` has its
    usage if that was reported, and `is_unbilled` says that it may have cost something that was not. `finish` is the
    provider's own word for the reason, `calls` are the tool calls that were passed on, `error` is the class of the
    error.
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
    """A request that is being answered. A context, at whose end the `Attempt` is passed to `on_end`; errors go on.

    `calls` are those that are passed on.
    """

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
        # not kept alive with the frames in which it was raised
        self.error = None

    def on_event(self, event: Event) -> None:
        """Take in an event of the provider's stream."""
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
        """Take in the usage, and pass it on at once. `server` is the server's word for the model that answered."""
        self._usage = None
        self._billed = BilledRequest(self.model, self.request, usage, server=server)
        self._has_reasoning = self._has_reasoning or usage.reasoning > 0
        self.on_billed(self._billed)

    def on_delta(self, delta: Spoken) -> None:
        """Take in a delta that the speech filter has made of an event."""
        match delta:
            case ReasoningDelta(text):
                self._has_reasoning = self._has_reasoning or not text.isspace()
            case TextDelta() | ToolCallDone():
                self._is_heard = True

    def discard(self) -> None:
        """Do not record the request: its server does not know such requests, or it stays open for a later answer."""
        self._is_discarded = True

    def ended(self) -> Attempt:
        """Return the attempt, which ends now."""
        if self._usage is not None:
            self.bill(self._usage)
        # the answer was whole, only its tools or the next request were interrupted
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
        """Learn from the ended answer whether the model reasons.

        One that was cut off before its first word or call was reasoning, shown or not. One that was asked not to reason
        and does not says nothing about the others.
        """
        is_cut = isinstance(self.error, Incomplete) and not self._is_heard
        if is_cut or self._has_reasoning:
            self.model.reasoning.on_answer(has_reasoning=True)
        elif self._finish is not None and self.request.settings.effort is not Effort.NONE:
            self.model.reasoning.on_answer(has_reasoning=False)


def result_of(error: BaseException | None) -> AttemptResult:
    """Return the `AttemptResult` of an attempt that raised this error, or none."""
    if error is None:
        return AttemptResult.ANSWERED
    return AttemptResult.CANCELLED if isinstance(error, _CANCELLED) else AttemptResult.ERROR


@dataclass(slots=True)
class Pulse:
    """The signs of life of a server: everything that it sends, also if it is no event. They keep its stream alive.

    `idle_timeout` is in seconds. `last` is when the last sign came, on the event loop's clock, or None before the
    first: a server that has not begun to answer is not silent yet.
    """

    idle_timeout: float
    last: float | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _deadline: asyncio.Timeout | None = None

    def beat(self) -> None:
        """Take in a sign of life."""
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
    """A request and the events of its answer. Who made it closes it, unless it `is_waiting`.

    If a fallback agent stands by, the first token has to come in time. If it does not, the request stays open: the
    answer can be heard later if nobody else has one, and some servers begin to load a model again when a client leaves.
    """

    def __init__(self, model: Model, request: Request, limits: TurnLimits) -> None:
        self.model = model
        self.request = request
        # The record of the request, if it outlives the wait for its first token.
        self.attempt: OpenAttempt | None = None
        # Whether a wait for the first token has ended without it.
        self.is_waiting = False
        self._loop = asyncio.get_running_loop()
        self._pulse = Pulse(limits.idle(at_home=model.is_at_home))
        self._events = model.provider.stream(request, self._pulse.beat)
        self._pending: asyncio.Task[Event | None] | None = None

    async def events(self, fallback_timeout: float | None) -> AsyncGenerator[Event]:
        """Yield the events of the answer. Raises `ProviderError`.

        `fallback_timeout` is how long the server may be silent before its first token, in seconds, or None if no
        fallback agent stands by.
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
        """Leave the request open until its first event, at most this long: the server then has loaded the model."""
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
            # an error that nobody waits for any more is not worth a line in the log
            with suppress(asyncio.CancelledError, Exception):
                self._pending.result()
            self._pending = None
        await self._events.aclose()

    async def _next(self, fallback_timeout: float | None, began: float) -> Event | None:
        """Return the next event of a request that may stay open, or None at the end. Raises `DeadlineExceeded`."""
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
        """Return when the wait for the next event ends, on the event loop's clock."""
        last = self._pulse.last
        if fallback_timeout is None:
            return math.inf if last is None else last + self._pulse.idle_timeout
        return min(max(began, last or began) + fallback_timeout, began + max(LONGEST_FIRST_TOKEN, fallback_timeout))


async def _next_of(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)
