"""Errors as Home Assistant and the user see them, and spoken texts in the language closest to the speaker's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
import logging
import math
import traceback

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError, Unauthorized
from homeassistant.helpers.intent import IntentResponseErrorCode
from homeassistant.helpers.translation import async_get_translations
from homeassistant.util.language import matches

from .. import providers
from ..const import DOMAIN
from ..turn import errors as turn
from ..turn.speaker import base_language
from ..window import MAX_COUNT

# The languages of spoken texts, see `translations/`. The first is the fallback.
LANGUAGES = ("en", "da", "de", "es", "fr", "it", "nl", "pl", "pt", "pt-BR", "sv")

# Polish: 2 to 4, also as the last digit, but 12 to 14 are many.
_FEW = range(2, 5)
_TEENS = range(12, 15)

_CODES = IntentResponseErrorCode

# In seconds.
_MINUTE, _HOUR = 60, 60 * 60

# The end of a sentence, and characters that may follow it at the end of a text.
_SENTENCE_ENDS = tuple(".!?…:;。！？؟۔।॥")  # noqa: RUF001 - of several scripts

_CLOSERS = " \t\r\n\"'`*_)]}”’»」』）"  # noqa: RUF001 - of several scripts


async def async_text(hass: HomeAssistant, language: str, category: str, key: str) -> str:
    """Return a text in the speaker's dialect, or else in the language, or else in English.

    Returns the key itself if there is no text.
    """
    nearest = next(iter(matches(language, LANGUAGES, hass.config.country)), LANGUAGES[0])
    texts = await async_get_translations(hass, nearest, category, [DOMAIN])
    return texts.get(f"component.{DOMAIN}.{category}.{key}", key)


def plural(language: str, count: int) -> str:
    """Return the form of a text that a count takes in a spoken language: "one", "few" or "other"."""
    base = base_language(language)
    if count == 1 or (base == "fr" and count == 0):
        return "one"
    return "few" if base == "pl" and count % 10 in _FEW and count % 100 not in _TEENS else "other"


@dataclass(frozen=True, slots=True)
class ErrorText:
    """The presentation of an error: the translation key of its sentence, the response code, and the placeholders."""

    key: str
    code: IntentResponseErrorCode = _CODES.UNKNOWN
    placeholders: dict[str, str] | None = None


_TEXTS: dict[type[Exception], ErrorText] = {
    providers.AuthError: ErrorText("auth_error"),
    providers.QuotaError: ErrorText("quota_error"),
    providers.RateLimited: ErrorText("rate_limited"),
    providers.ContextOverflow: ErrorText("context_overflow"),
    providers.Refused: ErrorText("refused"),
    providers.Incomplete: ErrorText("incomplete"),
    providers.Unavailable: ErrorText("unavailable"),
    providers.DeadlineExceeded: ErrorText("deadline_exceeded"),
    providers.BadRequest: ErrorText("bad_request"),
    providers.ModelNotFound: ErrorText("model_not_found"),
    providers.BadStream: ErrorText("bad_stream"),
    turn.NothingSaid: ErrorText("nothing_said", _CODES.NO_INTENT_MATCH),
    turn.EmptyAnswer: ErrorText("empty_answer"),
    turn.NoSummary: ErrorText("no_summary"),
    turn.NoTokenCount: ErrorText("no_token_count"),
    turn.PromptFailed: ErrorText("prompt_failed"),
    turn.ToolsUnavailable: ErrorText("tools_unavailable"),
    turn.Busy: ErrorText("busy"),
    turn.IdTooLong: ErrorText("id_too_long"),
    Unauthorized: ErrorText("unauthorized"),
}


# The names of errors for automations, by the names of their classes, which the record of turns has.
ERROR_KEYS: dict[str, str] = {
    **{kind.__name__: failure.key for kind, failure in _TEXTS.items()},
    providers.Redirected.__name__: "redirected",
    turn.LocalAnswerFailed.__name__: "local_answer_failed",
}


def error_text_of(error: Exception) -> ErrorText:
    """Return the text of an error; one of unknown type is unexpected."""
    if isinstance(error, providers.RateLimited) and 0 < (error.retry_after or 0) <= MAX_COUNT:
        return _rate_limited_for(math.ceil(error.retry_after or 0))
    if isinstance(error, providers.Redirected):
        return ErrorText("redirected", placeholders={"address": error.address})
    return _TEXTS.get(type(error), ErrorText("unexpected"))


def error_key(error: Exception) -> str:
    """Return the name of an error's kind for automations, which does not depend on its figures."""
    if isinstance(error, turn.LocalAnswerFailed):
        return "local_answer_failed"
    kind = _TEXTS.get(type(error)) or error_text_of(error)
    return kind.key


def _rate_limited_for(seconds: int) -> ErrorText:
    """Return the text of a wait, in the largest unit of which it has at least two."""
    if seconds < 2 * _MINUTE:
        return ErrorText("rate_limited_for", placeholders={"seconds": str(seconds)})
    if seconds < 2 * _HOUR:
        return ErrorText("rate_limited_for_minutes", placeholders={"minutes": str(math.ceil(seconds / _MINUTE))})
    return ErrorText("rate_limited_for_hours", placeholders={"hours": str(round(seconds / _HOUR))})


def translated_error[ErrorT: HomeAssistantError](key: str, kind: type[ErrorT], /, **placeholders: str) -> ErrorT:
    """Return an error of Home Assistant whose message is a translation."""
    return kind(translation_domain=DOMAIN, translation_key=key, translation_placeholders=placeholders)


def refusal(key: str, /, **placeholders: str) -> ServiceValidationError:
    """Return the error of an action that its caller can avoid."""
    return translated_error(key, ServiceValidationError, **placeholders)


@contextmanager
def faults_logged(logger: logging.Logger, what: str) -> Iterator[None]:
    """Return a context that logs and suppresses any error raised in it."""
    try:
        yield
    except Exception as err:  # noqa: BLE001 - the purpose of the context
        log_fault(logger, what, err)


def log_fault(logger: logging.Logger, what: str, error: Exception) -> None:
    """Log an error and its traceback, without its own message, which may repeat words of the user."""
    where = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s: %s\n%s", what, type(error).__name__, where)


async def async_error_phrase(hass: HomeAssistant, language: str, failure: ErrorText) -> str:
    """Return the sentence for a failure, in English if the language has none."""
    text = await async_text(hass, language, "exceptions", f"{failure.key}.message")
    return text.format(**(failure.placeholders or {}))


async def async_done_phrase(hass: HomeAssistant, language: str) -> str:
    """Return Home Assistant's own word for "done", spoken after an action if there is nothing to add."""
    translations = await async_get_translations(hass, language, "conversation", ["conversation"])
    return translations.get("component.conversation.conversation.agent.done", "Done")


def sentence_after(answer: str, sentence: str) -> str:
    """Return a sentence to append to an answer: after an ellipsis if that breaks off, and on its own.

    The empty line before it makes a paragraph in text, and ends a sentence for text-to-speech.
    """
    is_whole = answer.rstrip(_CLOSERS).endswith(_SENTENCE_ENDS)
    return f"{'' if is_whole else '…'}\n\n{sentence}"
