"""The state of a turn: its dependencies, its progress, and finally its outcome, in one object that is never copied."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
import time
from typing import Any

from ..providers import DeadlineExceeded, ProviderError, Source, Usage
from ..window import Attachment, Message, NativeData, ToolCall, Window
from .attempts import AnswerStream, Attempt, AttemptResult, ToolRun
from .context import LiveContext
from .errors import TurnError
from .limits import Shortfall, TurnLimits
from .model import BilledRequest, BilledRequestCallback, Question
from .repetition import RepetitionDetector
from .reply import Reply
from .routing import RouteDecision, RouteReason, Situation

_MAX_SOURCES = 20

# Builds the messages of a local answer for the window, or no messages if the exchange is not to be recorded.
type LocalMessagesBuilder = Callable[[], tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class TurnCallbacks:
    """Callbacks through which a turn reaches the code around it."""

    # Acts on the input without a model, or returns the reason why it did nothing. Raises `LocalAnswerFailed` if the
    # input was understood but acting on it failed.
    answer_locally: Callable[[Situation], Awaitable[LocalMessagesBuilder | RouteReason]]
    # Prepares the input for the model. Called only if a model is used. Raises `TurnError`.
    build_question: Callable[[], Awaitable[Question]]
    # Accepts work that runs after the answer.
    defer: Callable[[Callable[[], None]], None] = lambda work: work()
    # Gets the usage of each request at once, before its answer is counted into the window.
    on_billed: BilledRequestCallback = lambda billed: None
    # Runs requests that outlive the turn. If it is None, no request does.
    run_in_background: Callable[[Coroutine[Any, Any, None]], object] | None = None


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """The error of a model or an agent that did not answer; `agent` is the agent's id."""

    agent: str
    error: ProviderError


