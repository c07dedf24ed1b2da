"""Spoken texts, in the language closest to the speaker's."""

from homeassistant.core import HomeAssistant
from homeassistant.helpers.translation import async_get_translations
from homeassistant.util.language import matches

from ..const import DOMAIN

# The languages of spoken texts, see `translations/`. The first is the fallback.
LANGUAGES = ("en", "da", "de", "es", "fr", "it", "nl", "pl", "pt", "pt-BR", "sv")


async def async_text(hass: HomeAssistant, language: str, category: str, key: str) -> str:
    """Return a text in the speaker's dialect, or else in the language, or else in English.

    Returns the key itself if there is no text.
    """
    nearest = next(iter(matches(language, LANGUAGES, hass.config.country)), LANGUAGES[0])
    texts = await async_get_translations(hass, nearest, category, [DOMAIN])
    return texts.get(f"component.{DOMAIN}.{category}.{key}", key)
