"""Answers to memory requests without a model: requests in ten languages, matched with hassil templates.

"Remember to buy milk" is a task and not a fact, so it is not matched here: to-do lists, reminders or a model handle it.
"""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
import json
from pathlib import Path
import re
from typing import Any, Protocol

from hassil.intents import Intents
from hassil.recognize import RecognizeResult, recognize_all
from homeassistant.core import HomeAssistant

from ..memory import FACT_LENGTH, Memory, MemoryUnavailable
from ..turn.forgetting import forget_everything, forget_fact
from ..turn.remember_requests import (
    MemoryDialog,
    MemoryReply,
    Phrase,
    correct,
    list_facts,
    list_listeners,
    quoted,
    remember_statement,
)
from ..turn.routing import is_question
from ..turn.speaker import Speaker, base_language
from .errors import async_text, plural

# A function that runs work which forgets, and removes the forgotten text from windows and prompts as well. Raises
# MemoryUnavailable.
type Forget = Callable[[Callable[[Memory], MemoryReply]], Coroutine[Any, Any, MemoryReply]]

# A longer text is too complex for templates and is passed to the model.
_LONGEST = FACT_LENGTH + 100

# A subject needs this many words, because "forget that please" names none.
_FEWEST_WORDS = 2

# Punctuation and spaces that may surround a clause, in several languages.
_OUTER = " \t\r\n.,;:!?¡¿…\"'“”„«»‘’-–—"  # noqa: RUF001 - of several scripts

_APOSTROPHES = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts

# Slots of a template whose text is part of the fact, as in "remember {me} {text}".
_CAPTURED = ("me", "text", "more")
_WILDCARDS = ("text", "more")

# The name of the slot with phrases that turn a request into a polite question: "can you".
_CAN = "can"
_LISTS = ("me", _CAN)

# Kinds of templates that capture no text.
_WITHOUT_TEXT = ("known", "hears")

# Accepted as a yes and as a no in every language.
_YES = ("yes", "ok", "okay")
_NO = ("no",)

# hassil cannot match "corrige ça : ..." because of the space before the colon. The length of the sentence must not
# change, because spans refer to it.
_SPACED_MARK = re.compile(r"\s([:;])")

_SPOKEN_WORDS = re.compile(r"[\w']+")
_NO_REQUEST = "nothing"
_loaded: dict[str, _Sentences] = {}
_NOTHING = MemoryReply(Phrase.NOTHING_KNOWN)
_ENDS = (".", "?", "!")
_UNQUOTED = (Phrase.REMEMBERED_OWN_CLAUSE, Phrase.REMEMBERED_HOME_CLAUSE)


class MemoryAccess(Protocol):
    """Runs work on the memory in a thread. Both methods raise MemoryUnavailable while the file cannot be used."""

    async def async_read[Result](self, read: Callable[[Memory], Result], nothing: Result) -> Result:
        """Return the result of `read`, or `nothing` if there is no memory file yet."""
        ...

    async def async_change[Result](self, work: Callable[[Memory], Result]) -> Result:
        """Return the result of `work` once its changes are on disk."""
        ...


class Verb(StrEnum):
    """The kinds of requests, named like their templates.

    `CORRECT_UNSURE` is a sentence that may correct a remembered fact or something else.
    """

    REMEMBER = "remember"
    CORRECT = "correct"
    CORRECT_UNSURE = "correct_unsure"
    LIST_FACTS = "known"
    LIST_LISTENERS = "hears"
    FORGET = "forget"
    FORGET_EVERYTHING = "forget_everything"


