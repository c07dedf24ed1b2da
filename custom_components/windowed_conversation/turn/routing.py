"""Decisions about an input: the window that it belongs to, and its route. All functions are pure."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
import re
import unicodedata

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
from .errors import IdTooLong

# A character that no user id contains.
_KEY_SEPARATOR = "\x1f"

# The maximum length of an id from outside, in characters: ids are stored in files, states and events.
MAX_ID_CHARS = 255

# The question marks (Latin, Greek and Chinese) by which Home Assistant decides that an answer expects a reply
# (`homeassistant.components.conversation.chat_log.ChatLog.continue_conversation`).
_QUESTION_MARKS = ("?", ";", "？")

# Exchanges that are older than this, in seconds, are not context for the next input: Home Assistant's own sessions
# expire after the same time (`homeassistant.helpers.chat_session.CONVERSATION_TIMEOUT`).
_MAX_CONTEXT_AGE_SECONDS = 300

# The longest input, in characters, that local sentence matching gets: a command is one sentence, and the time for
# matching grows with the text.
MAX_COMMAND_CHARS = 500

# The maximum length of an item's name. Longer names are more likely a description, as in "everything for a carbonara"
# (measured on real lists).
_MAX_ITEM_WORDS = 3
_MAX_ITEM_CHARS = 30

# Fewer words are not an echo: a user may confirm "The kitchen light?" with the same words, or repeat a command.
_MIN_ECHO_WORDS = 5

# A colon does not end a sentence here: "You can say: turn on the light in the kitchen" invites to repeat the rest.
_SENTENCE_END_PATTERN = re.compile(r"[.!?…؟۔।॥](?=\s)|[。！？]")  # noqa: RUF001 - of several scripts
# Chinese, Japanese and Korean, of which two characters count as a word.
_WIDE_CHARACTERS = frozenset("WF")
_LIST_REFERENCE_PATTERN = re.compile(r"\{[^{}]*\}")
_OPTIONAL_PART_PATTERN = re.compile(r"\[[^\[\]]*\]")
_WORD_PATTERN = re.compile(r"\w+")
_QUESTION_MARK_PATTERN = re.compile(r"[?？؟;]")
_COMMA_PATTERN = re.compile("[,，、]")  # noqa: RUF001 - of several scripts


class Scope(StrEnum):
    """The scope of a conversation, which decides the inputs that share it; an option of the agent."""

    CONVERSATION = "conversation"
    DEVICE = "device"
    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The key of a window: the conversation's name and the user who owns it. Each user has a separate window.

    `user` is None for satellites and automations, which act for no user, and for the agent's one shared window.
    """

    conversation: str
    user: str | None = None

    def __str__(self) -> str:
        """Return a unique text for the key: the last separator precedes the user, if there is one."""
        if self.user is None and _KEY_SEPARATOR not in self.conversation:
            return self.conversation
        return f"{self.conversation}{_KEY_SEPARATOR}{self.user or ''}"

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, key: str) -> WindowKey:
        """Return the key from its text. The result is cached, because the same keys are parsed in each turn."""
        conversation, separator, user = key.rpartition(_KEY_SEPARATOR)
        return cls(conversation, user or None) if separator else cls(key)


def check_id(conversation: str) -> None:
    """Raise `IdTooLong` if the id of a conversation is too long."""
    if len(conversation) > MAX_ID_CHARS:
        raise IdTooLong(f"more than {MAX_ID_CHARS} characters")


def build_window_key(
    scope: Scope, conversation_id: str, *, device: str | None, user: str | None, owner: str | None = None
) -> WindowKey:
    """Return the key of the window for an input; without a device or a user, that of the conversation id.

    The windows of a device belong to its owner, and are separate from those that the owner has as a user. Raises
    `IdTooLong`.
    """
    match scope:
        case Scope.AGENT:
            key = WindowKey("agent")
        case Scope.DEVICE if device:
            key = WindowKey(f"device:{device}", owner or user)
        case Scope.USER if user and not owner:
            key = WindowKey("user", user)
        case _:
            key = WindowKey(conversation_id, owner or user)
    check_id(key.conversation)
    return key


