"""The outside of a turn, as protocols. `bridge` implements them for Home Assistant."""

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
from ..window import Exchange, Message
from .budget import Budget, answer_limit, planned
from .deadlines import Pause
from .live_context import NO_CONTEXT, LiveContext
from .model_size import ModelSize
from .plain_form import PlainForm
from .reasoning import Reasoning
from .request_limit import RequestLimit
from .routing import Reason, Situation

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
    """A model that may be asked: where it is, what is known about it, and what may be sent to it.

    `agent` is the id of the agent whose model it is. `budget` has the context size that the user has entered, `profile`
    the one of the provider or a list, and `size` what was learned. `size` and `reasoning` are shared by all agents that
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
    def planned(self) -> Budget:
        """The budget of the next request, by what is known of the model's size now."""
        return planned(self.budget, self.profile.context_tokens, self.size)

    @property
    def room_to_think(self) -> int:
        """How many tokens the next answer may have besides its words, for reasoning."""
        return room_to_think(self.profile, self.settings.effort, has_reasoned=self.reasoning.is_expected)


@dataclass(frozen=True, slots=True)
class Billed:
    """The usage that a provider has reported for one request, and when, in seconds on the monotonic clock.

    `server` is its own word for who answered, see `Finished`. `is_cut`: whether it read only part of the request.
    """

    model: Model
    request: Request
    usage: Usage
    at: float = field(default_factory=time.monotonic)
    server: str = ""
    is_cut: bool = False


# Takes in what a request was billed, before its answer is counted into the window.
type OnBilled = Callable[[Billed], None]


@dataclass(frozen=True, slots=True)
class PromptFingerprints:
    """The parts of a system prompt as hashes: the instructions, and what the tools say about the home.

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
    before the user's words, or empty if it is in the system prompt. `done` is what to say when tools ran and the model
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

    def request(
        self,
        messages: tuple[Message, ...],
        tools: tuple[ToolSchema, ...],
        *,
        may_call: bool = True,
        max_answer_tokens: int | None = None,
    ) -> Request:
        """Return the request with these messages, see `Request`. All requests of a conversation begin alike.

        Its answer may have `max_answer_tokens` besides the reasoning before it, by default what the budget reserves.
        """
        model, budget = self.model, self.model.planned
        wanted = budget if max_answer_tokens is None else replace(budget, max_answer_tokens=max_answer_tokens)
        sent = messages_tokens(messages) + budget.schema_tokens
        return Request(
            model.name,
            messages,
            tools,
            may_call=may_call,
            profile=replace(model.profile, context_tokens=budget.context_tokens),
            settings=model.settings,
            cache_key=model.agent,
            max_answer_tokens=answer_limit(wanted, sent, model.room_to_think),
        )


class LocalAnswers(Protocol):
    """Answers without a model."""

    async def answer(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | Reason:
        """Act on the input and return a function for the messages to record, or the reason why nothing was done.

        An exchange without messages is not recorded: it repeats what the user wanted to be forgotten. Raises
        `LocalAnswerFailed` if the input was understood and acting on it failed.
        """
        ...


class ModelAccess(Protocol):
    """Prepares an input for the model."""

    async def question(self) -> Question:
        """Return the question. Raises `TurnError`."""
        ...
