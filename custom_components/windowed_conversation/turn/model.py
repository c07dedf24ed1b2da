"""Models, the limits of requests to them, and the question of a turn for one of them."""

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
    UNSEEN,
    ModelProfile,
    ModelSettings,
    Provider,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    ToolSchema,
    Usage,
    messages_tokens,
    room_to_think,
)
from ..window import Exchange, Message, Role, ToolCall, Window
from .context import NO_CONTEXT, LiveContext
from .limits import Budget, Pause, answer_limit, with_context_size
from .model_size import ModelSize

# A model that can reason or not as it likes may give several answers without.
_ANSWERS_WITHOUT = 5

# More than a local server handles at once, and fewer than a provider would take for an attack.
MOST_REQUESTS = 16

# In characters: a result that the window keeps may be as long as the window.
_LONGEST_RESULT = 300


class Reasoning:
    """The discovery of whether a model reasons, for models whose profile does not say.

    Shared by all who ask the model. `is_expected`: whether one of the last five answers had reasoning. A model that was
    not asked yet is taken for one that does not.
    """

    def __init__(self) -> None:
        # answers in a row without reasoning
        self._without = _ANSWERS_WITHOUT
        self.is_expected = False

    def on_answer(self, *, has_reasoning: bool) -> None:
        """Learn from an answer: one with reasoning, whole or not, or a whole one without."""
        self._without = 0 if has_reasoning else min(self._without + 1, _ANSWERS_WITHOUT)
        self.is_expected = self._without < _ANSWERS_WITHOUT


class RequestLimit:
    """Limits the number of concurrent requests, first come, first served.

    `is_loading`: whether a request stays open beyond its turn, so that the server goes on loading a model.
    """

    def __init__(self, most: int = MOST_REQUESTS) -> None:
        self.is_loading = False
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def permit(self) -> AsyncGenerator[Permit]:
        """Wait until one request may be sent. A cancelled wait leaves the queue."""
        waited = self._free.locked()
        await self._free.acquire()
        permit = Permit(self._free, waited)
        try:
            yield permit
        finally:
            permit.release()


@dataclass(slots=True)
class Permit:
    """The permission to send one request; `waited`: whether it had to wait."""

    _free: asyncio.Semaphore
    waited: bool
    _is_used: bool = False

    def release(self) -> None:
        """Let the next request start while this one's answer is still being processed."""
        if not self._is_used:
            self._is_used = True
            self._free.release()


# An exchange is known by the time at which its question was added, which no shortening changes.
type _Key = float | None
type _Part = Sequence[Message]