class RoutingMode(StrEnum):
    """The routing mode of an agent; an option of the agent."""

    LOCAL_FIRST = "local_first"
    MODEL_ONLY = "model_only"
    LOCAL_ONLY = "local_only"


class Route(StrEnum):
    """The part that answers an input: Home Assistant, the model, or a fallback agent."""

    LOCAL = "local"
    MODEL = "model"
    FALLBACK = "fallback"


class RouteReason(StrEnum):
    """The reason for a route."""

    LOCAL_MATCH = "local_match"
    NO_LOCAL_MATCH = "no_local_match"
    ANSWERS_QUESTION = "answers_question"
    MODEL_ONLY = "model_only"
    LOCAL_ONLY = "local_only"
    # memory answered: the user asked to remember or to forget something, or what is known
    MEMORY_REQUEST = "memory_request"
    # the reminders answered, or the record: the user asked why, how long or for how much
    REMINDER_REQUEST = "reminder_request"
    TURN_QUESTION = "turn_question"
    # a satellite has heard its own answer: see `is_echo`
    ECHO = "echo"
    TOO_LONG = "too_long_for_local"
    # Home Assistant matched the sentence, but probably misunderstood it: see `agents.match_checker`
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
    # failures of the agent's own model
    AUTH_ERROR = "auth_error"
    QUOTA_ERROR = "quota_error"
    RATE_LIMITED = "rate_limited"
    CONTEXT_OVERFLOW = "context_overflow"
    MODEL_NOT_FOUND = "model_not_found"
    UNAVAILABLE = "unavailable"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    BAD_STREAM = "bad_stream"


@dataclass(frozen=True, slots=True)
class RouteDecision:
    """The chosen route and the reason for it."""

    route: Route
    reason: RouteReason


# Reasons for which Home Assistant's answer is certainly wrong, so it is not used even if no model is available.
WRONG_MATCH_REASONS = frozenset(
    {
        RouteReason.UNKNOWN_PLACE,
        RouteReason.NOBODY_KNOWN,
        RouteReason.DELAYED_QUESTION,
        RouteReason.NOBODY_HEARS,
        RouteReason.NO_HANDLER,
    }
)


@dataclass(frozen=True, slots=True)
class Situation:
    """The context of an input."""

    # Whether the agent's last answer was a question.
    answers_question: bool = False
    # Whether a model gave that answer.
    follows_model_answer: bool = False


def decide_first_route(routing: RoutingMode, text: str) -> RouteDecision:
    """Return the first route for an input. In LOCAL_FIRST, the model answers if nothing local matches."""
    if routing is RoutingMode.LOCAL_ONLY:
        return RouteDecision(Route.LOCAL, RouteReason.LOCAL_ONLY)
    if routing is RoutingMode.MODEL_ONLY:
        return RouteDecision(Route.MODEL, RouteReason.MODEL_ONLY)
    if len(text) > MAX_COMMAND_CHARS:
        return RouteDecision(Route.MODEL, RouteReason.TOO_LONG)
    return RouteDecision(Route.LOCAL, RouteReason.LOCAL_MATCH)


# Errors that another model may not have, and the reason that is recorded if a fallback agent answers.
REASON_BY_ERROR_TYPE: dict[type[ProviderError], RouteReason] = {
    AuthError: RouteReason.AUTH_ERROR,
    QuotaError: RouteReason.QUOTA_ERROR,
    RateLimited: RouteReason.RATE_LIMITED,
    ContextOverflow: RouteReason.CONTEXT_OVERFLOW,
    ModelNotFound: RouteReason.MODEL_NOT_FOUND,
    DeadlineExceeded: RouteReason.DEADLINE_EXCEEDED,
    BadStream: RouteReason.BAD_STREAM,
    Unavailable: RouteReason.UNAVAILABLE,
}


