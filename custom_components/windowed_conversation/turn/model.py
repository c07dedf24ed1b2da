"""Models, the limits of requests to them, and the question that a turn asks a model."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
import json
import time
from typing import Protocol
from weakref import WeakKeyDictionary

from ..providers import (
    DEFAULT_SETTINGS,
    UNKNOWN_MODEL,
    UNSEEN_NOTE,
    ModelProfile,
    ModelSettings,
    Provider,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    ToolSchema,
    Usage,
    calculate_reasoning_tokens,
    count_messages_tokens,
)
from ..window import Exchange, Message, Role, ToolCall, Window
from .context import NO_LIVE_CONTEXT, LiveContext
from .limits import Budget, Pause, apply_context_size, calculate_answer_limit
from .model_size import ContextSizeTracker

# How many answers in a row must come without reasoning before none is expected: a model with optional reasoning may
# skip it several times.
_MAX_UNREASONED_ANSWERS = 5

# The maximum number of concurrent requests: more than a local server handles at once, but few enough that a provider
# does not take them for an attack.
MAX_CONCURRENT_REQUESTS = 16

# The maximum length, in characters, of a call's arguments and of its result when they are sent as text: the result
# itself may be as long as the window.
_MAX_CHARS = 300


class ReasoningDetector:
    """Learns whether a model reasons, if its profile does not say so.

    Shared by all agents that use the model. `is_expected` means that one of the last five answers had reasoning. A
    model is assumed not to reason until its first answer.
    """

    def __init__(self) -> None:
        # number of consecutive answers without reasoning
        self._unreasoned = _MAX_UNREASONED_ANSWERS
        self.is_expected = False

    def on_answer(self, *, has_reasoning: bool) -> None:
        """Learn from an answer with reasoning, complete or not, or from a complete answer without reasoning."""
        self._unreasoned = 0 if has_reasoning else min(self._unreasoned + 1, _MAX_UNREASONED_ANSWERS)
        self.is_expected = self._unreasoned < _MAX_UNREASONED_ANSWERS


class RequestLimiter:
    """Limits the number of concurrent requests, first come, first served.

    `is_loading` means that a request stays open beyond its turn, so that the server keeps loading a model.
    """

    def __init__(self, most: int = MAX_CONCURRENT_REQUESTS) -> None:
        self.is_loading = False
        self._semaphore = asyncio.Semaphore(most)

    @asynccontextmanager
    async def acquire_permit(self) -> AsyncGenerator[RequestPermit]:
        """Wait until a request may be sent, and yield its `RequestPermit`. A cancelled wait leaves the queue."""
        waited = self._semaphore.locked()
        await self._semaphore.acquire()
        permit = RequestPermit(self._semaphore, waited)
        try:
            yield permit
        finally:
            permit.release()


@dataclass(slots=True)
class RequestPermit:
    """The permission to send one request; `had_to_wait` is true if it was not available at once."""

    _semaphore: asyncio.Semaphore
    had_to_wait: bool
    _is_released: bool = False

    def release(self) -> None:
        """Let the next request start while the answer to this one is still being processed."""
        if not self._is_released:
            self._is_released = True
            self._semaphore.release()


# Identifies an exchange by the time of its user message, which stays the same when the exchange is shortened.
type _ExchangeKey = float | None
type _ExchangeMessages = Sequence[Message]


class PlainTextExchanges:
    """Tracks, by window, the exchanges that one model is sent as plain text.

    Held in working memory only, for as long as the window exists.
    """

    def __init__(self) -> None:
        self._plain_keys: WeakKeyDictionary[Window, frozenset[_ExchangeKey]] = WeakKeyDictionary()
        # The ended exchanges of the last request that was answered, in whichever form they were sent.
        self._answered: WeakKeyDictionary[Window, frozenset[_ExchangeKey]] = WeakKeyDictionary()

    def apply_marks(self, window: Window, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages of a request, with the selected exchanges converted to plain text."""
        plain = self._plain_keys.get(window)
        if not plain:
            return messages
        *ended, newest = _split(messages)
        texts = (_iter_plain_messages(part) if _exchange_key(part) in plain else part for part in ended)
        return (*chain.from_iterable(texts), *newest)

    def find_suspect_exchanges(self, window: Window, messages: tuple[Message, ...]) -> frozenset[_ExchangeKey]:
        """Return the ended exchanges whose form may have caused a refusal and that are not sent as text yet.

        These are the exchanges that the model has never accepted, or all of them if it has accepted each one before.
        """
        plain, served = self._plain_keys.get(window, frozenset()), self._answered.get(window, frozenset())
        formed = frozenset(_exchange_key(part) for part in _split(messages)[:-1] if any(map(_has_format, part))) - plain
        return formed - served or formed

    def mark_plain(self, window: Window, exchanges: frozenset[_ExchangeKey]) -> None:
        """Send these exchanges as text from now on, and drop the marks of exchanges that the window no longer has."""
        there = {exchange.messages[0].created for exchange in window.exchanges()}
        self._plain_keys[window] = (self._plain_keys.get(window, frozenset()) | exchanges) & there

    def unmark_plain(self, window: Window, exchanges: frozenset[_ExchangeKey]) -> None:
        """Send these exchanges in their original form again, because the form was not the reason for the refusal."""
        self._plain_keys[window] = self._plain_keys.get(window, frozenset()) - exchanges

    def on_answered(self, window: Window, messages: tuple[Message, ...]) -> None:
        """Remember the exchanges of a request that was answered."""
        self._answered[window] = frozenset(map(_exchange_key, _split(messages)[:-1]))


