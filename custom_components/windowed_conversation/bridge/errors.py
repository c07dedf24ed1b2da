"""Errors as users and callers see them, and spoken texts in the language closest to the speaker's."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
import logging
import math
from pathlib import Path
import re
import traceback
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError, Unauthorized
from homeassistant.generated.languages import LANGUAGES
from homeassistant.helpers import llm
from homeassistant.helpers.intent import IntentResponseErrorCode
from homeassistant.helpers.translation import async_get_translations
from homeassistant.util.language import matches

from .. import providers
from ..const import DOMAIN
from ..memory.core import base_language
from ..turn import errors as turn
from ..window import MAX_TOKENS

# The languages that have spoken texts. The folder is listed at import, outside the event loop.
SPOKEN_LANGUAGES = tuple(sorted([path.stem for path in (Path(__file__).parents[1] / "translations").glob("*.json")]))
_HOME_ASSISTANT_LANGUAGES = tuple(sorted(LANGUAGES))

# Codes for Chinese in traditional characters. Speech engines name a region or a language instead of the script.
_TRADITIONAL_CHINESE_PATTERN = re.compile("hant|hk|mo|tw|yue", re.IGNORECASE)

# Slavic plural rules: "few" is for 2 to 4, in Polish and Ukrainian also for counts that end in them, except 12 to 14.
_FEW = range(2, 5)
_TEENS = range(11, 15)

# The signs between groups of three digits, as in CLDR. Other languages have a comma.
_LANGUAGES_BY_SEPARATOR = {
    ".": ("da", "de", "es", "it", "nl", "pt", "pt-BR"),
    "\N{NO-BREAK SPACE}": ("cs", "nb", "pl", "sv", "uk"),
    "\N{NARROW NO-BREAK SPACE}": ("fr",),
}
# The languages that do not group four digits.
_UNGROUPED_LANGUAGES = ("es", "it", "pl")
_FOUR_DIGITS_END = 10_000
_DECIMAL_POINT_LANGUAGES = ("en", "ja", "zh")

_MINUTE_SECONDS, _HOUR_SECONDS = 60, 60 * 60

# Marks that end a sentence in several scripts, and closing characters that may follow such a mark.
SENTENCE_ENDS = tuple(".!?…:;。！？؟۔।॥")  # noqa: RUF001 - of several scripts
_CLOSING_CHARS = " \t\r\n\"'`*_)]}”’»」』）"  # noqa: RUF001 - of several scripts


async def async_get_spoken_text(hass: HomeAssistant, language: str, category: str, key: str) -> str:
    """Return a text in the speaker's dialect if there is one, else in the base language, else in English.

    Returns the key itself if the text does not exist.
    """
    nearest = find_nearest_language(language, hass.config.country, SPOKEN_LANGUAGES)
    texts = await async_get_translations(hass, nearest, category, [DOMAIN])
    return texts.get(f"component.{DOMAIN}.{category}.{key}", key)


@lru_cache(maxsize=64)
def find_nearest_language(
    language: str, country: str | None, languages: tuple[str, ...] = _HOME_ASSISTANT_LANGUAGES
) -> str:
    """Return the one of these languages that is nearest to a code such as "zh-cn" or "no", or "en" if none is near."""
    base = base_language(language)
    if base == "zh":
        language = "zh-Hant" if _TRADITIONAL_CHINESE_PATTERN.search(language) else "zh-Hans"
    return next((near for each in (language, base) for near in matches(each, languages, country)), "en")


def format_count(count: float, language: str) -> str:
    """Return a whole number with its digits grouped as the page groups them, in the language of our texts."""
    nearest = find_nearest_language(language, None, SPOKEN_LANGUAGES)
    if count < _FOUR_DIGITS_END and nearest in _UNGROUPED_LANGUAGES:
        return f"{count:.0f}"
    separator = next((mark for mark, group in _LANGUAGES_BY_SEPARATOR.items() if nearest in group), ",")
    return f"{count:_.0f}".replace("_", separator)


def format_decimal(number: float, language: str, digits: int) -> str:
    """Return a number with this many decimals and the decimal sign of the language."""
    text = f"{number:.{digits}f}"
    return text if base_language(language) in _DECIMAL_POINT_LANGUAGES else text.replace(".", ",")


def plural_form(language: str, count: int) -> str:
    """Return the plural form that a text takes for a count in a spoken language: "one", "few" or "other"."""
    last_digit = 0 if count % 100 in _TEENS else count % 10
    match base_language(language):
        case "uk":
            is_one, is_few = last_digit == 1, last_digit in _FEW
        case "pl":
            is_one, is_few = count == 1, last_digit in _FEW
        case "cs":
            is_one, is_few = count == 1, count in _FEW
        case base:
            is_one, is_few = count == 1 or (base == "fr" and count == 0), False
    return "one" if is_one else "few" if is_few else "other"


@dataclass(frozen=True, slots=True)
class ErrorPresentation:
    """The presentation of an error: the translation key of its sentence, the response code, and the placeholders."""

    key: str
    code: IntentResponseErrorCode = IntentResponseErrorCode.UNKNOWN
    placeholders: Mapping[str, str] = field(default_factory=dict)


# The error names that automations see, which are the keys of translations, too.
_KEY_BY_CLASS: dict[type[BaseException], str] = {
    providers.AuthError: "auth_error",
    providers.QuotaError: "quota_error",
    providers.RateLimited: "rate_limited",
    providers.ContextOverflow: "context_overflow",
    providers.AnswerRefused: "refused",
    providers.Incomplete: "incomplete",
    providers.Unavailable: "unavailable",
    providers.DeadlineExceeded: "deadline_exceeded",
    providers.BadRequest: "bad_request",
    providers.ModelNotFound: "model_not_found",
    providers.Redirected: "redirected",
    providers.BadStream: "bad_stream",
    turn.EmptyInput: "nothing_said",
    turn.EmptyAnswer: "empty_answer",
    turn.InvalidData: "invalid_data",
    turn.NoSummary: "no_summary",
    turn.TokenCountUnsupported: "no_token_count",
    turn.PromptRenderingFailed: "prompt_failed",
    turn.ToolsUnavailable: "tools_unavailable",
    turn.ConversationBusy: "busy",
    turn.IdTooLong: "id_too_long",
    Unauthorized: "unauthorized",
    # automations see it, but it has no text
    turn.LocalAnswerFailed: "local_answer_failed",
}

# The sentences for people at a satellite, who cannot change an account: keys of common texts, by the keys of errors.
# Errors that are not listed get the sentence for unexpected errors, which asks to try again.
HEARD_KEY_BY_KEY = {
    **dict.fromkeys(("auth_error", "quota_error", "bad_request", "model_not_found", "redirected"), "heard_setup"),
    **dict.fromkeys(("prompt_failed", "tools_unavailable", "context_overflow"), "heard_setup"),
    **dict.fromkeys(("rate_limited", "rate_limited_for_minutes", "rate_limited_for_hours"), "heard_busy"),
    "rate_limited_for": "heard_busy_soon",
    "unavailable": "heard_unreachable",
    "refused": "heard_refused",
    "incomplete": "heard_long",
}
LOCAL_WORKS_KEY = "heard_local_works"
# The sentences of errors that anybody understands.
_PLAIN_KEYS = ("busy", "nothing_said", "unauthorized", "unexpected")

# The error names that automations see, by the names of the error classes.
ERROR_KEY_BY_CLASS_NAME = {kind.__name__: key for kind, key in _KEY_BY_CLASS.items()}


def describe_error(error: Exception) -> ErrorPresentation:
    """Return the presentation of an error. An error of an unknown type is presented as unexpected."""
    key, placeholders, code = get_error_key(error), dict[str, str](), IntentResponseErrorCode.UNKNOWN
    if isinstance(error, providers.RateLimited) and 0 < (error.retry_after or 0) <= MAX_TOKENS:
        key, placeholders = _describe_wait(math.ceil(error.retry_after or 0))
    elif isinstance(error, providers.Redirected):
        placeholders = {"address": error.address}
    elif isinstance(error, turn.EmptyInput):
        code = IntentResponseErrorCode.NO_INTENT_MATCH
    elif isinstance(error, turn.LocalAnswerFailed):
        key = "unexpected"
    return ErrorPresentation(key, code, placeholders)


def get_error_key(error: BaseException) -> str:
    """Return the name of an error's kind for automations. It does not depend on the numbers in the error."""
    return _KEY_BY_CLASS.get(type(error), "unexpected")


