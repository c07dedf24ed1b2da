"""The progress and the outcome of a turn: what it has said, called and cost."""

from dataclasses import dataclass, field
import time

from ..providers import DeadlineExceeded, ProviderError, Usage
from ..window import ToolCall
from .answer_stream import AnswerStream
from .attempts import Attempt, End, Purpose, end_of
from .budget import Shortfall
from .errors import TurnError
from .live_context import LiveContext
from .ports import Billed, OnBilled
from .repetition import Repetition
from .routing import Decision


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a model or an agent did not answer; `agent` is its id."""

    agent: str
    error: ProviderError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a turn. Times are in seconds from its start, which was at `started` on the monotonic clock.

    `attempts` are its requests, in the order in which they ended. `asked` is the id of the agent that was asked last,
    `answered_by` the same if it answered, and `failures` are those of agents asked before. `failed_tool_calls` is how
    many of the `tool_calls` returned an error. `fault` is what interrupted the turn: a cancellation, or an unexpected
    error.
    """

    decision: Decision
    duration: float
    spoken: str = ""
    first_token: float | None = None
    started: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    tool_calls: int = 0
    failed_tool_calls: int = 0
    shortfall: Shortfall | None = None
    asked: str | None = None
    answered_by: str | None = None
    failures: tuple[Failure, ...] = ()
    error: ProviderError | TurnError | None = None
    fault: BaseException | None = None

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return len(self.attempts)

    @property
    def billed(self) -> tuple[Billed, ...]:
        """The requests with a reported usage."""
        return tuple(each.billed for each in self.attempts if each.billed is not None)

    @property
    def unbilled(self) -> int:
        """How many requests may have cost something that was not reported."""
        return sum(each.is_unbilled for each in self.attempts)

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return sum((billed.usage for billed in self.billed), Usage())

    @property
    def interrupted(self) -> bool:
        """Whether the turn was cancelled, or failed unexpectedly."""
        return self.fault is not None

    @property
    def end(self) -> End:
        """How the turn ended."""
        return end_of(self.error or self.fault)

    @property
    def has_begun(self) -> bool:
        """Whether an answer has begun: the server that was asked last was reachable, whatever came after."""
        return self.first_token is not None or self.tool_calls > 0

    @property
    def all_failures(self) -> tuple[Failure, ...]:
        """All failures, including that of the agent that was asked last."""
        if self.asked is None or not isinstance(self.error, ProviderError):
            return self.failures
        return (*self.failures, Failure(self.asked, self.error))


@dataclass(slots=True)
class Progress:
    """The events of a turn so far, also if it fails. Times are in seconds on the monotonic clock.

    `decision` is the route. `attempts` are the requests that have ended; what one is billed is passed to `on_billed` at
    once. `live` is the live context of its requests, made for the closed exchanges of the numbers in `live_for`.
    `request_tokens` is the planned size of the newest request, and `refused` that of the smallest one that was refused
    as too long while none was served since; `is_unexplained` if the server did not say that it was too long. `is_cut`:
    whether the server has read only part of a request. `asked` is the id of the agent that was asked last. `failures`
    are those of agents asked before `answered_by`, the id of the agent that answered. `waiting` are requests that stay
    open although their first token took too long, and `resumed` is the one whose answer is heard next.
    `has_asked_again`: whether a model was asked again because its reasoning had used up the limit of the answer.
    `called` are the calls of the current answer while the window does not hold it.
    """

    decision: Decision
    on_billed: OnBilled = lambda billed: None
    started: float = field(default_factory=time.monotonic)
    attempts: list[Attempt] = field(default_factory=list)
    tool_calls: int = 0
    failed_tool_calls: int = 0
    first_token: float | None = None
    shortfall: Shortfall | None = None
    live: LiveContext | None = None
    live_for: frozenset[int] = frozenset()
    request_tokens: int = 0
    refused: int | None = None
    is_unexplained: bool = False
    is_cut: bool = False
    asked: str | None = None
    failures: list[Failure] = field(default_factory=list)
    answered_by: str | None = None
    waiting: list[AnswerStream] = field(default_factory=list)
    resumed: AnswerStream | None = None
    has_asked_again: bool = False
    called: tuple[ToolCall, ...] = ()
    repetition: Repetition = field(default_factory=Repetition)
    _texts: list[str] = field(default_factory=list)
    _kept_texts: int = 0

    @property
    def spoken(self) -> str:
        """What the user has heard so far."""
        return "".join(self._texts)

    @property
    def said(self) -> str:
        """What the user has heard of the current answer and the window does not hold yet."""
        return "".join(self._texts[self._kept_texts :]).lstrip()

    def begin_answer(self) -> None:
        """Record that the next answer begins, or that the window holds the current one."""
        self._kept_texts, self.called = len(self._texts), ()

    def on_text(self, text: str, *, new_message: bool) -> None:
        """Record text that the user hears."""
        if self.first_token is None:
            self.first_token = time.monotonic()
        if new_message and self.spoken and not self.spoken[-1].isspace():
            self._texts.append(" ")
        self._texts.append(text)

    def on_call(self, call: ToolCall) -> None:
        """Record a call that is passed to the reply: from now on it may have run."""
        self.tool_calls += 1
        self.called += (call,)

    def on_refused(self) -> None:
        """Record that the newest request was refused as too long."""
        self.refused = min(self.request_tokens, self.refused or self.request_tokens)

    @property
    def may_resume(self) -> bool:
        """Whether a request that stays open may still answer: nobody has heard or done anything yet."""
        return bool(self.waiting) and self.first_token is None and not self.tool_calls

    def abandon(self, stream: AnswerStream) -> None:
        """Record a request whose answer nobody hears any more."""
        if stream.attempt is not None:
            stream.attempt.error = DeadlineExceeded("no first token in time")
            self.attempts.append(stream.attempt.ended(Purpose.ANSWER))

    def outcome(self, error: ProviderError | TurnError | None = None, *, fault: BaseException | None = None) -> Outcome:
        """Return the outcome of the turn, which ends now."""
        return Outcome(
            decision=self.decision,
            duration=time.monotonic() - self.started,
            spoken=self.spoken,
            first_token=self.first_token and self.first_token - self.started,
            started=self.started,
            attempts=tuple(self.attempts),
            tool_calls=self.tool_calls,
            failed_tool_calls=self.failed_tool_calls,
            shortfall=self.shortfall,
            asked=self.asked,
            answered_by=self.answered_by,
            failures=tuple(self.failures),
            error=error,
            fault=fault,
        )
