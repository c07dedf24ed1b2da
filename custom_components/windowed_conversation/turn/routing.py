"""Rules for the route of an input and the reasons. Pure decisions."""

from dataclasses import dataclass
from enum import StrEnum

from ..providers import (
    AuthError,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from ..window import Message, Role, Window

# Home Assistant's own rule for an answer that waits for another (`ChatLog.continue_conversation`): the question
# marks of Latin, Greek and Chinese.
_QUESTION_MARKS = ("?", ";", "？")

# Older exchanges, in seconds, are no context for the next input: Home Assistant's own sessions end after as long
# (`helpers.chat_session.CONVERSATION_TIMEOUT`).
_RECENT_SECONDS = 300


class Routing(StrEnum):
    """The routing of an agent; an option of the agent."""

    LOCAL_FIRST = "local_first"
    LLM_ONLY = "llm_only"
    LOCAL_ONLY = "local_only"


class Route(StrEnum):
    """The route of an input: Home Assistant, the model, or a fallback agent."""

    LOCAL = "local"
    LLM = "llm"
    FALLBACK = "fallback"


class Reason(StrEnum):
    """Why a route was chosen."""

    LOCAL_MATCH = "local_match"
    NO_LOCAL_MATCH = "no_local_match"
    ANSWERS_QUESTION = "answers_question"
    LLM_ONLY = "llm_only"
    LOCAL_ONLY = "local_only"
    TOO_LONG = "too_long_for_local"
    # Home Assistant matched the sentence, but hardly meant it: see `bridge.match_check`
    UNKNOWN_PLACE = "unknown_place"
    NOBODY_KNOWN = "nobody_known"
    DELAYED_QUESTION = "delayed_question"
    LONG_ITEM = "long_item"
    UNLISTED_ITEM = "unlisted_item"
    CUT_WORD = "cut_word"
    UNKNOWN_TIMER = "unknown_timer"
    LONG_NAME = "long_name"
    NO_TIMERS = "no_timers"
    NOBODY_HEARS = "nobody_hears"
    INSTRUCTION = "instruction"
    NAME_IN_QUESTION = "name_in_question"
    NAME_AFTER_MODEL = "name_after_model"
    MEDIA_SEARCH = "media_search"
    NO_HANDLER = "no_handler"
    # the agent's own model failed
    AUTH_ERROR = "auth_error"
    QUOTA_ERROR = "quota_error"
    RATE_LIMITED = "rate_limited"
    CONTEXT_OVERFLOW = "context_overflow"
    MODEL_NOT_FOUND = "model_not_found"
    UNAVAILABLE = "unavailable"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    BAD_STREAM = "bad_stream"


@dataclass(frozen=True, slots=True)
class Decision:
    """The chosen route and the reason."""

    route: Route
    reason: Reason


# The longest input, in characters, that local sentence matching is asked about: a command is a sentence, and matching
# takes time that grows with the text.
LONGEST_COMMAND = 500


# Doubts with which Home Assistant's answer is certainly wrong: it is not given even if there is no model to ask.
NEVER_RIGHT = frozenset(
    {Reason.UNKNOWN_PLACE, Reason.NOBODY_KNOWN, Reason.DELAYED_QUESTION, Reason.NOBODY_HEARS, Reason.NO_HANDLER}
)


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation before an input: a question that the agent asked (`answers_question`), an answer of a model."""

    answers_question: bool = False
    after_model: bool = False


def first_choice(routing: Routing, text: str) -> Decision:
    """Return the first route for an input. A local miss in `local_first` goes on to the model."""
    if routing is Routing.LOCAL_ONLY:
        return Decision(Route.LOCAL, Reason.LOCAL_ONLY)
    if routing is Routing.LLM_ONLY:
        return Decision(Route.LLM, Reason.LLM_ONLY)
    if len(text) > LONGEST_COMMAND:
        return Decision(Route.LLM, Reason.TOO_LONG)
    return Decision(Route.LOCAL, Reason.LOCAL_MATCH)


# Errors that another model may not have, with the reason for asking it.
FAILURE_REASONS: dict[type[ProviderError], Reason] = {
    AuthError: Reason.AUTH_ERROR,
    QuotaError: Reason.QUOTA_ERROR,
    RateLimited: Reason.RATE_LIMITED,
    ContextOverflow: Reason.CONTEXT_OVERFLOW,
    ModelNotFound: Reason.MODEL_NOT_FOUND,
    DeadlineExceeded: Reason.DEADLINE_EXCEEDED,
    BadStream: Reason.BAD_STREAM,
    Unavailable: Reason.UNAVAILABLE,
}


def after_failure(error: ProviderError) -> Decision:
    """Return the decision for an answer of another agent, after this error of the agent's own model."""
    return Decision(Route.FALLBACK, FAILURE_REASONS.get(type(error), Reason.UNAVAILABLE))


def situation(window: Window, now: float) -> Situation:
    """Return the situation before the next input of a window, at a time in seconds since the epoch."""
    last = next(reversed(window.exchanges()), None)
    if last is None:
        return Situation()
    by_model = f"route:{Route.LLM}" in last.tags and is_recent(last.messages[-1], now)
    return Situation(asks_back(last.messages[-1], now), by_model)


def is_recent(message: Message, now: float) -> bool:
    """Return whether a message belongs to the current talk. One from the future does not: the clock was set back."""
    return message.created is not None and 0 <= now - message.created <= _RECENT_SECONDS


def asks_back(last: Message, now: float) -> bool:
    """Return whether the newest message of a conversation is a question that waits for an answer.

    `now` is in seconds since the epoch, like `Message.created`.
    """
    is_question = last.role is Role.ASSISTANT and last.content.rstrip().endswith(_QUESTION_MARKS)
    return is_question and is_recent(last, now)