_FORGETTING = (Verb.FORGET, Verb.FORGET_EVERYTHING)


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """A request to memory. `text` is its fact or subject as the speaker worded it, or empty if it has none."""

    verb: Verb
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The sentence templates of a language.

    Every sentence contains a `trigger`, which is searched for first because that is fast. `headings` are templates that
    precede a colon. `clause` matches the beginning of a clause where the same words could also introduce an infinitive:
    "kom ihåg att". `please` matches politeness before or after a captured text, and `oneself` is the word for "me".
    """

    trigger: re.Pattern[str]
    intents: Intents
    headings: Intents
    clause: re.Pattern[str]
    please: re.Pattern[str]
    oneself: str


def is_loaded(language: str) -> bool:
    """Return whether a language is loaded. `match_request` then takes about a millisecond, otherwise much longer."""
    return base_language(language) in _loaded


def match_request(text: str, language: str) -> MemoryRequest | None:
    """Return the request in a text, or None. The first call in each language blocks on disk I/O."""
    language = base_language(language)
    sentences = _loaded.get(language) or _load(language)
    said = text.strip()
    if sentences is None or len(said) > _LONGEST or not sentences.trigger.search(said):
        return None
    found = list(recognize_all(_SPACED_MARK.sub(r"\1 ", said.translate(_APOSTROPHES)), sentences.intents))
    if _NO_REQUEST in [each.intent.name for each in found]:
        return None
    # The shortest captured text wins, because its template matches more of the sentence literally.
    requests = {len(request.text): request for each in reversed(found) if (request := _request(each, said, sentences))}
    return _under_heading(said, sentences) or (requests[min(requests)] if requests else None)


def assent(text: str, language: str) -> bool | None:
    """Return True if a text is a plain yes, False if it is a plain no, and None if it is neither."""
    words = " ".join(_SPOKEN_WORDS.findall(text.translate(_APOSTROPHES).casefold()))
    yes, no = _answers(base_language(language))
    if yes.fullmatch(words):
        return True
    return False if no.fullmatch(words) else None


@cache
def _answers(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns for yes and for no: one or more of their phrases, with or without "please"."""
    data = _file().get(language, {})
    please = _any_of([*data.get("please", ()), *data.get("thanks", ())])
    yes, no = _any_of([*_YES, *data.get("yes", ())]), _any_of([*_NO, *data.get("no", ())])
    return re.compile(_some_of(yes, please)), re.compile(_some_of(no, please))


def _some_of(answer: str, please: str) -> str:
    return rf"(?:{please} )*{answer}(?: (?:{answer}|{please}))*"


def _any_of(phrases: Iterable[str]) -> str:
    """Return a pattern that matches any of these phrases as whole words. Without phrases it matches nothing."""
    spoken = [" ".join(_SPOKEN_WORDS.findall(phrase.casefold())) for phrase in phrases]
    return rf"(?:{'|'.join(sorted(map(re.escape, spoken), key=len, reverse=True)) or '(?!)'})\b(?!')"


_VERBS = {
    "known": Verb.LIST_FACTS,
    "hears": Verb.LIST_LISTENERS,
    "forget": Verb.FORGET,
    "forget_clause": Verb.FORGET,
    "forget_everything": Verb.FORGET_EVERYTHING,
    "forget_oneself": Verb.FORGET_EVERYTHING,
    "correct": Verb.CORRECT,
    "correct_unsure": Verb.CORRECT_UNSURE,
    "hears_fact": Verb.LIST_LISTENERS,
    "remember": Verb.REMEMBER,
    "remember_clause": Verb.REMEMBER,
}


def _request(found: RecognizeResult, said: str, sentences: _Sentences) -> MemoryRequest | None:
    name, verb = found.intent.name, _VERBS[found.intent.name]
    if name in _WITHOUT_TEXT:
        return MemoryRequest(verb)
    spans = [each.text_span for each in found.entities_list if each.name in _CAPTURED and each.text_span]
    start, end = min([start for start, _ in spans], default=0), max([end for _, end in spans], default=0)
    text = sentences.oneself if name == "forget_oneself" else _clean(said[start:end], sentences.please)
    may_ask = verb is Verb.LIST_LISTENERS or _CAN in found.entities
    if verb is not Verb.FORGET_EVERYTHING and not _is_fact(text, said, may_be_question=may_ask):
        return None
    if not text or (name.endswith("_clause") and not sentences.clause.match(text)):
        return None
    return MemoryRequest(verb, text)


def _under_heading(said: str, sentences: _Sentences) -> MemoryRequest | None:
    heading, _, text = said.partition(":")
    text = _clean(text, sentences.please)
    if not _is_fact(text, said) or not any(recognize_all(heading, sentences.headings)):
        return None
    return MemoryRequest(Verb.REMEMBER, text)


def _clean(text: str, please: re.Pattern[str]) -> str:
    return please.sub("", text.strip(_OUTER)).strip(_OUTER)


def _is_fact(text: str, said: str, *, may_be_question: bool = False) -> bool:
    return len(text.split()) >= _FEWEST_WORDS and (may_be_question or not is_question(said))


@cache
def _file() -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_name("memory_sentences.json")
    languages: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return languages


