"""Answers about memory that need no model: what is asked by words, and what is said in return."""

from dataclasses import dataclass

from homeassistant.core import HomeAssistant

from ..memory import MemoryUnavailable
from ..turn.remembering import (
    Phrase,
    Remembering,
    forget_everything,
    forget_fact,
    remember,
    what_is_known,
)
from ..turn.speaker import Speaker
from .memory_access import Forget, MemoryAccess
from .memory_sentences import ForgetEverything, ForgetThat, RememberThat, WhatIsKnown, Wish, is_loaded, matched
from .texts import async_text

_NOTHING = Remembering(Phrase.NOTHING_KNOWN)


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """The answer. `is_kept` is False if somebody wants something forgotten: the exchange would keep the words of it."""

    speech: str
    is_kept: bool = True


class MemoryAnswers:
    """Answers one input from memory, if that is what it asks by words. Without memory, it only forgets."""

    def __init__(
        self, hass: HomeAssistant, memory: MemoryAccess, speaker: Speaker, forget: Forget, *, has_memory: bool = True
    ) -> None:
        self._hass = hass
        self._has_memory = has_memory
        self._memory = memory
        self._speaker = speaker
        self._forget = forget

    async def answer(self) -> MemoryAnswer | None:
        """Carry out what the input asks of memory and return the answer, or None if it asks nothing of memory."""
        wish = await self._async_wish()
        forgets = isinstance(wish, ForgetThat | ForgetEverything)
        if wish is None or not (self._has_memory or forgets):
            return None
        try:
            done = await self._async_done(wish)
        except MemoryUnavailable as err:
            done = Remembering(Phrase.BACKUP if err.reason == "backup" else Phrase.UNAVAILABLE)
        text = await async_text(self._hass, self._speaker.language, "common", done.phrase)
        return MemoryAnswer(text.format(**done.placeholders), is_kept=not forgets)

    async def _async_wish(self) -> Wish | None:
        said, language = self._speaker.said, self._speaker.language
        if is_loaded(language):
            return matched(said, language)
        return await self._hass.async_add_executor_job(matched, said, language)

    async def _async_done(self, wish: Wish) -> Remembering:
        memory, speaker = self._memory, self._speaker
        match wish:
            case WhatIsKnown():
                return await memory.async_read(lambda opened: what_is_known(opened, speaker), _NOTHING)
            case RememberThat(text):
                return await memory.async_change(lambda opened: remember(opened, speaker, text, speaker.said))
            case ForgetThat(text):
                return await self._forget(lambda opened: forget_fact(opened, speaker, text))
            case ForgetEverything(about):
                return await self._forget(lambda opened: forget_everything(opened, speaker, about))
