"""The model's part of a turn: ask, pass the answer on, run the tool loop, until there is an answer.

The window is open when this begins and still open when it ends: closing it, or aborting, is the caller's, as is the
deadline of the whole turn.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain, count
import time

from ..providers.errors import (
    AuthError,
    BadRequest,
    ContextOverflow,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from ..providers.events import (
    Event,
    Finished,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    Usage,
)
from ..window import Message, Native, Role, ToolCall, Window
from .budget import Shortfall, left_behind, room, shortfall
from .deadlines import Limits, without_silence
from .errors import EmptyAnswer
from .ports import Billed, Model, OnBilled, Question, Reply, Spoken
from .repetition import REPEATED, Repetition
from .request_limit import Permit
from .routing import Decision
from .speech_filter import SpeechFilter

# What costs nothing when it comes before the first event. A model that was too slow may have been at work.
_COST_NOTHING = (AuthError, BadRequest, ContextOverflow, QuotaError, RateLimited, Unavailable)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one of those who were asked did not answer; `agent` is its id."""

    agent: str
    error: ProviderError


@dataclass(slots=True)
class Progress:
    """What happened so far, readable also when the turn fails. Times are in seconds on the monotonic clock.

    `decision` is where the input went. `billed` are the requests whose usage was reported, each passed to `on_billed`
    at once, and `unbilled` counts the others, but for those that failed before anything came: they cost nothing.
    `request_tokens` is the planned size of the newest request, and `refused` that of the smallest one that was refused
    as too long while none was served since. `failures` are of those who were asked before `answered_by`, the id of the
    agent that answered. `called` are the calls of the answer that is under way, while the window does not hold it.
    """

    decision: Decision
    on_billed: OnBilled = lambda billed: None
    usage: Usage = field(default_factory=Usage)
    billed: list[Billed] = field(default_factory=list)
    unbilled: int = 0
    requests: int = 0
    tool_calls: int = 0
    first_word: float | None = None
    shortfall: Shortfall | None = None
    request_tokens: int = 0
    refused: int | None = None
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

    def bill(self, billed: Billed) -> None:
        """Take in what a request has cost, and pass it on at once."""
        self.usage += billed.usage
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