def _split(messages: Iterable[Message]) -> list[_ExchangeMessages]:
    """Return the messages grouped by exchange; the system message belongs to the first group."""
    parts: list[list[Message]] = [[]]
    for message in messages:
        if message.role is Role.USER and {each.role for each in parts[-1]} - {Role.SYSTEM}:
            parts.append([])
        parts[-1].append(message)
    return [*parts]


def _exchange_key(part: _ExchangeMessages) -> _ExchangeKey:
    return next((each.created for each in part if each.role is Role.USER), None)


def _has_format(message: Message) -> bool:
    return bool(message.tool_calls or message.attachments or message.native)


def _iter_plain_messages(part: _ExchangeMessages) -> Iterator[Message]:
    """Yield the messages of an exchange as text; calls, results and attachments are described in the user message."""
    calls = {call.id: call for message in part for call in message.tool_calls}
    answered = ((calls.get(each.tool_call_id or ""), each.content) for each in part if each.role is Role.TOOL)
    notes = [_format_call_note(call, result) for call, result in answered if call is not None]
    said = [each.content for each in part if each.role is Role.ASSISTANT and each.content]
    for message in part:
        if message.role is Role.USER:
            unseen = UNSEEN_NOTE if message.attachments else ""
            content = "\n\n".join(filter(None, (message.content, unseen, *notes)))
            yield Message.user(content, created=message.created)
        elif message.role is Role.SYSTEM:
            yield message
    if said:
        yield Message.assistant("\n".join(said))


def _format_call_note(call: ToolCall, result: str) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
    return f"[For this, {call.name} was called with {arguments[:_MAX_CHARS]}: {result[:_MAX_CHARS]}]"


type ReplyDelta = TextDelta | ReasoningDelta | ToolCallDone


class Reply(Protocol):
    """Receives an answer while it is still being written."""

    @property
    def failed_call_count(self) -> int:
        """The number of tool calls so far that have returned an error."""
        ...

    def add_deltas(self, deltas: AsyncIterator[ReplyDelta]) -> AsyncGenerator[Message]:
        """Forward the deltas of one assistant message, run its tool calls, and yield the message and the results.

        Each call starts when its delta arrives, so the calls of one message run in parallel. If a tool fails, its
        result contains the error.
        """
        ...


