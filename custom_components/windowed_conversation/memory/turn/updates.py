"""Updates of facts: which earlier fact of the same owner a new one replaces, may replace, or leaves true as well.

Days, times and numbers are the values of a fact, and the words between them its subject. A number that belongs to the
first noun ("bus 12") is a name, and a part of the subject.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
import math
import re
from typing import NamedTuple

from ..core import RecallHit, Words, base_language, clean_text, get_function_words
from .speaker import get_word_boundary, load_language

# The minimum share of the subject of the shorter, or of the longer one of two facts that the other one has, if the new
# one announces a change.
_MIN_SHARE_OF_SHORTER = 0.6
_MIN_SHARE_OF_LONGER = 0.5
# The minimum share of the subject of the shorter of two facts that the other one has, if a model says that it is newer.
_MIN_SHARED_SUBJECT = 0.4
# With fewer shared words, a garage's code is taken for its door.
_MIN_SHARED_WORDS = 2

# Words in the lists with at least this length also match with an ending: "montags".
_MIN_STEM_CHARS = 5

# Events at two times of a day with at least this many hours in between may both take place, day after day.
_MIN_HOURS_APART = 4
_MAX_HOUR = 24


class FoundUpdate(NamedTuple):
    """A fact that a new one updates, or may update if it is not sure."""

    fact: RecallHit
    is_sure: bool


@dataclass(frozen=True, slots=True)
class _UpdatePatterns:
    """The words of a language by which facts are compared."""

    # Phrases that announce a change, words that hint at one, and those that say that both are true.
    change: re.Pattern[str]
    hint: re.Pattern[str]
    addition: re.Pattern[str]
    # Days, times and numbers.
    value: re.Pattern[str]
    # Verbs before the place or the nature of something. Those in its group have one place or name: "lies", "is called".
    state: re.Pattern[str]
    # Each matches words that mean the same in facts: to live somewhere, and to have moved there.
    synonyms: tuple[re.Pattern[str], ...]
    weekday: re.Pattern[str]
    month: re.Pattern[str]
    # Values that are no numbers.
    part_of_day: re.Pattern[str]
    number_by_word: Mapping[str, int]
    negation: re.Pattern[str]
    stop_words: frozenset[str]


class _StateParts(NamedTuple):
    """The subject before and after the first verb of a state. Both are empty without one."""

    head: frozenset[str] = frozenset()
    predicate: frozenset[str] = frozenset()
    # Whether it begins with a name: a person is many things at a time, unlike "the plumber".
    begins_with_name: bool = False
    has_one_value: bool = False
    # Whether it is somewhere, or somebody with a name of at least two words; neither is known of other predicates.
    is_place: bool = False
    is_name: bool = False


class _FactParts(NamedTuple):
    """The parts of a fact."""

    # Without punctuation.
    said: str
    has_change_phrase: bool
    has_hint: bool
    is_negated: bool
    subject: frozenset[str]
    values: tuple[str, ...]
    hours: frozenset[int]
    # The number that is a part of the name.
    name: str
    state: _StateParts


def find_update(text: str, facts: Sequence[RecallHit], language: str, words: Words) -> FoundUpdate | None:
    """Return the one fact that a new fact updates, or else may update, or None if there is none or more than one."""
    patterns = _load_patterns(base_language(language))
    new = _parse_fact(text, patterns, words)
    if patterns.addition.search(new.said):
        return None
    found = [(fact, _is_update(new, _parse_fact(fact.text, patterns, words), patterns)) for fact in facts]
    for is_sure in (True, False):
        if chosen := [fact for fact, update in found if update is is_sure]:
            return FoundUpdate(chosen[0], is_sure) if len(chosen) == 1 else None
    return None


def build_search_query(text: str, language: str, words: Words) -> str:
    """Return a query for the facts that a new one may update, or an empty text if it has no words to search for.

    It has all words that mean the same as one of the fact. "I get up at six" has only a time and small words.
    """
    patterns, plain = _load_patterns(base_language(language)), clean_text(text)
    synonyms = _find_synonyms(plain, patterns)
    if not synonyms and not _build_subject(plain, patterns, words):
        return ""
    groups = load_language(language)["updates"]["same"] if synonyms else ()
    return " ".join([text, *[groups[int(each[1:])] for each in synonyms]])


def shares_subject(text: str, old_text: str, language: str, words: Words, said: str = "") -> bool:
    """Return whether two facts are about the same thing: share enough of the shorter one's subject, and the name.

    One word is enough if it is the subject before the same verb ("is called"), or a verb with synonyms ("works").

    If `said` is given, the shared words must be among those that were said.
    """
    patterns = _load_patterns(base_language(language))
    new, old = [_parse_fact(each, patterns, words) for each in (text, old_text)]
    shared = new.subject & old.subject
    if said:
        shared &= words.build_term_set(said) | _find_synonyms(clean_text(said), patterns)
    shortest = min(len(new.subject), len(old.subject))
    is_addition = bool(patterns.addition.search(new.said))
    is_same_subject = bool(new.state.head) and new.state.head == old.state.head
    is_same_verb = any(term[0] == "=" for term in shared)
    least = 1 if is_same_subject or is_same_verb else min(_MIN_SHARED_WORDS, shortest)
    is_same = len(shared) >= max(least, 1, _MIN_SHARED_SUBJECT * shortest)
    return new.name == old.name and not is_addition and is_same


def may_replace(text: str, old_text: str, language: str, words: Words) -> bool:
    """Return whether a fact replaces another one if a model says so: they differ in more than values."""
    patterns = _load_patterns(base_language(language))
    new, old = [_parse_fact(each, patterns, words).subject for each in (text, old_text)]
    return new != old and shares_subject(text, old_text, language, words)


def _is_update(new: _FactParts, old: _FactParts, patterns: _UpdatePatterns) -> bool | None:
    """Return True if a fact updates another one, False if it may update it, and None if both may be true."""
    if new.said == old.said or new.name != old.name or not new.subject or not old.subject:
        return None
    is_same, are_valued = new.subject == old.subject, bool(new.values and old.values)
    if is_same and new.is_negated != old.is_negated:
        return True if not new.values or new.values == old.values else None
    if is_same and are_valued and new.values != old.values:
        return new.has_change_phrase or not _may_both_happen(new, old, patterns)
    if new.values and not old.values and not is_same:
        return None
    return _is_change(new, old)


def _is_change(new: _FactParts, old: _FactParts) -> bool | None:
    """Return the same as `_is_update` for facts that differ in other words than values."""
    shared, is_valued_alike = new.subject & old.subject, bool(new.values) == bool(old.values)
    # a synonym that only one of them has is no word of its own: "moved", "is in"
    sizes = [len([term for term in each.subject if term[0] != "=" or term in shared]) for each in (new, old)]
    synonyms = [term for term in shared if term[0] == "="]
    is_half = bool(shared) and len(shared) >= _MIN_SHARE_OF_LONGER * max(sizes)
    is_contained = len(shared) == min(sizes) and len(shared) > len(synonyms)
    are_names = new.state.is_name and old.state.is_name
    is_same_state = bool(new.state.head) and new.state.head == old.state.head
    is_same_state = is_same_state and new.state.predicate.isdisjoint(old.state.predicate)
    if not new.has_change_phrase:
        is_same_kind = is_same_state and (are_names or (new.state.is_place and old.state.is_place))
        may_update = (is_half and new.has_hint) or (is_same_kind and not new.state.begins_with_name)
        is_denied = is_contained and new.is_negated != old.is_negated
        return False if is_denied or (may_update and is_valued_alike) else None
    has_one_value = is_same_state and (new.state.has_one_value or are_names)
    if is_contained or has_one_value or (synonyms and is_half and min(sizes) > 1):
        return True
    if len(shared) > len(synonyms) and len(shared) >= _MIN_SHARE_OF_SHORTER * min(sizes):
        return bool(new.state.head and old.state.head)
    return False if (is_half and min(sizes) > 1) or is_same_state else None


def _may_both_happen(new: _FactParts, old: _FactParts, patterns: _UpdatePatterns) -> bool:
    """Return whether facts differ only in their times of a day, which are hours apart."""
    mine, theirs = {*new.values} - {*old.values}, {*old.values} - {*new.values}
    if any(map(patterns.weekday.match, mine | theirs)) or any(map(patterns.month.match, (*new.values, *old.values))):
        return False
    parts_of_day = [patterns.part_of_day.search(" ".join(values)) for values in (mine, theirs)]
    gaps = [abs(hour - other) for hour in new.hours - old.hours for other in old.hours - new.hours]
    return all(parts_of_day) or (bool(gaps) and min(gaps) >= _MIN_HOURS_APART)


def _parse_fact(text: str, patterns: _UpdatePatterns, words: Words) -> _FactParts:
    said = clean_text(text)
    plain, changes = patterns.change.subn(" ", said)
    plain, hints = patterns.hint.subn(" ", plain)
    tokens = [
        (token, bool(patterns.value.fullmatch(token)), token not in patterns.stop_words) for token in plain.split()
    ]
    name = _find_name(tokens)
    values = tuple(patterns.value.findall(f" {plain}".replace(f" {name} ", " ", 1) if name else plain))
    # a number is no hour if a noun follows ("5 mg"), or an hour precedes, as minutes
    around = zip([("", False, False), *tokens], tokens, [*tokens[1:], ("", True, False)], strict=False)
    hours = [
        int(token) if token.isdecimal() else patterns.number_by_word.get(token, math.inf)
        for (before, _, _), (token, is_value, _), (_, is_next_value, is_next_subject) in around
        if is_value and token != name and not before.isdecimal() and (is_next_value or not is_next_subject)
    ]
    return _FactParts(
        said,
        changes > 0,
        hints > 0,
        patterns.negation.search(text.casefold()) is not None,
        _build_subject(plain, patterns, words) | _find_synonyms(said, patterns) | ({name} if name else set())
        or frozenset(patterns.value.sub(" ", plain).split()),
        values,
        frozenset([int(hour) for hour in hours if hour <= _MAX_HOUR]),
        name,
        _parse_state(text, plain, patterns, words),
    )


def _parse_state(text: str, plain: str, patterns: _UpdatePatterns, words: Words) -> _StateParts:
    found = patterns.state.search(plain)
    if found is None:
        return _StateParts()
    before, after = plain[: found.start()].split(), plain[found.end() :].split()
    head, predicate = [_build_subject(" ".join(each), patterns, words) for each in (before, after)]
    is_place = bool(after) and after[0] in patterns.stop_words
    capitalized = {each.strip(".,").casefold() for each in text.split() if each[0].isupper()}
    return _StateParts(
        head,
        predicate,
        begins_with_name=bool(before) and before[0] not in patterns.stop_words,
        has_one_value=found.lastindex is not None,
        is_place=is_place,
        is_name=not is_place and not capitalized.isdisjoint(after) and len(predicate) > 1,
    )


def _find_name(tokens: Sequence[tuple[str, bool, bool]]) -> str:
    """Return the number of the first noun, if more words follow ("bus 12 leaves"), else an empty text."""
    first = [is_subject for _, _, is_subject in [*tokens, ("", False, True)]].index(True)
    rest = [*tokens[first:], *[("", True, False)] * 4]
    if not rest[0][1]:
        # "Tom's class 3"
        rest = rest[3:] if rest[1][0] == "s" else rest[1:]
    elif not any(map(str.isdecimal, rest[0][0])):
        return ""
    number, is_value, _ = rest[0]
    return number if is_value and not rest[1][1] else ""


def _build_subject(plain: str, patterns: _UpdatePatterns, words: Words) -> frozenset[str]:
    for pattern in (patterns.value, *patterns.synonyms):
        plain = pattern.sub(" ", plain)
    return frozenset(words.search_terms(plain).words)


def _find_synonyms(plain: str, patterns: _UpdatePatterns) -> set[str]:
    return {f"={number}" for number, pattern in enumerate(patterns.synonyms) if pattern.search(plain)}


@cache
def _load_patterns(language: str) -> _UpdatePatterns:
    data, past = (load_language(language).get(name, {}) for name in ("updates", "past"))
    edge = get_word_boundary(language)
    more = r"\w*" if edge else ""
    words = map(clean_text, data.get("values", "").split())
    values = [re.escape(each) + (more if len(each) >= _MIN_STEM_CHARS else "") for each in words]
    weekday, month = [
        re.compile("|".join(past.get(name, "").split()) or "(?!)") for name in ("weekday_names", "month_names")
    ]
    numbers = enumerate(past.get("numbers", "").split(), 1)
    number_by_word = {word: number for number, alternatives in numbers for word in alternatives.split("|")}

    def compile_words(pattern: str) -> re.Pattern[str]:
        return re.compile(f"{edge}(?:{pattern or '(?!)'}){edge}")

    return _UpdatePatterns(
        compile_words("|".join(re.escape(clean_text(each)) for each in data.get("changes", ()))),
        compile_words(data.get("hints", "")),
        compile_words(data.get("additions", "")),
        compile_words("|".join([rf"{more}\d+{more}", *sorted(values, key=len, reverse=True)])),
        compile_words(data.get("states", "")),
        tuple([compile_words("|".join(each.split())) for each in data.get("same", ())]),
        weekday,
        month,
        compile_words("|".join([each for each in values if each not in number_by_word])),
        number_by_word,
        compile_words(load_language(language).get("negations", "")),
        get_function_words((language, "en"), "stop"),
    )
