"""A model that requests can be sent to, and the question that a turn asks it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

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
from ..window import Attachment, Exchange, Message
from .context import NO_LIVE_CONTEXT, LiveContext
from .limits import Budget, Pause, RequestLimiter, apply_context_size, calculate_answer_limit
from .model_size import ContextSizeTracker
from .tool_names import CALL_TOOL, FIND_TOOLS, wrap_calls

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
        # Whether the model has refused a request that requires a call, as many models do while they reason.
        self.refuses_required_calls = False

    def on_answer(self, *, has_reasoning: bool) -> None:
        """Learn from an answer with reasoning, complete or not, or from a complete answer without reasoning."""
        self._unreasoned = 0 if has_reasoning else min(self._unreasoned + 1, _MAX_UNREASONED_ANSWERS)
        self.is_expected = self._unreasoned < _MAX_UNREASONED_ANSWERS


@dataclass(frozen=True, slots=True)
class Model:
    """A model that requests can be sent to: its provider, its profile, and the limits of its requests."""

    # The id of the agent that the model belongs to.
    agent_id: str
    provider: Provider
    name: str
    # Its context size is the one that the user has entered.
    budget: Budget
    # Its context size is that of the provider or of a list.
    profile: ModelProfile = UNKNOWN_MODEL
    settings: ModelSettings = DEFAULT_SETTINGS
    # Shared by all agents that use this provider.
    pause: Pause = field(default_factory=Pause)
    # Shared by all agents that use this provider.
    request_limiter: RequestLimiter = field(default_factory=RequestLimiter)
    # The learned context size, shared by all agents that use this model.
    size: ContextSizeTracker = field(default_factory=ContextSizeTracker)
    # Shared by all agents that use this model.
    reasoning_detector: ReasoningDetector = field(default_factory=ReasoningDetector)
    # Whether the server takes no key: it costs nothing, may have to load the model first, and sends nothing meanwhile.
    is_at_home: bool = False

    @property
    def planned_budget(self) -> Budget:
        """The budget of the next request, with the user's context size or else the listed or learned size."""
        context = self.budget.context_tokens
        if context is None:
            context = self.size.get_context_tokens(self.profile.context_tokens)
        return self.budget if context is None else apply_context_size(self.budget, context)

    def with_budget(self, **changes: Any) -> Model:
        """Return the model with these changes of its budget."""
        return replace(self, budget=replace(self.budget, **changes))


@dataclass(frozen=True, slots=True)
class BilledRequest:
    """The usage that a provider sent for one request."""

    model: Model
    request: Request
    usage: Usage
    # The server's name for the model that answered, see `AnswerDone.server_identity`.
    server_identity: str = ""
    # Whether it has the lower price of a flexible service tier.
    is_flexible: bool = False


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
    """An input, prepared for the model."""

    model: Model
    # Changes only when the instructions, the home or the facts change.
    system_prompt: str
    # The stamp before the user's text, or empty if the stamp is in the system prompt.
    stamp_prefix: str
    tools: tuple[ToolSchema, ...]
    # The answer if tools ran and the model returned no text.
    empty_answer_phrase: str
    # The sentence after an answer that claims an action that failed.
    failure_phrase: str = ""
    # Returns whether an answer without a call may claim a change of the home that the input orders.
    may_claim_change: Callable[[str], bool] | None = None
    # See `Request`. One of `tools` finds these, and another one calls them.
    deferred_tools: tuple[ToolSchema, ...] = ()
    # See `Request`.
    is_background: bool = False
    is_spoken: bool = False
    # The files that are attached to the input, with None for each one that cannot be sent. Like `pictures`, they are in
    # the requests of this turn and nowhere else.
    files: tuple[Attachment | None, ...] = ()
    # The pictures that tools have taken, by call id.
    pictures: dict[str, Attachment] = field(default_factory=dict)
    # Tried in order if `model` fails before its first token.
    fallback_agents: tuple[Model | FallbackAgent, ...] = ()
    # Asked after all of them have failed. No model is given up early for it, and if it has no answer, the error is that
    # of the last model.
    default_agent: FallbackAgent | None = None
    # Returns the live context for a request that sends the given closed exchanges, within the given number of tokens.
    build_live_context: Callable[[Sequence[Exchange], int], LiveContext] = lambda exchanges, limit: NO_LIVE_CONTEXT

    def build_request(
        self,
        messages: tuple[Message, ...],
        tools: tuple[ToolSchema, ...],
        *,
        may_call: bool = True,
        max_answer_tokens: int | None = None,
        model: Model | None = None,
    ) -> Request:
        """Return the request with these messages, see `Request`. All requests of a conversation begin the same.

        `max_answer_tokens` limits the answer without its reasoning; by default, the budget's reserve applies. `model`
        is the model that is asked, if that is not the question's.
        """
        model = model or self.model
        budget = model.planned_budget
        wanted = budget if max_answer_tokens is None else replace(budget, max_answer_tokens=max_answer_tokens)
        sent = count_messages_tokens(messages) + budget.schema_tokens
        effort, has_reasoned = model.settings.effort, model.reasoning_detector.is_expected
        thoughts = calculate_reasoning_tokens(model.profile, effort, has_reasoned=has_reasoned)
        deferred = self.deferred_tools if tools else ()
        loads = bool(deferred) and model.profile.loads_tools and model.provider.loads_tools
        if loads:
            tools = tuple([tool for tool in tools if tool.name != CALL_TOOL])
        return Request(
            model.name,
            wrap_calls(messages, deferred) if deferred and not loads else messages,
            tools,
            may_call=may_call,
            profile=replace(model.profile, context_tokens=budget.context_tokens),
            settings=model.settings,
            cache_key=model.agent_id,
            max_answer_tokens=calculate_answer_limit(wanted, sent, thoughts),
            is_background=self.is_background,
            is_spoken=self.is_spoken,
            deferred_tools=deferred,
            search_tool=FIND_TOOLS if loads else "",
        )
