"""How far a turn has come, and how it went: what it has said, called and cost."""

from dataclasses import dataclass, field
import time

from ..providers.errors import ProviderError
from ..providers.events import Request, Usage
from ..window import ToolCall
from .budget import Shortfall
from .errors import TurnError
from .ports import Billed, Model, OnBilled
from .repetition import Repetition
from .routing import Decision


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one of those who were asked did not answer; `agent` is its id."""

    agent: str
    error: ProviderError


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn went. Times are in seconds from its start, `usage` is in tokens over all of its requests.

    `billed` are the requests that it was reported of, `unbilled` counts those of which nobody knows it. `asked` is the
    id of the agent that was asked last, `answered_by` the same if it answered, and `failures` are of those that were
    asked before. `interrupted`: whether the turn was cancelled, or failed in an unforeseen way.
    """

    decision: Decision
    duration: float
    spoken: str = ""
    first_word: float | None = None
    requests: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    billed: tuple[Billed, ...] = ()
    unbilled: int = 0
    shortfall: Shortfall | None = None
    asked: str | None = None
    answered_by: str | None = None
    failures: tuple[Failure, ...] = ()
    error: ProviderError | TurnError | None = None
    interrupted: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether an answer has begun: the server that was asked last was there, whatever came after."""
        return self.first_word is not None or self.tool_calls > 0

    @property
    def all_failures(self) -> tuple[Failure, ...]:
        """All who were asked and did not answer, the last one included."""
        if self.asked is None or not isinstance(self.error, ProviderError):
            return self.failures
        return (*self.failures, Failure(self.asked, self.error))


@dataclass(slots=True)
class Progress:
    """What happened so far, readable also when the turn fails. Times are in seconds on the monotonic clock.

    `decision` is where the input went. `billed` are the requests whose usage was reported, each passed to `on_billed`
    at once, and `unbilled` counts the others, but for those that failed before anything came: they cost nothing.
    `evicted` is how many exchanges the window had evicted before. `request_tokens` is the planned size of the newest
    request, and `refused` that of the smallest one that was refused as too long while none was served since. `asked` is
    the id of the agent that was asked last. `failures` are of those who were asked before `answered_by`, the id of the
    agent that answered. `called` are the calls of the answer that is under way, while the window does not hold it.
    """

    decision: Decision
    on_billed: OnBilled = lambda billed: None
    started: float = field(default_factory=time.monotonic)
    usage: Usage = field(default_factory=Usage)
    billed: list[Billed] = field(default_factory=list)
    unbilled: int = 0
    requests: int = 0
    tool_calls: int = 0
    first_word: float | None = None
    shortfall: Shortfall | None = None
    evicted: int = 0
    request_tokens: int = 0
    refused: int | None = None
    asked: str | None = None
    failures: list[Failure] = field(default_factory=list)
    answered_by: str | None = None
    called: tuple[ToolCall, ...] = ()
    repetition: Repetition = field(default_factory=Repetition)
    _texts: list[str] = field(default_factory=list)
    _kept_texts: int = 0

    @property
    def spoken(self) -> str:
        """What the user got to hear."""
        return "".join(self._texts)

    @property
    def said(self) -> str:
        """What the user got to hear of the answer that is under way, and the window does not hold yet."""
        return "".join(self._texts[self._kept_texts :]).lstrip()

    def begin_answer(self) -> None:
        """Take note that another answer begins, or that the window holds the one that was under way."""
        self._kept_texts, self.called = len(self._texts), ()

    def bill(self, model: Model, request: Request, usage: Usage) -> None:
        """Take in what a request has cost, and pass it on at once."""
        billed = Billed(model, request, usage)
        self.usage += usage
        self.billed.append(billed)
        self.on_billed(billed)

    def on_text(self, text: str, *, new_message: bool) -> None:
        """Take note of text that the user gets to hear."""
        if self.first_word is None:
            self.first_word = time.monotonic()
        if new_message and self.spoken and not self.spoken[-1].isspace():
            self._texts.append(" ")
        self._texts.append(text)

    def on_call(self, call: ToolCall) -> None:
        """Take note of a call that is handed to the reply: from now on it may have been carried out."""
        self.tool_calls += 1
        self.called += (call,)

    def outcome(self, error: ProviderError | TurnError | None = None, *, interrupted: bool = False) -> Outcome:
        """Return how the turn went that ends now."""
        return Outcome(
            decision=self.decision,
            duration=time.monotonic() - self.started,
            spoken=self.spoken,
            first_word=self.first_word and self.first_word - self.started,
            requests=self.requests,
            tool_calls=self.tool_calls,
            usage=self.usage,
            billed=tuple(self.billed),
            unbilled=self.unbilled,
            shortfall=self.shortfall,
            asked=self.asked,
            answered_by=self.answered_by,
            failures=tuple(self.failures),
            error=error,
            interrupted=interrupted,
        )
