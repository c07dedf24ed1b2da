"""Answers to requests to memory, and to replies to its questions, without a model."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
import re
import time
from typing import Any

from homeassistant.core import HomeAssistant

from ...bridge.errors import async_get_spoken_text, plural_form
from ..core import MAX_FACT_CHARS, Memory, MemoryAccess, MemoryUnavailable, base_language
from ..turn.dialog import MemoryDialog
from ..turn.evidence import asks_to_forget
from ..turn.forgetting import ask_to_forget_named, forget_everything, forget_fact
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
from ..turn.replies import leans_to_yes, parse_long_reply
from ..turn.speaker import Speaker, get_word_boundary, load_language
from ..turn.suggestions import Decision, decide_and_read_on, keep_private, read_suggestions
from .sentences import MemoryRequest, RequestKind, _SentenceTemplates, match_request

# A function that runs work which forgets, and removes the forgotten text from windows and prompts as well. Raises
# MemoryUnavailable.
type ForgetCallback = Callable[[Callable[[Memory], MemoryReply]], Coroutine[Any, Any, MemoryReply]]

# A longer text is too complex for templates and is passed to the model.
_MAX_REQUEST_CHARS = MAX_FACT_CHARS + 100

# A subject needs this many words, because "forget that please" names none. In a script that does not separate words, a
# word has about two characters.
_MIN_FACT_WORDS = 2
_UNSPACED_WORD_CHARS = 2

# Punctuation and spaces that may surround a clause, in several languages.
_STRIPPABLE_CHARS = " \t\r\n.,;:!?¡¿…\"'“”„«»‘’-–—。，、；：！？「」『』　"  # noqa: RUF001 - of several scripts

_APOSTROPHE_TABLE = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts

# Slots of a template whose text is part of the fact, as in "remember {me} {text}".
_CAPTURED_SLOTS = ("me", "text", "more")
_WILDCARD_SLOTS = ("text", "more")

# The name of the slot with phrases that turn a request into a polite question: "can you".
_POLITE_SLOT = "can"
_LIST_SLOTS = ("me", _POLITE_SLOT)

# Kinds of templates that capture no text.
_TEMPLATES_WITHOUT_TEXT = ("known", "learned", "private", "hears", "undo")

# Accepted as a yes and as a no in every language.
_ANSWERS = {"yes": ("yes", "ok", "okay"), "no": ("no",)}

# hassil cannot match "corrige ça : ..." because of the space before the colon. The length of the sentence must not
# change, because spans refer to it.
_SPACED_COLON_PATTERN = re.compile(r"\s([:;])")

_COLON_PATTERN = re.compile("[:：]")  # noqa: RUF001 - of several scripts
_WORD_PATTERN = re.compile(r"[\w']+")
_NO_REQUEST_INTENT = "nothing"
_sentences_by_language: dict[str, _SentenceTemplates] = {}
_NOTHING_KNOWN = MemoryReply(ReplyKey.NOTHING_KNOWN)
_SENTENCE_ENDINGS = (".", "?", "!", "。", "？", "！")  # noqa: RUF001 - of several scripts
_MARKS = {"stop": ".", "gap": " ", "separator": "; "}


FORGETTING_KINDS = (RequestKind.FORGET, RequestKind.FORGET_EVERYTHING)
_LISTING_KINDS = (RequestKind.LIST_FACTS, RequestKind.LIST_LEARNED, RequestKind.LIST_LISTENERS)


def parse_yes_no(text: str, language: str, *, to_memory: bool = False) -> bool | None:
    """Return True if a text is a plain yes, False if it is a plain no, and None if it is neither.

    With `to_memory`, words that answer only a question of memory count, too: "tell me more", "yes, delete it", "oh no".
    """
    if _is_answer(text, language, ("yes", "yes_to_memory") if to_memory else ("yes",)):
        return True
    if _is_answer(text, language, ("no",)):
        return False
    return parse_long_reply(text, language) if to_memory else None


def parse_decision(text: str, language: str) -> Decision | None:
    """Return the decision of a text about suggestions that were read out, or None if it is anything else."""
    return next((each for each in Decision if _is_answer(text, language, (each,))), None)


def _is_answer(text: str, language: str, names: tuple[str, ...]) -> bool:
    """Return whether a text is one or more phrases of these lists, with or without "please"."""
    words = " ".join(_WORD_PATTERN.findall(text.translate(_APOSTROPHE_TABLE).casefold()))
    return _compile_answer_pattern(base_language(language), names).fullmatch(words) is not None


@cache
def _compile_answer_pattern(language: str, names: tuple[str, ...]) -> re.Pattern[str]:
    data = load_language(language).get("memory", {})
    edge = get_word_boundary(language)
    gap = " " if edge else " ?"
    please = _any_of([*data.get("please", ()), *data.get("thanks", ())], edge)
    phrases = _any_of([each for name in names for each in (*_ANSWERS.get(name, ()), *data.get(name, ()))], edge)
    return re.compile(f"(?:{please}{gap})*{phrases}(?:{gap}(?:{phrases}|{please}))*")


def _any_of(phrases: Iterable[str], edge: str) -> str:
    """Return a pattern that matches any of these phrases, up to the end of a word. Without phrases it matches none."""
    spoken = [" ".join(_WORD_PATTERN.findall(phrase.casefold())) for phrase in phrases]
    return rf"(?:{'|'.join(sorted(map(re.escape, spoken), key=len, reverse=True)) or '(?!)'}){edge}(?!')"


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
        last, rows = self.dialog.last_answer, self.dialog.last_answer.named_fact_ids
        decision = parse_decision(self.speaker.text, self.speaker.language)
        if decision is None or not rows or last.is_forgetting:
            return None
        work = partial(decide_and_read_on, speaker=self.speaker, rows=rows, decision=decision)
        return await self.memory.async_change(work)

    async def _async_handle_request(self, request: MemoryRequest) -> MemoryReply | None:
        if request.kind in FORGETTING_KINDS:
            reply = await self.forget(partial(_handle_forget_request, request, self.speaker))
            # a model may know which fact is meant; a request with the text of a fact stays out of conversations
            is_passed_on = self.can_model_forget and request.kind is RequestKind.FORGET_EVERYTHING
            return None if is_passed_on and reply.phrase is ReplyKey.NOT_FOUND else reply
        if request.kind is RequestKind.KEEP_PRIVATE:
            self.dialog.is_private = True
            return await self.forget(partial(keep_private, speaker=self.speaker, now=time.time()))
        if not self.has_memory:
            return None
        work = partial(_reply, request, self.speaker, self.dialog.last_answer.named_fact_ids)
        if request.kind in _LISTING_KINDS:
            return await self.memory.async_read(work, _NOTHING_KNOWN)
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


def _handle_forget_request(request: MemoryRequest, speaker: Speaker, memory: Memory) -> MemoryReply:
    forget = forget_fact if request.kind is RequestKind.FORGET else forget_everything
    return forget(memory, speaker, request.text)


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
