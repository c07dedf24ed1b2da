"""Answers about memory that need no model: requests to remember, correct, list and forget facts, by words."""

from dataclasses import dataclass
from functools import partial

from homeassistant.core import HomeAssistant

from ..memory import Memory, MemoryUnavailable
from ..turn.forget_requests import forget_everything, forget_fact
from ..turn.memory_dialog import MemoryDialog
from ..turn.remember_requests import (
    MemoryReply,
    Phrase,
    correct,
    list_facts,
    list_listeners,
    quoted,
    remember,
)
from ..turn.speaker import Speaker
from .memory_access import Forget, MemoryAccess
from .memory_sentences import MemoryRequest, Verb, assent, is_loaded, match_request
from .texts import async_text, plural

_NOTHING = MemoryReply(Phrase.NOTHING_KNOWN)
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


@dataclass(frozen=True, slots=True)
class MemoryAnswers:
    """Answers one input from memory, if its words ask for that. Without memory, it only forgets."""

    hass: HomeAssistant
    memory: MemoryAccess
    speaker: Speaker
    forget: Forget
    dialog: MemoryDialog
    has_memory: bool = True

    async def answer(self) -> MemoryAnswer | None:
        """Carry out the input's request and return the answer, or None if it asks nothing of memory."""
        text, language = self.speaker.said, self.speaker.language
        if not is_loaded(language):
            # the first sentence of a language waits for the disk
            await self.hass.async_add_executor_job(match_request, text, language)
        forgets = self.dialog.last.forgets
        try:
            reply = await self._async_agreed()
            if reply is None and (request := match_request(text, language)):
                forgets = request.forgets
                reply = await self._async_reply(request)
        except MemoryUnavailable as err:
            reply = MemoryReply(Phrase.BACKUP if err.reason == "backup" else Phrase.UNAVAILABLE)
        if reply is None:
            return None
        self.dialog.put(reply, forgets=forgets)
        return MemoryAnswer(await self._async_speech(reply), is_kept=not forgets, asks=reply.then is not None)

    async def _async_agreed(self) -> MemoryReply | None:
        """Return the result of a yes or a no to the question before, or None if this is neither."""
        last = self.dialog.last
        if last.then is None or (agreed := assent(self.speaker.said, self.speaker.language)) is None:
            return None
        if not agreed:
            return MemoryReply(Phrase.NOT_FORGOTTEN if last.forgets else Phrase.ALL_RIGHT)
        return await (self.forget(last.then) if last.forgets else self.memory.async_read(last.then, _NOTHING))

    async def _async_reply(self, request: MemoryRequest) -> MemoryReply | None:
        if request.forgets:
            return await self.forget(partial(_forget, request, self.speaker))
        if not self.has_memory:
            return None
        work = partial(_reply, request, self.speaker, self.dialog.last.named)
        if request.verb in (Verb.LIST_FACTS, Verb.LIST_LISTENERS):
            return await self.memory.async_read(work, _NOTHING)
        return await self.memory.async_change(work)

    async def _async_speech(self, reply: MemoryReply) -> str:
        *before, last = [await self._async_sentence(each) for each in (reply, *reply.rest)]
        return " ".join([each if each.endswith(_ENDS) else f"{each}." for each in before] + [last])

    async def _async_sentence(self, reply: MemoryReply) -> str:
        text = await self._async_text(reply.phrase)
        facts = "; ".join(reply.facts if reply.phrase in _UNQUOTED else map(quoted, reply.facts))
        counts = await self._async_counts(reply.counts) if any(reply.counts) else ""
        return text.format(facts=facts, replaced=facts, more=reply.more, counts=counts)

    async def _async_counts(self, counts: tuple[int, int]) -> str:
        """Return "2 facts and 14 turns", without a part that counts none."""
        parts = [
            (await self._async_text(f"{name}_{plural(self.speaker.language, count)}")).format(count=count)
            for name, count in zip(("memory_facts", "memory_turns"), counts, strict=True)
            if count
        ]
        if len(parts) == 1:
            return parts[0]
        return (await self._async_text(Phrase.AND)).format(first=parts[0], last=parts[1])

    async def _async_text(self, key: str) -> str:
        return await async_text(self.hass, self.speaker.language, "common", key)


def _forget(request: MemoryRequest, speaker: Speaker, memory: Memory) -> MemoryReply:
    forget = forget_fact if request.verb is Verb.FORGET else forget_everything
    return forget(memory, speaker, request.text)


def _reply(request: MemoryRequest, speaker: Speaker, named: tuple[int, ...], memory: Memory) -> MemoryReply | None:
    match request.verb:
        case Verb.LIST_FACTS:
            return list_facts(memory, speaker)
        case Verb.LIST_LISTENERS:
            return list_listeners(memory, speaker, request.text, named)
        case Verb.REMEMBER:
            return remember(memory, speaker, request.text, speaker.said)
        case _:
            return correct(memory, speaker, request.text, is_sure=request.verb is Verb.CORRECT, named=named)
