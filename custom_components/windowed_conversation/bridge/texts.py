"""The texts that are spoken, in the language that is nearest to the speaker's."""

from homeassistant.core import HomeAssistant
from homeassistant.helpers.translation import async_get_translations
from homeassistant.util.language import matches

from ..const import DOMAIN

# What is spoken is translated into these, see `translations/`. The first is for a speaker of any language.
LANGUAGES = ("en", "da", "de", "es", "fr", "it", "nl", "pl", "pt", "pt-BR", "sv")


async def async_text(hass: HomeAssistant, language: str, category: str, key: str) -> str:
    """Return a text of ours: in the dialect of the language, else in the language, else in English.

    A key without a text is returned itself.
    """
    nearest = next(iter(matches(language, LANGUAGES, hass.config.country)), LANGUAGES[0])
    texts = await async_get_translations(hass, nearest, category, [DOMAIN])
    return texts.get(f"component.{DOMAIN}.{category}.{key}", key)
