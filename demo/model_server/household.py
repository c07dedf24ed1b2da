"""The home as one request describes it: the entities of the overview, and their states."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import chain

from .conversation import Conversation
from .home_overview import OverviewEntity, find_entities
from .home_states import ListedHome, parse_listed_home
from .live_context import parse_states
from .sentences import Sentence

# The states in which entities are counted and not listed.
_COUNTED_STATES = ("on", "off", "open", "closed", "locked", "unlocked", "playing", "detected")
# The domains of the kinds that a sentence may name by another word.
_DOMAIN_BY_KIND = {"window": "binary_sensor", "garage": "cover"}


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity, and its state as the request says it, or None if it does not."""

    entity: OverviewEntity
    state: str | None

    @property
    def name(self) -> str:
        """The name of the entity."""
        return self.entity.name

    @property
    def domain(self) -> str:
        """The domain of the entity."""
        return self.entity.domain

    @property
    def word(self) -> str:
        """The first word of the state, such as "on" of "on 60%"; empty if it is not known."""
        return (self.state or "").partition(" ")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the entity."""
        return self.entity.name, *self.entity.aliases

    def is_of_kind(self, kind: str) -> bool:
        """Return whether the entity is of this kind, which is a domain or a word of names."""
        if kind in _DOMAIN_BY_KIND:
            return self.entity.domain == _DOMAIN_BY_KIND[kind] and self.entity.is_of_kind(kind)
        return self.entity.domain == kind

    def is_in(self, area: str) -> bool:
        """Return whether the entity is in this area, ignoring case."""
        return area.lower() in (self.entity.area.lower(), *(each.lower() for each in self.entity.area_aliases))


@dataclass(frozen=True, slots=True)
class Household:
    """The things of the home, as the request and the results of look-ups describe them."""

    things: tuple[Thing, ...]
    context_area: str

    def find_areas(self, sentence: Sentence) -> list[str]:
        """Return the areas that the sentence names, or the one in which it is said if it says "here"."""
        entities = [thing.entity for thing in self.things if thing.entity.area]
        named = [each.area for each in entities if any(map(sentence.names, (each.area, *each.area_aliases)))]
        here = [self.context_area] if sentence.is_here and self.context_area else []
        return list(dict.fromkeys(named or here))

    def find_named(self, sentence: Sentence) -> list[Thing]:
        """Return the things that the sentence calls by a name."""
        return [thing for thing in self.things if any(map(sentence.names, thing.names))]

    def find_of_kinds(self, kinds: Iterable[str], areas: Iterable[str]) -> list[Thing]:
        """Return the things of these kinds, in these areas if there are any."""
        kinds, areas = tuple(kinds), tuple(areas)
        return [
            thing
            for thing in self.things
            if any(map(thing.is_of_kind, kinds)) and (not areas or any(map(thing.is_in, areas)))
        ]

    def find_meant(self, sentence: Sentence, conversation: Conversation, domains: Collection[str] = ()) -> list[Thing]:
        """Return the things that the sentence is about: named ones, those of a kind in a place, or the last for "it".

        If there are `domains`, they are only of these.
        """
        found = self._find_in(sentence, domains)
        is_it = sentence.has_pronoun and not self.find_areas(sentence)
        return found or (self._find_last_named(conversation, domains) if is_it else [])

    def find_where(self, is_meant: Callable[[Thing], bool]) -> list[Thing]:
        """Return the things for which this is true."""
        return [thing for thing in self.things if is_meant(thing)]

    def _find_in(self, sentence: Sentence, domains: Collection[str]) -> list[Thing]:
        found = self.find_named(sentence) or self.find_of_kinds(sentence.kinds, self.find_areas(sentence))
        return [thing for thing in found if not domains or thing.domain in domains]

    def _find_last_named(self, conversation: Conversation, domains: Collection[str]) -> list[Thing]:
        """Return the things of the newest earlier message that is about any."""
        for turn in reversed(conversation.earlier_turns):
            texts = [turn.text if turn.role == "assistant" else turn.plain_text]
            texts += [str(value) for call in turn.calls for value in call.arguments.values()]
            found = self._find_in(Sentence(" ".join(texts)), domains)
            if found and turn.role in ("user", "assistant"):
                return found
        return []


def parse_household(conversation: Conversation) -> Household:
    """Return the home of the request."""
    results = [result.text for called in conversation.tool_rounds for result in called]
    home = parse_listed_home(conversation.turns, results)
    looked_up = dict(chain.from_iterable(parse_states(text).state_by_name.items() for text in results))
    things = (Thing(entity, _find_state(entity, home)) for entity in find_entities(conversation.turns))
    known = tuple(replace(thing, state=thing.state or looked_up.get(thing.name)) for thing in things)
    context = conversation.newest_user_turn.context
    return Household(known, context.get("area") or context.get("room") or "")


def _find_state(entity: OverviewEntity, home: ListedHome) -> str | None:
    state = home.find_state(entity.name)
    if state is not None:
        return state
    kinds = sorted(filter(entity.is_of_kind, home.rest_states_by_kind), key=lambda kind: kind != entity.domain)
    if not kinds or home.can_be_unlisted(kinds[0], _COUNTED_STATES):
        return None
    states = home.rest_states_by_kind[kinds[0]]
    return next(iter(states)) if len(states) == 1 else None
