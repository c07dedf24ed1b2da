"""The alias or the sentence by which Home Assistant itself would understand a command that a model carried out.

A suggestion is proved: Home Assistant's recognizer runs on the sentence, with the alias added to its names, and has to
find the same intent, target and values as the model's tool call.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
import re
from typing import Any

from hassil.expression import Group
from hassil.intents import IntentData, Intents, SlotList, TextSlotList, TextSlotValue
from hassil.recognize import RecognizeResult, recognize_all, recognize_best
from hassil.sample import sample_expression
from hassil.util import remove_punctuation
from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.conversation.const import METADATA_CUSTOM_SENTENCE
from homeassistant.core import State
from homeassistant.helpers import entity_registry as er
from homeassistant.util.json import JsonObjectType

from ..bridge.local_intents import MatchChecker
from ..turn.routing import Situation, has_no_required_word
from .home_names import TARGET_SLOTS, Command, HomeNames, Target, list_texts, normalize_name

_MAX_WORDS, _MAX_ALIAS_WORDS, _MAX_ALIAS_CHARS = 20, 4, 50
# The most candidates that are proved, and the most that are compared first.
_MAX_PROVED, _MAX_MATCHES, _MAX_SAMPLES = 3, 500, 12

_WORD_PATTERN = re.compile(r"[\w'’-]+")  # noqa: RUF001 - as in names
_ALIAS_PATTERN = re.compile(r"[\w'’-]+(?: [\w'’-]+)*")  # noqa: RUF001 - as in names
_TEMPLATE_BRACKETS = str.maketrans("|", " ", "[]()")
_TEMPLATE_SEPARATORS = str.maketrans("[]()|", "     ")


@dataclass(frozen=True, slots=True)
class _Language:
    """Home Assistant's sentences in a language, and the words of which they consist."""

    code: str
    intents: Intents
    vocabulary: frozenset[str]


class LocalSentences:
    """Finds suggestions for commands. Everything that takes long runs in the executor, in small parts."""

    def __init__(
        self, names: HomeNames, template: ConversationInput, languages: Iterable[_Language], lists: Mapping[str, Any]
    ) -> None:
        """Keep Home Assistant's slot lists; `template` is an input whose text and language are replaced."""
        self._names = names
        self._hass = names.hass
        self._template = template
        self._languages = tuple(languages)
        self._lists: dict[str, SlotList] = dict(lists)

    async def is_local(self, said: str, command: Command, target: Target | None) -> bool:
        """Return whether Home Assistant itself understands the sentence now, with the same result."""
        for language in self._languages:
            if await self._is_proved(said, language, command, target):
                return True
        return False

    async def suggest(self, said: str, command: Command, target: Target) -> JsonObjectType | None:
        """Return a proved suggestion for a command, or None."""
        is_short, words = len(_WORD_PATTERN.findall(said)) <= _MAX_WORDS, _split_words(said)
        # nothing tells the language of a sentence but its words; the first language is the home's
        likely = sorted(self._languages, key=lambda each: len(words & each.vocabulary), reverse=True)
        for language in likely:
            if is_short and (alias := await self._find_alias(said, language, command, target)):
                return {"kind": "alias", "entity_id": target.entity_id, "area_id": target.area_id, "alias": alias}
        for language in likely[:1]:
            if (sentence := await self._find_sentence(said, language, command, target)) is not None:
                return {"kind": "sentence", "sentence": sentence}
        return None

    async def _find_alias(self, said: str, language: _Language, command: Command, target: Target) -> str | None:
        """Return the shortest part of the sentence that works as an alias of the target, or None."""
        if target.entity_id is not None and er.async_get(self._hass).async_get(target.entity_id) is None:
            # only an entity of the registry can have an alias
            return None
        make = partial(_make_alias_value, self._get_state(target))
        spans = TextSlotList(target.slot, [make(each) for each in dict.fromkeys(_iter_spans(said))])
        lists = {**self._lists, target.slot: spans}
        find = partial(_find_possible_aliases, said, language, lists, command.tool, target.slot)
        found = await self._hass.async_add_executor_job(find)
        taken = [each for each in found if self._names.is_taken(each)]
        usable = [
            each
            for each in found
            if not any(name in each for name in taken) and not language.vocabulary.issuperset(_split_words(each))
        ]
        for alias in usable[:_MAX_PROVED]:
            if await self._is_proved(said, language, command, replace(target, alias=alias), make(alias)):
                return alias
        return None

    async def _find_sentence(self, said: str, language: _Language, command: Command, target: Target) -> str | None:
        """Return the sentence of Home Assistant's own that is most like this one and has the same result, or None."""
        sample = partial(_sample_sentences, said, language, command, target)
        for sentence in await self._hass.async_add_executor_job(sample):
            if await self._is_proved(sentence, language, command, target):
                return sentence
        return None

    async def _is_proved(
        self,
        text: str,
        language: _Language,
        command: Command,
        target: Target | None,
        added: TextSlotValue | None = None,
    ) -> bool:
        """Return whether Home Assistant, with a name added, does the same as the model on hearing the text."""
        result = await self._hass.async_add_executor_job(
            _recognize, text, language, self._lists, added, target.slot if target else None
        )
        if result is None or not self._names.is_same(result, command, target):
            return False
        spoken = replace(self._template, text=text, language=language.code)
        checker = MatchChecker(self._hass, spoken, Situation(), model_has_tools=True)
        return await checker.find_rejection_reason(result) is None

    def _get_state(self, target: Target) -> State | None:
        return None if target.entity_id is None else self._hass.states.get(target.entity_id)


