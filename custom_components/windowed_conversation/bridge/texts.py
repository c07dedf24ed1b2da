"""Spoken texts, in the language closest to the speaker's."""

from homeassistant.core import HomeAssistant
from homeassistant.helpers.translation import async_get_translations
from homeassistant.util.language import matches

from ..const import DOMAIN
from ..turn.speaker import base_language

# The languages of spoken texts, see `translations/`. The first is the fallback.
LANGUAGES = ("en", "da", "de", "es", "fr", "it", "nl", "pl", "pt", "pt-BR", "sv")

# Polish: 2 to 4, also as the last digit, but 12 to 14 are many.
_FEW = range(2, 5)
_TEENS = range(12, 15)


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
