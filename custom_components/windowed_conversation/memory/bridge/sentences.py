"""Requests to memory in many languages, matched with hassil templates.

"Remember to buy milk" is a task and not a fact, so it is not matched here: to-do lists, reminders or a model handle it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
import re
from typing import Any

from hassil.intents import Intents
from hassil.recognize import RecognizeResult, recognize_all
from homeassistant.core import HomeAssistant

from ...turn.names import APOSTROPHE_TABLE, SENTENCE_MARKS
from ...turn.routing import is_question
from ..core import MAX_FACT_CHARS, base_language, split_words
from ..turn.speaker import UNDERSTOOD_LANGUAGES, get_word_boundary, load_language

# A longer text is too complex for templates and is passed to the model.
_MAX_REQUEST_CHARS = MAX_FACT_CHARS + 100

# A subject needs this many words, because "forget that please" names none. In a script that does not separate words, a
# word has about two characters.
_MIN_FACT_WORDS = 2
_UNSPACED_WORD_CHARS = 2

# Punctuation and spaces that may surround a clause, in several languages.
_STRIPPABLE_CHARS = f"{SENTENCE_MARKS}?¡¿？\"'“”„«»‘’-–—「」『』"  # noqa: RUF001 - of several scripts

# Slots of a template whose text is part of the fact, as in "remember {me} {text}".
_CAPTURED_SLOTS = ("me", "text", "more")
# `rest` is the reason after a request, as in "forget the sitter, she doesn't come any more".
_WILDCARD_SLOTS = ("text", "more", "rest")

# The name of the slot with phrases that turn a request into a polite question: "can you".
_POLITE_SLOT = "can"
_LIST_SLOTS = ("me", _POLITE_SLOT)

# Kinds of templates that capture no text.
_TEMPLATES_WITHOUT_TEXT = ("known", "learned", "private", "hears", "undo", "forget_last")

# hassil cannot match "corrige ça : ..." because of the space before the colon. The length of the sentence must not
# change, because spans refer to it.
_SPACED_COLON_PATTERN = re.compile(r"\s([:;])")

_WIDE_COLON = "\N{FULLWIDTH COLON}"
_NO_REQUEST_INTENT = "nothing"

# Between the words of a fact and those for its audience.
_PAUSE_CHARS = f"{SENTENCE_MARKS}-–—"  # noqa: RUF001 - of several scripts
_MARK_AT_END_PATTERN = re.compile(r"[.,;:!…–—。，、；：！-]\s*$")  # noqa: RUF001 - of several scripts
# A short word between a mark and the end: ", but".
_CONJUNCTION_PATTERN = re.compile(r"(?<=[.,;])\s*\w{1,5}\s*$")
# The names in `languages/` of the phrases, and whether a fact is private with them. None if the fact decides, as with
# "note this down for me". The sentences, "but don't tell anyone" and "everybody should know this", are patterns.
_CONFIDED, _SHARED = "confided", "shared"
_IS_PRIVATE = {_CONFIDED: True, _SHARED: False, "for_me": True, "for_all": False, "on_my_behalf": None}
_sentences_by_language: dict[str, _SentenceTemplates] = {}
_CLAUSE_END_PATTERN = re.compile("[.?!,;。？！，、]")  # noqa: RUF001 - of several scripts


class RequestKind(StrEnum):
    """The kinds of requests, named like their templates.

    `POSSIBLY_CORRECT` is a sentence that may correct a remembered fact or something else, `FORGET_THING` one that may
    call anything off: "forget the pizza", and `FORGET_LAST` one about the last sentence.
    """

    # some sentences match both of these, and are the first one
    LIST_LEARNED = "learned"
    LIST_FACTS = "known"
    RECALL = "recall"
    KEEP_PRIVATE = "private"
    LIST_LISTENERS = "hears"
    FORGET = "forget"
    FORGET_EVERYTHING = "forget_everything"
    FORGET_THING = "forget_thing"
    FORGET_LAST = "forget_last"
    CORRECT = "correct"
    POSSIBLY_CORRECT = "correct_unsure"
    UNDO = "undo"
    REMEMBER = "remember"


# Their text may be a single word.
_NAMING_KINDS = (RequestKind.RECALL, RequestKind.FORGET_EVERYTHING, RequestKind.FORGET_THING)
# They may be about anything, so all others come first.
_WEAK_KINDS = (RequestKind.RECALL, RequestKind.FORGET_THING)
FORGETTING_KINDS = (
    RequestKind.FORGET,
    RequestKind.FORGET_EVERYTHING,
    RequestKind.FORGET_THING,
    RequestKind.FORGET_LAST,
)


_FURTHER_TEMPLATES = {
    RequestKind.LIST_LISTENERS: ("hears_fact",),
    RequestKind.FORGET: ("forget_clause",),
    RequestKind.FORGET_EVERYTHING: ("forget_oneself",),
    RequestKind.FORGET_THING: ("forget_owned",),
    RequestKind.REMEMBER: ("remember_clause", "remember_bare"),
}
_KIND_BY_TEMPLATE = {name: kind for kind in RequestKind for name in (kind, *_FURTHER_TEMPLATES.get(kind, ()))}


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
    # Match the text of a template whose words could also introduce another text: an infinitive after "kom ihåg att", no
    # fact after "merk dir", a thing that nobody is to forget after "glöm", and somebody's thing after "vergiss".
    text_patterns: Mapping[str, re.Pattern[str]]
    # The groups are those of `_IS_PRIVATE`, and "but" of a sentence that confides.
    audience_pattern: re.Pattern[str]
    # Match the facts that need no request beside such a sentence. If it confides, they are of who says it.
    stated_patterns: Mapping[str, re.Pattern[str]]
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
    base = base_language(language)
    sentences = _sentences_by_language.get(base) or _load_templates(base)
    if sentences is None or len(text) > _MAX_REQUEST_CHARS:
        return None
    # a text in lower case takes a fifth of the time that a pattern for both cases takes
    if not sentences.trigger_pattern.search(text.translate(sentences.character_table).lower()):
        return None
    return _match_with_audience(text, base, sentences) or _match_request(text.strip(), base, sentences)


def _match_with_audience(text: str, language: str, sentences: _SentenceTemplates) -> MemoryRequest | None:
    """Return the request to remember a fact with its audience, or None: "just for me", "privately", "for everyone"."""
    for found in sentences.audience_pattern.finditer(text.translate(APOSTROPHE_TABLE)):
        before = _CONJUNCTION_PATTERN.sub("", text[: found.start()])
        after = text[found.end() :].strip(_PAUSE_CHARS)
        rest = f"{before.rstrip()} {text[found.end() :].lstrip()}" if before.strip(_PAUSE_CHARS) else after
        request = _match_request(rest.strip(), language, sentences)
        stated = sentences.stated_patterns.get(found.lastgroup or "")
        if request is None and stated and not (before.strip(_PAUSE_CHARS) and after):
            request = _match_stated(rest, stated, sentences.please)
        if request is None or request.kind is not RequestKind.REMEMBER:
            continue
        # before the fact, or after it and a mark or more words: in "the cake is for all", they are a part of it
        is_apart = found["but"] or _MARK_AT_END_PATTERN.search(before) or not before.rstrip().endswith(request.text)
        # in a script that does not separate words there is no mark, and the verb may be the last word
        may_follow = not get_word_boundary(language) and (after or found.lastgroup == _CONFIDED)
        if request.text in after or (request.text in before and (may_follow or (is_apart and not after))):
            return replace(request, is_private=_IS_PRIVATE[found.lastgroup or ""])
    return None


def _match_stated(said: str, stated: re.Pattern[str], please: re.Pattern[str]) -> MemoryRequest | None:
    text = _strip_politeness(said, please)
    is_stated = stated.match(text) and _could_be_fact(text, said)
    return MemoryRequest(RequestKind.REMEMBER, text) if is_stated else None


def _match_request(said: str, language: str, sentences: _SentenceTemplates) -> MemoryRequest | None:
    plain = said.translate(sentences.character_table)
    found = list(recognize_all(_SPACED_COLON_PATTERN.sub(r"\1 ", plain), sentences.intents))
    if get_word_boundary(language):
        found = [each for each in found if _has_whole_words(each, said)]
    names = {each.intent.name for each in found}
    if _NO_REQUEST_INTENT in names:
        # "forget that" may be about the fact that memory named last
        return MemoryRequest(RequestKind.FORGET_LAST) if RequestKind.FORGET_LAST in names else None
    requests = [request for each in found if (request := _make_request(each, said, sentences))]
    # the shortest captured text wins, because its template matches more of the sentence literally
    requests.sort(key=lambda request: (request.kind in _WEAK_KINDS, len(request.text)))
    return _match_heading(said, sentences) or next(iter(requests), None)


def _has_whole_words(found: RecognizeResult, said: str) -> bool:
    """Return whether each slot of a match begins and ends with a word: hassil finds "I" in "ice cream" as well."""
    spans = [each.text_span for each in found.entities_list if each.text_span]
    return not any(said[place - 1 : place + 1].isalnum() for span in spans for place in span if 0 < place < len(said))


def _make_request(found: RecognizeResult, said: str, sentences: _SentenceTemplates) -> MemoryRequest | None:
    name, verb = found.intent.name, _KIND_BY_TEMPLATE[found.intent.name]
    if name in _TEMPLATES_WITHOUT_TEXT:
        return None if verb is RequestKind.KEEP_PRIVATE and is_question(said) else MemoryRequest(verb)
    spans = [each.text_span for each in found.entities_list if each.name in _CAPTURED_SLOTS and each.text_span]
    start, end = min([start for start, _ in spans], default=0), max([end for _, end in spans], default=0)
    if verb in FORGETTING_KINDS and _takes_back(said, start, sentences):
        return None
    text = sentences.word_for_me if name == "forget_oneself" else _strip_politeness(said[start:end], sentences.please)
    may_ask = verb is RequestKind.LIST_LISTENERS or _POLITE_SLOT in found.entities
    if verb not in _NAMING_KINDS and not _could_be_fact(text, said, may_be_question=may_ask):
        return None
    pattern = sentences.text_patterns.get(name)
    if not text or (pattern and not pattern.match(text)):
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
    heading, _, rest = said.replace(_WIDE_COLON, ":").partition(":")
    text = _strip_politeness(rest, sentences.please)
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
    edge = get_word_boundary(language)
    # a fact may begin with thanks: "grazie a Luca ..."
    before, after = ["|".join(map(re.escape, each)) for each in (data["please"], [*data["please"], *data["thanks"]])]
    gap = r"(?:\W+|^)" if edge else r"\W*"
    but, confided, shared = [data.get(name, "(?!)") for name in ("but", _CONFIDED, _SHARED)]
    audiences = [
        rf"(?P<{_CONFIDED}>(?:(?P<but>{but})\W*)?(?:{confided})(?:\W*(?:{but}){edge})?)",
        f"(?P<{_SHARED}>{shared})",
    ]
    for name in ("for_me", "for_all", "on_my_behalf"):
        phrases = sorted(filter(None, data.get(name, "").lower().split("|")), key=len, reverse=True)
        audiences.append(f"(?P<{name}>{'|'.join(map(re.escape, phrases)) or '(?!)'})")
    audience = f"{edge}(?:{'|'.join(audiences)}){edge}"
    lists = {name: {"values": data[name]} for name in _LIST_SLOTS if name in data}
    parts = {
        "language": language,
        "lists": {**lists, **{name: {"wildcard": True} for name in _WILDCARD_SLOTS}},
        "expansion_rules": data["rules"],
        "skip_words": [*data["please"], *data["thanks"], *data["openers"]],
        "settings": {"ignore_whitespace": not edge},
    }
    templates = {name: data[name] for name in (*_KIND_BY_TEMPLATE, _NO_REQUEST_INTENT) if name in data}
    _sentences_by_language[language] = _SentenceTemplates(
        re.compile("|".join((data["trigger"], data.get("further_trigger", "(?!)"), audience))),
        _parse_intents(parts, templates),
        _parse_intents(parts, {"heading": data["heading"]}),
        {
            "remember_clause": (clause := re.compile(data.get("clause", ""))),
            "forget_clause": clause,
            "remember_bare": re.compile(data.get("bare", ""), re.IGNORECASE),
            "forget_owned": re.compile(data.get("owned", ""), re.IGNORECASE),
            RequestKind.FORGET_THING: re.compile(data.get("thing", ""), re.IGNORECASE),
        },
        re.compile(audience, re.IGNORECASE),
        {_CONFIDED: re.compile(data.get("stated", "(?!)"), re.IGNORECASE), _SHARED: re.compile("")},
        re.compile(rf"^(?:{before}){edge}\W*|{gap}(?:{after})$", re.IGNORECASE),
        data["oneself"],
        APOSTROPHE_TABLE | str.maketrans(*data.get("variants", ("", ""))),
    )
    return _sentences_by_language[language]


def _parse_intents(parts: dict[str, Any], templates: dict[str, list[str]]) -> Intents:
    intents = {name: {"data": [{"sentences": sentences}]} for name, sentences in templates.items()}
    loaded = Intents.from_dict({**parts, "intents": intents})
    # hassil parses templates when it first uses them. Parsing them here keeps that out of the event loop.
    list(recognize_all("", loaded))
    return loaded