class PlainForm:
    """The exchanges that one model is sent as text, by window. Working memory: it ends with the window."""

    def __init__(self) -> None:
        self._plain: WeakKeyDictionary[Window, frozenset[_Key]] = WeakKeyDictionary()
        # The ended exchanges that were served in their own form, or as text.
        self._served: WeakKeyDictionary[Window, frozenset[_Key]] = WeakKeyDictionary()

    def apply(self, window: Window, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages of a request, with the exchanges concerned as text."""
        plain = self._plain.get(window)
        if not plain:
            return messages
        *ended, newest = _parts(messages)
        texts = (_as_text(part) if _key(part) in plain else part for part in ended)
        return (*chain.from_iterable(texts), *newest)

    def suspects(self, window: Window, messages: tuple[Message, ...]) -> frozenset[_Key]:
        """Return the ended exchanges whose form may be why a request was refused, and that are not text yet.

        These are the ones that were never served, or all of them if each was.
        """
        plain, served = self._plain.get(window, frozenset()), self._served.get(window, frozenset())
        formed = frozenset(_key(part) for part in _parts(messages)[:-1] if any(map(_has_form, part))) - plain
        return formed - served or formed

    def write(self, window: Window, exchanges: frozenset[_Key]) -> None:
        """Send these exchanges as text from now on, besides those that the window still has."""
        there = {exchange.messages[0].created for exchange in window.exchanges()}
        self._plain[window] = (self._plain.get(window, frozenset()) | exchanges) & there

    def unwrite(self, window: Window, exchanges: frozenset[_Key]) -> None:
        """Send these exchanges in their own form again: the form was not why they were refused."""
        self._plain[window] = self._plain.get(window, frozenset()) - exchanges

    def on_served(self, window: Window, messages: tuple[Message, ...]) -> None:
        """Take in the messages of a request that was served."""
        self._served[window] = frozenset(map(_key, _parts(messages)[:-1]))


def _parts(messages: Iterable[Message]) -> list[_Part]:
    """Return the messages by exchange; the system message is part of the first one."""
    parts: list[list[Message]] = [[]]
    for message in messages:
        if message.role is Role.USER and {each.role for each in parts[-1]} - {Role.SYSTEM}:
            parts.append([])
        parts[-1].append(message)
    return [*parts]


def _key(part: _Part) -> _Key:
    return next((each.created for each in part if each.role is Role.USER), None)


def _has_form(message: Message) -> bool:
    return bool(message.tool_calls or message.attachments or message.native)


def _as_text(part: _Part) -> Iterator[Message]:
    """Yield the messages of an exchange with its calls, results and attachments in the user's words."""
    calls = {call.id: call for message in part for call in message.tool_calls}
    answered = ((calls.get(each.tool_call_id or ""), each.content) for each in part if each.role is Role.TOOL)
    notes = [_note(call, result) for call, result in answered if call is not None]
    said = [each.content for each in part if each.role is Role.ASSISTANT and each.content]
    for message in part:
        if message.role is Role.USER:
            unseen = UNSEEN if message.attachments else ""
            content = "\n\n".join(filter(None, (message.content, unseen, *notes)))
            yield Message.user(content, created=message.created)
        elif message.role is Role.SYSTEM:
            yield message
    if said:
        yield Message.assistant("\n".join(said))


def _note(call: ToolCall, result: str) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
    return f"[For this, {call.name} was called with {arguments[:_LONGEST_RESULT]}: {result[:_LONGEST_RESULT]}]"


type Spoken = TextDelta | ReasoningDelta | ToolCallDone


class Reply(Protocol):
    """The destination of an answer while it is still being written."""

    @property
    def failed_calls(self) -> int:
        """How many of the tool calls so far have returned an error."""
        ...

    def add(self, deltas: AsyncIterator[Spoken]) -> AsyncGenerator[Message]:
        """Pass one assistant message on, run its tool calls, and yield the message and the results.

        A call starts when its delta arrives, so calls of one message run in parallel. A failed tool yields a result
        that says so.
        """
        ...


@dataclass(frozen=True, slots=True)
class Model:
    """A model that may be asked: its provider, its profile, and the limits of its requests.

    `agent` is the id of the agent whose model it is. `budget` has the context size that the user has entered, `profile`
    the one of the provider or a list, and `size` the learned one. `size` and `reasoning` are shared by all agents that
    ask this model; `pause` and `limit` by all that ask this provider. `plain_form` has the exchanges whose form it
    refuses. `is_at_home`: whether its server takes no key, so that it costs nothing, may have to load the model first,
    and sends nothing meanwhile.
    """

    agent: str
    provider: Provider
    name: str
    budget: Budget
    profile: ModelProfile = UNKNOWN_MODEL
    settings: ModelSettings = DEFAULT_SETTINGS
    pause: Pause = field(default_factory=Pause)
    limit: RequestLimit = field(default_factory=RequestLimit)
    size: ModelSize = field(default_factory=ModelSize)
    reasoning: Reasoning = field(default_factory=Reasoning)
    plain_form: PlainForm = field(default_factory=PlainForm)
    is_at_home: bool = False

    @property
    def planned_budget(self) -> Budget:
        """The budget of the next request: the user's context size, or else the one that was listed or learned."""
        if self.budget.context_tokens is not None:
            return self.budget
        context = self.size.tokens(self.profile.context_tokens)
        return self.budget if context is None else with_context_size(self.budget, context)


@dataclass(frozen=True, slots=True)
class BilledRequest:
    """The usage that a provider has reported for one request, and when, in seconds on the monotonic clock.

    `server` is its own word for the model that answered, see `Finished`. `is_cut`: whether it read only part of the
    request.
    """

    model: Model
    request: Request
    usage: Usage
    at: float = field(default_factory=time.monotonic)
    server: str = ""
    is_cut: bool = False


# Takes in the bill of a request, before its answer is counted into the window.
type OnBilled = Callable[[BilledRequest], None]


@dataclass(frozen=True, slots=True)
class PromptFingerprints:
    """The parts of a system prompt as hashes: the instructions, and the prompt of the tools about the home.

    `volatile`: whether part of it is meant to change from turn to turn.
    """

    instructions: int
    entities: int
    volatile: bool = False


class FallbackAgent(Protocol):
    """A conversation agent of another integration; `agent` is its id."""

    agent: str

    async def answer(self) -> str:
        """Return its answer to the input. Raises `ProviderError` if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """An input as the model gets it.

    `system` is the system prompt, the same in each turn until instructions, home or facts change. `prefix` is the stamp
    before the user's words, or empty if it is in the system prompt. `done` is said when tools ran and the model
    said nothing. `fallback_agents` are asked in their order if `model` fails before its first token. Exchanges with a
    tag in `excluded_tags` are not sent. `live` returns the live context of a request that sends these closed exchanges,
    within this number of tokens.
    """

    model: Model
    system: str
    prefix: str
    tools: tuple[ToolSchema, ...]
    done: str
    excluded_tags: frozenset[str] = frozenset()
    fallback_agents: tuple[Model | FallbackAgent, ...] = ()
    live: Callable[[Sequence[Exchange], int], LiveContext] = lambda exchanges, limit: NO_CONTEXT

    def sent_exchanges(self, window: Window) -> list[Exchange]:
        """Return the closed exchanges of a window that may be sent."""
        return [each for each in window.exchanges() if self.excluded_tags.isdisjoint(each.tags)]

    def request(
        self,
        messages: tuple[Message, ...],
        tools: tuple[ToolSchema, ...],
        *,
        may_call: bool = True,
        max_answer_tokens: int | None = None,
    ) -> Request:
        """Return the request with these messages, see `Request`. All requests of a conversation begin alike.

        Its answer may have `max_answer_tokens` besides the reasoning before it, by default the tokens that the budget
        reserves.
        """
        model, budget = self.model, self.model.planned_budget
        wanted = budget if max_answer_tokens is None else replace(budget, max_answer_tokens=max_answer_tokens)
        sent = messages_tokens(messages) + budget.schema_tokens
        effort, has_reasoned = model.settings.effort, model.reasoning.is_expected
        thoughts = room_to_think(model.profile, effort, has_reasoned=has_reasoned)
        return Request(
            model.name,
            messages,
            tools,
            may_call=may_call,
            profile=replace(model.profile, context_tokens=budget.context_tokens),
            settings=model.settings,
            cache_key=model.agent,
            max_answer_tokens=answer_limit(wanted, sent, thoughts),
        )
