"""The state of a turn, that of asking a model in it, and the host, through which it reaches the code around it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
import time
from typing import Any, Protocol

from ..providers import ProviderError, ReasoningDelta, Source, TextDelta, ToolCallDone, Usage
from ..window import Message, NativeData, ToolCall, Window
from .attempts import AnswerStream, Attempt, AttemptResult, get_attempt_result
from .context import LiveContext
from .errors import TurnError
from .limits import BACKGROUND_TIMEOUT, Shortfall
from .model import BilledRequest, Question
from .repetition import RepetitionDetector
from .routing import RouteDecision, RouteReason, Situation

_MAX_SOURCES = 20

# Builds the messages of a local answer for the window, or no messages if the exchange is not to be recorded.
type LocalMessagesBuilder = Callable[[], tuple[Message, ...]]
type ReplyDelta = TextDelta | ReasoningDelta | ToolCallDone


class Reply(Protocol):
    """Receives an answer while it is still being written, passes it to the user, and runs its tool calls."""

    @property
    def failed_call_count(self) -> int:
        """The number of tool calls so far that have returned an error."""

    def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        """Forward the deltas of one assistant message, run its tool calls, and yield the message and the results.

        Each call starts when its delta arrives, so the calls of one message run in parallel. If a tool fails, its
        result contains the error.
        """

    def add_answer(self, text: str) -> None:
        """Record an answer that the user has received already, as the last message."""


class TurnHost(Protocol):
    """The code around a turn, which acts for it."""

    @property
    def reply(self) -> Reply:
        """Receives the answer."""

    async def answer_locally(self, situation: Situation) -> LocalMessagesBuilder | RouteReason:
        """Act on the input without a model, or return the reason why nothing was done.

        Raises `LocalAnswerFailed` if the input was understood but acting on it failed.
        """

    async def build_question(self) -> Question:
        """Prepare the input for the model. Called only if a model is used. Raises `TurnError`."""

    def get_window(self) -> Window:
        """Return the window, which may have been replaced since the turn began."""

    def defer(self, work: Callable[[], None]) -> None:
        """Accept work that adds to the window after the answer and after the exchanges of earlier turns."""

    async def enter_window(self) -> Window:
        """Return the window for exclusive use, once the turns before this one have ended. Raises `ConversationBusy`."""

    def on_billed(self, billed: BilledRequest) -> None:
        """Learn from the usage of a request, before its answer is counted into the window."""

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a request that outlives the turn."""


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """The error of a model or an agent that did not answer; `agent` is the agent's id."""

    agent: str
    error: ProviderError


