"""The requests to a model as they were made: each is recorded once, where it is sent, however it ends."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
import time
from typing import Self

from ..providers import (
    AuthError,
    BadRequest,
    ContextOverflow,
    Effort,
    Event,
    Finished,
    Incomplete,
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
from .ports import BilledRequest, Model, OnBilled, Spoken

# Errors that cost nothing before the first event. A model that was too slow may have been working.
_COST_NOTHING = (AuthError, BadRequest, ContextOverflow, QuotaError, RateLimited, Unavailable)
_CANCELLED = (asyncio.CancelledError, GeneratorExit)


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


class OpenAttempt:
    """A request that is being answered. A context, at whose end the `Attempt` is passed to `on_end`; errors go on."""

    def __init__(
        self,
        model: Model,
        request: Request,
        purpose: Purpose,
        on_end: OnAttempt,
        on_billed: OnBilled = lambda billed: None,
    ) -> None:
        self.request = request
        self.on_billed = on_billed
        self.error: BaseException | None = None
        self._model = model
        self._purpose = purpose
        self._on_end = on_end
        self._began = time.monotonic()
        self._first_event: float | None = None
        self._usage: Usage | None = None
        self._billed: BilledRequest | None = None
        self._finish: str | None = None
        self._calls: list[ToolCall] = []
        self._is_discarded = False
        self._is_heard = False
        self._has_reasoning = False

    def __enter__(self) -> Self:
        self._is_discarded = False
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self.error = error
        if not self._is_discarded:
            ended = self.ended()
            self._learn()
            self._on_end(ended)
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
                self._bill_usage(server)

    def bill(self, usage: Usage, server: str = "") -> None:
        """Take in the usage, and pass it on at once. `server` is the server's word for the model that answered."""
        self._billed = BilledRequest(self._model, self.request, usage, server=server)
        self._has_reasoning = self._has_reasoning or usage.reasoning > 0
        self.on_billed(self._billed)

    def on_delta(self, delta: Spoken) -> None:
        """Take in a delta that the speech filter has made of an event."""
        match delta:
            case ReasoningDelta(text):
                self._has_reasoning = self._has_reasoning or not text.isspace()
            case TextDelta() | ToolCallDone():
                self._is_heard = True

    def on_call(self, call: ToolCall) -> None:
        """Take in a call that is passed on."""
        self._calls.append(call)

    def discard(self) -> None:
        """Do not record the request: its server does not know such requests, or it stays open for a later answer."""
        self._is_discarded = True

    def ended(self) -> Attempt:
        """Return the attempt, which ends now."""
        self._bill_usage()
        # the answer was whole, only its tools or the next request were interrupted
        error = None if self._finish is not None and isinstance(self.error, _CANCELLED) else self.error
        costs_nothing = isinstance(error, _COST_NOTHING) and self._first_event is None
        return Attempt(
            model=self._model,
            request=self.request,
            purpose=self._purpose,
            result=result_of(error),
            began=self._began,
            ended=time.monotonic(),
            first_token=self._first_event and self._first_event - self._began,
            billed=self._billed,
            is_unbilled=self._billed is None and not costs_nothing,
            finish=self._finish,
            calls=tuple(self._calls),
            error=None if error is None else type(error).__name__,
        )

    def _bill_usage(self, server: str = "") -> None:
        """Bill the usage of the stream, which names the server at its end."""
        if self._usage is not None:
            self.bill(self._usage, server)
            self._usage = None

    def _learn(self) -> None:
        """Learn from the ended answer whether the model reasons.

        One that was cut off before its first word or call was reasoning, shown or not. One that was asked not to reason
        and does not says nothing about the others.
        """
        is_cut = isinstance(self.error, Incomplete) and not self._is_heard
        if is_cut or self._has_reasoning:
            self._model.reasoning.on_answer(has_reasoning=True)
        elif self._finish is not None and self.request.settings.effort is not Effort.NONE:
            self._model.reasoning.on_answer(has_reasoning=False)


def result_of(error: BaseException | None) -> AttemptResult:
    """Return the `AttemptResult` of an attempt that raised this error, or none."""
    if error is None:
        return AttemptResult.ANSWERED
    return AttemptResult.CANCELLED if isinstance(error, _CANCELLED) else AttemptResult.ERROR