def decide_fallback_route(error: ProviderError) -> RouteDecision:
    """Return the decision for the answer of a fallback agent after the agent's own model has failed with this error."""
    return RouteDecision(Route.FALLBACK, REASON_BY_ERROR_TYPE.get(type(error), RouteReason.UNAVAILABLE))


def build_situation(window: Window, now: float) -> Situation:
    """Return the situation of a window's next input; `now` is in seconds since the epoch.

    While an exchange is open, nobody waits for a reply to the one before it.
    """
    last = next(reversed(window.exchanges()), None)
    if last is None or window.is_open:
        return Situation()
    by_model = f"route:{Route.MODEL}" in last.tags and is_recent(last.messages[-1], now)
    return Situation(expects_reply(last.messages[-1], now), by_model)


def is_recent(message: Message, now: float) -> bool:
    """Return whether a message is recent enough to be context. One from the future is not: the clock was set back."""
    return message.created is not None and 0 <= now - message.created <= _MAX_CONTEXT_AGE_SECONDS


def expects_reply(last: Message, now: float) -> bool:
    """Return whether the newest message of a conversation is a question that expects a reply.

    `now` is in seconds since the epoch, like `Message.created`.
    """
    is_question = last.role is Role.ASSISTANT and last.content.rstrip().endswith(_QUESTION_MARKS)
    return is_question and is_recent(last, now)


def is_unlikely_name(text: str) -> bool:
    """Return whether the name of a new list item or timer is several things, or a description of some."""
    return len(text) > _MAX_ITEM_CHARS or len(text.split()) > _MAX_ITEM_WORDS or bool(_COMMA_PATTERN.search(text))


@lru_cache(maxsize=1024)
def has_no_required_word(template: str) -> bool:
    """Return whether a hassil sentence template contains no required word, as in "[the] {name}".

    The result is cached, because a home uses the same few templates every day.
    """
    text = _LIST_REFERENCE_PATTERN.sub("", template)
    while text != (shorter := _OPTIONAL_PART_PATTERN.sub("", text)):
        text = shorter
    return not _WORD_PATTERN.search(text)


def is_question(text: str) -> bool:
    """Return whether the text contains a question mark of any script."""
    return bool(_QUESTION_MARK_PATTERN.search(text))


def is_echo(text: str, answer: str) -> bool:
    """Return whether an input has exactly the words of an answer, or of its last whole sentences.

    Nothing less is an echo: after "Shall I turn on the light in the kitchen?", a user may say "turn on the light in the
    kitchen".
    """
    heard = _join_letters(text)
    if _count_words(text) < _MIN_ECHO_WORDS or not _join_letters(answer).endswith(heard):
        return False
    starts = (0, *[end.end() for end in _SENTENCE_END_PATTERN.finditer(answer)])
    return any(_join_letters(answer[start:]) == heard for start in starts)


def _count_words(text: str) -> int:
    """Return the number of words in a text. Where words have no spaces between them, two characters are one."""
    wide = sum(unicodedata.east_asian_width(each) in _WIDE_CHARACTERS for each in text if each.isalnum())
    return (wide + 1) // 2 + sum(
        unicodedata.east_asian_width(each[0]) not in _WIDE_CHARACTERS for each in _WORD_PATTERN.findall(text)
    )


def _join_letters(text: str) -> str:
    """Return the letters and digits of a text in one case, without spaces and punctuation."""
    return "".join(filter(str.isalnum, text.casefold()))


def have_same_words(one: str, other: str) -> bool:
    """Return whether two texts have the same words and differ only in punctuation and spaces."""
    return _WORD_PATTERN.findall(one) == _WORD_PATTERN.findall(other)


def is_word_cut(text: str, span: tuple[int, int]) -> bool:
    """Return whether a span begins or ends inside a word.

    Only letters of scripts with upper and lower case count, because those put spaces between words.
    """
    return any(0 < place < len(text) and _is_cased(text[place - 1]) and _is_cased(text[place]) for place in span)


def _is_cased(character: str) -> bool:
    return character.lower() != character.upper()
