"""Draws sentences from Home Assistant's own templates for a home, reproducibly for the same templates and seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
import json
from random import Random
from typing import Any

from hassil import expression as parts
from hassil.intents import IntentData, Intents, RangeSlotList, TextSlotList
from hassil.util import normalize_whitespace
from home_assistant_intents import get_intents

from .entities import Json
from .homes import HomePlan

LANGUAGES = ("en", "de", "fr", "es", "it", "nl")

# These homes have no media player that could provide this intent's search results.
_EXCLUDED_INTENTS = ("HassMediaSearchAndPlay",)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sentence, and the intent and slots that it was drawn from."""

    sentence: str
    intent: str
    slots: Mapping[str, str]


class _Impossible(Exception):
    """Raised when a template needs something that this home does not have."""


def draw(plan: HomePlan, file: Json, count: int, seed: int = 1) -> list[Drawn]:
    """Draw different sentences, as far as possible equally many with and without a wildcard for each intent."""
    intents = Intents.from_dict(get_intents(plan.language, json_load=json.load) or {})
    random = Random(seed)
    sources = [
        _sentences(name, templates, _Filler(intents, plan, _texts(plan, file, name), random), random)
        for name in sorted(intents.intents)
        if name not in _EXCLUDED_INTENTS
        for templates in _templates(intents, name)
    ]
    drawn: dict[str, Drawn] = {}
    for sentences in cycle(sources):
        if len(drawn) == count or not sources:
            return list(drawn.values())
        each = next(sentences, None)
        if each:
            drawn.setdefault(each.sentence, each)
    raise AssertionError


type _Template = tuple[IntentData, parts.Sentence]


def _templates(intents: Intents, name: str) -> Iterator[list[_Template]]:
    """Yield an intent's templates with a wildcard and then those without, if there are any."""
    templates = [(block, sentence) for block in intents.intents[name].data for sentence in block.sentences]
    for has_wildcard in (True, False):
        of_kind = [each for each in templates if _has_wildcard(intents, each) is has_wildcard]
        if of_kind:
            yield of_kind


def _has_wildcard(intents: Intents, template: _Template) -> bool:
    block, sentence = template
    names = sentence.list_names({**intents.expansion_rules, **block.expansion_rules})
    return any(name in block.wildcard_list_names for name in names)


def _sentences(name: str, templates: list[_Template], filler: _Filler, random: Random) -> Iterator[Drawn | None]:
    """Yield sentences of an intent endlessly, with None each time that a template could not be filled."""
    while True:
        block, sentence = random.choice(templates)
        filler.slots, filler.block = {}, block
        try:
            text = normalize_whitespace(filler.fill(sentence.expression)).strip()
        except _Impossible:
            yield None
        else:
            yield Drawn(text, name, filler.slots)


def _texts(plan: HomePlan, file: Json, intent: str) -> Mapping[str, Sequence[str]]:
    """Return the possible texts for the slot lists of the home, and for each wildcard."""
    is_new = "Add" in intent
    return {
        "area": [name for name, _ in plan.areas.values()],
        "floor": [floor for _, floor in plan.areas.values() if floor],
        "zone": plan.zones,
        "timer_name": timer_names(file)[:1],
        "timer_command": timer_names(file, "timer_command"),
        "message": [each["announces"] for each in file["message"].get("local", {}).values()],
        "todo_list_item": [_added(file, "todo_list_item", "todo.tasks") if is_new else file["task"]],
        "shopping_list_item": [_added(file, "shopping_list_item", "shopping_list") if is_new else file["bought"]],
    }


def timer_names(file: Json, group: str = "timer_name") -> list[str]:
    """Return the names, or the delayed commands, of the timers that a file's sentences start."""
    return [name for each in file[group]["local"].values() for name in each.get("timer", ())]


def _added(file: Json, group: str, of: str) -> str:
    added: list[str] = next(each[of] for each in file[group]["local"].values() if len(each[of]) > 1)
    return added[-1]


class _Filler:
    """Fills a template by drawing one option at each choice."""

    def __init__(self, intents: Intents, plan: HomePlan, texts: Mapping[str, Sequence[str]], random: Random) -> None:
        self._intents = intents
        self._names = [(spec.domain, spec.name) for spec in plan.specs] + [("person", name) for name in plan.persons]
        self._texts = texts
        self._random = random
        self.slots: dict[str, str] = {}
        self.block: IntentData

    def fill(self, expression: parts.Expression) -> str:
        """Return a text for the expression. Raises `_Impossible`."""
        if isinstance(expression, parts.TextChunk):
            return expression.original_text
        if isinstance(expression, parts.ListReference):
            return self._fill_list(expression)
        if isinstance(expression, parts.RuleReference):
            rules = {**self._intents.expansion_rules, **self.block.expansion_rules}
            return self.fill(rules[expression.rule_name].expression)
        return self._fill_group(expression)

    def _fill_group(self, group: parts.Expression) -> str:
        if isinstance(group, parts.Alternative):
            return self.fill(self._random.choice(group.items))
        if isinstance(group, parts.Permutation):
            return " ".join(map(self.fill, self._random.sample(group.items, len(group.items))))
        assert isinstance(group, parts.Sequence)
        return "".join(map(self.fill, group.items))

    def _fill_list(self, reference: parts.ListReference) -> str:
        text, value = self._value(reference.list_name)
        self.slots[reference.slot_name] = value
        return text

    def _named(self) -> Sequence[str]:
        """Return the names of the entities in the domains that the template applies to."""
        domains = self.block.requires_context.get("domain") or self.block.slots.get("domain") or ()
        return [name for domain, name in self._names if domain in ([domains] if isinstance(domains, str) else domains)]

    def _draw_text(self, texts: Sequence[str]) -> tuple[str, str]:
        if not texts:
            raise _Impossible
        text = self._random.choice(texts)
        return text, text

    def _value(self, name: str) -> tuple[str, str]:
        texts = self._named() if name == "name" else self._texts.get(name)
        if texts is not None:
            return self._draw_text(texts)
        values: Any = self.block.slot_lists.get(name) or self._intents.slot_lists[name]
        if isinstance(values, RangeSlotList):
            number = str(self._random.choice(list(values.get_numbers())))
            return number, number
        assert isinstance(values, TextSlotList)
        value = self._random.choice(values.values)
        return self.fill(value.text_in), ""
