"""Answers to requests to memory, and to replies to its questions, without a model."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
import time
from typing import Any

from homeassistant.core import HomeAssistant

from ...bridge.errors import async_get_spoken_text, plural_form
from ..core import Memory, MemoryAccess, MemoryUnavailable
from ..turn.dialog import MemoryDialog
from ..turn.evidence import asks_to_forget
from ..turn.forgetting import ask_to_forget_named, ask_to_forget_thing, forget_everything, forget_fact
from ..turn.remember_requests import (
    MemoryReply,
    ReplyKey,
    correct_fact,
    list_facts,
    list_listeners,
    recall_facts,
    remember_statement,
    undo_correction,
)
from ..turn.replies import leans_to_yes, parse_decision, parse_yes_no
from ..turn.speaker import Speaker, load_language
from ..turn.suggestions import decide_and_read_on, keep_private, read_suggestions
from .sentences import FORGETTING_KINDS, MemoryRequest, RequestKind, match_request

# A function that runs work which forgets, and removes the forgotten text from windows and prompts as well. Raises
# MemoryUnavailable.
type ForgetCallback = Callable[[Callable[[Memory], MemoryReply]], Coroutine[Any, Any, MemoryReply]]

FORGET_BY_KIND: Mapping[RequestKind, Callable[..., MemoryReply]] = {
    RequestKind.FORGET: forget_fact,
    RequestKind.FORGET_EVERYTHING: forget_everything,
    RequestKind.FORGET_THING: ask_to_forget_thing,
}
_LISTING_KINDS = (RequestKind.LIST_FACTS, RequestKind.LIST_LEARNED, RequestKind.LIST_LISTENERS)
# Others answer these if memory has no fact about them.
_PASSED_ON_KINDS = (RequestKind.RECALL, RequestKind.FORGET_LAST)
_SENTENCE_ENDINGS = (".", "?", "!", "。", "？", "！")  # noqa: RUF001 - of several scripts
_MARKS = {"stop": ".", "gap": " ", "separator": "; "}


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """An answer of memory."""

    speech: str
    # False if the user wants something forgotten. The exchange is then not recorded, because it would repeat the
    # forgotten text.
    is_recorded: bool = True
    # Whether the answer is a question that waits for a yes or no.
    asks: bool = False


@dataclass(frozen=True, slots=True)
class MemoryAnswerer:
    """Answers one input if it is a request to memory. Without memory, only requests to forget are answered."""

    hass: HomeAssistant
    memory: MemoryAccess
    speaker: Speaker
    forget: ForgetCallback
    dialog: MemoryDialog
    has_memory: bool = True
    # Whether a model with the tool that forgets answers the requests that memory does not.
    can_model_forget: bool = False

    async def answer_input(self) -> MemoryAnswer | None:
        """Carry out the input's request and return the answer, or None if the input is not a request to memory."""
        text, language, last = self.speaker.text, self.speaker.language, self.dialog.last_answer
        forgets, reply = last.is_forgetting, None
        try:
            if last.named_fact_ids or last.on_yes is not None:
                reply = await self._async_handle_decision() or await self._async_handle_yes_no()
            if reply is None and (request := match_request(text, language)):
                forgets = request.kind in FORGETTING_KINDS
                reply = await self._async_handle_request(request)
        except MemoryUnavailable as err:
            reply = MemoryReply(ReplyKey.BACKUP_IN_PROGRESS if err.reason == "backup" else ReplyKey.UNAVAILABLE)
        if reply is None:
            if last.on_yes is None:
                return None
            self.dialog.leave_question_open()
            is_unclear = bool(self.dialog.open_question) and leans_to_yes(text, language)
            return await self.ask_again() if is_unclear else None
        speech = await self._async_format_reply(reply)
        self.dialog.store_answer(reply, forgets=forgets, speech=speech)
        return MemoryAnswer(speech, is_recorded=not forgets, asks=reply.on_yes is not None)

    async def ask_again(self) -> MemoryAnswer | None:
        """Return the question that the input leaves open, or None if there is none."""
        if not self.dialog.open_question:
            return None
        text = await self._async_get_text("memory_say_yes_or_no")
        gap = load_language(self.speaker.language).get("marks", _MARKS)["gap"]
        return MemoryAnswer(f"{text}{gap}{self.dialog.open_question}", is_recorded=False, asks=True)

    async def _async_handle_yes_no(self) -> MemoryReply | None:
        """Return the reply to a yes or no that answers the previous question, or None if the input is neither."""
        last, speaker = self.dialog.last_answer, self.speaker
        if not last.on_yes or (agreed := parse_yes_no(speaker.text, speaker.language, to_memory=True)) is None:
            return None
        if agreed and not last.is_forgetting and asks_to_forget(speaker.text, speaker.language):
            return None
        if not agreed:
            return MemoryReply(ReplyKey.NOT_FORGOTTEN if last.is_forgetting else ReplyKey.ALL_RIGHT)
        return await (self.forget(last.on_yes) if last.is_forgetting else self.memory.async_change(last.on_yes))

    async def _async_handle_decision(self) -> MemoryReply | None:
        """Return the reply to a decision about the suggestions that the last answer named, or None."""
        last, speaker = self.dialog.last_answer, self.speaker
        decision = parse_decision(speaker.text, speaker.language) if last.named_fact_ids else None
        if decision is None or last.is_forgetting:
            return None
        return await self.memory.async_change(decide_and_read_on, speaker, last.named_fact_ids, decision)

    async def _async_handle_request(self, request: MemoryRequest) -> MemoryReply | None:
        named = self.dialog.last_answer.named_fact_ids
        if request.kind in _PASSED_ON_KINDS:
            work = partial(_reply_if_known, request, self.speaker, named)
            return await self.memory.async_read(work, None) if self.has_memory else None
        if request.kind in FORGETTING_KINDS:
            forget = partial(FORGET_BY_KIND[request.kind], speaker=self.speaker, query=request.text)
            reply = await self.forget(forget)
            # a model may know which fact is meant; a request with the text of a fact stays out of conversations
            is_passed_on = self.can_model_forget and request.kind is not RequestKind.FORGET
            return None if is_passed_on and reply.phrase is ReplyKey.NOT_FOUND else reply
        if request.kind is RequestKind.KEEP_PRIVATE:
            self.dialog.is_private = True
            return await self.forget(partial(keep_private, speaker=self.speaker, now=time.time()))
        if not self.has_memory:
            return None
        work = partial(_reply, request, self.speaker, named)
        if request.kind in _LISTING_KINDS:
            return await self.memory.async_read(work, MemoryReply(ReplyKey.NOTHING_KNOWN))
        return await self.memory.async_change(work)

    async def _async_format_reply(self, reply: MemoryReply) -> str:
        marks: Mapping[str, str] = load_language(self.speaker.language).get("marks", _MARKS)
        *before, last = [await self._async_format_sentence(each, marks) for each in (reply, *reply.others)]
        before = [each if each.endswith(_SENTENCE_ENDINGS) else f"{each}{marks['stop']}" for each in before]
        return marks["gap"].join([*before, last])

    async def _async_format_sentence(self, reply: MemoryReply, marks: Mapping[str, str]) -> str:
        text = await self._async_get_text(reply.phrase)
        facts = marks["separator"].join(reply.fact_texts)
        counts = await self._async_format_counts(reply.counts) if any(reply.counts) else ""
        return text.format(facts=facts, replaced=facts, more=reply.unnamed_count, counts=counts)

    async def _async_format_counts(self, counts: tuple[int, int]) -> str:
        """Return a text such as "2 facts and 14 turns". A count of zero is omitted."""
        parts = [
            (await self._async_get_text(f"{name}_{plural_form(self.speaker.language, count)}")).format(count=count)
            for name, count in zip(("memory_facts", "memory_turns"), counts, strict=True)
            if count
        ]
        if len(parts) == 1:
            return parts[0]
        return (await self._async_get_text(ReplyKey.AND_CONJUNCTION)).format(first=parts[0], last=parts[1])

    async def _async_get_text(self, key: str) -> str:
        return await async_get_spoken_text(self.hass, self.speaker.language, "common", key)


def _reply(request: MemoryRequest, speaker: Speaker, named: tuple[int, ...], memory: Memory) -> MemoryReply | None:
    match request.kind:
        case RequestKind.LIST_FACTS:
            return list_facts(memory, speaker)
        case RequestKind.LIST_LEARNED:
            return read_suggestions(memory, speaker)
        case RequestKind.LIST_LISTENERS:
            return list_listeners(memory, speaker, request.text, named)
        case RequestKind.UNDO:
            return undo_correction(memory, speaker, named)
        case RequestKind.REMEMBER:
            return remember_statement(memory, speaker, request.text, speaker.text, is_private=request.is_private)
        case _:
            return correct_fact(memory, speaker, request.text, is_sure=request.kind is RequestKind.CORRECT, named=named)


def _reply_if_known(
    request: MemoryRequest, speaker: Speaker, named: tuple[int, ...], memory: Memory
) -> MemoryReply | None:
    if request.kind is RequestKind.RECALL:
        return recall_facts(memory, speaker, request.text)
    return ask_to_forget_named(memory, speaker, named)