@dataclass(slots=True)
class Turn:
    """One input, from its route to its outcome. Times are in seconds since `started_at`, on the monotonic clock."""

    # Earlier turns may use it until a model is asked.
    window: Window
    # The user's input.
    text: str
    decision: RouteDecision
    # In seconds.
    turn_timeout: float
    host: TurnHost
    # Whether nobody waits for the answer.
    is_in_background: bool = False
    # The timeout of the model's part, once that has begun.
    deadline: asyncio.Timeout | None = None
    # Set once a model is asked.
    run: ModelRun | None = None
    started_at: float = field(default_factory=time.monotonic)
    duration_seconds: float = 0.0
    first_token_seconds: float | None = None
    # The requests, in the order in which they ended.
    attempts: list[Attempt] = field(default_factory=list)
    tool_calls: int = 0
    # The pieces of text that were sent to the user.
    sent_fragments: list[str] = field(default_factory=list)
    # The web pages on which the answer is based.
    sources: tuple[Source, ...] = ()
    # The id of the agent that answered.
    answered_by: str | None = None
    # The failures of the agents that were tried before the last one.
    failures: list[AgentFailure] = field(default_factory=list)
    # The error that ended the turn.
    error: ProviderError | TurnError | None = None
    # A cancellation or an unexpected error that interrupted the turn.
    interruption: BaseException | None = None

    @property
    def result(self) -> AttemptResult:
        """The result of the complete turn."""
        return get_attempt_result(self.error or self.interruption)

    @property
    def sent_text(self) -> str:
        """The text that has been sent to the user so far."""
        return "".join(self.sent_fragments)

    @property
    def billed_requests(self) -> list[BilledRequest]:
        """The requests whose usage was sent."""
        return [each.billed_request for each in self.attempts if each.billed_request is not None]

    @property
    def usage(self) -> Usage:
        """The total of `billed_requests`."""
        return sum([each.usage for each in self.billed_requests], Usage())

    @property
    def failed_tool_calls(self) -> int:
        """The number of tool calls that returned an error."""
        return 0 if self.run is None else self.run.failed_tool_calls

    @property
    def has_answer_begun(self) -> bool:
        """Whether an answer has begun. If so, the last server was reachable, even if an error followed."""
        return self.first_token_seconds is not None or self.tool_calls > 0

    @property
    def all_failures(self) -> list[AgentFailure]:
        """All failures, including that of the agent that was tried last."""
        if self.run is None or not isinstance(self.error, ProviderError):
            return self.failures
        return [*self.failures, AgentFailure(self.run.last_agent_id, self.error)]

    def move_to_background(self) -> None:
        """Record that the turn goes on in the background, where it has more time."""
        before, self.turn_timeout = self.turn_timeout, max(self.turn_timeout, BACKGROUND_TIMEOUT)
        self.is_in_background = True
        if self.deadline is not None and (when := self.deadline.when()) is not None:
            self.deadline.reschedule(when + self.turn_timeout - before)

    def on_text(self, text: str, *, new_message: bool) -> None:
        """Record text that is sent to the user."""
        if self.first_token_seconds is None:
            self.first_token_seconds = time.monotonic() - self.started_at
        if new_message and self.sent_fragments and not self.sent_fragments[-1][-1:].isspace():
            self.sent_fragments.append(" ")
        self.sent_fragments.append(text)

    def add_sources(self, sources: Iterable[Source]) -> None:
        """Add sources of an answer, each page once."""
        by_url = {each.url: each for each in (*sources, *self.sources)}
        self.sources = tuple(by_url.values())[:_MAX_SOURCES]


@dataclass(slots=True)
class ModelRun:
    """The part of a turn in which models are asked, one after another if one fails."""

    turn: Turn
    question: Question
    # The id of the agent that is asked, or was asked last.
    last_agent_id: str
    # The requests that stayed open although their first token took too long.
    late_streams: list[AnswerStream] = field(default_factory=list)
    # The live context of the requests.
    context: LiveContext | None = None
    # The numbers of the closed exchanges for which `context` was built.
    live_exchange_numbers: frozenset[int] = frozenset()
    # The planned size of the newest request.
    request_tokens: int = 0
    shortfall: Shortfall | None = None
    # Whether a request was sent again because reasoning had used up the limit of the answer.
    has_raised_answer_limit: bool = False
    # The number of tool calls that returned an error.
    failed_tool_calls: int = 0
    # The calls of the current answer, until the window contains it.
    unstored_calls: tuple[ToolCall, ...] = ()
    # The residue that has the results of the provider's searches, by the first call of its message. It is in the
    # requests of this turn and nowhere else.
    search_residue: dict[str, NativeData] = field(default_factory=dict)
    repetition_detector: RepetitionDetector = field(default_factory=RepetitionDetector)
    _stored_fragment_count: int = 0

    @property
    def unstored_text(self) -> str:
        """The text of the current answer that was sent to the user but is not stored in the window yet."""
        return "".join(self.turn.sent_fragments[self._stored_fragment_count :]).lstrip()

    def begin_answer(self) -> None:
        """Record that the next answer begins, or that the current answer is stored in the window."""
        self._stored_fragment_count, self.unstored_calls = len(self.turn.sent_fragments), ()

    def on_call(self, call: ToolCall) -> None:
        """Record a call that is passed to the reply. From now on it may have run."""
        self.turn.tool_calls += 1
        self.unstored_calls += (call,)