async def ask_model(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Bring the open exchange to an answer by the question's model; raises `ProviderError` and `TurnError`."""
    model = question.model
    for iteration in count():
        may_call = iteration < limits.tool_iterations and not progress.repetition.goes_on
        async with model.limit.permit() as permit:
            if permit.waited and (left := model.pause.seconds_asked):
                raise RateLimited("the server asked for a pause meanwhile", left)
            request = _request(window, question, progress, may_call=may_call)
            answer = _Answer(request, question, progress, permit)
            await _answer(window, answer, limits, reply)
        _on_served(request, question.model, progress)
        if not answer.calls:
            return


async def _answer(window: Window, answer: _Answer, limits: Limits, reply: Reply) -> None:
    """Have one request answered and its calls carried out; raises `ProviderError` and `TurnError`."""
    progress, provider = answer.progress, answer.model.provider
    progress.requests += 1
    try:
        async with (
            without_silence(provider.stream(answer.request), limits.silence) as events,
            aclosing(answer.deltas(events)) as deltas,
            aclosing(reply.add(deltas)) as messages,
        ):
            async for message in messages:
                window.add(answer.kept(message))
                progress.begin_answer()
    finally:
        progress.unbilled += answer.is_unbilled
    answer.raise_error()


def _request(window: Window, question: Question, progress: Progress, *, may_call: bool) -> Request:
    budget = question.model.planned
    is_view = progress.failures or budget.sent_tokens is not None
    messages = _fitting(window, question) if is_view else _trimmed(window, question, progress)
    progress.request_tokens = sum(message.tokens or 0 for message in messages) + budget.schema_tokens
    return question.request(messages, question.tools, may_call=may_call)


def _on_served(request: Request, model: Model, progress: Progress) -> None:
    """Learn from a request that was served what the model reads."""
    usage = next((billed.usage for billed in progress.billed[-1:] if billed.request is request), Usage())
    model.size.on_served(progress.request_tokens, usage.output, usage.input + usage.output)
    if progress.refused is not None:
        model.size.on_refused(progress.refused, progress.request_tokens)
        progress.refused = None


def _trimmed(window: Window, question: Question, progress: Progress) -> tuple[Message, ...]:
    """Let go of history for which the model has no room; what is still too large is sent all the same, and noted."""
    budget = question.model.planned
    window.limit(room(budget, window.stats().prefix_tokens))
    stats = window.stats()
    progress.shortfall = shortfall(budget, stats.prefix_tokens, stats.current_tokens) or progress.shortfall
    return window.messages(exclude=question.left_out)


def _fitting(window: Window, question: Question) -> tuple[Message, ...]:
    """Return what there is room for and let go of nothing.

    The window is the agent's own model's: another one, or a single refusal, costs it no history.
    """
    stats, closed = window.stats(), window.exchanges()
    budget = question.model.planned
    limits = (budget.policy.history_tokens, room(budget, stats.prefix_tokens), budget.sent_tokens)
    sent = [each for each in closed if question.left_out.isdisjoint(each.tags)]
    hidden = sum(each.tokens for each in closed) - sum(each.tokens for each in sent)
    allowed = min(limit for limit in limits if limit is not None)
    gone = left_behind(sent, allowed - (stats.current_tokens - hidden))
    shown = [each for each in sent if each.number not in gone]
    messages = window.messages()
    system = [message for message in messages[:1] if message.role is Role.SYSTEM]
    newest = messages[len(system) + sum(len(exchange.messages) for exchange in closed) :]
    return (*system, *chain.from_iterable(exchange.messages for exchange in shown), *newest)


class _Answer:
    """One answer of the model on its way to the user.

    An error does not break the reply off in the middle: what was said stands, and the error is raised after it.
    """

    def __init__(self, request: Request, question: Question, progress: Progress, permit: Permit) -> None:
        progress.begin_answer()
        progress.repetition.begin_round()
        self.calls: dict[str, ToolCall] = {}
        self.request = request
        self.model = question.model
        self.progress = progress
        self._permit = permit
        self._done = question.done
        self._native: Native | None = None
        self._reasoning_tokens = 0
        self._text = False
        self._begun = False
        self._billed = False
        self._error: Exception | None = None

    @property
    def is_unbilled(self) -> bool:
        """Whether the answer has cost something, or may have, that nobody has reported."""
        costs_nothing = isinstance(self._error, _COST_NOTHING) and not self._begun
        return not (self._billed or costs_nothing)

    async def deltas(self, events: AsyncIterator[Event]) -> AsyncGenerator[Spoken]:
        speech = SpeechFilter()
        try:
            async for event in events:
                self._begun = True
                if isinstance(event, TextDelta):
                    for delta in speech.feed(event):
                        yield self._passed(delta)
                else:
                    for passed in self._on_event(event):
                        yield passed
            for held in speech.flush():
                yield self._passed(held)
            for ending in self._ending():
                yield ending
        except (ProviderError, EmptyAnswer) as err:
            self._error = err
        finally:
            # the tools that were called may still run, and they may ask the same server
            self._permit.release()

    def kept(self, message: Message) -> Message:
        """Return the message as the window keeps it: an answer with its residue, a repetition with a line."""
        if message.role is not Role.TOOL:
            return replace(message, native=self._native) if self._native else message
        if self._is_repeated(message):
            return replace(message, content=f"{REPEATED}\n{message.content}")
        return message

    def raise_error(self) -> None:
        if self._error:
            raise self._error

    def _on_event(self, event: Event) -> list[Spoken]:
        match event:
            case ReasoningDelta():
                return [event]
            case ToolCallDone(call) if self.request.tools and self.request.may_call:
                self.calls[call.id] = call
                self.progress.on_call(call)
                return [event]
            case Usage():
                self._reasoning_tokens += event.reasoning
                self._billed = True
                self.progress.bill(Billed(self.model, self.request, event))
            case Finished(residue=residue) if residue is not None:
                self._native = Native(self.model.provider.name, self.request.model, residue, self._reasoning_tokens)
        return []

    def _passed(self, delta: TextDelta | ReasoningDelta) -> Spoken:
        if isinstance(delta, TextDelta):
            self.progress.on_text(delta.text, new_message=not self._text)
            self._text = True
        return delta

    def _is_repeated(self, result: Message) -> bool:
        call = self.calls[result.tool_call_id or ""]
        read_only = any(tool.read_only for tool in self.request.tools if tool.name == call.name)
        return self.progress.repetition.add(call, result.content, read_only=read_only)

    def _ending(self) -> list[Spoken]:
        """Return what is left to say at the end: a model that acted and found no words has succeeded.

        Calls in an answer that may hold none are not passed on, and are no answer.
        """
        if self._text or self.calls:
            return []
        if not self.progress.tool_calls:
            raise EmptyAnswer("no text and no tool call")
        return [self._passed(TextDelta(self._done))]