@dataclass(frozen=True, slots=True)
class Model:
    """A model that requests can be sent to: its provider, its profile, and the limits of its requests.

    `agent_id` is the id of the agent that the model belongs to. `budget` has the context size that the user has
    entered, `profile` that of the provider or of a list, and `size` the learned one. `size` and `reasoning_detector`
    are shared by all agents that use this model; `pause` and `request_limiter` by all that use this provider.
    `plain_exchanges` has the exchanges that the model refuses in their original form. `is_at_home` means that the
    server takes no key: it costs nothing, may have to load the model first, and sends nothing meanwhile.
    """

    agent_id: str
    provider: Provider
    name: str
    budget: Budget
    profile: ModelProfile = UNKNOWN_MODEL
    settings: ModelSettings = DEFAULT_SETTINGS
    pause: Pause = field(default_factory=Pause)
    request_limiter: RequestLimiter = field(default_factory=RequestLimiter)
    size: ContextSizeTracker = field(default_factory=ContextSizeTracker)
    reasoning_detector: ReasoningDetector = field(default_factory=ReasoningDetector)
    plain_exchanges: PlainTextExchanges = field(default_factory=PlainTextExchanges)
    is_at_home: bool = False

    @property
    def planned_budget(self) -> Budget:
        """The budget of the next request, with the user's context size or else the listed or learned size."""
        if self.budget.context_tokens is not None:
            return self.budget
        context = self.size.get_context_tokens(self.profile.context_tokens)
        return self.budget if context is None else apply_context_size(self.budget, context)


@dataclass(frozen=True, slots=True)
class BilledRequest:
    """The usage that a provider sent for one request; `billed_at` is when, in seconds on the monotonic clock.

    `server_identity` is the server's name for the model that answered, see `Finished`. `is_request_cut` means that the
    server read only part of the request.
    """

    model: Model
    request: Request
    usage: Usage
    billed_at: float = field(default_factory=time.monotonic)
    server_identity: str = ""
    is_request_cut: bool = False


# Called with the usage of a request, before the answer is counted into the window.
type BilledRequestCallback = Callable[[BilledRequest], None]


@dataclass(frozen=True, slots=True)
class PromptFingerprints:
    """Hashes of the parts of a system prompt: the instructions, and the prompt of the tools for the home.

    `is_volatile` means that part of the prompt is meant to change from turn to turn.
    """

    instructions_hash: int
    entities_hash: int
    is_volatile: bool = False


class FallbackAgent(Protocol):
    """A conversation agent of another integration; `agent_id` is its id."""

    agent_id: str

    async def answer(self) -> str:
        """Return the agent's answer to the input. Raises `ProviderError` if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """An input, prepared for the model.

    `system_prompt` is the system prompt, which changes only when the instructions, the home or the facts change.
    `stamp_prefix` is the stamp before the user's text, or empty if the stamp is in the system prompt.
    `empty_answer_phrase` is the answer if tools ran and the model returned no text. `fallback_agents` are tried in
    order if `model` fails before its first token. Exchanges with a tag in `excluded_tags` are not sent.
    `build_live_context` returns the live context for a request that sends the given closed exchanges, within the given
    number of tokens.
    """

    model: Model
    system_prompt: str
    stamp_prefix: str
    tools: tuple[ToolSchema, ...]
    empty_answer_phrase: str
    excluded_tags: frozenset[str] = frozenset()
    fallback_agents: tuple[Model | FallbackAgent, ...] = ()
    build_live_context: Callable[[Sequence[Exchange], int], LiveContext] = lambda exchanges, limit: NO_LIVE_CONTEXT

    def get_sent_exchanges(self, window: Window) -> list[Exchange]:
        """Return the closed exchanges of the window that have no excluded tag."""
        return [each for each in window.exchanges() if self.excluded_tags.isdisjoint(each.tags)]

    def build_request(
        self,
        messages: tuple[Message, ...],
        tools: tuple[ToolSchema, ...],
        *,
        may_call: bool = True,
        max_answer_tokens: int | None = None,
    ) -> Request:
        """Return the request with these messages, see `Request`. All requests of a conversation begin the same.

        `max_answer_tokens` limits the answer without its reasoning; by default, the budget's reserve applies.
        """
        model, budget = self.model, self.model.planned_budget
        wanted = budget if max_answer_tokens is None else replace(budget, max_answer_tokens=max_answer_tokens)
        sent = count_messages_tokens(messages) + budget.schema_tokens
        effort, has_reasoned = model.settings.effort, model.reasoning_detector.is_expected
        thoughts = calculate_reasoning_tokens(model.profile, effort, has_reasoned=has_reasoned)
        return Request(
            model.name,
            messages,
            tools,
            may_call=may_call,
            profile=replace(model.profile, context_tokens=budget.context_tokens),
            settings=model.settings,
            cache_key=model.agent_id,
            max_answer_tokens=calculate_answer_limit(wanted, sent, thoughts),
        )
