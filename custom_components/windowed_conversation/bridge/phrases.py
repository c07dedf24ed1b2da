"""What the agent itself says, in the user's language. The texts live in `translations/`."""

from homeassistant.core import HomeAssistant
from homeassistant.helpers.translation import async_get_translations

from ..const import DOMAIN

# What ends a sentence, and what may stand between that and the end of the text.
_SENTENCE_ENDS = tuple(".!?…:;。！？؟۔।॥")  # noqa: RUF001 - of several scripts
_CLOSERS = " \t\r\n\"'`*_)]}”’»」』）"  # noqa: RUF001 - of several scripts


async def async_error_phrase(
    hass: HomeAssistant, language: str, key: str, placeholders: dict[str, str] | None = None
) -> str:
    """Return the text of an exception's translation key; English where the language has none."""
    translations = await async_get_translations(hass, language, "exceptions", [DOMAIN])
    text = translations.get(f"component.{DOMAIN}.exceptions.{key}.message", key)
    return text.format(**(placeholders or {}))


async def async_done_phrase(hass: HomeAssistant, language: str) -> str:
    """Return what is said when something was done and there is nothing to add: Home Assistant's own word for it."""
    translations = await async_get_translations(hass, language, "conversation", ["conversation"])
    return translations.get("component.conversation.conversation.agent.done", "Done")


def sentence_after(said: str, sentence: str) -> str:
    """Return what is to follow words that were said: an ellipsis if they break off, then the sentence on its own.

    The empty line between them is a paragraph where it is read, and ends a sentence for text-to-speech.
    """
    is_whole = said.rstrip(_CLOSERS).endswith(_SENTENCE_ENDS)
    return f"{'' if is_whole else '…'}\n\n{sentence}"