async def async_load_local_sentences(
    names: HomeNames, template: ConversationInput, codes: Iterable[str]
) -> LocalSentences:
    """Return Home Assistant's sentences in these languages. Without its recognizer there are none."""
    agent: Any = async_get_agent(names.hass)
    load, make_lists = (getattr(agent, name, None) for name in ("async_get_or_load_intents", "_make_slot_lists"))
    if load is None or make_lists is None:
        return LocalSentences(names, template, (), {})
    languages: list[_Language] = []
    for code in codes:
        if (loaded := await load(code)) is not None:
            words = await names.hass.async_add_executor_job(_list_vocabulary, loaded.intents_dict)
            languages.append(_Language(code, loaded.intents, words))
    return LocalSentences(names, template, languages, await make_lists())


def _recognize(
    text: str, language: _Language, lists: dict[str, SlotList], added: TextSlotValue | None, slot: str | None
) -> RecognizeResult | None:
    """Return the match that Home Assistant's agent would take, with a value added to one of its lists."""
    if added is not None and slot is not None and isinstance(name_list := lists.get(slot), TextSlotList):
        lists = {**lists, slot: TextSlotList(slot, [*name_list.values, added])}
    return recognize_best(
        text,
        language.intents,
        slot_lists=lists,
        language=language.code,
        best_metadata_key=METADATA_CUSTOM_SENTENCE,
        best_slot_name="name",
    )


def _make_alias_value(state: State | None, alias: str) -> TextSlotValue:
    """Return an alias as Home Assistant's agent lists it, with the context of its entity."""
    context: dict[str, Any] = {}
    if state is not None:
        context["domain"] = state.domain
        if "device_class" in state.attributes:
            context["device_class"] = state.attributes["device_class"]
    return TextSlotValue.from_tuple((remove_punctuation(alias).strip(), alias, context), allow_template=False)


def _find_possible_aliases(
    said: str, language: _Language, lists: dict[str, SlotList], tool: str, slot: str
) -> list[str]:
    """Return the listed parts of a sentence that stand where the intent's sentences have a name, shortest first."""
    matches = recognize_all(said, language.intents, slot_lists=lists, language=language.code)
    found = {
        str(match.entities[slot].value)
        for match in islice(matches, _MAX_MATCHES)
        if match.intent.name == tool and slot in match.entities and _has_other_words(said, match)
    }
    return sorted(found, key=lambda each: (len(each), each))


def _has_other_words(said: str, match: RecognizeResult) -> bool:
    """Return whether a sentence has words beside its names and values. Without any, each sentence could be a name."""
    spans = [each.text_span for each in match.entities_list if each.text_span is not None]
    words = (each.span() for each in _WORD_PATTERN.finditer(said))
    return any(not any(begin <= first and last <= end for begin, end in spans) for first, last in words)


