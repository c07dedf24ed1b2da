"""The query that a sentence makes to memory: the past time that it names, and the words of commands to the home."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
import re
from typing import Any

from ...turn.routing import is_question
from ..core import RecallQuery, base_language
from .recall import MAX_RECALL_HITS
from .speaker import Speaker, get_word_boundary, load_language

_MAX_AGO = 400
_MAX_DIGITS = 4
_WEEK_DAYS = 7
_YEAR_MONTHS = 12
_UNITS = ("days", "weeks", "months", "years")

_SLOT_PATTERN = re.compile(r"\{[^{}]*\}|<[^<>]*>")
_OPTIONAL_PATTERN = re.compile(r"\[[^\[\]]*\]")
_BRACKET_PATTERN = re.compile(r"[\[\]]")
_WORD_PATTERN = re.compile(r"[^\W\d_]+")


def iter_command_words(intents: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of the sentence templates of a language, casefolded.

    `intents` has the structure of the intents package of Home Assistant: `intents`, `expansion_rules`, and so on.
    """
    templates: Iterable[str] = [
        *(intents.get("expansion_rules") or {}).values(),
        *(
            sentence
            for intent in intents.get("intents", {}).values()
            for data in intent["data"]
            for sentence in data["sentences"]
        ),
    ]
    for template in templates:
        plain = _SLOT_PATTERN.sub(" ", template)
        # "light[s]" stands for both "light" and "lights"
        for form in (_OPTIONAL_PATTERN.sub("", plain), _BRACKET_PATTERN.sub("", plain)):
            yield from _WORD_PATTERN.findall(form.casefold())


def get_small_talk_words(language: str) -> frozenset[str]:
    """Return the words of greetings and thanks in a language, which search nothing."""
    return frozenset(load_language(language).get("past", {}).get("small_talk", "").split())


def build_recall_query(speaker: Speaker, now: datetime, command_words: frozenset[str], named: str = "") -> RecallQuery:
    """Return the query for the memories that are relevant to the speaker's input, which has these names of entities."""
    span = find_past_time(speaker.text, speaker.language, now)
    query = RecallQuery(
        speaker.text,
        speaker.person,
        speaker.name if speaker.person else None,
        MAX_RECALL_HITS,
        private=speaker.is_alone,
        command_words=command_words,
        named=named,
        is_question=is_question(speaker.text),
        # what was asked often would otherwise be all that is found
        asked_text=" ".join(speaker.text.split()),
    )
    if span is None:
        return query
    # a question about what the speaker, or the speaker and others, said or did
    edge, pronouns = get_word_boundary(speaker.language), load_language(speaker.language)["past"]["i_or_we"]
    is_about_us = re.search(f"{edge}(?:{pronouns}){edge}", span.text, re.IGNORECASE) is not None
    return query._replace(
        text=span.text,
        since=span.since,
        until=span.until,
        is_time_over=span.is_over,
        lists_time=query.is_question and is_about_us,
    )


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A past time span that a sentence names, in seconds since the epoch, and the sentence without its phrase.

    The sentence keeps the names of months, which facts contain as well.
    """

    since: float
    until: float
    text: str
    # Unlike today, which goes on, and a month, which may be the next one of this name.
    is_over: bool


def find_past_time(text: str, language: str, now: datetime) -> TimeSpan | None:
    """Return the past time that a sentence names ("last week", "two days ago", "in March"), or None."""
    for pattern, find_days, is_removed in _load_phrases(base_language(language)):
        if found := pattern.search(text):
            days = find_days(found, now)
            if days is None:
                continue
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
            first, end = (midnight + timedelta(days=day) for day in days)
            rest = f"{text[: found.start()]} {text[found.end() :]}" if is_removed else text
            return TimeSpan(
                first.timestamp(), min(end, now).timestamp(), " ".join(rest.split()), is_removed and end <= now
            )
    return None


# The days of a span, relative to today: the first one, and the one after the last one.
type _Days = tuple[int, int]
type _DayFinder = Callable[[re.Match[str], datetime], _Days | None]


@cache
def _load_phrases(language: str) -> tuple[tuple[re.Pattern[str], _DayFinder, bool], ...]:
    """Return the patterns of a language, each with its function and whether it is removed from the sentence."""
    phrases = load_language(language).get("past")
    if phrases is None:
        return ()
    numbers = {word: number for number, words in enumerate(phrases["numbers"].split(), 1) for word in words.split("|")}
    finders: list[tuple[str, _DayFinder, bool]] = [
        (phrases["ago"], partial(_find_ago, numbers=numbers), True),
        (_name_groups(phrases["last_weekday"], phrases["weekday_names"]), _find_weekday, True),
        (_name_groups(phrases["in_month"], phrases["month_names"]), _find_month, False),
    ]
    for unit in _UNITS:
        finders += [(phrase, partial(_find_last, unit, count), True) for phrase, count in phrases[unit].items()]
    edge = get_word_boundary(language)
    return tuple(
        [
            (re.compile(f"{edge}(?:{pattern}){edge}", re.IGNORECASE), find, is_removed)
            for pattern, find, is_removed in finders
        ]
    )


def _name_groups(pattern: str, names: str) -> str:
    """Return a pattern in which each of the names is a group with its number."""
    return pattern.format("|".join(f"(?P<n{number}>{name})" for number, name in enumerate(names.split())))


def _get_group_number(match: re.Match[str]) -> int:
    return int((match.lastgroup or "n0")[1:])


def _find_ago(match: re.Match[str], now: datetime, numbers: Mapping[str, int]) -> _Days | None:
    word = match[1].casefold()
    number = int(word) if word.isdecimal() and len(word) < _MAX_DIGITS else numbers.get(word, 0)
    if not 0 < number <= _MAX_AGO or match.lastindex is None:
        return None
    return _find_last(_UNITS[match.lastindex - 2], number, match, now)


def _find_weekday(match: re.Match[str], now: datetime) -> _Days:
    back = (now.weekday() - _get_group_number(match) - 1) % _WEEK_DAYS + 1
    return -back, 1 - back


def _find_month(match: re.Match[str], now: datetime) -> _Days:
    return _find_last("months", (now.month - 1 - _get_group_number(match)) % _YEAR_MONTHS, match, now)


def _find_last(unit: str, count: int, _match: re.Match[str], now: datetime) -> _Days:
    """Return the day, week, month or year that is `count` of them before the current one."""
    if unit == "days":
        return -count, 1 - count
    if unit == "weeks":
        first = -now.weekday() - count * _WEEK_DAYS
        return first, first + _WEEK_DAYS
    months, length = (now.month - 1 - count, 1) if unit == "months" else (-count * _YEAR_MONTHS, _YEAR_MONTHS)
    months += now.year * _YEAR_MONTHS
    return _days_until_month(now, months), _days_until_month(now, months + length)


def _days_until_month(now: datetime, months: int) -> int:
    """Return the days from today to the first day of a month, which is counted in months since the year 0."""
    year, month = divmod(months, _YEAR_MONTHS)
    return (now.date().replace(year=max(year, 1), month=month + 1, day=1) - now.date()).days
