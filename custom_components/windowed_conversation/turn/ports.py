"""Models and questions for them: a model with its limits, the question of an input, and the reply to it."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
import time
from typing import Protocol

from ..providers import (
    DEFAULT_SETTINGS,
    UNKNOWN_MODEL,
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
from ..window import Exchange, Message, Window
from .budget import Budget, answer_limit, with_context_size
from .deadlines import Pause
from .live_context import NO_CONTEXT, LiveContext
from .model_size import ModelSize
from .plain_form import PlainForm
from .reasoning import Reasoning
from .request_limit import RequestLimit

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
