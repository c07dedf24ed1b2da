"""Answers about memory that need no model: requests by words in ten languages, matched with hassil's templates.

"Remember to buy milk" is no fact but something to do: it is left to lists, reminders and models.
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

# Does work that forgets, also in windows and prompts. Raises MemoryUnavailable.
type Forget = Callable[[Callable[[Memory], MemoryReply]], Coroutine[Any, Any, MemoryReply]]

# A longer text is a story, for the model to understand.
_LONGEST = FACT_LENGTH + 100

# "Forget that please" names nothing.
_FEWEST_WORDS = 2

# Characters around a clause, in several languages.
_OUTER = " \t\r\n.,;:!?¡¿…\"'“”„«»‘’-–—"  # noqa: RUF001 - of several scripts

_APOSTROPHES = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts

# Words in the template that belong to a captured fact: "remember {me} {text}".
_CAPTURED = ("me", "text", "more")

_WILDCARDS = ("text", "more")

# How a request begins that is a question only in form: "can you".
_CAN = "can"

_LISTS = ("me", _CAN)

# Templates that capture no text.
_WITHOUT_TEXT = ("known", "hears")

# Understood in every language.
_YES = ("yes", "ok", "okay")

_NO = ("no",)

# hassil finds no template in "corrige ça : ..."; the sentence keeps its length, for its spans.
_SPACED_MARK = re.compile(r"\s([:;])")

_SPOKEN_WORDS = re.compile(r"[\w']+")
_NO_REQUEST = "nothing"
_loaded: dict[str, _Sentences] = {}
_NOTHING = MemoryReply(Phrase.NOTHING_KNOWN)
_ENDS = (".", "?", "!")
_UNQUOTED = (Phrase.REMEMBERED_OWN_CLAUSE, Phrase.REMEMBERED_HOME_CLAUSE)


class MemoryAccess(Protocol):
    """Runs work on the one memory in a thread; each raises MemoryUnavailable while the file cannot be used."""

    async def async_read[Result](self, read: Callable[[Memory], Result], nothing: Result) -> Result:
        """Return the result of `read`, or `nothing` if there is no file yet."""
        ...

    async def async_change[Result](self, work: Callable[[Memory], Result]) -> Result:
        """Return the result of `work` when its change is on disk."""
        ...


_FILE = Path(__file__).with_name("memory_sentences.json")


class Verb(StrEnum):
    """The kinds of requests, by the names of their templates. A correction that is not sure may correct anything."""

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
    """A request to memory, and the fact or the subject that it is about in the speaker's words, empty without one."""

    verb: Verb
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The templates of a language.

    No sentence is without a `trigger`, which is looked for first. `headings` stand before a colon. `clause` is how a
    clause begins where the same words may be followed by an infinitive: "kom ihåg att". `please` stands before or after
    a captured text, and `oneself` is "me".
    """

    trigger: re.Pattern[str]
    intents: Intents
    headings: Intents
    clause: re.Pattern[str]
    please: re.Pattern[str]
    oneself: str


def languages() -> tuple[str, ...]:
    """Return the languages that there are sentences in."""
    return tuple(_file())


def is_loaded(language: str) -> bool:
    """Return whether `match_request` answers at once. It takes about a millisecond, and much longer if it loads."""
    return base_language(language) in _loaded


def match_request(text: str, language: str) -> MemoryRequest | None:
    """Return the request in a text, None if there is none. The first call in a language waits for the disk."""
    language = base_language(language)
    sentences = _loaded.get(language) or _load(language)
    said = text.strip()
    if sentences is None or len(said) > _LONGEST or not sentences.trigger.search(said):
        return None
    found = list(recognize_all(_SPACED_MARK.sub(r"\1 ", said.translate(_APOSTROPHES)), sentences.intents))
    if _NO_REQUEST in [each.intent.name for each in found]:
        return None
    # the template that says more itself is meant
    requests = {len(request.text): request for each in reversed(found) if (request := _request(each, said, sentences))}
    return _under_heading(said, sentences) or (requests[min(requests)] if requests else None)


def assent(text: str, language: str) -> bool | None:
    """Return whether a text, as the answer to a question, is a plain yes or a plain no; None if it is neither."""
    words = " ".join(_SPOKEN_WORDS.findall(text.translate(_APOSTROPHES).casefold()))
    yes, no = _answers(base_language(language))
    if yes.fullmatch(words):
        return True
    return False if no.fullmatch(words) else None


@cache
def _answers(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of yes and no: one or more of their phrases, with or without "please"."""
    data = _file().get(language, {})
    please = _any_of([*data.get("please", ()), *data.get("thanks", ())])
    yes, no = _any_of([*_YES, *data.get("yes", ())]), _any_of([*_NO, *data.get("no", ())])
    return re.compile(_some_of(yes, please)), re.compile(_some_of(no, please))


def _some_of(answer: str, please: str) -> str:
    return rf"(?:{please} )*{answer}(?: (?:{answer}|{please}))*"


def _any_of(phrases: Iterable[str]) -> str:
    """Return the pattern of any of these phrases as whole words, nothing if there are none."""
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
    languages: dict[str, dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
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
    """Return the pattern of either around a captured text. A fact may begin with thanks: "grazie a Luca ..."."""
    before, after = "|".join(map(re.escape, please)), "|".join(map(re.escape, [*please, *thanks]))
    return re.compile(rf"^(?:{before})\b\W*|(?:\W+|^)(?:{after})$", re.IGNORECASE)


def _intents(parts: dict[str, Any], templates: dict[str, list[str]]) -> Intents:
    intents = {name: {"data": [{"sentences": sentences}]} for name, sentences in templates.items()}
    loaded = Intents.from_dict({**parts, "intents": intents})
    # hassil parses templates when it first needs them: here, and not in the event loop
    list(recognize_all("", loaded))
    return loaded


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
        """Return the result of a yes or a no to the question before, or None if this is neither."""
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
            return remember_statement(memory, speaker, request.text, speaker.said)
        case _:
            return correct(memory, speaker, request.text, is_sure=request.verb is Verb.CORRECT, named=named)