def _load(language: str) -> _Sentences | None:
    data = _file().get(language)
    if data is None:
        return None
    lists = {name: {"values": data[name]} for name in _LISTS if name in data}
    parts = {
        "language": language,
        "lists": {**lists, **{name: {"wildcard": True} for name in _WILDCARDS}},
        "expansion_rules": data["rules"],
        "skip_words": [*data["please"], *data["thanks"], *data["openers"]],
    }
    templates = {name: data[name] for name in (*_VERBS, _NO_REQUEST) if name in data}
    _loaded[language] = _Sentences(
        re.compile(data["trigger"], re.IGNORECASE),
        _intents(parts, templates),
        _intents(parts, {"heading": data["heading"]}),
        re.compile(data.get("clause", "")),
        _please(data["please"], data["thanks"]),
        data["oneself"],
    )
    return _loaded[language]


def _please(please: list[str], thanks: list[str]) -> re.Pattern[str]:
    """Return a pattern for "please" before or after a captured text, and for thanks after it.

    Thanks are not removed at the beginning, because a fact may begin with them: "grazie a Luca ...".
    """
    before, after = "|".join(map(re.escape, please)), "|".join(map(re.escape, [*please, *thanks]))
    return re.compile(rf"^(?:{before})\b\W*|(?:\W+|^)(?:{after})$", re.IGNORECASE)


def _intents(parts: dict[str, Any], templates: dict[str, list[str]]) -> Intents:
    intents = {name: {"data": [{"sentences": sentences}]} for name, sentences in templates.items()}
    loaded = Intents.from_dict({**parts, "intents": intents})
    # hassil parses templates when it first uses them. Parsing them here keeps that out of the event loop.
    list(recognize_all("", loaded))
    return loaded


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """An answer of memory. `is_kept` is False if the user wants something forgotten.

    The exchange is then not recorded, because it would repeat the forgotten text. `asks` is True if the answer is a
    question that waits for a yes or no.
    """

    speech: str
    is_kept: bool = True
    asks: bool = False


@dataclass(frozen=True, slots=True)
class MemoryAnswers:
    """Answers one input if it is a request to memory. Without memory, only requests to forget are answered."""

    hass: HomeAssistant
    memory: MemoryAccess
    speaker: Speaker
    forget: Forget
    dialog: MemoryDialog
    has_memory: bool = True

    async def answer(self) -> MemoryAnswer | None:
        """Carry out the input's request and return the answer, or None if the input is not a request to memory."""
        text, language = self.speaker.said, self.speaker.language
        if not is_loaded(language):
            # The first sentence in a language loads its templates from disk, so it is matched in a thread first.
            await self.hass.async_add_executor_job(match_request, text, language)
        forgets = self.dialog.last.forgets
        try:
            reply = await self._async_agreed() if self.dialog.last.then else None
            if reply is None and (request := match_request(text, language)):
                forgets = request.verb in _FORGETTING
                reply = await self._async_reply(request)
        except MemoryUnavailable as err:
            reply = MemoryReply(Phrase.BACKUP if err.reason == "backup" else Phrase.UNAVAILABLE)
        if reply is None:
            return None
        self.dialog.put(reply, forgets=forgets)
        return MemoryAnswer(await self._async_speech(reply), is_kept=not forgets, asks=reply.then is not None)

    async def _async_agreed(self) -> MemoryReply | None:
        """Return the reply to a yes or no that answers the previous question, or None if the input is neither."""
        last = self.dialog.last
        if not last.then or (agreed := assent(self.speaker.said, self.speaker.language)) is None:
            return None
        if not agreed:
            return MemoryReply(Phrase.NOT_FORGOTTEN if last.forgets else Phrase.ALL_RIGHT)
        return await (self.forget(last.then) if last.forgets else self.memory.async_read(last.then, _NOTHING))

    async def _async_reply(self, request: MemoryRequest) -> MemoryReply | None:
        if request.verb in _FORGETTING:
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
        text = await async_text(self.hass, self.speaker.language, "common", reply.phrase)
        facts = "; ".join(reply.facts if reply.phrase in _UNQUOTED else map(quoted, reply.facts))
        counts = await self._async_counts(reply.counts) if any(reply.counts) else ""
        return text.format(facts=facts, replaced=facts, more=reply.more, counts=counts)

    async def _async_counts(self, counts: tuple[int, int]) -> str:
        """Return a text such as "2 facts and 14 turns". A count of zero is omitted."""
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
            return remember_statement(memory, speaker, request.text, speaker.said)
        case _:
            return correct(memory, speaker, request.text, is_sure=request.verb is Verb.CORRECT, named=named)