def _iter_spans(said: str) -> Iterator[str]:
    """Yield the parts of a sentence that can be an alias: a few words with letters, and nothing but spaces between."""
    words = list(_WORD_PATTERN.finditer(said))
    for begin, first in enumerate(words):
        for last in words[begin : begin + _MAX_ALIAS_WORDS]:
            text = said[first.start() : last.end()]
            has_letter = any(char.isalpha() for char in text)
            if has_letter and len(text) <= _MAX_ALIAS_CHARS and _ALIAS_PATTERN.fullmatch(text):
                yield text


def _split_words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def _list_vocabulary(intents: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of a language's sentences. A name that consists of these could be part of any sentence."""
    sentences = [text for each in intents["intents"].values() for data in each["data"] for text in data["sentences"]]
    values = [text for each in intents.get("lists", {}).values() for text in _iter_value_texts(each)]
    texts = [*sentences, *intents.get("expansion_rules", {}).values(), *intents.get("skip_words", ()), *values]
    found = set[str]()
    for text in texts:
        plain = re.sub(r"[<{][^<>{}]*[>}]", " ", text)
        # an optional ending, as in "light[s]", makes two words
        found |= _split_words(plain.translate(_TEMPLATE_BRACKETS)) | _split_words(plain.translate(_TEMPLATE_SEPARATORS))
    return frozenset(found)


def _iter_value_texts(slot_list: Mapping[str, Any]) -> Iterator[str]:
    for value in slot_list.get("values", ()):
        yield str(value["in"]) if isinstance(value, Mapping) else str(value)


def _sample_sentences(said: str, language: _Language, command: Command, target: Target) -> list[str]:
    """Return short sentences of the intent with the real name and values, those most like this one first."""
    intent = language.intents.intents.get(command.tool)
    spoken = _split_words(said)
    texts = {target.slot: target.name, **command.values}
    found = dict.fromkeys(
        " ".join(sentence.split())
        for data in (intent.data if intent else ())
        if _fits_domain(data, target)
        for sentence in _iter_samples(language, data, texts)
    )

    def rank(sentence: str) -> tuple[int, bool, int]:
        """A whole sentence is better than a name with a word after it."""
        return -len(spoken & _split_words(sentence)), sentence.startswith(target.name), len(sentence)

    return sorted(found, key=rank)[:_MAX_PROVED]


def _fits_domain(data: IntentData, target: Target) -> bool:
    domains = list_texts(data.requires_context.get("domain"))
    return target.domain is None or not domains or target.domain in domains


def _iter_samples(language: _Language, data: IntentData, texts: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences from the templates that contain exactly the given slots, and nothing optional."""
    rules = {**language.intents.expansion_rules, **data.expansion_rules}
    slot_lists = {**language.intents.slot_lists, **data.slot_lists}
    for template in data.sentences:
        if not isinstance(template.expression, Group) or has_no_required_word(template.text or ""):
            continue
        references = list(template.expression.list_references(rules))
        slots = {each.slot_name for each in references}
        if slots | (data.slots.keys() - TARGET_SLOTS) != texts.keys():
            continue
        lists = {
            each.list_name: _list_one(slot_lists.get(each.list_name), texts[each.slot_name]) for each in references
        }
        samples = sample_expression(template.expression, lists, rules, language.code, skip_optionals=True)
        yield from islice(samples, _MAX_SAMPLES)


def _list_one(slot_list: SlotList | None, value: object) -> SlotList:
    """Return a list with nothing but the words for one value."""
    if isinstance(slot_list, TextSlotList):
        words = [each for each in slot_list.values if normalize_name(str(each.value_out)) == normalize_name(str(value))]
        return TextSlotList(slot_list.name, words[:1] or [_make_plain_value(value)])
    return TextSlotList(None, [_make_plain_value(value)])


def _make_plain_value(value: object) -> TextSlotValue:
    return TextSlotValue.from_tuple((str(value), value), allow_template=False)


def build_input_template(agent_id: str, context: Any) -> ConversationInput:
    """Return an input without a text, as a person would type it."""
    return ConversationInput(
        text="",
        context=context,
        conversation_id=None,
        device_id=None,
        satellite_id=None,
        language="",
        agent_id=agent_id or conversation.HOME_ASSISTANT_AGENT,
    )
