"""The requests to a model as they were made: each is taken down once, where it is sent and ends, however it ends."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from .ports import Billed, Model, OnBilled, Spoken

# Errors that cost nothing before the first event. A model that was too slow may have been working.
_COST_NOTHING = (AuthError, BadRequest, ContextOverflow, QuotaError, RateLimited, Unavailable)
_CANCELLED = (asyncio.CancelledError, GeneratorExit)


class End(StrEnum):
    """The end of a request or a turn."""

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
    """A request that was sent, and how it ended.

    `began` and `ended` are in seconds on the monotonic clock, `first_token` in seconds from `began`. `billed` has its
    usage if that was reported, and `is_unbilled` says that it may have cost something that was not. `finish` is the
    provider's own word for the reason, `calls` are the tool calls that were passed on, `error` is the class of the
    error.
    """

    model: Model
    request: Request
    purpose: Purpose
    end: End
    began: float
    ended: float
    first_token: float | None = None
    billed: Billed | None = None
    is_unbilled: bool = False
    finish: str | None = None
    calls: tuple[ToolCall, ...] = ()
    error: str | None = None


type OnAttempt = Callable[[Attempt], None]


class OpenAttempt:
    """A request that is being answered."""

    def __init__(self, model: Model, request: Request, on_billed: OnBilled = lambda billed: None) -> None:
        self.request = request
        self.on_billed = on_billed
        self.billed: Billed | None = None
        self.error: BaseException | None = None
        self.is_withdrawn = False
        self._model = model
        self._began = time.monotonic()
        self._first_event: float | None = None
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._calls: list[ToolCall] = []
        self._is_heard = False
        self._has_reasoning = False

    def on_event(self, event: Event) -> None:
        """Take in what the provider's stream yields."""
        if self._first_event is None:
            self._first_event = time.monotonic()
        match event:
            case Usage():
                self._usage = event
            case Finished(native=native, server=server):
                self._finish = native
                self._bill_usage(server)

    def bill(self, usage: Usage, server: str = "") -> None:
        """Take in the usage, and pass it on at once. `server` is the server's word for who answered."""
        self.billed = Billed(self._model, self.request, usage, server=server)
        self._has_reasoning = self._has_reasoning or usage.reasoning > 0
        self.on_billed(self.billed)

    def _bill_usage(self, server: str = "") -> None:
        """Bill the usage of the stream, which says at its end who answered."""
        if self._usage is not None:
            self.bill(self._usage, server)
            self._usage = None

    def on_delta(self, delta: Spoken) -> None:
        """Take in what the speech filter has made of an event."""
        match delta:
            case ReasoningDelta(text):
                self._has_reasoning = self._has_reasoning or not text.isspace()
            case TextDelta() | ToolCallDone():
                self._is_heard = True

    def learn(self) -> None:
        """Learn from the ended answer whether the model reasons.

        One that was cut off before its first word or call was reasoning, shown or not. One that was asked not to reason
        and does not says nothing about the others.
        """
        is_cut = isinstance(self.error, Incomplete) and not self._is_heard
        if is_cut or self._has_reasoning:
            self._model.reasoning.on_answer(has_reasoning=True)
        elif self._finish is not None and self.request.settings.effort is not Effort.NONE:
            self._model.reasoning.on_answer(has_reasoning=False)

    def on_call(self, call: ToolCall) -> None:
        """Take in a call that is passed on."""
        self._calls.append(call)

    def withdraw(self) -> None:
        """Take down nothing: it was not sent, or to a server that does not know such requests."""
        self.is_withdrawn = True

    def suspended(self) -> Self:
        """Return the attempt, which has not ended: its request stays open, and its answer may be heard later."""
        self.is_withdrawn = True
        return self

    def ended(self, purpose: Purpose) -> Attempt:
        """Return the attempt, which ends now."""
        self._bill_usage()
        costs_nothing = isinstance(self.error, _COST_NOTHING) and self._first_event is None
        return Attempt(
            model=self._model,
            request=self.request,
            purpose=purpose,
            end=end_of(None if self._is_whole else self.error),
            began=self._began,
            ended=time.monotonic(),
            first_token=self._first_event and self._first_event - self._began,
            billed=self.billed,
            is_unbilled=self.billed is None and not costs_nothing,
            finish=self._finish,
            calls=tuple(self._calls),
            error=None if self._is_whole or self.error is None else type(self.error).__name__,
        )

    @property
    def _is_whole(self) -> bool:
        """Whether the answer was whole when somebody else's end interrupted what follows it."""
        return self._finish is not None and isinstance(self.error, _CANCELLED)


def end_of(error: BaseException | None) -> End:
    """Return the `End` of an attempt that raised this error, or none."""
    if error is None:
        return End.ANSWERED
    return End.CANCELLED if isinstance(error, _CANCELLED) else End.ERROR


@contextmanager
def attempt(
    model: Model,
    request: Request,
    purpose: Purpose,
    on_end: OnAttempt,
    on_billed: OnBilled = lambda billed: None,
) -> Iterator[OpenAttempt]:
    """Take down a request that is sent inside the context, and pass it on when that ends. Errors go on."""
    with taken_down(OpenAttempt(model, request, on_billed), purpose, on_end) as opened:
        yield opened


@contextmanager
def taken_down(opened: OpenAttempt, purpose: Purpose, on_end: OnAttempt) -> Iterator[OpenAttempt]:
    """Take down a request that is sent or heard inside the context, see `attempt`. A suspended one is not passed on."""
    opened.is_withdrawn = False
    try:
        yield opened
    except BaseException as err:
        opened.error = err
        raise
    finally:
        if not opened.is_withdrawn:
            ended = opened.ended(purpose)
            opened.learn()
            on_end(ended)
        # not kept alive with the frames in which it was raised
        opened.error = None