def _describe_wait(seconds: int) -> tuple[str, dict[str, str]]:
    """Return the key and the placeholders for a wait, in the largest unit (hours, minutes, seconds) of at least 2.

    A wait of one second becomes two, so that the number always takes the plural.
    """
    if seconds < 2 * _MINUTE_SECONDS:
        return "rate_limited_for", {"seconds": str(max(seconds, 2))}
    if seconds < 2 * _HOUR_SECONDS:
        return "rate_limited_for_minutes", {"minutes": str(math.ceil(seconds / _MINUTE_SECONDS))}
    return "rate_limited_for_hours", {"hours": str(round(seconds / _HOUR_SECONDS))}


def build_translated_error[ErrorT: HomeAssistantError](key: str, kind: type[ErrorT], /, **placeholders: str) -> ErrorT:
    """Return a Home Assistant error of the given class with a translated message."""
    return kind(translation_domain=DOMAIN, translation_key=key, translation_placeholders=placeholders)


def build_refusal(key: str, /, **placeholders: str) -> ServiceValidationError:
    """Return the error that an action raises for a mistake of its caller."""
    return build_translated_error(key, ServiceValidationError, **placeholders)


def refuse(reason: str, text: str, **data: Any) -> llm.ToolResult:
    """Return the result of a call that changed nothing, with a text for the model that says why."""
    return llm.ToolResult(data={"error": reason, "error_text": text, **data}, error=True)


