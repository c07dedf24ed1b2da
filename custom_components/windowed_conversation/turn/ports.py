"""What a turn needs of the world, as protocols. `bridge` fills them in with Home Assistant."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field, replace
import time
from typing import Protocol

from ..providers.events import Provider, ReasoningDelta, Request, TextDelta, ToolCallDone, ToolSchema, Usage
from ..providers.profile import UNKNOWN_MODEL, Profile, room_to_think
from ..providers.settings import DEFAULT_SETTINGS, ModelSettings
from ..providers.sizes import messages_tokens
from ..window import Message, Remembered
from .budget import Budget, answer_limit, planned
from .deadlines import Pause
from .model_size import ModelSize
from .profile import SystemPrompt
from .request_limit import RequestLimit
from .routing import Reason, Situation

type Spoken = TextDelta | ReasoningDelta | ToolCallDone


class Reply(Protocol):
    """Where the answer goes: to the user's ear while it is still being written."""

    def add(self, deltas: AsyncIterator[Spoken]) -> AsyncGenerator[Message]:
        """Pass one assistant message on, run its tool calls, and yield the message and the results.

        A call starts when its delta arrives, so calls of one message run in parallel. A tool that fails yields a
        result that says so.
        """
        ...


@dataclass(frozen=True, slots=True)
class Model:
    """A model that may be asked: where, what is known about it, and what may be sent to it.

    `agent` is the id of the agent whose model it is. `budget` has the context size that the user has entered, `profile`
    what the provider or a list says, and `size` what was learned, which is shared by all who ask the model.
    `pause` and `limit` are shared by all who ask the provider.
    """

    agent: str
    provider: Provider
    name: str
    budget: Budget
    profile: Profile = UNKNOWN_MODEL
    settings: ModelSettings = DEFAULT_SETTINGS
    pause: Pause = field(default_factory=Pause)
    limit: RequestLimit = field(default_factory=RequestLimit)
    size: ModelSize = field(default_factory=ModelSize)

    @property
    def planned(self) -> Budget:
        """The budget of the next request, by what is known of the model's size now."""
        return planned(self.budget, self.profile.context_tokens, self.size)


@dataclass(frozen=True, slots=True)
class Billed:
    """What one request has cost: the usage that its provider reported, and when, in seconds on the monotonic clock."""

    model: Model
    request: Request
    usage: Usage
    at: float = field(default_factory=time.monotonic)


# Takes in what a request was billed, before its answer is counted into the window.
type OnBilled = Callable[[Billed], None]


@dataclass(frozen=True, slots=True)
class PromptFingerprints:
    """The parts of a system prompt as hashes: what the agent was told, and what the tools tell of the home.

    `volatile`: whether there is something in it that is to change from turn to turn.
    """

    instructions: int
    entities: int
    volatile: bool = False


class OtherAgent(Protocol):
    """A conversation agent that is not ours; `agent` is its id."""

    agent: str

    async def answer(self) -> str:
        """Return what it answers to the input; raises `ProviderError` where it has no answer."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """An input as the model gets it.

    `system` is the system prompt, `prefix` the volatile context that is frozen before the user's words, empty where it
    is in the system prompt, and `done` what is said when tools ran and the model found no words. `others` are asked in
    their order when `model` fails before its first word. Exchanges with a tag in `left_out` are not sent.
    `profile` and `recalled` mark what memory has added to system prompt and prefix; `after_eviction` is the prompt with
    the profile of now, for when the cache is lost anyway, None if it is no other.
    """

    model: Model
    system: str
    prefix: str
    tools: tuple[ToolSchema, ...]
    done: str
    left_out: frozenset[str] = frozenset()
    others: tuple[Model | OtherAgent, ...] = ()
    profile: Remembered | None = None
    recalled: Remembered | None = None
    after_eviction: SystemPrompt | None = None

    def request(
        self,
        messages: tuple[Message, ...],
        tools: tuple[ToolSchema, ...],
        *,
        may_call: bool = True,
        reply_tokens: int | None = None,
    ) -> Request:
        """Return the request of these messages, see `Request`; all requests of a conversation begin alike.

        Its answer may have `reply_tokens` besides the thoughts before it, by default what the budget keeps free.
        """
        model, budget = self.model, self.model.planned
        wanted = budget if reply_tokens is None else replace(budget, reply_tokens=reply_tokens)
        sent = messages_tokens(messages) + budget.schema_tokens
        return Request(
            model.name,
            messages,
            tools,
            may_call=may_call,
            profile=replace(model.profile, context_tokens=budget.context_tokens),
            settings=model.settings,
            cache_key=model.agent,
            reply_tokens=answer_limit(wanted, sent, room_to_think(model.profile, model.settings.effort)),
        )


class LocalAnswers(Protocol):
    """What can answer without a model."""

    async def answer(self, situation: Situation) -> Callable[[], tuple[Message, ...]] | Reason:
        """Act on the input and return what tells later what was called and said, or the reason why nothing was done.

        An exchange of which no messages are told is not recorded: it repeats what the user wanted to be forgotten.
        Raises `LocalAnswerFailed` when it was understood and could not be done.
        """
        ...


class ModelAccess(Protocol):
    """What can put the input to a model."""

    async def question(self) -> Question:
        """Prepare the request; raises `TurnError`."""
        ...