@dataclass(slots=True)
class Turn:
    """One input, from its route to its outcome. Times are in seconds since `started_at`, on the monotonic clock."""

    window: Window
    # The user's input.
    text: str
    decision: RouteDecision
    limits: TurnLimits
    reply: Reply
    callbacks: TurnCallbacks
    # Whether the answer has no marks such as those of Markdown.
    is_spoken: bool = False
    # Whether nobody waits for the answer.
    is_in_background: bool = False
    # The timeout of the model's part, while that runs.
    deadline: asyncio.Timeout | None = None
    started_at: float = field(default_factory=time.monotonic)
    duration_seconds: float = 0.0
    first_token_seconds: float | None = None
    # How long the model that is currently used may take for its first token, in seconds. None without a limit.
    fallback_timeout: float | None = None
    # When Home Assistant's sentences had been tried, or None if they were not.
    recognition_seconds: float | None = None
    # The requests, in the order in which they ended.
    attempts: list[Attempt] = field(default_factory=list)
    tool_runs: list[ToolRun] = field(default_factory=list)
    # The requests whose usage was sent.
    billed_requests: list[BilledRequest] = field(default_factory=list)
    # The total of `billed_requests`.
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    # The number of tool calls that returned an error.
    failed_tool_calls: int = 0
    shortfall: Shortfall | None = None
    # The id of the agent that was tried last.
    last_agent_id: str | None = None
    # The id of the agent that answered.
    answered_by: str | None = None
    # The failures of the agents that were tried before the last one.
    failures: list[AgentFailure] = field(default_factory=list)
    # The error that ended the turn.
    error: ProviderError | TurnError | None = None
    # A cancellation or an unexpected error that interrupted the turn.
    interruption: BaseException | None = None
    # The result of the complete turn.
    result: AttemptResult = AttemptResult.ANSWERED
    # The live context of the requests.
    context: LiveContext | None = None
    # The numbers of the closed exchanges for which `context` was built.
    live_exchange_numbers: frozenset[int] = frozenset()
    # The planned size of the newest request.
    request_tokens: int = 0
    # The size of the smallest request that was refused, perhaps as too long, since the last one that was answered.
    refused_tokens: int | None = None
    # Requests that stay open although their first token took too long.
    waiting_streams: list[AnswerStream] = field(default_factory=list)
    # The waiting request whose answer is awaited next.
    resumed_stream: AnswerStream | None = None
    # Whether a request was sent again because reasoning had used up the limit of the answer.
    has_raised_answer_limit: bool = False
    # The calls of the current answer, until the window contains it.
    unstored_calls: tuple[ToolCall, ...] = ()
    # The files that are attached to the input, with None for each one that cannot be sent. Like `pictures`, they are in
    # the requests of this turn and nowhere else.
    files: tuple[Attachment | None, ...] = ()
    # The pictures that tools have taken, by call id.
    pictures: dict[str, Attachment] = field(default_factory=dict)
    # The web pages on which the answer is based.
    sources: tuple[Source, ...] = ()
    # The residue that has the results of the provider's searches, by the first call of its message. It is in the
    # requests of this turn and nowhere else.
    search_residue: dict[str, NativeData] = field(default_factory=dict)
    repetition_detector: RepetitionDetector = field(default_factory=RepetitionDetector)
    _text_fragments: list[str] = field(default_factory=list)
    _stored_fragment_count: int = 0

    @property
    def sent_text(self) -> str:
        """The text that has been sent to the user so far."""
        return "".join(self._text_fragments)

    @property
    def unstored_text(self) -> str:
        """The text of the current answer that was sent to the user but is not stored in the window yet."""
        return "".join(self._text_fragments[self._stored_fragment_count :]).lstrip()

    def move_to_background(self) -> None:
        """Record that the turn goes on in the background, where it has more time."""
        before, self.limits = self.limits, self.limits.extend_to_background()
        self.is_in_background = True
        if self.deadline is not None and (when := self.deadline.when()) is not None:
            self.deadline.reschedule(when + self.limits.turn_timeout - before.turn_timeout)

    def begin_answer(self) -> None:
        """Record that the next answer begins, or that the current answer is stored in the window."""
        self._stored_fragment_count, self.unstored_calls = len(self._text_fragments), ()

    def on_text(self, text: str, *, new_message: bool) -> None:
        """Record text that is sent to the user."""
        if self.first_token_seconds is None:
            self.first_token_seconds = time.monotonic() - self.started_at
        if new_message and self._text_fragments and not self._text_fragments[-1][-1:].isspace():
            self._text_fragments.append(" ")
        self._text_fragments.append(text)

    def on_call(self, call: ToolCall) -> None:
        """Record a call that is passed to the reply. From now on it may have run."""
        self.tool_calls += 1
        self.unstored_calls += (call,)

    def add_sources(self, sources: Iterable[Source]) -> None:
        """Add sources of an answer, each page once."""
        by_url = {each.url: each for each in (*sources, *self.sources)}
        self.sources = tuple(by_url.values())[:_MAX_SOURCES]

    def on_request_refused(self) -> None:
        """Record that the newest request was refused, perhaps as too long."""
        self.refused_tokens = min(self.request_tokens, self.refused_tokens or self.request_tokens)

    @property
    def can_resume(self) -> bool:
        """Whether an open request can still be used: no text was sent to the user, and no tool was called."""
        return bool(self.waiting_streams) and self.first_token_seconds is None and not self.tool_calls

    def abandon_stream(self, stream: AnswerStream) -> None:
        """Record a request whose answer is no longer needed."""
        if stream.attempt is not None:
            stream.attempt.error = DeadlineExceeded("no first token in time")
            self.on_attempt(stream.attempt.build_attempt())

    def on_attempt(self, attempt: Attempt) -> None:
        """Record a request that has ended."""
        self.attempts.append(attempt)
        if attempt.billed_request is not None:
            self.billed_requests.append(attempt.billed_request)
            self.usage += attempt.billed_request.usage

    @property
    def has_answer_begun(self) -> bool:
        """Whether an answer has begun. If so, the last server was reachable, even if an error followed."""
        return self.first_token_seconds is not None or self.tool_calls > 0

    @property
    def all_failures(self) -> list[AgentFailure]:
        """All failures, including that of the agent that was tried last."""
        if self.last_agent_id is None or not isinstance(self.error, ProviderError):
            return self.failures
        return [*self.failures, AgentFailure(self.last_agent_id, self.error)]
