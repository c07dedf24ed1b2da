"""A model that requests can be sent to, and the question that a turn asks it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
import time
from typing import Protocol

from ..providers import (
    DEFAULT_SETTINGS,
    UNKNOWN_MODEL,
    ModelProfile,
    ModelSettings,
    Provider,
    Request,
    ToolSchema,
    Usage,
    calculate_reasoning_tokens,
    count_messages_tokens,
)
from ..window import Exchange, Message, Window
from .context import NO_LIVE_CONTEXT, LiveContext
from .limits import Budget, Pause, apply_context_size, calculate_answer_limit
from .model_size import ContextSizeTracker
from .plain_exchanges import PlainTextExchanges
from .request_limit import RequestLimiter

# How many answers in a row must come without reasoning before none is expected: a model with optional reasoning may
# skip it several times.
_MAX_UNREASONED_ANSWERS = 5


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

    `server_identity` is the server's name for the model that answered, see `AnswerDone`. `is_request_cut` means that
    the server read only part of the request.
    """

    model: Model
    request: Request
    usage: Usage
    billed_at: float = field(default_factory=time.monotonic)
    server_identity: str = ""
    is_request_cut: bool = False


# Called with the usage of a request, before the answer is counted into the window.
type BilledRequestCallback = Callable[[BilledRequest], None]


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
