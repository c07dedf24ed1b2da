"""Which way an input goes, and why. Pure decisions; who answers is not in here."""

from dataclasses import dataclass
from enum import StrEnum

from ..providers.errors import (
    AuthError,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
)
from ..window import Message, Role

# Home Assistant's own rule for an answer that waits for another (`ChatLog.continue_conversation`): the question
# marks of Latin, Greek and Chinese.
_QUESTION_MARKS = ("?", ";", "？")

# A question that was asked this many seconds ago is not what the next input answers: Home Assistant's own sessions
# end after as long (`helpers.chat_session.CONVERSATION_TIMEOUT`).
_QUESTION_SECONDS = 300


class Routing(StrEnum):
    """How an agent routes: the user's option."""

    LOCAL_FIRST = "local_first"
    LLM_ONLY = "llm_only"
    LOCAL_ONLY = "local_only"


class Route(StrEnum):
    """Who answered."""

    LOCAL = "local"
    LLM = "llm"
    FALLBACK = "fallback"


class Reason(StrEnum):
    """Why a route was taken."""

    LOCAL_MATCH = "local_match"
    NO_LOCAL_MATCH = "no_local_match"
    ANSWERS_QUESTION = "answers_question"
    LLM_ONLY = "llm_only"
    LOCAL_ONLY = "local_only"
    TOO_LONG = "too_long_for_local"
    # the agent's own model did not answer
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
    """A route and the reason for it."""

    route: Route
    reason: Reason


# The longest input, in characters, that local sentence matching is asked about: a command is a sentence, and matching
# takes time that grows with the text.
LONGEST_COMMAND = 500


def first_choice(routing: Routing, text: str, *, answers_question: bool) -> Decision:
    """Return where an input goes first; a local miss in `local_first` goes on to `after_local_miss`."""
    if routing is Routing.LOCAL_ONLY:
        return Decision(Route.LOCAL, Reason.LOCAL_ONLY)
    if routing is Routing.LLM_ONLY:
        return Decision(Route.LLM, Reason.LLM_ONLY)
    if answers_question:
        return Decision(Route.LLM, Reason.ANSWERS_QUESTION)
    if len(text) > LONGEST_COMMAND:
        return Decision(Route.LLM, Reason.TOO_LONG)
    return Decision(Route.LOCAL, Reason.LOCAL_MATCH)


def after_local_miss() -> Decision:
    """Return where an input goes that nothing local understood."""
    return Decision(Route.LLM, Reason.NO_LOCAL_MATCH)


_FAILURES: dict[type[ProviderError], Reason] = {
    AuthError: Reason.AUTH_ERROR,
    QuotaError: Reason.QUOTA_ERROR,
    RateLimited: Reason.RATE_LIMITED,
    ContextOverflow: Reason.CONTEXT_OVERFLOW,
    ModelNotFound: Reason.MODEL_NOT_FOUND,
    DeadlineExceeded: Reason.DEADLINE_EXCEEDED,
    BadStream: Reason.BAD_STREAM,
}


def after_failure(error: ProviderError) -> Decision:
    """Return why an input was answered by another than the agent's own model."""
    return Decision(Route.FALLBACK, _FAILURES.get(type(error), Reason.UNAVAILABLE))


def asks_back(last: Message | None, now: float) -> bool:
    """Tell whether the newest message of a conversation is a question that waits for an answer.

    `now` is in seconds since the epoch, like `Message.created`. A question from the future waits for nothing: the clock
    was set back.
    """
    return (
        last is not None
        and last.role is Role.ASSISTANT
        and last.content.rstrip().endswith(_QUESTION_MARKS)
        and last.created is not None
        and 0 <= now - last.created <= _QUESTION_SECONDS
    )
