"""Tests for the words of commands and the past times that a query to memory is built from."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from custom_components.windowed_conversation.memory import RecallQuery
from custom_components.windowed_conversation.turn.recall_query import (
    build_recall_query,
    find_past_time,
    get_small_talk_words,
    iter_command_words,
)
from custom_components.windowed_conversation.turn.speaker import Speaker

# a Thursday
NOW = datetime(2026, 11, 26, 16, 30, tzinfo=UTC)

LAST_WEEK = ("2026-11-16", "2026-11-23")
YESTERDAY = ("2026-11-25", "2026-11-26")
TWO_MONTHS_AGO = ("2026-09-01", "2026-10-01")
MARCH = ("2026-03-01", "2026-04-01")
MONDAY = ("2026-11-23", "2026-11-24")

PHRASES = {
    "en": ("last week", "yesterday", "two months ago", "in March", "last Monday"),
    "de": ("letzte Woche", "gestern", "vor zwei Monaten", "im März", "am letzten Montag"),
    "fr": ("la semaine dernière", "hier", "il y a deux mois", "en mars", "lundi dernier"),
    "es": ("la semana pasada", "ayer", "hace dos meses", "en marzo", "el lunes pasado"),
    "it": ("la settimana scorsa", "ieri", "due mesi fa", "a marzo", "lunedì scorso"),
    "nl": ("vorige week", "gisteren", "twee maanden geleden", "in maart", "vorige maandag"),
    "pl": ("w zeszłym tygodniu", "wczoraj", "dwa miesiące temu", "w marcu", "w zeszły poniedziałek"),
    "pt": ("na semana passada", "ontem", "há dois meses", "em março", "na segunda-feira passada"),
    "pt-BR": ("semana passada", "ontem", "dois meses atrás", "em março", "segunda passada"),
    "sv": ("förra veckan", "igår", "för två månader sedan", "i mars", "i måndags"),
    "da": ("i sidste uge", "i går", "for to måneder siden", "i marts", "i mandags"),
    "cs": ("minulý týden", "včera", "před dvěma měsíci", "v březnu", "minulé pondělí"),
    "uk": ("минулого тижня", "вчора", "два місяці тому", "в березні", "минулого понеділка"),
    "nb": ("forrige uke", "i går", "for to måneder siden", "i mars", "sist mandag"),
    "ja": ("先週", "昨日", "二か月前", "三月", "この前の月曜日"),
    "zh-Hans": ("上周", "昨天", "两个月前", "三月", "刚过去的星期一"),
}
CASES = [
    (language, phrase, span)
    for language, phrases in PHRASES.items()
    for phrase, span in zip(phrases, (LAST_WEEK, YESTERDAY, TWO_MONTHS_AGO, MARCH, MONDAY), strict=True)
]


def get_span(text: str, language: str = "en", now: datetime = NOW) -> tuple[str, str] | None:
    found = find_past_time(text, language, now)
    if found is None:
        return None
    first, last = (datetime.fromtimestamp(each, now.tzinfo) for each in (found.since, found.until))
    return f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"


def test_past_time_becomes_a_span(subtests: pytest.Subtests) -> None:
    for language, phrase, span in CASES:
        with subtests.test(language=language, phrase=phrase):
            assert get_span(f"stains {phrase} ?", language) == span


@pytest.mark.parametrize(
    ("phrase", "span"),
    [
        ("today", ("2026-11-26", "2026-11-26")),
        ("the day before yesterday", ("2026-11-24", "2026-11-25")),
        ("3 days ago", ("2026-11-23", "2026-11-24")),
        ("a week ago", ("2026-11-16", "2026-11-23")),
        ("last Thursday", ("2026-11-19", "2026-11-20")),
        ("this month", ("2026-11-01", "2026-11-26")),
        ("last year", ("2025-01-01", "2026-01-01")),
        ("in November", ("2026-11-01", "2026-11-26")),
        ("in December", ("2025-12-01", "2026-01-01")),
    ],
)
def test_span_ends_with_its_last_day_or_now(phrase: str, span: tuple[str, str]) -> None:
    assert get_span(f"what did we say {phrase}?") == span


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("when does the ferry leave?", "en"),
        ("0 days ago", "en"),
        ("99999 years ago", "en"),
        ("many days ago", "en"),
        ("next week", "en"),
        ("last week", "ja"),
        ("yesterdays", "en"),
    ],
)
def test_other_sentences_name_no_past_time(text: str, language: str) -> None:
    assert find_past_time(text, language, NOW) is None


def test_days_begin_at_midnight_of_the_home() -> None:
    found = find_past_time("yesterday", "en", NOW.astimezone(timezone(timedelta(hours=9))))

    assert found is not None
    assert datetime.fromtimestamp(found.since, UTC) == datetime(2026, 11, 25, 15, tzinfo=UTC)


def test_leap_day_is_a_day_of_every_month() -> None:
    assert get_span("last month", now=datetime(2028, 3, 31, tzinfo=UTC)) == ("2028-02-01", "2028-03-01")
    assert get_span("last year", now=datetime(2028, 2, 29, tzinfo=UTC)) == ("2027-01-01", "2028-01-01")


def test_query_has_the_span_and_the_sentence_without_its_phrase() -> None:
    speaker = Speaker("what did I ask you last week about stains?", "en", person="ada", name="Ada")

    query = build_recall_query(speaker, NOW, frozenset({"light"}))

    assert query == RecallQuery(
        "what did I ask you about stains?",
        "ada",
        "Ada",
        limit=20,
        since=datetime(2026, 11, 16, tzinfo=UTC).timestamp(),
        until=datetime(2026, 11, 23, tzinfo=UTC).timestamp(),
        private=speaker.is_alone,
        command_words=frozenset({"light"}),
        is_question=True,
        asked_text="what did I ask you last week about stains?",
    )


def test_query_keeps_the_name_of_a_month() -> None:
    query = build_recall_query(Speaker("who came in March", "en"), NOW, frozenset())

    assert (query.text, query.is_question) == ("who came in March", False)


def test_command_words_are_those_of_templates() -> None:
    intents = {
        "intents": {"HassTurnOn": {"data": [{"sentences": ["Turn on [the] <name>", "switch {area} light[s] 100 %"]}]}},
        "expansion_rules": {"name": "(my|our) {name}"},
    }

    assert set(iter_command_words(intents)) == {"turn", "on", "the", "switch", "light", "lights", "my", "our"}


def test_small_talk_of_an_unknown_language_is_empty() -> None:
    assert get_small_talk_words("tlh") == frozenset()
    assert "thanks" in get_small_talk_words("en-GB")