@contextmanager
def log_and_suppress_faults(logger: logging.Logger, what: str) -> Iterator[None]:
    """Return a context manager that logs and suppresses any error raised in it."""
    try:
        yield
    except Exception as err:  # noqa: BLE001 - the purpose of the context
        log_fault(logger, what, err)


def log_fault(logger: logging.Logger, what: str, error: Exception) -> None:
    """Log an error with its traceback but without its message, which may repeat the user's words."""
    where = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s: %s\n%s", what, type(error).__name__, where)


async def async_get_error_phrase(hass: HomeAssistant, language: str, failure: ErrorPresentation) -> str:
    """Return the sentence for a failure, in English if the language has none."""
    text = await async_get_spoken_text(hass, language, "exceptions", f"{failure.key}.message")
    return text.format(**failure.placeholders)


async def async_get_heard_phrase(
    hass: HomeAssistant, language: str, failure: ErrorPresentation, *, has_local_commands: bool
) -> str:
    """Return the sentence for a failure as a satellite says it: what to do now, without a word on the account."""
    key = HEARD_KEY_BY_KEY.get(failure.key)
    if key is None:
        plain = failure if failure.key in _PLAIN_KEYS else ErrorPresentation("unexpected")
        return await async_get_error_phrase(hass, language, plain)
    keys = (key, LOCAL_WORKS_KEY) if failure.key == "unavailable" and has_local_commands else (key,)
    return " ".join([await async_get_spoken_text(hass, language, "common", each) for each in keys])


async def async_get_done_phrase(hass: HomeAssistant, language: str) -> str:
    """Return Home Assistant's own translation of "done", spoken after an action if the model adds no text."""
    nearest = find_nearest_language(language, hass.config.country)
    translations = await async_get_translations(hass, nearest, "conversation", ["conversation"])
    return translations.get("component.conversation.conversation.agent.done", "Done")


def format_next_sentence(answer: str, sentence: str) -> str:
    """Return a sentence as a paragraph to append to an answer, after an ellipsis if the answer breaks off.

    The empty line before it separates paragraphs in text, and ends the previous sentence for text-to-speech.
    """
    is_whole = answer.rstrip(_CLOSING_CHARS).endswith(SENTENCE_ENDS)
    return f"{'' if is_whole else '…'}\n\n{sentence}"
