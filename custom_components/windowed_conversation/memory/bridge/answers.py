"""Answers to memory requests without a model: requests in many languages, matched with hassil templates.

"Remember to buy milk" is a task and not a fact, so it is not matched here: to-do lists, reminders or a model handle it.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
import re
import time
from typing import Any, Protocol

from hassil.intents import Intents
from hassil.recognize import RecognizeResult, recognize_all
from homeassistant.core import HomeAssistant

from ...bridge.errors import async_get_spoken_text, plural_form
from ...turn.routing import is_question
from ..core import MAX_FACT_CHARS, Memory, MemoryUnavailable, base_language, split_words
from ..turn.audience import iter_audiences
from ..turn.dialog import MemoryDialog
from ..turn.forgetting import forget_everything, forget_fact
from ..turn.remember_requests import (
    MemoryReply,
    ReplyKey,
    correct_fact,
    list_facts,
    list_listeners,
    remember_statement,
    undo_correction,
)
from ..turn.replies import leans_to_yes, parse_long_reply
from ..turn.speaker import UNDERSTOOD_LANGUAGES, Speaker, get_word_boundary, load_language
from ..turn.suggestions import Decision, decide_and_read_on, keep_private, read_suggestions

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
_CLAUSE_END_PATTERN = re.compile("[.?!,;。？！，、]")  # noqa: RUF001 - of several scripts
_MARKS = {"stop": ".", "gap": " ", "separator": "; "}


class MemoryAccess(Protocol):
    """Runs work on the memory in a thread. Both methods raise MemoryUnavailable while the file cannot be used."""

    async def async_read[Result](self, read: Callable[[Memory], Result], default: Result) -> Result:
        """Return the result of `read`, or `default` if there is no memory file yet."""
        ...

    async def async_change[Result](self, work: Callable[[Memory], Result]) -> Result:
        """Return the result of `work` once its changes are on disk."""
        ...


class RequestKind(StrEnum):
    """The kinds of requests, named like their templates.

    `POSSIBLY_CORRECT` is a sentence that may correct a remembered fact or something else.
    """

    REMEMBER = "remember"
    CORRECT = "correct"
    POSSIBLY_CORRECT = "correct_unsure"
    UNDO = "undo"
    LIST_FACTS = "known"
    LIST_LEARNED = "learned"
    LIST_LISTENERS = "hears"
    KEEP_PRIVATE = "private"
    FORGET = "forget"
    FORGET_EVERYTHING = "forget_everything"


FORGETTING_KINDS = (RequestKind.FORGET, RequestKind.FORGET_EVERYTHING)
_LISTING_KINDS = (RequestKind.LIST_FACTS, RequestKind.LIST_LEARNED, RequestKind.LIST_LISTENERS)


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """A request to memory. `text` is its fact or subject as the speaker worded it, or empty if it has none."""

    kind: RequestKind
    text: str = ""
    # Whether only the speaker, or everybody, is to hear of it, if they say that.
    is_private: bool | None = None


@dataclass(frozen=True, slots=True)
class _SentenceTemplates:
    """The sentence templates of a language."""

    # Every sentence contains it. It is searched for first, because that is fast.
    trigger_pattern: re.Pattern[str]
    intents: Intents
    # Templates that precede a colon.
    heading_intents: Intents
    # Matches the beginning of a clause where the same words could also introduce an infinitive: "kom ihåg att".
    clause_pattern: re.Pattern[str]
    # Matches politeness before or after a captured text.
    please: re.Pattern[str]
    # The word for "me".
    word_for_me: str
    # Replaces variants of a character by the one in the templates.
    character_table: Mapping[int, int]


async def async_load_sentences(hass: HomeAssistant, language: str) -> None:
    """Load the sentences of a language, if they are not loaded yet. Later sentences need no file and no parser."""
    if not are_sentences_loaded(language):
        await hass.async_add_executor_job(_load_templates, base_language(language))


def are_sentences_loaded(language: str) -> bool:
    """Return whether a language is loaded, or has nothing to load. `match_request` then takes about a millisecond."""
    base = base_language(language)
    return base in _sentences_by_language or base not in UNDERSTOOD_LANGUAGES


def match_request(text: str, language: str) -> MemoryRequest | None:
    """Return the request in a text, or None. The first call in each language blocks on disk I/O."""
    for rest, audience in iter_audiences(text, language):
        request = _match_request(rest, language)
        if request is not None and request.kind is RequestKind.REMEMBER and audience.is_beside(request.text):
            return replace(request, is_private=audience.is_private)
    return _match_request(text, language)


def _match_request(text: str, language: str) -> MemoryRequest | None:
    language = base_language(language)
    sentences = _sentences_by_language.get(language) or _load_templates(language)
    said = text.strip()
    if sentences is None or len(said) > _MAX_REQUEST_CHARS:
        return None
    plain = said.translate(sentences.character_table)
    if not sentences.trigger_pattern.search(plain):
        return None
    found = list(recognize_all(_SPACED_COLON_PATTERN.sub(r"\1 ", plain), sentences.intents))
    if get_word_boundary(language):
        found = [each for each in found if _has_whole_words(each, said)]
    if _NO_REQUEST_INTENT in [each.intent.name for each in found]:
        return None
    # The shortest captured text wins, because its template matches more of the sentence literally.
    requests = {
        len(request.text): request for each in reversed(found) if (request := _make_request(each, said, sentences))
    }
    return _match_heading(said, sentences) or (requests[min(requests)] if requests else None)


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


_KIND_BY_TEMPLATE = {
    # some sentences match both
    "learned": RequestKind.LIST_LEARNED,
    "known": RequestKind.LIST_FACTS,
    "hears": RequestKind.LIST_LISTENERS,
    "private": RequestKind.KEEP_PRIVATE,
    "forget": RequestKind.FORGET,
    "forget_clause": RequestKind.FORGET,
    "forget_everything": RequestKind.FORGET_EVERYTHING,
    "forget_oneself": RequestKind.FORGET_EVERYTHING,
    "correct": RequestKind.CORRECT,
    "correct_unsure": RequestKind.POSSIBLY_CORRECT,
    "undo": RequestKind.UNDO,
    "hears_fact": RequestKind.LIST_LISTENERS,
    "remember": RequestKind.REMEMBER,
    "remember_clause": RequestKind.REMEMBER,
}


def _has_whole_words(found: RecognizeResult, said: str) -> bool:
    """Return whether each slot of a match begins and ends with a word: hassil finds "I" in "ice cream" as well."""
    spans = [each.text_span for each in found.entities_list if each.text_span]
    return not any(said[place - 1 : place + 1].isalnum() for span in spans for place in span if 0 < place < len(said))


def _make_request(found: RecognizeResult, said: str, sentences: _SentenceTemplates) -> MemoryRequest | None:
    name, verb = found.intent.name, _KIND_BY_TEMPLATE[found.intent.name]
    if name in _TEMPLATES_WITHOUT_TEXT:
        return MemoryRequest(verb)
    spans = [each.text_span for each in found.entities_list if each.name in _CAPTURED_SLOTS and each.text_span]
    start, end = min([start for start, _ in spans], default=0), max([end for _, end in spans], default=0)
    if verb in FORGETTING_KINDS and _takes_back(said, start, sentences):
        return None
    text = sentences.word_for_me if name == "forget_oneself" else _strip_politeness(said[start:end], sentences.please)
    may_ask = verb is RequestKind.LIST_LISTENERS or _POLITE_SLOT in found.entities
    if verb is not RequestKind.FORGET_EVERYTHING and not _could_be_fact(text, said, may_be_question=may_ask):
        return None
    if not text or (name.endswith("_clause") and not sentences.clause_pattern.match(text)):
        return None
    return MemoryRequest(verb, text)


def _takes_back(said: str, start: int, sentences: _SentenceTemplates) -> bool:
    """Return whether the speaker takes back an earlier sentence: "forget that, turn on the light".

    `start` is the place of the captured text.
    """
    clause = _CLAUSE_END_PATTERN.split(said)[0]
    if not start < len(clause) < len(said):
        return bool(_CLAUSE_END_PATTERN.match(said[:start].rstrip()[-1:]))
    found = recognize_all(clause.translate(sentences.character_table), sentences.intents)
    return _NO_REQUEST_INTENT in [each.intent.name for each in found]


def _match_heading(said: str, sentences: _SentenceTemplates) -> MemoryRequest | None:
    heading, *texts = _COLON_PATTERN.split(said, maxsplit=1)
    text = texts[0] if texts else ""
    text = _strip_politeness(text, sentences.please)
    if not _could_be_fact(text, said) or not any(recognize_all(heading, sentences.heading_intents)):
        return None
    return MemoryRequest(RequestKind.REMEMBER, text)


def _strip_politeness(text: str, please: re.Pattern[str]) -> str:
    return please.sub("", text.strip(_STRIPPABLE_CHARS)).strip(_STRIPPABLE_CHARS)


def _could_be_fact(text: str, said: str, *, may_be_question: bool = False) -> bool:
    more = sum((len(run) - 1) // _UNSPACED_WORD_CHARS for run, is_spaced in split_words(text) if not is_spaced)
    return len(text.split()) + more >= _MIN_FACT_WORDS and (may_be_question or not is_question(said))


def _load_templates(language: str) -> _SentenceTemplates | None:
    # memory also knows the small talk in English
    load_language("en")
    data = load_language(language).get("memory")
    if data is None:
        return None
    lists = {name: {"values": data[name]} for name in _LIST_SLOTS if name in data}
    parts = {
        "language": language,
        "lists": {**lists, **{name: {"wildcard": True} for name in _WILDCARD_SLOTS}},
        "expansion_rules": data["rules"],
        "skip_words": [*data["please"], *data["thanks"], *data["openers"]],
        "settings": {"ignore_whitespace": not get_word_boundary(language)},
    }
    templates = {name: data[name] for name in (*_KIND_BY_TEMPLATE, _NO_REQUEST_INTENT) if name in data}
    _sentences_by_language[language] = _SentenceTemplates(
        re.compile(data["trigger"], re.IGNORECASE),
        _parse_intents(parts, templates),
        _parse_intents(parts, {"heading": data["heading"]}),
        re.compile(data.get("clause", "")),
        _compile_politeness_pattern(data["please"], data["thanks"], get_word_boundary(language)),
        data["oneself"],
        _APOSTROPHE_TABLE | str.maketrans(*data.get("variants", ("", ""))),
    )
    return _sentences_by_language[language]


def _compile_politeness_pattern(please: list[str], thanks: list[str], edge: str) -> re.Pattern[str]:
    """Return a pattern for "please" before or after a captured text, and for thanks after it.

    Thanks are not removed at the beginning, because a fact may begin with them: "grazie a Luca ...".
    """
    before, after = "|".join(map(re.escape, please)), "|".join(map(re.escape, [*please, *thanks]))
    gap = r"(?:\W+|^)" if edge else r"\W*"
    return re.compile(rf"^(?:{before}){edge}\W*|{gap}(?:{after})$", re.IGNORECASE)


def _parse_intents(parts: dict[str, Any], templates: dict[str, list[str]]) -> Intents:
    intents = {name: {"data": [{"sentences": sentences}]} for name, sentences in templates.items()}
    loaded = Intents.from_dict({**parts, "intents": intents})
    # hassil parses templates when it first uses them. Parsing them here keeps that out of the event loop.
    list(recognize_all("", loaded))
    return loaded


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
        text, language = self.speaker.text, self.speaker.language
        forgets = self.dialog.last_answer.is_forgetting
        try:
            reply = await self._async_handle_decision() or await self._async_handle_yes_no()
            if reply is None and (request := match_request(text, language)):
                forgets = request.kind in FORGETTING_KINDS
                reply = await self._async_handle_request(request)
        except MemoryUnavailable as err:
            reply = MemoryReply(ReplyKey.BACKUP_IN_PROGRESS if err.reason == "backup" else ReplyKey.UNAVAILABLE)
        if reply is None:
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
        text = await async_get_spoken_text(self.hass, self.speaker.language, "common", reply.phrase)
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
