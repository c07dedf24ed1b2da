"""Answers about memory that need no model: what is asked by words, and what is said in return."""

from dataclasses import dataclass
from functools import partial

from homeassistant.core import HomeAssistant

from ..memory import Memory, MemoryUnavailable
from ..turn.forget_requests import forget_everything, forget_fact
from ..turn.memory_dialog import MemoryDialog
from ..turn.remembering import Phrase, Remembering, correct, quoted, remember, what_is_known, who_hears
from ..turn.speaker import Speaker
from .memory_access import Forget, MemoryAccess
from .memory_sentences import (
    Correct,
    ForgetEverything,
    ForgetThat,
    RememberThat,
    WhatIsKnown,
    WhoHears,
    Wish,
    assent,
    is_loaded,
    matched,
)
from .texts import async_text, plural

_NOTHING = Remembering(Phrase.NOTHING_KNOWN)
_ENDS = (".", "?", "!")
_UNQUOTED = (Phrase.REMEMBERED_OWN_CLAUSE, Phrase.REMEMBERED_HOME_CLAUSE)


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """The answer. `is_kept` is False if somebody wants something forgotten: the exchange would keep the words of it.

    `asks`: whether the answer is a question that waits for a yes.
    """

    speech: str
    is_kept: bool = True
    asks: bool = False


class MemoryAnswers:
    """Answers one input from memory, if that is what it asks by words. Without memory, it only forgets."""

    def __init__(
        self,
        hass: HomeAssistant,
        memory: MemoryAccess,
        speaker: Speaker,
        forget: Forget,
        dialog: MemoryDialog,
        *,
        has_memory: bool = True,
    ) -> None:
        self._hass = hass
        self._has_memory = has_memory
        self._memory = memory
        self._speaker = speaker
        self._forget = forget
        self._dialog = dialog

    async def answer(self) -> MemoryAnswer | None:
        """Carry out what the input asks of memory and return the answer, or None if it asks nothing of memory."""
        if not is_loaded(self._speaker.language):
            # the first sentence of a language waits for the disk
            await self._hass.async_add_executor_job(matched, self._speaker.said, self._speaker.language)
        forgets = self._dialog.last.forgets
        try:
            done = await self._async_agreed()
            if done is None:
                wish = matched(self._speaker.said, self._speaker.language)
                forgets = isinstance(wish, ForgetThat | ForgetEverything)
                done = await self._async_done(wish) if forgets or self._has_memory else None
        except MemoryUnavailable as err:
            done = Remembering(Phrase.BACKUP if err.reason == "backup" else Phrase.UNAVAILABLE)
        if done is None:
            return None
        self._dialog.put(done, forgets=forgets)
        return MemoryAnswer(await self._async_speech(done), is_kept=not forgets, asks=done.then is not None)

    async def _async_agreed(self) -> Remembering | None:
        """Return the result of a yes or a no to the question before, or None if this is neither."""
        last = self._dialog.last
        if last.then is None or (agreed := assent(self._speaker.said, self._speaker.language)) is None:
            return None
        if not agreed:
            return Remembering(Phrase.NOT_FORGOTTEN if last.forgets else Phrase.ALL_RIGHT)
        return await (self._forget(last.then) if last.forgets else self._memory.async_read(last.then, _NOTHING))

    async def _async_done(self, wish: Wish | None) -> Remembering | None:
        speaker, named = self._speaker, self._dialog.last.named
        match wish:
            case None:
                return None
            case ForgetThat() | ForgetEverything():
                return await self._forget(partial(_forgotten, wish, speaker))
            case WhatIsKnown() | WhoHears():
                return await self._memory.async_read(partial(_answered, wish, speaker, named), _NOTHING)
            case RememberThat() | Correct():
                return await self._memory.async_change(partial(_remembered, wish, speaker, named))

    async def _async_speech(self, done: Remembering) -> str:
        *before, last = [await self._async_sentence(each) for each in (done, *done.rest)]
        return " ".join([*(each if each.endswith(_ENDS) else f"{each}." for each in before), last])

    async def _async_sentence(self, said: Remembering) -> str:
        text = await self._async_text(said.phrase)
        facts = "; ".join(said.facts if said.phrase in _UNQUOTED else map(quoted, said.facts))
        counts = await self._async_counts(said.counts) if any(said.counts) else ""
        return text.format(facts=facts, replaced=facts, more=said.more, counts=counts)

    async def _async_counts(self, counts: tuple[int, int]) -> str:
        """Return "2 facts and 14 turns", without what there is none of."""
        parts = [
            (await self._async_text(f"{name}_{plural(self._speaker.language, count)}")).format(count=count)
            for name, count in zip(("memory_facts", "memory_turns"), counts, strict=True)
            if count
        ]
        if len(parts) == 1:
            return parts[0]
        return (await self._async_text(Phrase.AND)).format(first=parts[0], last=parts[1])

    async def _async_text(self, key: str) -> str:
        return await async_text(self._hass, self._speaker.language, "common", key)


def _forgotten(wish: ForgetThat | ForgetEverything, speaker: Speaker, memory: Memory) -> Remembering:
    if isinstance(wish, ForgetThat):
        return forget_fact(memory, speaker, wish.text)
    return forget_everything(memory, speaker, wish.about)


def _answered(
    wish: WhatIsKnown | WhoHears, speaker: Speaker, named: tuple[int, ...], memory: Memory
) -> Remembering | None:
    if isinstance(wish, WhoHears):
        return who_hears(memory, speaker, wish.about, named)
    return what_is_known(memory, speaker)


def _remembered(
    wish: RememberThat | Correct, speaker: Speaker, named: tuple[int, ...], memory: Memory
) -> Remembering | None:
    if isinstance(wish, Correct):
        return correct(memory, speaker, wish.text, is_sure=wish.is_sure, named=named)
    return remember(memory, speaker, wish.text, speaker.said)
